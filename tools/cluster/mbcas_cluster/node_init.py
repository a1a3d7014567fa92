"""The first process of a node: makes its surroundings, starts its components, watches them.

/run, /var/lib and /var/log are private within, so that containerd, the kubelet and CNI keep
to their usual places there, as on any node, and nothing of theirs is seen outside.
"""

import json
import os
import select
import socket
import struct
import subprocess

from . import build, forward, image, kernel
from .common import ClusterError, wait_until
from .control_plane import ControlPlane, Options
from .node import CONTAINERD_SOCKET, cni_plugins, control_address, ctr
from .run import Component, Run, identity
from .supervisor import obey

BRIDGE = "mbcas0"
BRIDGE_MAC = "02:00:0a:58:00:01"
NODE_ADDRESS = "10.88.0.1"
POD_RANGE = "10.88.0.0/24"
# The address of the service `kubernetes`: on the bridge itself, where the apiserver listens, so
# that pods reach it without kube-proxy.
SERVICE_ADDRESS = "10.0.0.1"
STEP_TIMEOUT_S = 240


def init(run_id, report_fd):
    run = Run.load(run_id)
    api_listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    control_listener = socket.socket(socket.AF_UNIX)
    control_listener.bind(control_address(run))
    control_listener.listen()
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID)
    go_reader, go_writer = os.pipe()
    child = os.fork()
    if child:
        run.save(supervisor=identity(child))
        os.write(go_writer, b"g")
        return 0
    os.read(go_reader, 1)

    def report(**message):
        try:
            os.write(report_fd, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            pass

    try:
        server = _Node(run, report)
        facts = server.start(api_listener)
    except (ClusterError, OSError) as error:
        report(error=str(error))
        return 1
    api_listener.close()
    report(**facts)
    os.close(report_fd)
    server.watch(control_listener)
    return 0


class _Node:
    def __init__(self, run, report):
        self._run = run
        self._report = report
        self._binaries = build.binaries_dir(run.state["version"])
        self._node_user = f"system:node:{run.id}"
        options = Options(**run.state["options"])
        options.users = [*options.users, "system:kube-controller-manager", "system:kube-scheduler",
                         f"{self._node_user},system:nodes"]
        options.apiserver_args.append("--kubelet-preferred-address-types=InternalIP")
        self._control_plane = ControlPlane(run, self._binaries, options, SERVICE_ADDRESS)
        self._components = dict(self._control_plane.components)

    def start(self, api_listener):
        self._report(say="making namespaces, bridge and control plane")
        server = f"https://127.0.0.1:{api_listener.getsockname()[1]}"
        self._make_private_mounts()
        self._make_links()
        self._start_forwarder(api_listener)
        self._control_plane.start_on_ports(2379, 2380, 443)
        kubeconfig = self._control_plane.write_kubeconfig(self._run.dir / "kubeconfig",
                                                          server=server)
        users = self._control_plane.write_user_kubeconfigs(self._run.state["options"]["users"],
                                                           server)
        self._report(say="starting controller-manager, scheduler, containerd and kubelet")
        self._start_controllers()
        self._start_containerd()
        self._start_kubelet()
        self._wait_for_node()
        return {"server": server, "kubeconfig": str(kubeconfig), "users": users,
                "caFile": str(self._control_plane.ca_file)}

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
        private_lib.mkdir()
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

    def _make_links(self):
        # With an address of its own: else the bridge takes the lowest of its ports', another one
        # whenever a pod comes or goes, and pods send to the old one until their ARP entries expire.
        for arguments in ("link set lo up",
                          f"link add {BRIDGE} address {BRIDGE_MAC} type bridge",
                          f"address add {NODE_ADDRESS}/{POD_RANGE.split('/')[1]} dev {BRIDGE}",
                          f"address add {SERVICE_ADDRESS}/32 dev {BRIDGE}",
                          f"link set {BRIDGE} up"):
            _checked(["ip", *arguments.split()])

    def _start_forwarder(self, listener):
        if os.fork() == 0:
            kernel.die_with_parent()
            try:
                forward.serve(listener, SERVICE_ADDRESS, 443)
            finally:
                os._exit(1)

    def _start_component(self, name, command):
        component = Component(self._run, name, [str(word) for word in command])
        self._components[name] = component
        component.start()
        return component

    def _kubeconfig(self, user):
        path = self._run.dir / f"kubeconfig-{user.replace(':', '-')}"
        return self._control_plane.write_kubeconfig(path, user)

    def _start_controllers(self):
        plane = self._control_plane
        self._start_component("controller-manager", [
            self._binaries / "kube-controller-manager", "--leader-elect=false",
            f"--kubeconfig={self._kubeconfig('system:kube-controller-manager')}",
            "--use-service-account-credentials", f"--root-ca-file={plane.ca_file}",
            f"--service-account-private-key-file={plane.service_account_key}",
            f"--cert-dir={self._run.dir / 'controller-manager'}"])
        self._start_component("scheduler", [
            self._binaries / "kube-scheduler", "--leader-elect=false",
            f"--kubeconfig={self._kubeconfig('system:kube-scheduler')}",
            f"--cert-dir={self._run.dir / 'scheduler'}"])

    def _start_containerd(self):
        config = self._run.dir / "containerd.toml"
        config.write_text(_containerd_config(self._snapshotter(), self._run.dir / "cni"))
        networks = self._run.dir / "cni"
        networks.mkdir()
        (networks / "10-mbcas.conflist").write_text(_cni_config())
        containerd = self._start_component("containerd", ["containerd", "--config", config])
        containerd.wait_ready(
            lambda: subprocess.run(ctr("version"), capture_output=True).returncode == 0,
            STEP_TIMEOUT_S)
        _checked(ctr("images", "import", str(self._run.dir / "workload.tar")))

    def _snapshotter(self):
        """overlayfs, unless the cache's file system cannot carry it: then plain copies."""
        base = self._run.dir / "overlay-trial"
        for name in ("lower", "upper", "work", "merged"):
            (base / name).mkdir(parents=True)
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
        settings = _kubelet_config(self._run.state["cgroup"], resolv_conf)
        config.write_text(json.dumps(settings, indent=2))
        self._start_component("kubelet", [
            self._binaries / "kubelet", f"--config={config}",
            f"--kubeconfig={self._kubeconfig(self._node_user)}",
            f"--hostname-override={self._run.id}", f"--node-ip={NODE_ADDRESS}"])

    def _wait_for_node(self):
        def is_ready():
            for component in self._components.values():
                if not component.is_running():
                    raise ClusterError(f"{component.name} exited; its log ends:\n"
                                       f"{component.log_tail()}")
            try:
                node = json.loads(self._control_plane.get(f"/api/v1/nodes/{self._run.id}"))
                # Without its service account and the authority's certificate no pod can start.
                for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                    self._control_plane.get(f"/api/v1/namespaces/default/{path}")
            except OSError:
                return False
            return any(condition["type"] == "Ready" and condition["status"] == "True"
                       for condition in node["status"].get("conditions", []))

        if not wait_until(is_ready, STEP_TIMEOUT_S, interval=0.2):
            raise ClusterError(f"the node was not Ready after {STEP_TIMEOUT_S} s; the log of the "
                               f"kubelet ends:\n{self._components['kubelet'].log_tail()}")

    def watch(self, control_listener):
        """For ever: obeys commands, and reaps orphans, as the first process of a namespace must."""
        while True:
            if select.select([control_listener], [], [], 0.5)[0]:
                connection, _ = control_listener.accept()
                with connection:
                    self._serve(connection)
            self._reap()

    def _serve(self, connection):
        _, uid, _ = struct.unpack("3i", connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if uid != 0:
            return
        try:
            connection.settimeout(5)
            line = connection.makefile().readline()
            answer = obey(self._control_plane, self._components, line)
            connection.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass

    def _reap(self):
        ours = {component.process_id() for component in self._components.values()}
        while True:
            try:
                zombie = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if zombie is None:
                return
            if zombie.si_pid in ours:
                for component in self._components.values():
                    component.is_running()  # collects its exit code
            else:
                os.waitpid(zombie.si_pid, 0)


def _checked(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        reason = (result.stderr or result.stdout).strip()
        raise ClusterError(f"`{' '.join(command)}` failed: {reason}")


def _containerd_config(snapshotter, networks):
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image.NAME}"
  disable_apparmor = true
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_plugins()}"
    conf_dir = "{networks}"
"""


def _cni_config():
    return json.dumps({"cniVersion": "0.4.0", "name": "mbcas", "plugins": [{
        "type": "bridge", "bridge": BRIDGE, "isDefaultGateway": True,
        "ipam": {"type": "host-local",
                 "ranges": [[{"subnet": POD_RANGE, "gateway": NODE_ADDRESS}]]},
    }]}, indent=2)


def _kubelet_config(cgroup, resolv_conf):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "resolvConf": str(resolv_conf),
        # A developer's disk is often nearly full, and no image could be pulled again.
        "evictionHard": {"memory.available": "1%", "nodefs.available": "1%",
                         "nodefs.inodesFree": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }
