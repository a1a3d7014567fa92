"""The first node of a cluster: the control plane runs on it."""

import os
import socket

from . import build, forward, kernel, network
from .any_node import AnyNode
from .control_plane import ControlPlane, Options


class FirstNode(AnyNode):
    def __init__(self, run, report):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        options = Options(**run.state["options"])
        options.users = [*options.users, "system:kube-controller-manager", "system:kube-scheduler"]
        options.apiserver_args.append("--kubelet-preferred-address-types=InternalIP")
        self._control_plane = ControlPlane(run, build.binaries_dir(run.state["version"]), options,
                                           network.SERVICE_ADDRESS)
        super().__init__(run, report, 0, self._control_plane)
        self.components.update(self._control_plane.components)

    def start(self):
        plane = self._control_plane
        self._report(say="making namespaces, bridge and control plane")
        server = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._make_private_mounts()
        network.make_bridge(self._number)
        self._start_forwarder()
        plane.start_on_ports(2379, 2380, 443)
        kubeconfig = plane.write_kubeconfig(self._run.dir / "kubeconfig", server=server)
        users = plane.write_user_kubeconfigs(self._run.state["options"]["users"], server)
        self._report(say="starting controller-manager, scheduler, containerd and kubelet")
        self._start_controllers()
        self._start_kubelet_and_wait()
        self._listener.close()
        return {"server": server, "kubeconfig": str(kubeconfig), "users": users,
                "caFile": str(plane.ca_file)}

    def start_component(self, name):
        if name in self._control_plane.components:
            self._control_plane.start(name)
        else:
            super().start_component(name)

    def commands(self):
        return self._control_plane.commands()

    def _start_forwarder(self):
        if os.fork() == 0:
            kernel.die_with_parent()
            try:
                forward.serve(self._listener, network.SERVICE_ADDRESS, 443)
            finally:
                os._exit(1)

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
