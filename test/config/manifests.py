"""Reads the manifests of config/, for the tests of this folder."""

import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "config"
# The files that docs/guide.md applies one after the other to an empty cluster.
GUIDE_STEPS = ("config/rbac/", "config/agent/rbac.yaml", "config/controller/deployment.yaml",
               "config/agent/daemonset.yaml",
               "config/crd/bases/allocation.mbcas.io_podallocations.yaml")
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "Job", "CronJob")


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def objects(path):
    """The objects of a file, or of all files of a directory and below."""
    path = pathlib.Path(path)
    files = [path] if path.is_file() else sorted(path.rglob("*.yaml"))
    return [document for file in files for document in documents(file.read_text())]


def key(item):
    """What tells objects apart: kind, namespace, name."""
    meta = item["metadata"]
    return item["kind"], meta.get("namespace", ""), meta["name"]


def project_version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(mbcas VERSION (\S+)", text).group(1)


# Volumes that the restricted level admits.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
           "projected", "secret"}


def violations(spec):
    """What the restricted level of the Pod Security Standards does not admit in a pod's spec."""
    wrong = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    for volume in spec.get("volumes", []):
        wrong += [f"volume {kind} {volume['name']}" for kind in volume
                  if kind not in VOLUMES | {"name"}]
    pod = spec.get("securityContext", {})
    if pod.get("sysctls"):
        wrong.append("sysctls")
    containers = spec.get("initContainers", []) + spec["containers"]
    for container in containers:
        own = container.get("securityContext", {})
        both = {**pod, **own}
        if own.get("privileged"):
            wrong.append("privileged")
        if own.get("allowPrivilegeEscalation") is not False:
            wrong.append("allowPrivilegeEscalation")
        if both.get("runAsNonRoot") is not True:
            wrong.append("runAsNonRoot")
        if both.get("runAsUser") == 0:
            wrong.append("runAsUser 0")
        if both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            wrong.append("seccompProfile")
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            wrong.append("capabilities are not dropped")
        if set(own.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}:
            wrong.append("capabilities are added")
        if own.get("procMount", "Default") != "Default" or own.get("seLinuxOptions"):
            wrong.append("procMount or seLinuxOptions")
        wrong += ["hostPort" for port in container.get("ports", []) if port.get("hostPort")]
    return wrong


def metrics_in_sources():
    """Names of the metrics that the binaries have."""
    pattern = re.compile(r'"((?:mbcas|rest_client|workqueue|controller_runtime|leader_election|'
                         r'kube_watch)_[a-z_]+)"')
    return {name for folder in ("mbcas", "apps") for path in (ROOT / folder).rglob("*.cc")
            if not path.name.endswith("_test.cc") for name in pattern.findall(path.read_text())}
