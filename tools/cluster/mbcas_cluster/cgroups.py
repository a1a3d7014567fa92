"""A node's own cgroup, directly below the root of each hierarchy, on cgroup v1, v2 and hybrids."""

import errno
import os
import pathlib
import signal

from .common import ClusterError, wait_until

# Of these the kubelet demands on cgroup v2 whichever the kernel has, and the first three always.
V2_CONTROLLERS = ("cpu", "memory", "pids", "cpuset", "hugetlb")
V2_REQUIRED = V2_CONTROLLERS[:3]


def hierarchies():
    """(mount point, type) of each cgroup hierarchy; one may be mounted in several places."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind = fields[fields.index("-") + 1]
        if kind in ("cgroup", "cgroup2") and fields[3] == "/":
            found.setdefault(fields[2], (pathlib.Path(fields[4]), kind))  # by device number
    return list(found.values())


def create(name):
    """The kubelet demands that its root cgroup exists in every hierarchy it uses."""
    found = hierarchies()
    if not found:
        raise ClusterError("no cgroup file system is mounted: a node needs one at /sys/fs/cgroup")
    pure_v2 = all(kind == "cgroup2" for _, kind in found)
    for mount_point, kind in found:
        if pure_v2:
            _enable_controllers(mount_point)
        path = mount_point / name
        path.mkdir(exist_ok=True)
        if kind == "cgroup" and (path / "cpuset.cpus").exists():
            # A new v1 cpuset is empty and accepts no process until it has been filled.
            for file in ("cpuset.cpus", "cpuset.mems"):
                (path / file).write_text((mount_point / file).read_text())
        _set_weight(path)


def _set_weight(path):
    """The weight that the kubelet would give to kubepods next to the host's own processes."""
    shares = min(1024 * (os.cpu_count() or 1), 262144)
    for file, value in (("cpu.shares", shares), ("cpu.weight", 1 + (shares - 2) * 9999 // 262142)):
        if (path / file).exists():
            (path / file).write_text(str(value))


def _enable_controllers(root):
    available = (root / "cgroup.controllers").read_text().split()
    missing = [name for name in V2_REQUIRED if name not in available]
    if missing:
        raise ClusterError(f"cgroup controllers missing at {root}: {', '.join(missing)}")
    control = root / "cgroup.subtree_control"
    for controller in set(V2_CONTROLLERS) & set(available) - set(control.read_text().split()):
        try:
            control.write_text(f"+{controller}")
        except OSError as error:
            raise ClusterError(f"cannot enable the {controller} controller in {control} "
                               f"({error.strerror}): is this a container whose root cgroup "
                               "has processes?") from None


def existing(name):
    return [path for path in (mount / name for mount, _ in hierarchies()) if path.is_dir()]


def remove(name):
    """Kills what is still in the cgroup and removes it with all its children."""
    for top in existing(name):
        if not wait_until(lambda: _try_remove(top), timeout=60):
            raise ClusterError(f"cgroup {top} cannot be removed: it still has processes")


def _try_remove(top):
    for directory, _, _ in os.walk(top, topdown=False):
        try:
            for pid in map(int, (pathlib.Path(directory) / "cgroup.procs").read_text().split()):
                if pid > 0:
                    os.kill(pid, signal.SIGKILL)
            os.rmdir(directory)
        except ProcessLookupError:
            return False
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV):
                continue
            if error.errno == errno.EBUSY:
                return False
            raise
    return not top.exists()
