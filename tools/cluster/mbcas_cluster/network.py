"""The network of a node: a bridge for its pods, and the link of a node that joined a cluster.

Node 0 is the one with the control plane. Every other node has a virtual cable (veth) from its
network namespace to that of node 0, which forwards between them all: its pods reach the API server
and the pods of all nodes, and the API server reaches its kubelet. A node that is a virtual machine
has a tap device for the cable's far end. Nothing of this is on the host.
"""

import fcntl
import os
import pathlib
import struct
import subprocess
from contextlib import contextmanager

from . import kernel
from .common import ClusterError

BRIDGE = "mbcas0"
BRIDGE_MAC = "02:00:0a:58:00:01"
UPLINK = "mbcas-uplink"
# The address of the service `kubernetes`: on the bridge of node 0 itself, where the API server
# listens, so that pods reach it without kube-proxy.
SERVICE_ADDRESS = "10.0.0.1"
LARGEST_NUMBER = 254
TUN = "/dev/net/tun"


def address(number):
    return f"10.88.{number}.1"


def pod_range(number):
    return f"10.88.{number}.0/24"


def namespace_of(pid):
    """An open file that keeps and names the network namespace of a process."""
    return os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)


@contextmanager
def inside_that_of(pid):
    """Goes to the network namespace of a process, and back."""
    own, other = namespace_of("self"), namespace_of(pid)
    try:
        kernel.setns(other, kernel.CLONE_NEWNET)
        try:
            yield
        finally:
            kernel.setns(own, kernel.CLONE_NEWNET)
    finally:
        os.close(own)
        os.close(other)


def bridge_commands(number):
    """The commands for `ip`."""
    # With a MAC of its own: else the bridge takes the lowest of its ports', another one whenever a
    # pod comes or goes, and pods send to the old one until their ARP entries expire.
    addresses = [f"{address(number)}/24"] + ([f"{SERVICE_ADDRESS}/32"] if number == 0 else [])
    return ["link set lo up",
            f"link add {BRIDGE} address {BRIDGE_MAC} type bridge",
            *(f"address add {each} dev {BRIDGE}" for each in addresses),
            f"link set {BRIDGE} up"]


def default_route(number, device):
    return (f"route replace default via {address(0)} dev {device} onlink "
            f"src {address(number)}")


def make_bridge(number):
    for command in bridge_commands(number):
        _ip(command)
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


class Uplink:
    """The link from this node to node 0, whose network namespace is the open file."""

    def __init__(self, number, far_namespace):
        self._number = number
        self._far = far_namespace
        self._far_name = f"mbcas-node{number}"

    def make(self):
        # A node of the same number that was just removed may still be about to vanish.
        self._far_ip(f"link delete {self._far_name}", may_fail=True)
        _ip(f"link add {UPLINK} type veth peer name {self._far_name} "
            f"netns /proc/self/fd/{self._far}", pass_fds=[self._far])
        self._connect_far_end()
        self.connect()

    def connect(self):
        _ip(f"link set {UPLINK} up")
        # The kernel dropped the route when the link went down.
        _ip(default_route(self._number, UPLINK))

    def disconnect(self):
        _ip(f"link set {UPLINK} down")

    def _connect_far_end(self):
        self._far_ip(f"link set {self._far_name} up")
        self._far_ip(f"route replace {pod_range(self._number)} via {address(self._number)} "
                     f"dev {self._far_name} onlink src {address(0)}")

    def _far_ip(self, arguments, may_fail=False):
        run_checked(["nsenter", f"--net=/proc/self/fd/{self._far}", "ip", *arguments.split()],
                    pass_fds=[self._far], may_fail=may_fail)


class Tap(Uplink):
    """The link of a virtual machine: what is sent to it, the machine's network card receives."""

    TUNSETIFF = 0x400454CA
    IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000

    def make(self):
        """Returns the open device, for the machine. It vanishes when all have closed it. This
        process stays in the namespace of node 0, where it can reach machine and API server."""
        kernel.setns(self._far, kernel.CLONE_NEWNET)
        try:
            device = os.open(TUN, os.O_RDWR)
            fcntl.ioctl(device, self.TUNSETIFF, struct.pack(
                "16sH22x", self._far_name.encode(),
                self.IFF_TAP | self.IFF_NO_PI | self.IFF_VNET_HDR))
        except OSError as error:
            raise ClusterError(f"no tap device can be made with {TUN}: {error.strerror}") from None
        self.connect()
        return device

    def connect(self):
        self._connect_far_end()

    def disconnect(self):
        self._far_ip(f"link set {self._far_name} down")


def _ip(arguments, **options):
    run_checked(["ip", *arguments.split()], **options)


def run_checked(command, may_fail=False, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0 and not may_fail:
        reason = (result.stderr or result.stdout).strip()
        raise ClusterError(f"`{' '.join(command)}` failed: {reason}")
