"""Builds etcd, Kubernetes, Helm, metrics-server and VPA from Go modules into the cache.

One Go module per Kubernetes version names all commands as its tools, etcd included: at the version
Kubernetes itself requires, so that both share most of what is compiled. go.mod and go.sum of the
pinned versions are checked in under modules/; for another published version they are generated.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from .common import ClusterError, cache_dir, locked, say
from .kernel import die_with_parent

DEFAULT_VERSION = "1.35.4"
MODULES = pathlib.Path(__file__).parent.parent / "modules"

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
}
CONTROL_PLANE = ["etcd", "kube-apiserver", "kubectl"]
NODE_ONLY = ["kube-controller-manager", "kube-scheduler", "kubelet"]

# Its module takes most packages in the versions that DEFAULT_VERSION does, and so from its build.
HELM_VERSION = "3.20.2"
# What the evaluation compares with MBCAS.
METRICS_SERVER_VERSION = "0.9.0"
VPA_VERSION = "1.8.1"

DOWNLOAD_ATTEMPTS = 7
FIRST_DELAY_S = 2


def chosen_version():
    """The full version that KUBE_VERSION asks for: "1.34", "1.34.4" and "v1.34.4" all do."""
    wanted = os.environ.get("KUBE_VERSION", "").removeprefix("v") or DEFAULT_VERSION
    pinned = sorted(path.name.removeprefix("kubernetes-") for path in MODULES.glob("kubernetes-*"))
    if re.fullmatch(r"1\.\d+", wanted):
        for version in pinned:
            if version.startswith(wanted + "."):
                return version
    if not re.fullmatch(r"1\.\d+\.\d+", wanted):
        raise ClusterError(f"KUBE_VERSION={wanted} is no version known here: give one of "
                           f"{', '.join(pinned)}, or another published one in full, as 1.35.4")
    return wanted


def binaries_dir(version):
    return cache_dir() / "kubernetes" / f"v{version}"


def ensure(with_node, version=None):
    """Returns the directory with the binaries, after building those that are missing."""
    return _ensure([CONTROL_PLANE, NODE_ONLY] if with_node else [CONTROL_PLANE],
                   version or chosen_version())


def ensure_kubectl():
    """Returns kubectl of the default version, after building only it where it is missing."""
    return _ensure([["kubectl"]], DEFAULT_VERSION) / "kubectl"


def _ensure(groups, version):
    directory = binaries_dir(version)
    if not _missing(directory, sum(groups, [])):
        return directory
    with locked(directory / ".lock", f"another run is building Kubernetes {version}; waiting"):
        groups = [group for group in (_missing(directory, names) for names in groups) if group]
        if groups:
            go = _find_go()
            module = _prepare_module(go, directory, version)
            for names in groups:
                _build(go, module, directory, version, names)
    return directory


def is_built(with_node, version=None):
    names = CONTROL_PLANE + (NODE_ONLY if with_node else [])
    return not _missing(binaries_dir(version or chosen_version()), names)


def ensure_helm():
    """Returns the helm command, after building it where it is missing."""
    return _ensure_others("helm", HELM_VERSION, {"helm": "helm.sh/helm/v3/cmd/helm"}) / "helm"


def ensure_metrics_server():
    """Returns the metrics-server command."""
    name = "metrics-server"
    return _ensure_others(name, METRICS_SERVER_VERSION,
                          {name: "sigs.k8s.io/metrics-server/cmd/metrics-server"}) / name


def ensure_vpa():
    """Returns the directory with the three programs of VPA, and its definitions in crd.yaml."""
    module = "k8s.io/autoscaler/vertical-pod-autoscaler"
    directory = _ensure_others("vpa", VPA_VERSION, {
        name: f"{module}/pkg/{name}" for name in ("recommender", "updater",
                                                  "admission-controller")})
    if not (directory / "crd.yaml").exists():
        source = _go_with_retry(_find_go(), ["list", "-m", "-f", "{{.Dir}}", module],
                                directory / "module").strip()
        shutil.copyfile(f"{source}/deploy/vpa-v1-crd-gen.yaml", directory / "crd.yaml")
    return directory


def _ensure_others(name, version, packages):
    """The directory with commands of another pinned module."""
    directory = cache_dir() / name / f"v{version}"
    if _missing(directory, packages):
        with locked(directory / ".lock", f"another run is building {name}; waiting"):
            if _missing(directory, packages):
                go = _find_go()
                module = _copy_module(go, directory, MODULES / f"{name}-{version}")
                say(f"downloading the Go modules of {name}")
                _go_with_retry(go, ["mod", "download"], module)
                _go_build(go, module, directory, f"{name} {version}", "-s -w", packages)
    return directory


def write_pinned_module(version):
    """Generates modules/kubernetes-VERSION: what one runs to move to a newer Kubernetes."""
    directory = MODULES / f"kubernetes-{version}"
    directory.mkdir(parents=True, exist_ok=True)
    _generate_module(_find_go(), directory, version)
    return directory


def _missing(directory, names):
    return [name for name in names if not (directory / name).exists()]


def _find_go():
    candidates = [os.environ.get("GO"), shutil.which("go"), cache_dir() / "go" / "bin" / "go"]
    for candidate in candidates:
        if candidate and shutil.which(candidate):
            return str(candidate)
    raise ClusterError("no Go toolchain found: run `make setup`, or put go (1.25 or newer) into "
                       "PATH, or name it in the environment variable GO")


def _go_environment():
    return dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local", GOWORK="off",
                GOFLAGS="-buildvcs=false")


def _go(go, args, directory):
    return subprocess.run([go, *args], cwd=directory, env=_go_environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          preexec_fn=die_with_parent)


def _go_with_retry(go, args, directory):
    """A module proxy may answer 429 or fail for a while: try again, waiting twice as long."""
    delay = FIRST_DELAY_S
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        result = _go(go, args, directory)
        if result.returncode == 0:
            return result.stdout
        lines = [line for line in result.stderr.splitlines()
                 if line.strip() and not line.startswith("go: downloading")]
        reason = lines[-1].strip() if lines else f"exit code {result.returncode}"
        if attempt < DOWNLOAD_ATTEMPTS:
            say(f"`go {' '.join(args[:2])}` failed ({reason}); attempt {attempt} of "
                f"{DOWNLOAD_ATTEMPTS}, next in {delay} s")
            time.sleep(delay)
            delay *= 2
    raise ClusterError(f"Go modules could not be downloaded, after {DOWNLOAD_ATTEMPTS} attempts "
                       f"with growing pauses: {reason}\nCheck the network and `go env GOPROXY`, "
                       "then run the same command again: what has been fetched is kept")


def _prepare_module(go, directory, version):
    pinned = MODULES / f"kubernetes-{version}"
    if pinned.is_dir():
        module = _copy_module(go, directory, pinned)
    else:
        module = directory / "module"
        module.mkdir(parents=True, exist_ok=True)
        if not (module / "go.sum").exists():
            _generate_module(go, module, version)
    say(f"downloading the Go modules of Kubernetes {version}")
    _go_with_retry(go, ["mod", "download"], module)
    return module


def _copy_module(go, directory, pinned):
    """A copy in the cache, because the go command may write to go.mod and go.sum."""
    module = directory / "module"
    module.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(pinned / name, module / name)
    _check_go_version(go, module)
    return module


def _check_go_version(go, module):
    needed = re.search(r"^go (\d+)\.(\d+)", (module / "go.mod").read_text(), re.MULTILINE)
    found = _go(go, ["env", "GOVERSION"], module).stdout.strip()
    numbers = re.match(r"go(\d+)\.(\d+)", found)
    if not numbers or tuple(map(int, numbers.groups())) < tuple(map(int, needed.groups())):
        raise ClusterError(f"{go} is {found or 'no working Go'}, but this Kubernetes needs "
                           f"{needed.group()}: run `make setup`, or name a newer one in GO")


def _generate_module(go, directory, version):
    """Where Kubernetes' own go.mod names folders (staging), this one names published versions."""
    say(f"generating a Go module for Kubernetes {version}")
    info = json.loads(_go_with_retry(
        go, ["mod", "download", "-json", f"k8s.io/kubernetes@v{version}"], directory))
    original = pathlib.Path(info["GoMod"]).read_text()
    go_line = re.search(r"^go .*$", original, re.MULTILINE).group()
    staging = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) => \./staging/", original, re.MULTILINE)))
    tools = "".join(f"\t{package}\n" for package in sorted(PACKAGES.values()))
    staging_version = "v0" + version.removeprefix("1")
    replaces = "".join(f"\t{name} => {name} {staging_version}\n" for name in staging)
    (directory / "go.mod").write_text(
        f"module mbcas.local/kubernetes\n\n{go_line}\n\nrequire k8s.io/kubernetes v{version}\n\n"
        f"tool (\n{tools})\n\nreplace (\n{replaces})\n")
    _check_go_version(go, directory)
    (directory / "go.sum").unlink(missing_ok=True)
    _go_with_retry(go, ["mod", "tidy"], directory)


def _build(go, module, directory, version, names):
    variables = "k8s.io/component-base/version"
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor,
              "gitTreeState": "archive"}
    flags = "-s -w " + " ".join(f"-X {variables}.{key}={value}" for key, value in values.items())
    _go_build(go, module, directory, f"{', '.join(names)} {version}", flags,
              {name: PACKAGES[name] for name in names})


def _go_build(go, module, directory, title, flags, packages):
    say(f"building {title} (some minutes when nothing is cached)")
    unfinished = directory / ".unfinished"
    unfinished.mkdir(exist_ok=True)
    started = time.monotonic()
    process = subprocess.Popen(
        [go, "build", "-trimpath", "-ldflags", flags, "-o", f"{unfinished}/", *packages.values()],
        cwd=module, env=_go_environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    try:
        while True:
            try:
                _, errors = process.communicate(timeout=30)
                break
            except subprocess.TimeoutExpired:
                say(f"still building, {time.monotonic() - started:.0f} s so far")
    finally:
        if process.poll() is None:
            process.terminate()
    if process.returncode != 0:
        raise ClusterError(f"go build of {title} failed:\n"
                           + "\n".join(errors.splitlines()[-15:])
                           + "\nRun the same command again: what has been compiled is kept")
    for name in packages:
        built = unfinished / ("server" if name == "etcd" else name)
        built.rename(directory / name)
    shutil.rmtree(unfinished)
    say(f"built {title} in {time.monotonic() - started:.0f} s")
