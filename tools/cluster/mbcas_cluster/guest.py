"""Commands in the virtual machine that a node is."""

import base64
import re
import secrets
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
        self._first = Run.load(run.state["cluster"]).state["supervisor"]["pid"]

    def call(self, arguments, stdin=None, stdout=None, silence=SILENCE_TIMEOUT_S):
        """Exit code and output of a command, what it says of errors included. The output goes to
        `stdout`, a binary file, where one is given. `stdin` is a binary file without a buffer: a
        thread waits for it, and would hold the buffer's lock when this process ends. A command
        that says nothing for `silence` seconds is given up."""
        with network.inside_that_of(self._first):  # a socket stays where it was made
            connection = socket.create_connection(self._address, timeout=CONNECT_TIMEOUT_S)
        with connection:
            connection.settimeout(silence)
            token = secrets.token_hex(8).encode()
            line = base64.b64encode(shlex.join(map(str, arguments)).encode())
            connection.sendall(token + b" " + line + b"\n")
            if stdin:
                # A thread, because the command may write before it has read everything.
                threading.Thread(target=_send, args=(connection, stdin), daemon=True).start()
            else:
                connection.shutdown(socket.SHUT_WR)
            return read_answer(lambda: connection.recv(1 << 16), token, stdout)


def _send(connection, stdin):
    try:
        while data := stdin.read(1 << 16):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the command has ended without reading all of it


def read_answer(receive, token, stdout=None):
    """Exit code and output from what guest/usr/local/sbin/mbcas-command sends: the last line is
    `TOKEN CODE`, after a newline that is no part of the output. The connection is still open then,
    because the machine may not close it before everything that was sent to it has been read."""
    pending, output = b"", []
    end = re.compile(rb"\n" + token + rb" (\d+)\n")
    while not (found := end.search(pending)):
        data = receive()
        if not data:
            raise OSError("the virtual machine broke off its answer")
        # What may still belong to the last line.
        kept = len(token) + 8
        ready, pending = pending[:-kept], pending[-kept:] + data
        _pass_on(ready, output, stdout)
    _pass_on(pending[:found.start()], output, stdout)
    return int(found[1]), b"".join(output)


def _pass_on(data, output, stdout):
    if stdout:
        stdout.write(data)
        stdout.flush()
    else:
        output.append(data)
