"""A node that joined the cluster of another run: a kubelet, and a link to the control plane."""

from . import network
from .access import Access
from .any_node import AnyNode
from .run import Run

SHARED = ("server", "kubeconfig", "users", "caFile")


class JoinedNode(AnyNode):
    UPLINK = network.Uplink

    def __init__(self, run, report):
        self._cluster = Run.load(run.state["cluster"])
        number = run.state["number"]
        self._uplink = self.UPLINK(
            number, network.namespace_of(self._cluster.state["supervisor"]["pid"]))
        api = Access.to(self._cluster, f"https://{network.SERVICE_ADDRESS}:443")
        super().__init__(run, report, number, api)

    def start(self):
        self._report(say=f"making namespaces, bridge and the link to {self._cluster.id}; "
                         "starting containerd and kubelet")
        self._make_private_mounts()
        network.make_bridge(self._number)
        self._uplink.make()
        self._start_kubelet_and_wait()
        return self._shared_facts()

    def _shared_facts(self):
        return {key: self._cluster.state[key] for key in SHARED}

    def commands(self):
        return {"connect": self._uplink.connect, "disconnect": self._uplink.disconnect}
