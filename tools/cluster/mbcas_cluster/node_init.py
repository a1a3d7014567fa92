"""The first process of a node: makes its surroundings, starts its components, watches them."""

import json
import os
import select
import socket
import struct

from . import kernel
from .common import ClusterError
from .first_node import FirstNode
from .joined_node import JoinedNode
from .node import control_address
from .run import Run, identity
from .supervisor import obey
from .vm_node import VmNode


def init(run_id, report_fd):
    run = Run.load(run_id)
    control_listener = socket.socket(socket.AF_UNIX)
    control_listener.bind(control_address(run))
    control_listener.listen()

    def report(**message):
        try:
            os.write(report_fd, json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            pass

    try:
        kind = JoinedNode if "cluster" in run.state else FirstNode
        node = (VmNode if run.state.get("vm") else kind)(run, report)
    except (ClusterError, OSError) as error:
        report(error=str(error))
        return 1
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID)
    go_reader, go_writer = os.pipe()
    child = os.fork()
    if child:
        run.save(supervisor=identity(child))
        os.write(go_writer, b"g")
        return 0
    os.read(go_reader, 1)
    try:
        facts = node.start()
    except (ClusterError, OSError) as error:
        report(error=str(error))
        return 1
    report(**facts)
    os.close(report_fd)
    _Watch(node).run(control_listener)
    return 0


class _Watch:
    def __init__(self, node):
        self._node = node

    def run(self, control_listener):
        """For ever: obeys commands, and reaps orphans, as the first process of a namespace must."""
        while True:
            if select.select([control_listener], [], [], 0.5)[0]:
                connection, _ = control_listener.accept()
                with connection:
                    self._serve(connection)
            self._reap()

    def _serve(self, connection):
        _, uid, _ = struct.unpack("3i", connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if uid != 0:
            return
        try:
            connection.settimeout(5)
            line = connection.makefile().readline()
            answer = obey(self._node.components, self._node.start_component,
                          self._node.commands(), line)
            connection.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass

    def _reap(self):
        ours = {component.process_id() for component in self._node.components.values()}
        while True:
            try:
                zombie = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if zombie is None:
                return
            if zombie.si_pid in ours:
                for component in self._node.components.values():
                    component.is_running()  # collects its exit code
            else:
                os.waitpid(zombie.si_pid, 0)
