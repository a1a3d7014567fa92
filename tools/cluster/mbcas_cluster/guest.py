"""Commands in the virtual machine that a node is."""

import base64
import shlex
import socket
import threading

from . import network
from .run import Run

PORT = 99  # as guest/etc/systemd/system/mbcas-command.socket has it
CONNECT_TIMEOUT_S = 30
SILENCE_TIMEOUT_S = 600


class Guest:
    """Runs commands in the machine of a run."""

    def __init__(self, run):
        self._address = (network.address(run.state["number"]), PORT)
        first = Run.load(run.state["cluster"])
        self._network = network.namespace_of(first.state["supervisor"]["pid"])

    def call(self, arguments, stdin=None, stdout=None):
        """Exit code and output of a command; the output goes to `stdout`, a binary file, where one
        is given. Errors that it prints are part of the output."""
        with network.inside(self._network):  # a socket stays where it was made
            connection = socket.create_connection(self._address, timeout=CONNECT_TIMEOUT_S)
        with connection:
            connection.settimeout(SILENCE_TIMEOUT_S)
            line = base64.b64encode(shlex.join(map(str, arguments)).encode())
            connection.sendall(line + b"\n")
            if stdin:
                # A thread, because the command may write before it has read everything.
                threading.Thread(target=_send, args=(connection, stdin), daemon=True).start()
            else:
                connection.shutdown(socket.SHUT_WR)
            return read_answer(lambda: connection.recv(1 << 16), stdout)


def _send(connection, stdin):
    try:
        while data := stdin.read1(1 << 16):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the command has ended without reading all of it


def read_answer(receive, stdout=None):
    """Output and exit code from what guest/usr/local/sbin/mbcas-command sends: the last line is
    `exit CODE`, after a newline that is no part of the output."""
    pending, output = b"", []
    while data := receive():
        pending += data
        # What may still belong to the last line.
        ready, pending = pending[:-16], pending[-16:]
        if stdout:
            stdout.write(ready)
            stdout.flush()
        else:
            output.append(ready)
    ready, found, code = pending.rpartition(b"\nexit ")
    if not found or not code.strip().isdigit():
        raise OSError("the virtual machine broke off its answer")
    if stdout:
        stdout.write(ready)
        stdout.flush()
    return int(code), b"".join([*output, ready])
