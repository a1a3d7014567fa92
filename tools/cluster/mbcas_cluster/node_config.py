"""The configuration files of containerd, CNI and the kubelet."""

import json

from . import image, network
from .node import CONTAINERD_SOCKET, cni_plugins


def containerd_config(snapshotter, networks, plugins=None, systemd=False):
    """`plugins` is where CNI's are, if not where this machine has them. `systemd` says who makes
    cgroups."""
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
        SystemdCgroup = {'true' if systemd else 'false'}

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins or cni_plugins()}"
    conf_dir = "{networks}"
"""


def cni_config(number):
    return json.dumps({"cniVersion": "0.4.0", "name": "mbcas", "plugins": [{
        "type": "bridge", "bridge": network.BRIDGE, "isDefaultGateway": True,
        "ipam": {"type": "host-local",
                 "ranges": [[{"subnet": network.pod_range(number),
                              "gateway": network.address(number)}]]},
    }]}, indent=2)


def kubelet_config(cgroup, resolv_conf, driver="cgroupfs"):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": driver,
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
