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
        connection, token = self._begin(arguments, silence)
        with connection:
            if stdin:
                # A thread, because the command may write before it has read everything.
                threading.Thread(target=_send, args=(connection, stdin), daemon=True).start()
            else:
                connection.shutdown(socket.SHUT_WR)
            return read_answer(lambda: connection.recv(1 << 16), token, stdout)

    def files(self):
        """What reads many files of the machine."""
        return Files(self._begin(["bash", "-c", READ_FILES], SILENCE_TIMEOUT_S)[0])

    def _begin(self, arguments, silence):
        """A connection to a command that was started, and the word that ends the answer."""
        with network.inside_that_of(self._first):  # a socket stays where it was made
            connection = socket.create_connection(self._address, timeout=CONNECT_TIMEOUT_S)
        connection.settimeout(silence)
        token = secrets.token_hex(8).encode()
        line = base64.b64encode(shlex.join(map(str, arguments)).encode())
        connection.sendall(token + b" " + line + b"\n")
        return connection, token


# Starts no process for a file, so that it costs the machine little. Of a file that is no text it
# reads what comes before the first zero.
READ_FILES = r"""
while IFS= read -r path; do
  if [ -d "$path" ]; then printf 'directory\0'
  elif mapfile -n 1 -d '' text <"$path"; then printf 'file\n%s\0' "${text[0]}"
  else printf 'nothing\0'
  fi
done 2>/dev/null"""


class Files:
    """Reads files of a machine, by one shell for all of them. May be used by several threads."""

    def __init__(self, connection):
        self._connection = connection
        self._lock = threading.Lock()

    def read(self, path):
        """The text of a file, True of a directory, None where there is nothing."""
        with self._lock:
            self._connection.sendall(f"{path}\n".encode())
            answer = b""
            while not answer.endswith(b"\0"):
                data = self._connection.recv(1 << 16)
                if not data:
                    raise OSError("the virtual machine broke off its answer")
                answer += data
        kind, _, text = answer[:-1].partition(b"\n")
        return {b"directory": True, b"nothing": None}.get(kind, text.decode(errors="replace"))

    def close(self):
        self._connection.close()


def _send(connection, stdin):
    try:
        while data := stdin.read(1 << 16):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the command has ended without reading all of it


def read_answer(receive, token, stdout=None):
    """Exit code and output from what guest/usr/local/sbin/mbcas-command sends: `TOKEN CODE` and a
    newline end it. The connection is still open then, because the machine may not close it before
    everything that was sent to it has been read. Output is passed on when it comes: who reads lines
    has each of them when it is whole."""
    pending, output = b"", []
    end = re.compile(token + rb" (\d+)\n")
    while not (found := end.search(pending)):
        data = receive()
        if not data:
            raise OSError("the virtual machine broke off its answer")
        pending += data
        ready = _where_it_may_end(pending, token)
        _pass_on(pending[:ready], output, stdout)
        pending = pending[ready:]
    return int(found[1]), b"".join(output)


def _where_it_may_end(text, token):
    """The first place from which on the text is, or may become, what ends an answer."""
    if token in text:
        return text.index(token)
    return len(text) - next((length for length in range(len(token) - 1, 0, -1)
                             if text.endswith(token[:length])), 0)


def _pass_on(data, output, stdout):
    if stdout:
        stdout.write(data)
        stdout.flush()
    else:
        output.append(data)
