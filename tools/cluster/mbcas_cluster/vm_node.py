"""A node that is a virtual machine with cgroup v2 and systemd, and joined another run's cluster.

The emulator runs in the node's own process namespace, and ends with it. Of its two disks
one is the image that all machines share (vm_image.py); what a machine writes there goes to a file
that has no name any more, and is lost with the machine. The other one has what differs from node to
node: the kubelet, configuration, the addresses.
"""

import json
import os
import shutil
import time

from . import network, node_config, vm_image
from .common import ClusterError, tail, wait_until
from .guest import Guest
from .joined_node import JoinedNode

CPUS = 2
MEMORY_MIB = 1024
MOUNT = "/mbcas"  # of the second disk, in the machine
CNI_PLUGINS = "/usr/lib/cni"  # there, as Debian has it
BOOT_TIMEOUT_S = 240
TRUE_TIMEOUT_S = 60
BOOT_ATTEMPTS = 2  # an emulated kernel now and then hangs


class VmNode(JoinedNode):
    TELLING_LOG = "journal"
    UPLINK = network.Tap

    def start(self):
        image = vm_image.ensure()
        self._report(say=f"making the link to {self._cluster.id} and the disk of the machine")
        tap = self._uplink.make()
        disk = self._make_disk()
        self._report(say="starting the virtual machine")
        self._start_machine(image, disk, tap)
        self._wait_for_boot()
        self._report(say=f"the machine is up after {time.time() - self._began:.0f} s; waiting for "
                         "its kubelet")
        self._wait_for_node()
        return self._shared_facts()

    def _make_disk(self):
        content = self._run.dir / "disk"
        shutil.rmtree(content, ignore_errors=True)
        (content / "cni").mkdir(parents=True)
        shutil.copy(self._binaries / "kubelet", content / "kubelet")
        shutil.copy(self._run.dir / "workload.tar", content / "workload.tar")
        self._api.write_node_kubeconfig(content / "kubeconfig", self._run.id)
        for name, text in files(self._run.id, self._number).items():
            (content / name).write_text(text)
        size = sum(path.stat().st_size for path in content.rglob("*") if path.is_file())
        disk = self._run.dir / "disk.img"
        vm_image.make_file_system(disk, content, f"{(size >> 20) + 32}M")
        shutil.rmtree(content)
        return disk

    def _start_machine(self, image, disk, tap):
        os.environ["TMPDIR"] = str(self._run.dir)  # for what the machine writes
        self._start_component("qemu", command(
            vm_image.accelerator(), image, disk, tap, self._run.log("console"),
            self._run.log("journal"), self._number), pass_fds=[tap])

    def _wait_for_boot(self):
        machine = self.components["qemu"]

        def is_up():
            if not machine.is_running():
                raise ClusterError(f"the virtual machine ended; qemu says:\n{machine.log_tail()}\n"
                                   f"its console ends:\n{self._console_tail()}")
            try:
                answer = Guest(self._run).call(["true"], silence=TRUE_TIMEOUT_S)
            except OSError:
                return False
            return answer == (0, b"")

        for attempt in range(BOOT_ATTEMPTS):
            if attempt:
                self._report(say=f"not up after {BOOT_TIMEOUT_S} s; starting the machine again")
                machine.kill()
                machine.start()
            if wait_until(is_up, BOOT_TIMEOUT_S, interval=0.5):
                return
        raise ClusterError(f"the virtual machine was not up after {BOOT_TIMEOUT_S} s; its console "
                           f"ends:\n{self._console_tail()}\n"
                           f"its journal ends:\n{tail(self._run.log('journal'))}")

    def _console_tail(self):
        return tail(self._run.log("console"), 30)


def files(name, number):
    """What the second disk has besides programs and credentials: text by name."""
    kubelet = node_config.kubelet_config("", f"{MOUNT}/resolv.conf", driver="systemd")
    return {
        "containerd.toml": node_config.containerd_config(
            "overlayfs", f"{MOUNT}/cni", CNI_PLUGINS, systemd=True),
        "cni/10-mbcas.conflist": node_config.cni_config(number),
        "kubelet.json": json.dumps(kubelet, indent=2),
        "resolv.conf": "# The node has no name server.\n",
        "commander": network.address(0) + "\n",
        "network": "".join(f"ip {line}\n" for line in (
            *network.bridge_commands(number), "link set eth0 up",
            network.default_route(number, "eth0")))
        + "echo 1 >/proc/sys/net/ipv4/ip_forward\n",
        "start-kubelet": f"exec {MOUNT}/kubelet --config={MOUNT}/kubelet.json "
                         f"--kubeconfig={MOUNT}/kubeconfig --hostname-override={name} "
                         f"--node-ip={network.address(number)}\n",
    }


def command(accelerator, image, disk, tap, console, journal, number):
    """The command line of qemu; `tap` is an open file."""
    return [
        "qemu-system-x86_64", *accelerator,
        # What is switched off makes newer kernels panic on this qemu.
        "-cpu", "max,la57=off,-cx16", "-smp", str(CPUS), "-m", str(MEMORY_MIB),
        "-nodefaults", "-display", "none", "-no-reboot",
        "-kernel", str(image / "vmlinuz"),
        "-append", "root=/dev/nvme0n1 rw console=ttyS0 quiet panic=-1 psi=1 net.ifnames=0 "
                   "mitigations=off systemd.unit=mbcas.target",
        # The driver for these disks is part of Debian's kernel, so there is no initramfs.
        "-device", "nvme,id=disks,serial=mbcas",
        "-drive", f"if=none,id=root,format=raw,snapshot=on,file={image / 'root.img'}",
        "-device", "nvme-ns,bus=disks,nsid=1,drive=root",
        "-drive", f"if=none,id=own,format=raw,readonly=on,file={disk}",
        "-device", "nvme-ns,bus=disks,nsid=2,drive=own",
        "-netdev", f"tap,id=uplink,fd={tap}",
        # Without the code to boot from a network, which is in a package of its own.
        "-device", f"virtio-net-pci,netdev=uplink,romfile=,mac=02:00:0a:58:{number:02x}:02",
        "-device", "virtio-rng-pci",
        "-chardev", f"file,id=console,append=on,path={console}", "-serial", "chardev:console",
        "-chardev", f"file,id=journal,append=on,path={journal}",
        "-device", "virtio-serial-pci", "-device", "virtconsole,chardev=journal",
    ]
