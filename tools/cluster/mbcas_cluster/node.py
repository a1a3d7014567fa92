"""A one-node cluster in mount, network and process namespaces of its own, as the host sees it.

The first process of the process namespace (node_init.py) starts and watches all components. When
it is killed, by whatever means, the kernel kills everything else in there, containers included;
mounts, links and packet filters vanish with their namespaces. Only files and cgroups remain.
"""

import hashlib
import json
import os
import pathlib
import secrets
import select
import shutil
import socket
import subprocess
import sys
import time

from . import build, cgroups, image
from .common import ClusterError, cache_dir, locked, say, tail
from .run import Run, is_alive

DEFAULT_NAME = "mbcas"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"  # within the node
CNI_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
UP_TIMEOUT_S = 600
COMMAND_TIMEOUT_S = 240  # to start the apiserver takes long on a busy machine


def why_impossible():
    """Why no node can run here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for command, package in (("containerd", "containerd"), ("runc", "runc"), ("ip", "iproute2"),
                             ("openssl", "openssl"), ("gcc", "gcc")):
        if not shutil.which(command):
            return f"needs {package}"
    if not cni_plugins():
        return "needs containernetworking-plugins"
    if not any(os.access(path, os.W_OK) for path, _ in cgroups.hierarchies()):
        return "needs a cgroup file system that may be written to"
    probe = ["unshare", "--mount", "--net", "--pid", "--fork", "true"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        return "needs the right to make namespaces (CAP_SYS_ADMIN)"
    return None


def cni_plugins():
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
            result = subprocess.run(inside(run, ctr("images", "import", "-")), stdin=file)
    except OSError as error:
        raise ClusterError(f"{archive}: {error.strerror}") from None
    if result.returncode != 0:
        raise ClusterError(f"containerd did not import {archive}")


def command(run, line):
    """Sends one line to the node's first process and returns its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.settimeout(COMMAND_TIMEOUT_S)
            connection.connect(control_address(run))
            connection.sendall(line.encode() + b"\n")
            return json.loads(connection.makefile().readline() or "{}")
        except (OSError, ValueError) as error:
            return {"ok": False, "error": f"the node does not answer: {error}"}


def _locked(name):
    return locked(cache_dir() / "locks" / name, f"another command works on {name}; waiting")


def control_address(run):
    """An abstract socket: no path to be too long, and nothing to remove."""
    return "\0mbcas-cluster-" + hashlib.sha256(str(run.dir).encode()).hexdigest()


def ctr(*arguments):
    return ["ctr", "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", *arguments]
