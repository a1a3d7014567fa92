"""What every node has, with a control plane or without: mounts, a network, containerd, a kubelet.

/run, /var/lib and /var/log are private within, so that containerd, the kubelet and CNI keep
to their usual places there, as on any node, and nothing of theirs is seen outside.
"""

import json
import os
import subprocess
import time

from . import build, kernel, network, node_config
from .common import ClusterError, tail, wait_until
from .network import run_checked
from .node import ctr
from .run import Component

STEP_TIMEOUT_S = 240


class AnyNode:
    """Made outside of the node's namespaces; everything else happens inside."""

    TELLING_LOG = "kubelet"  # says why a node is not Ready

    def __init__(self, run, report, number, api):
        self._run = run
        self._report = report
        self._number = number
        self._api = api
        self._binaries = build.binaries_dir(run.state["version"])
        self._began = time.time()
        self.components = {}

    def start(self):
        """Returns what a user of the node needs to know."""
        raise NotImplementedError

    def start_component(self, name):
        component = self.components[name]
        if not component.is_running():
            component.start()

    def commands(self):
        """What the node obeys besides commands to its components: functions by command."""
        return {}

    def _start_kubelet_and_wait(self):
        self._start_containerd()
        self._start_kubelet()
        self._wait_for_node()

    def _make_private_mounts(self):
        kept = {path: os.open(path, os.O_PATH) for path in
                (self._run.dir, self._run.log_dir, self._binaries)}
        # Nothing mounted from here on may be seen outside. In a chroot "/" is no mount, so neither
        # can that be said of it nor could runc pivot away from it: go to the true root, say it
        # there, and come back to a mount of our own.
        root = os.open("/", os.O_PATH)
        kernel.setns(os.open("/proc/self/ns/mnt", os.O_RDONLY), kernel.CLONE_NEWNS)
        kernel.mount(None, "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
        path = os.readlink(f"/proc/self/fd/{root}")
        if path != "/":
            kernel.mount(path, path, flags=kernel.MS_BIND | kernel.MS_REC)
            os.chroot(path)
        os.chdir("/")
        kernel.mount(None, "/", flags=kernel.MS_REC | kernel.MS_SHARED)
        kernel.mount("proc", "/proc", "proc")

        private_lib = self._run.dir / "var-lib"
        private_lib.mkdir(exist_ok=True)
        kernel.mount(private_lib, "/var/lib", flags=kernel.MS_BIND)
        kernel.mount("tmpfs", "/run", "tmpfs", options="mode=755")
        # A kubelet removes the logs of every pod that it does not know, so it must not see the logs
        # of another cluster's pods.
        kernel.mount("tmpfs", "/var/log", "tmpfs", options="mode=755")
        for path, fd in kept.items():
            if not path.exists():  # the cache itself lies below /run or /var/lib
                path.mkdir(parents=True)
                kernel.mount(f"/proc/self/fd/{fd}", path, flags=kernel.MS_BIND)
            os.close(fd)

    def _start_component(self, name, command, pass_fds=()):
        component = Component(self._run, name, [str(word) for word in command], pass_fds)
        self.components[name] = component
        component.start()
        return component

    def _start_containerd(self):
        config = self._run.dir / "containerd.toml"
        config.write_text(node_config.containerd_config(self._snapshotter(), self._run.dir / "cni"))
        networks = self._run.dir / "cni"
        networks.mkdir(exist_ok=True)
        (networks / "10-mbcas.conflist").write_text(node_config.cni_config(self._number))
        containerd = self._start_component("containerd", ["containerd", "--config", config])
        containerd.wait_ready(
            lambda: subprocess.run(ctr("version"), capture_output=True).returncode == 0,
            STEP_TIMEOUT_S)
        run_checked(ctr("images", "import", str(self._run.dir / "workload.tar")))

    def _snapshotter(self):
        """overlayfs, unless the cache's file system cannot carry it: then plain copies."""
        base = self._run.dir / "overlay-trial"
        for name in ("lower", "upper", "work", "merged"):
            (base / name).mkdir(parents=True, exist_ok=True)
        try:
            kernel.mount("overlay", base / "merged", "overlay",
                         options=f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work")
        except OSError:
            return "native"
        subprocess.run(["umount", base / "merged"], check=False)
        return "overlayfs"

    def _start_kubelet(self):
        config = self._run.dir / "kubelet.json"
        resolv_conf = self._run.dir / "resolv.conf"
        resolv_conf.write_text("# The node has no name server.\n")
        settings = node_config.kubelet_config(self._run.state["cgroup"], resolv_conf)
        config.write_text(json.dumps(settings, indent=2))
        kubeconfig = self._api.write_node_kubeconfig(self._run.dir / "kubeconfig-kubelet",
                                                     self._run.id)
        self._start_component("kubelet", [
            self._binaries / "kubelet", f"--config={config}",
            f"--kubeconfig={kubeconfig}", f"--hostname-override={self._run.id}",
            f"--node-ip={network.address(self._number)}"])

    def _wait_for_node(self):
        # A node that was stopped may still be called Ready from before.
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began))

        def is_ready():
            for component in self.components.values():
                if not component.is_running():
                    raise ClusterError(f"{component.name} exited; its log ends:\n"
                                       f"{component.log_tail()}")
            try:
                node = json.loads(self._api.get(f"/api/v1/nodes/{self._run.id}"))
                # Without its service account and the authority's certificate no pod can start.
                for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                    self._api.get(f"/api/v1/namespaces/default/{path}")
            except OSError:
                return False
            return any(condition["type"] == "Ready" and condition["status"] == "True"
                       and condition["lastHeartbeatTime"] >= since
                       for condition in node["status"].get("conditions", []))

        if not wait_until(is_ready, STEP_TIMEOUT_S, interval=0.2):
            raise ClusterError(f"the node was not Ready after {STEP_TIMEOUT_S} s; the log "
                               f"{self.TELLING_LOG} ends:\n{tail(self._run.log(self.TELLING_LOG))}")
