"""The disk of nodes that are virtual machines: a small Debian with systemd and containerd.

It is made once. Nothing of it depends on a cluster or on the version of Kubernetes: what does is
on a second disk (vm_node.py). What a node writes to this one is thrown away with the node.
"""

import hashlib
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import threading
import time

from .common import ClusterError, cache_dir, locked, say, wait_until
from .kernel import die_with_parent

STEPS = "1"  # another number when what _make() does changes the disk
SUITE = "bookworm"
PACKAGES = ("systemd", "systemd-sysv", "udev", "dbus", "kmod", "iproute2", "procps", "containerd",
            "runc", "containernetworking-plugins")
# A package that depends on the current kernel. It is unpacked and not installed, because its
# installation would make an initramfs, which this machine does not need: the drivers of its disk
# and file system are part of the kernel itself.
KERNEL = "linux-image-cloud-amd64"
SIZE = "3G"  # a sparse file
GUEST = pathlib.Path(__file__).parent.parent / "guest"
UNNEEDED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man",
            "usr/share/locale")

KEPT_DISKS = 3
ATTEMPTS = 5
FIRST_DELAY_S = 3
DEBOOTSTRAP_TIMEOUT_S = 1800
STEP_TIMEOUT_S = 600
KVM_TRIAL_S = 20

COMMANDS = (("qemu-system-x86_64", "qemu-system-x86"), ("mke2fs", "e2fsprogs"))
BUILD_COMMANDS = (("debootstrap", "debootstrap"), ("apt-get", "apt"), ("dpkg-deb", "dpkg"))


def directory():
    """Where the image is, or will be. Its name changes with whatever makes its content."""
    recipe = hashlib.sha256("\n".join((STEPS, SUITE, *PACKAGES, KERNEL, SIZE)).encode())
    for path in sorted(GUEST.rglob("*")):
        if path.is_file():
            recipe.update(f"\0{path.relative_to(GUEST)}\0".encode() + path.read_bytes())
    return cache_dir() / "vm" / f"node-{recipe.hexdigest()[:12]}"


def is_built():
    return (directory() / "root.img").exists()


def why_impossible():
    """Why no machine can be started here, or its image be made, or None."""
    if platform.machine() != "x86_64":
        return "needs an x86-64 processor"
    for command, package in COMMANDS + (() if is_built() else BUILD_COMMANDS):
        if not shutil.which(command):
            return f"needs {package}"
    if not is_built() and os.geteuid() != 0:
        return "needs root"
    return None


def ensure():
    """Returns the directory with the kernel and the disk, after making what is missing."""
    made = directory()
    if is_built():
        return made
    reason = why_impossible()
    if reason:
        raise ClusterError(f"the disk of virtual machines cannot be made here: {reason}")
    with locked(made.with_name("node.lock"), "another run makes a disk for machines; waiting"):
        if not is_built():
            _make(made)
    return made


def _make(made):
    started = time.monotonic()
    unfinished = made.with_name("unfinished")  # of whatever recipe: a killed one's is removed
    root = unfinished / "root"
    _remove(unfinished)
    try:
        unfinished.mkdir(parents=True)
        _with_retry("debootstrap", lambda: _debootstrap(root))
        _with_retry(KERNEL, lambda: _add_kernel(root, unfinished))
        for path in UNNEEDED:
            shutil.rmtree(root / path, ignore_errors=True)
        shutil.copytree(GUEST, root, dirs_exist_ok=True, symlinks=True)
        (root / "mbcas").mkdir()
        (root / "etc/hostname").write_text("mbcas-vm\n")
        # Without one systemd takes every boot for the first one of a new system.
        (root / "etc/machine-id").write_text(hashlib.md5(made.name.encode()).hexdigest() + "\n")
        say("writing the file system of the disk")
        image = unfinished / "root.img"
        make_file_system(image, root, SIZE)
        made.mkdir(exist_ok=True)
        (unfinished / "vmlinuz").rename(made / "vmlinuz")
        image.rename(made / "root.img")  # the last: is_built() looks for it
    finally:
        _remove(unfinished)
    # Another checkout may need the disk of another recipe; a machine keeps its files open.
    disks = [path for path in made.parent.glob("node-*") if path.is_dir()]
    for old in sorted(disks, key=lambda path: path.stat().st_mtime)[:-KEPT_DISKS]:
        shutil.rmtree(old, ignore_errors=True)
    say(f"made the disk of virtual machines in {time.monotonic() - started:.0f} s")


def _remove(path):
    """With what a debootstrap that was killed has left mounted below it."""
    for line in reversed(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
        mount_point = line.split()[4]
        if mount_point.startswith(f"{path}/"):
            run_step(["umount", "--lazy", mount_point], STEP_TIMEOUT_S)
    shutil.rmtree(path, ignore_errors=True)


def make_file_system(image, content, size):
    """Without mounting anything, so that it works where there are no loop devices."""
    image.unlink(missing_ok=True)
    run_step(["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0",
              "-d", str(content), str(image), size], STEP_TIMEOUT_S)


def _with_retry(what, attempt):
    """The server of the packages may answer 429 or fail for a while."""
    delay = FIRST_DELAY_S
    for number in range(1, ATTEMPTS + 1):
        try:
            return attempt()
        except ClusterError as error:
            if number == ATTEMPTS:
                raise
            last = str(error).strip().splitlines()[-1]
            say(f"{what} failed ({last}); attempt {number} of {ATTEMPTS}, next in {delay} s")
            time.sleep(delay)
            delay *= 2


def _debootstrap(root):
    say(f"making a Debian for virtual machines ({SUITE}: {', '.join(PACKAGES)})")
    _remove(root)
    run_step(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE,
              str(root)], DEBOOTSTRAP_TIMEOUT_S, progress=True)


def _add_kernel(root, scratch):
    depends = run_step(["apt-cache", "depends", KERNEL], STEP_TIMEOUT_S)
    package = kernel_package(depends)
    if not package:
        raise ClusterError(f"the package {KERNEL} is not known here: run `apt-get update`")
    say(f"adding the kernel {package}")
    for old in scratch.glob("*.deb"):
        old.unlink()
    run_step(["apt-get", "-q", "download", package], STEP_TIMEOUT_S, cwd=scratch)
    archive, = scratch.glob("*.deb")
    unpacked = scratch / "kernel"
    run_step(["dpkg-deb", "-x", str(archive), str(unpacked)], STEP_TIMEOUT_S)
    kernel, = (unpacked / "boot").glob("vmlinuz-*")
    kernel.rename(scratch / "vmlinuz")
    version = kernel.name.removeprefix("vmlinuz-")
    shutil.copytree(unpacked / "lib/modules", root / "usr/lib/modules", dirs_exist_ok=True)
    run_step(["chroot", str(root), "depmod", version], STEP_TIMEOUT_S)


def kernel_package(depends):
    """The package with the kernel itself, from what `apt-cache depends` says of KERNEL."""
    for line in depends.splitlines():
        word = line.strip().removeprefix("Depends: ")
        if word != line.strip() and word.startswith("linux-image-"):
            return word
    return None


def progress_of(line):
    """What debootstrap is at, from a line that it writes, or None."""
    words = line.strip().removeprefix("I: ").rstrip(".").split()
    if not line.startswith("I: ") or len(words) < 2:
        return None
    if words[0] in ("Retrieving", "Extracting", "Unpacking", "Configuring") and words[1] != "the":
        return " ".join(words[:2]).lower()
    return None


def run_step(command, timeout, cwd=None, progress=False):
    """Runs a command to its end and returns its output. With progress it says what the command is
    at now and then, as the command is debootstrap."""
    lines, at = [], [None]
    environment = dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive")
    environment["PATH"] = environment.get("PATH", "") + ":/usr/sbin:/sbin"
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace",
                               preexec_fn=die_with_parent, env=environment,
                               start_new_session=True)

    def read():
        for line in process.stdout:
            lines.append(line)
            at[0] = progress_of(line) or at[0]

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    began = said = time.monotonic()
    try:
        while process.poll() is None:
            wait_until(lambda: process.poll() is not None, 1)
            now = time.monotonic()
            if now - began > timeout:
                raise ClusterError(f"`{command[0]}` was not done after {timeout} s; it said:\n"
                                   + "".join(lines[-15:]))
            if progress and now - said > 10:
                said = now
                say(f"{at[0] or 'resolving dependencies'} ({now - began:.0f} s)")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            process.wait()
        reader.join()
        process.stdout.close()
    if process.returncode != 0:
        raise ClusterError(f"`{command[0]}` failed:\n" + "".join(lines[-15:]))
    return "".join(lines)


def accelerator():
    """KVM where a kernel comes to its own end with it, which takes a second: that there is a
    /dev/kvm says little. Else emulation."""
    if not os.access("/dev/kvm", os.W_OK):
        return ["-accel", "tcg,thread=multi"]
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "max", "-m", "256", "-nodefaults",
               "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel",
               str(ensure() / "vmlinuz"), "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=KVM_TRIAL_S, preexec_fn=die_with_parent)
        if "Unable to mount root fs" in done.stdout:
            return ["-accel", "kvm"]
    except subprocess.TimeoutExpired:
        pass
    return ["-accel", "tcg,thread=multi"]
