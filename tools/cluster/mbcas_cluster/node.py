"""A whole one-node cluster in mount, network and process namespaces of its own.

The first process of the process namespace, init() below, starts and watches all components. When it
is killed, by whatever means, the kernel kills everything else in there, containers included; mounts,
links and packet filters vanish with their namespaces. Only files and cgroups remain to be removed.

Within, /run and /var/lib are private, so that containerd, the kubelet and CNI keep to their usual
places there, as on any node, and nothing of theirs is seen outside.
"""

import hashlib
import json
import os
import pathlib
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from . import build, cgroups, forward, image, kernel
from .common import ClusterError, cache_dir, locked, say, tail, wait_until
from .control_plane import ControlPlane, Options, obey
from .run import Component, Run, identity, is_alive

DEFAULT_NAME = "mbcas"
BRIDGE = "mbcas0"
NODE_ADDRESS = "10.88.0.1"
POD_RANGE = "10.88.0.0/24"
# The address of the service `kubernetes`: on the bridge itself, where the apiserver listens, so that
# pods reach it without kube-proxy.
SERVICE_ADDRESS = "10.0.0.1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CNI_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
UP_TIMEOUT_S = 300
STEP_TIMEOUT_S = 120


# ---- seen from the host ----


def why_impossible():
    """Why no node can run here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for command, package in (("containerd", "containerd"), ("runc", "runc"), ("ip", "iproute2"),
                             ("nsenter", "util-linux"), ("openssl", "openssl"), ("gcc", "gcc")):
        if not shutil.which(command):
            return f"needs {package}"
    if not _cni_plugins():
        return "needs containernetworking-plugins"
    return None


def _cni_plugins():
    return next((path for path in CNI_PLUGINS if os.path.exists(f"{path}/bridge")), None)


def up(name, options, owner):
    reason = why_impossible()
    if reason:
        raise ClusterError(f"a node cannot run here: {reason}")
    with _locked(name):
        run = Run.load(name)
        if run and is_alive(run.state.get("supervisor")) and "kubeconfig" in run.state:
            say(f"node {name} is already up")
        else:
            if run:
                say(f"removing what is left of an earlier node {name}")
                run.destroy()
            run = _start(name, options, owner)
    print(f"export KUBECONFIG={run.state['kubeconfig']}")
    print(f"# kubectl of the same version: {build.binaries_dir(run.state['version']) / 'kubectl'}",
          flush=True)


def _start(name, options, owner):
    version = build.chosen_version()
    build.ensure(with_node=True, version=version)
    started = time.monotonic()
    run = Run.create(name, "node", owner)
    try:
        run.save(version=version, cgroup=f"mbcas-{name}-{secrets.token_hex(3)}",
                 options=vars(options))
        cgroups.create(run.state["cgroup"])
        image.write_archive(run.dir)
        facts = _start_init(run)
        run = Run.load(name)
        run.save(**facts)
    except BaseException:
        run.destroy()
        raise
    say(f"node {name} is ready after {time.monotonic() - started:.1f} s")
    return run


def _start_init(run):
    reader, writer = os.pipe()
    tool = pathlib.Path(__file__).parent.parent / "cluster"
    with open(run.log("init"), "ab") as log:
        subprocess.run([sys.executable, tool, "node-init", run.id, str(writer)], check=False,
                       pass_fds=[writer], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                       env=run.environment(), cwd="/", start_new_session=True)
    os.close(writer)
    deadline = time.monotonic() + UP_TIMEOUT_S
    pending = b""
    while select.select([reader], [], [], max(0, deadline - time.monotonic()))[0]:
        data = os.read(reader, 4096)
        if not data:
            raise ClusterError(f"the node's first process ended; its log:\n{tail(run.log('init'))}")
        *lines, pending = (pending + data).split(b"\n")
        for report in map(json.loads, lines):
            if "say" in report:
                say(report["say"])
            elif "error" in report:
                raise ClusterError(f"{report['error']}\nlogs: {run.log_dir}")
            else:
                os.close(reader)
                return report
    raise ClusterError(f"the node was not ready after {UP_TIMEOUT_S} s; logs: {run.log_dir}")


def down(name):
    """Removes a run of any kind. Returns whether there was one."""
    if not Run.load(name):
        return False
    with _locked(name):
        run = Run.load(name)
        if run:
            run.destroy()
    say(f"{name} is gone")
    return True


def running(name):
    run = Run.load(name)
    if not run or not is_alive(run.state.get("supervisor")) or "kubeconfig" not in run.state:
        raise ClusterError(f"no node {name} is up: start it with `cluster up`")
    return run


def inside(run, arguments):
    """The command line that runs something within the node's namespaces."""
    return ["nsenter", "--target", str(run.state["supervisor"]["pid"]), "--mount", "--net", "--pid",
            "--root", "--wd", "--", *arguments]


def load_image(run, archive):
    try:
        with open(archive, "rb") as file:
            result = subprocess.run(inside(run, _ctr("images", "import", "-")), stdin=file)
    except OSError as error:
        raise ClusterError(f"{archive}: {error.strerror}") from None
    if result.returncode != 0:
        raise ClusterError(f"containerd did not import {archive}")


def command(run, line):
    """Sends one line to the node's first process and returns its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.settimeout(STEP_TIMEOUT_S)
            connection.connect(_control_address(run))
            connection.sendall(line.encode() + b"\n")
            return json.loads(connection.makefile().readline() or "{}")
        except (OSError, ValueError) as error:
            return {"ok": False, "error": f"the node does not answer: {error}"}


def _locked(name):
    return locked(cache_dir() / "locks" / name, f"another command works on {name}; waiting")


def _control_address(run):
    """An abstract socket: no path to be too long, and nothing to remove."""
    return "\0mbcas-cluster-" + hashlib.sha256(str(run.dir).encode()).hexdigest()


def _ctr(*arguments):
    return ["ctr", "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", *arguments]


# ---- the first process of the node ----


def init(run_id, report_fd):
    run = Run.load(run_id)
    api_listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    control_listener = socket.socket(socket.AF_UNIX)
    control_listener.bind(_control_address(run))
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
        port = api_listener.getsockname()[1]
        self._make_private_mounts()
        self._make_links()
        self._start_forwarder(api_listener)
        self._control_plane.start_on_ports(2379, 2380, 443)
        kubeconfig = self._control_plane.write_kubeconfig(
            self._run.dir / "kubeconfig", server=f"https://127.0.0.1:{port}")
        self._report(say="starting controller-manager, scheduler, containerd and kubelet")
        self._start_controllers()
        self._start_containerd()
        self._start_kubelet()
        self._wait_for_node()
        users = {name: {"token": token} for name, token in self._control_plane.tokens.items()}
        return {"server": f"https://127.0.0.1:{port}", "kubeconfig": str(kubeconfig),
                "caFile": str(self._control_plane.ca_file), "users": users}

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
        for path, fd in kept.items():
            if not path.exists():  # the cache itself lies below /run or /var/lib
                path.mkdir(parents=True)
                kernel.mount(f"/proc/self/fd/{fd}", path, flags=kernel.MS_BIND)
            os.close(fd)

    def _make_links(self):
        for arguments in ("link set lo up", f"link add {BRIDGE} type bridge",
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
            lambda: subprocess.run(_ctr("version"), capture_output=True).returncode == 0,
            STEP_TIMEOUT_S)
        _checked(_ctr("images", "import", str(self._run.dir / "workload.tar")))

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
        config.write_text(json.dumps(_kubelet_config(self._run.state["cgroup"], resolv_conf), indent=2))
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
            raise ClusterError(f"the node was not Ready after {STEP_TIMEOUT_S} s; the kubelet's log "
                               f"ends:\n{self._components['kubelet'].log_tail()}")

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
        raise ClusterError(f"`{' '.join(command)}` failed: {(result.stderr or result.stdout).strip()}")


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
    bin_dir = "{_cni_plugins()}"
    conf_dir = "{networks}"
"""


def _cni_config():
    return json.dumps({"cniVersion": "0.4.0", "name": "mbcas", "plugins": [{
        "type": "bridge", "bridge": BRIDGE, "isDefaultGateway": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_RANGE, "gateway": NODE_ADDRESS}]]},
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
