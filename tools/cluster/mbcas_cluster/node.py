"""A node in mount, network and process namespaces of its own, as the host sees it.

The first node of a cluster has the control plane. Other nodes join its cluster, and go with it.

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
from contextlib import ExitStack

from . import build, cgroups, image, network, vm_image
from .common import ClusterError, cache_dir, locked, say, tail
from .guest import Guest
from .run import Run, is_alive

TOOL = pathlib.Path(__file__).parent.parent / "cluster"
DEFAULT_NAME = "mbcas"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"  # within the node
CNI_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
UP_TIMEOUT_S = 900  # more than all steps together
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


def why_no_machine():
    """Why no node can be a virtual machine here, or None."""
    if not os.path.exists(network.TUN):
        return f"needs {network.TUN}"
    return why_impossible() or vm_image.why_impossible()


def up(name, options, owner, cluster=None, vm=False):
    """Starts a node: the first one of a cluster, or one that joins the cluster of another, which
    may be a virtual machine."""
    known = Run.load(name)
    vm = vm or bool(known and known.state.get("vm"))
    reason = why_no_machine() if vm else why_impossible()
    if reason:
        raise ClusterError(f"a node cannot run here: {reason}")
    if known and vm != known.state.get("vm", False) and "version" in known.state:
        raise ClusterError(f"there is a node {name} that is no virtual machine: remove it first")
    if known and cluster is None:
        cluster = known.state.get("cluster")
    elif known and cluster != known.state.get("cluster"):
        raise ClusterError(f"there is a node {name} that did not join {cluster}: remove it first")
    with ExitStack() as locks:
        if cluster:  # before the node's own lock, as `down` does
            locks.enter_context(_locked(cluster))
        locks.enter_context(_locked(name))
        run = _up(name, options, owner, cluster, vm)
    print(f"export KUBECONFIG={run.state['kubeconfig']}")
    print(f"# kubectl of the same version: {build.binaries_dir(run.state['version']) / 'kubectl'}",
          flush=True)


def _up(name, options, owner, cluster, vm):
    started = time.monotonic()
    run = Run.load(name)
    if run and is_alive(run.state.get("supervisor")) and "kubeconfig" in run.state:
        say(f"node {name} is already up")
        return run
    first = running(cluster) if cluster else None
    if first and "cluster" in first.state:
        raise ClusterError(f"{cluster} has no control plane: join {first.state['cluster']}")
    if vm:
        vm_image.ensure()
    if run and run.state.get("stopped"):
        run = _boot(run)
    else:
        if run:
            say(f"removing what is left of an earlier node {name}")
            _destroy(run)
        if first:
            run = Run.create(name, "node", owner or first.state["owner"])
            state = {"version": first.state["version"], "cluster": cluster,
                     "number": _free_number(cluster), "vm": vm}
        else:
            version = build.chosen_version()
            build.ensure(with_node=True, version=version)
            run = Run.create(name, "node", owner)
            state = {"version": version, "options": vars(options)}
        try:
            if not vm:  # a machine has cgroups of its own
                state["cgroup"] = f"mbcas-{name}-{secrets.token_hex(3)}"
            run.save(**state)
            image.write_archive(run.dir)
            run = _boot(run)
        except BaseException:
            run.destroy()
            raise
    say(f"node {name} is ready after {time.monotonic() - started:.1f} s")
    return run


def _boot(run):
    if "cgroup" in run.state:
        cgroups.create(run.state["cgroup"])
    try:
        facts = _start_init(run)
    except BaseException:
        run.kill()
        raise
    run = Run.load(run.id)
    run.save(stopped=False, **facts)
    return run


def joined(cluster):
    """The nodes that joined the cluster of this node, up or not."""
    return [run for run in Run.all() if run.state.get("cluster") == cluster]


def _free_number(cluster):
    used = {run.state.get("number") for run in joined(cluster)}
    for number in range(1, network.LARGEST_NUMBER + 1):
        if number not in used:
            return number
    raise ClusterError(f"{cluster} has as many nodes as there are addresses for")


def _start_init(run):
    reader, writer = os.pipe()
    with open(run.log("init"), "ab") as log:
        subprocess.run([sys.executable, TOOL, "node-init", run.id, str(writer)], check=False,
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


def stop(name):
    """As if its power were cut; `up` starts it again, with its disk and its name."""
    with _locked(name):
        run = running(name)
        if "cluster" not in run.state:
            raise ClusterError(f"{name} has the control plane of its cluster and cannot be started "
                               "again: remove it with `cluster down`")
        run.save(stopped=True)
        run.kill()
    say(f"{name} is stopped; `cluster up --name {name}` starts it again")


def down(name):
    """Removes a run of any kind, with the nodes that joined it. Returns whether there was one."""
    if not Run.load(name):
        return False
    with _locked(name):
        run = Run.load(name)
        if run:
            _destroy(run)
    say(f"{name} is gone")
    return True


def _destroy(run):
    for other in joined(run.id):
        with _locked(other.id):
            other.destroy()
        say(f"{other.id} is gone")
    run.destroy()
    first = Run.load(run.state["cluster"]) if "cluster" in run.state else None
    if first and is_alive(first.state.get("supervisor")) and "kubeconfig" in first.state:
        # Its pods would else be waited for.
        subprocess.run([build.binaries_dir(first.state["version"]) / "kubectl", "--kubeconfig",
                        first.state["kubeconfig"], "delete", "node", run.id, "--ignore-not-found",
                        "--wait=false", "--request-timeout=20s"], capture_output=True)


def running(name):
    run = Run.load(name)
    if not run or not is_alive(run.state.get("supervisor")) or "kubeconfig" not in run.state:
        raise ClusterError(f"no node {name} is up: start it with `cluster up`")
    return run


def inside(run, arguments):
    """The command line that runs something within the node: in its namespaces, or its machine."""
    if run.state.get("vm"):
        return [sys.executable, str(TOOL), "exec", "--name", run.id, "--", *map(str, arguments)]
    return ["nsenter", "--target", str(run.state["supervisor"]["pid"]), "--mount", "--net", "--pid",
            "--root", "--wd", "--", *arguments]


def run_inside(run, arguments):
    """Runs something within the node, with this process's standard input and output, and returns
    its exit code."""
    if not run.state.get("vm"):
        return subprocess.call(inside(run, arguments))
    try:
        return Guest(run).call(arguments, sys.stdin.buffer.raw, sys.stdout.buffer)[0]
    except OSError as error:
        raise ClusterError(f"{run.id}: {error}") from None


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
