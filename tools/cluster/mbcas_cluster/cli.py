"""The command line."""

import argparse
import json
import os
import sys

from . import build, control_plane, node, node_init, supervisor, vm_image
from .common import ClusterError, cache_dir, say, tail
from .run import Run, identity, is_alive

DESCRIPTION = """\
Builds a pinned Kubernetes from Go modules, once, into a cache, and starts from it
  a control plane (etcd, kube-apiserver) for tests: any number, as any user, or
  a node (containerd and kubelet too) in namespaces of its own: needs root. Further
  nodes can join its cluster, also virtual machines with cgroup v2 (--vm).
docs/cluster.md tells more."""

ENVIRONMENT = """\
environment:
  KUBE_VERSION   which Kubernetes, as 1.34 or 1.34.4 (default: %s)
  MBCAS_CACHE    where binaries, runs and logs live (now: %s)
  GO             the go command, if not the one in PATH"""


def main():
    words, passed_on = _split(sys.argv[1:])
    args = _parser().parse_args(words)
    args.passed_on = passed_on
    try:
        return args.function(args) or 0
    except ClusterError as error:
        say(f"error: {error}")
        return 1
    except OSError as error:  # no permission, disk full and the like
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


def _split(words):
    """What follows `kubectl` and `exec`, after their --name, is not for this program."""
    if words[:1] not in (["kubectl"], ["exec"]):
        return words, []
    own = 1
    if words[1:2] == ["--name"]:
        own = 3
    elif words[1:] and words[1].startswith("--name="):
        own = 2
    return words[:own], words[own + 1 if words[own:own + 1] == ["--"] else own:]


def _parser():
    parser = argparse.ArgumentParser(
        prog="cluster", description=DESCRIPTION,
        epilog=ENVIRONMENT % (build.DEFAULT_VERSION, cache_dir()),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name, function, text, named=False):
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(function=function)
        if named:
            added.add_argument("--name", default=node.DEFAULT_NAME,
                               help="which node (default: %(default)s)")
        return added

    added = command("build", _build, "build what is missing, start nothing")
    added.add_argument("what", nargs="?", default="node",
                       choices=["control-plane", "node", "vm", "kubectl", "helm", "autoscalers"])
    added.add_argument("--check", action="store_true",
                       help="build nothing; exit with 1 when something is missing")
    added.add_argument("--if-possible", action="store_true",
                       help="with vm: say why, and succeed, where no virtual machine can run")

    added = command("control-plane", _control_plane,
                    "run a control plane in the foreground, until standard input ends; "
                    "lines of input command it: start, stop, kill, pause or resume "
                    "apiserver or etcd; compact; status")
    added.add_argument("--json", action="store_true", help="when ready, print one line of JSON")
    added.add_argument("--keep", action="store_true", help="keep the data after the end")
    _add_control_plane_options(added)
    added.add_argument("--service-accounts", action="store_true",
                       help="enable the ServiceAccount admission plugin")

    added = command("up", _up, "start a node, also one that was stopped; does nothing when it is "
                    "already up", named=True)
    added.add_argument("--join", metavar="CLUSTER",
                       help="the node joins the cluster of the node with this name, instead of "
                            "having a control plane")
    added.add_argument("--vm", action="store_true",
                       help="a node that is a virtual machine with cgroup v2 and systemd: with "
                            "--join this one, else a further one, NAME-vm, which joins it")
    added.add_argument("--owner", type=int, metavar="PID",
                       help="as long as this process lives, `down --all` leaves the node alone")
    _add_control_plane_options(added)

    command("stop", _stop, "cut the power of a node that joined a cluster; `up` starts it again",
            named=True)

    added = command("down", _down, "stop a node, with those that joined its cluster, and remove "
                    "all traces", named=True)
    added.add_argument("--all", action="store_true",
                       help="all nodes, and whatever runs that died have left")
    added.add_argument("--force", action="store_true",
                       help="with --all: also what belongs to a process that is still alive")

    command("status", _status, "list what is running")

    added = command("logs", _logs, "show a component's log, or list the logs")
    added.add_argument("--name", help="which run (default: the latest)")
    added.add_argument("component", nargs="?")
    added.add_argument("-n", "--lines", type=int, default=100)

    command("kubectl", _kubectl, "run kubectl, of the same version, as admin", named=True)
    command("exec", _exec, "run a command inside the node: in its namespaces or its machine",
            named=True)

    added = command("do", _do, "command a component of a node, as `do stop kubelet`", named=True)
    added.add_argument("words", nargs="+", metavar="WORD",
                       help="start|stop|kill|pause|resume COMPONENT, status; compact where the "
                            "control plane is; disconnect, connect where it is not")

    added = command("load-image", _load_image, "import a docker or OCI archive", named=True)
    added.add_argument("archive")

    command("pin", _pin, "write modules/kubernetes-VERSION for KUBE_VERSION")

    added = commands.add_parser("node-init")  # what `up` starts; not listed
    added.add_argument("id")
    added.add_argument("report_fd", type=int)
    added.set_defaults(function=lambda args: node_init.init(args.id, args.report_fd))
    return parser


def _add_control_plane_options(parser):
    parser.add_argument("--user", action="append", default=[], metavar="NAME[,GROUP...]",
                        help="a further user, with a token and kubeconfig of its own")
    parser.add_argument("--apiserver-arg", action="append", default=[], metavar="FLAG",
                        help="one more flag for kube-apiserver, as --apiserver-arg=--v=4")
    parser.add_argument("--etcd-arg", action="append", default=[], metavar="FLAG")


def _options(args, service_accounts):
    return control_plane.Options(users=args.user, etcd_args=args.etcd_arg,
                                 apiserver_args=args.apiserver_arg,
                                 service_accounts=service_accounts)


def _build(args):
    if args.what == "autoscalers":
        print(build.ensure_metrics_server())
        print(build.ensure_vpa())
        return 0
    if args.what == "kubectl":
        print(build.ensure_kubectl())
        return 0
    if args.what == "helm":
        print(build.ensure_helm())
        return 0
    if args.what == "vm":
        if args.check:
            return 0 if vm_image.is_built() else 1
        reason = args.if_possible and node.why_no_machine()
        if reason:
            say(f"no virtual machine can run here: {reason}")
            return 0
        print(vm_image.ensure())
        return 0
    with_node = args.what == "node"
    if args.check:
        return 0 if build.is_built(with_node) else 1
    print(build.ensure(with_node))


def _control_plane(args):
    supervisor.supervise(_options(args, args.service_accounts), args.json, args.keep)


def _up(args):
    owner = identity(args.owner) if args.owner else None
    if args.join and (args.user or args.apiserver_arg or args.etcd_arg):
        raise ClusterError("--user, --apiserver-arg and --etcd-arg are for a control plane, and a "
                           "node that joins has none")
    options = _options(args, service_accounts=True)
    known = Run.load(args.name)
    further = args.vm and not args.join and not (known and known.state.get("vm"))
    node.up(args.name, options, owner, args.join, args.vm and not further)
    if further:
        node.up(f"{args.name}-vm", options, owner, args.name, vm=True)


def _stop(args):
    node.stop(args.name)


def _down(args):
    if not args.all:
        if not node.down(args.name):
            say(f"no node {args.name} is up")
        return 0
    for run in Run.all():
        if run.owner_is_alive() and not args.force:
            say(f"{run.id} left alone: process {run.state['owner']['pid']} that owns it is alive")
        else:
            node.down(run.id)


def _status(args):
    runs = Run.all()
    for run in runs:
        alive = is_alive(run.state.get("supervisor"))
        condition = "up" if alive else "stopped" if run.state.get("stopped") else "dead"
        joined = f" joined {run.state['cluster']}" if "cluster" in run.state else ""
        print(f"{run.id:20} {run.state['kind']:14} {condition:7} "
              f"{run.state.get('server', '-')}{joined}")
        answer = node.command(run, "status") if alive and run.state["kind"] == "node" else {}
        for name, pid in answer.get("pids", {}).items():
            print(f"    {name:24} {pid or 'not running'}")
    if not runs:
        print("nothing is running")


def _logs(args):
    root = cache_dir() / "logs"
    directories = sorted(root.iterdir(), key=lambda path: path.stat().st_mtime) \
        if root.is_dir() else []
    directories = [path for path in directories if args.name in (None, path.name)]
    if not directories:
        raise ClusterError("there are no logs")
    if args.component:
        file = directories[-1] / f"{args.component}.log"
        if not file.exists():
            raise ClusterError(f"there is no {file}")
        print(tail(file, args.lines), end="")
    else:
        for file in sorted(directories[-1].iterdir()):
            print(file)


def _kubectl(args):
    run = node.running(args.name)
    binary = build.binaries_dir(run.state["version"]) / "kubectl"
    os.execve(binary, ["kubectl", *args.passed_on],
              dict(os.environ, KUBECONFIG=run.state["kubeconfig"]))


def _exec(args):
    return node.run_inside(node.running(args.name), args.passed_on or ["bash"])


def _do(args):
    answer = node.command(node.running(args.name), " ".join(args.words))
    if not answer.pop("ok", False):
        raise ClusterError(answer.get("error", "the node does not answer"))
    print(json.dumps(answer))


def _load_image(args):
    node.load_image(node.running(args.name), args.archive)


def _pin(args):
    print(build.write_pinned_module(build.chosen_version()))
