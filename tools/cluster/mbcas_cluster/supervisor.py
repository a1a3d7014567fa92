"""Keeps a control plane for a test, obeys its commands, and ends with it."""

import json
import os
import secrets
import select
import shutil
import signal
import sys

from . import build
from .common import ClusterError, say
from .control_plane import ControlPlane
from .run import Run, identity


def obey(components, start, commands, line):
    """Runs one command line; returns the answer as a dictionary. `start` starts a component by its
    name, `commands` are functions by command of one word, which may return more of the answer."""
    words = line.split()
    try:
        if words == ["status"]:
            return {"ok": True, "pids": {name: item.pid for name, item in components.items()}}
        if len(words) == 1 and words[0] in commands:
            return {"ok": True, **(commands[words[0]]() or {})}
        if len(words) != 2 or words[1] not in components:
            raise ClusterError(f"unknown command {line.strip()!r}: start|stop|kill|pause|resume "
                               f"NAME, {', '.join([*commands, 'status'])}; NAME is one of "
                               + ", ".join(components))
        verb, component = words[0], components[words[1]]
        actions = {"stop": component.stop, "kill": component.kill,
                   "pause": lambda: component.signal(signal.SIGSTOP),
                   "resume": lambda: component.signal(signal.SIGCONT),
                   "start": lambda: start(component.name)}
        if verb not in actions:
            raise ClusterError(f"unknown verb {verb!r}")
        actions[verb]()
        return {"ok": True, "pid": component.pid}
    except ClusterError as error:
        return {"ok": False, "error": str(error)}


class _Stop(Exception):
    pass


def supervise(options, as_json, keep):
    """Runs one control plane until standard input ends or a signal asks to stop."""
    def stop(*_):
        raise _Stop

    binaries = build.ensure(with_node=False)
    run_id = f"cp-{os.getpid()}-{secrets.token_hex(3)}"
    run = Run.create(run_id, "control-plane", identity(os.getpid()))
    run.save(supervisor=identity(os.getpid()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    control_plane = None
    try:
        control_plane = ControlPlane(run, binaries, options)
        control_plane.start_on_free_ports()
        _announce(control_plane, as_json)
        _obey_standard_input(control_plane)
    except _Stop:
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for component in control_plane.components.values() if control_plane else ():
            component.kill()
        if not keep:
            shutil.rmtree(run.dir, ignore_errors=True)


def _announce(control_plane, as_json):
    run = control_plane.run
    kubeconfig = control_plane.write_kubeconfig(run.dir / "kubeconfig")
    users = control_plane.write_user_kubeconfigs(control_plane.options.users)
    facts = {"id": run.id, "server": control_plane.server, "caFile": str(control_plane.ca_file),
             "token": control_plane.token, "kubeconfig": str(kubeconfig), "users": users,
             "kubectl": str(control_plane.binaries / "kubectl"), "dir": str(run.dir),
             "logs": str(run.log_dir), "supervisor": os.getpid(),
             "pids": {name: item.pid for name, item in control_plane.components.items()}}
    run.save(server=facts["server"], kubeconfig=facts["kubeconfig"])
    if as_json:
        print(json.dumps(facts), flush=True)
        return
    print(f"export KUBECONFIG={kubeconfig}\n# kubectl: {facts['kubectl']}", flush=True)
    say("control plane ready; it ends with this command: Ctrl-C, or end of input")


def _obey_standard_input(control_plane):
    pending = b""
    while True:
        select.select([sys.stdin], [], [])
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            if line.strip():
                answer = obey(control_plane.components, control_plane.start,
                              control_plane.commands(), line.decode(errors="replace"))
                print(json.dumps(answer), flush=True)
