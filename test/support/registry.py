"""A real registry of images on a port of loopback, for tests."""

import contextlib
import pathlib
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIG = """\
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %s}}
http: {addr: "127.0.0.1:%d"}
"""


def program():
    """(the program, why there is none): one of them is empty."""
    fetched = subprocess.run([ROOT / "scripts" / "fetch-program", "docker-registry",
                              "usr/bin/docker-registry"], capture_output=True, text=True)
    said = fetched.stdout.strip()
    return ("", said.removeprefix("SKIP: ")) if fetched.returncode else (said, "")


class Registry:
    """`within` is a command that runs its arguments elsewhere, such as in a network namespace whose
    loopback the port is then of."""

    def __init__(self, binary, directory, within=()):
        self.within = list(within)
        for _ in range(10):
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                port = sock.getsockname()[1]
            config = directory / "registry.yaml"
            config.write_text(CONFIG % (directory / "registry", port))
            self.log = (directory / "registry.log").open("w")
            self.process = subprocess.Popen([*self.within, binary, "serve", config],
                                            stdout=self.log, stderr=subprocess.STDOUT)
            if self.is_up(port):
                self.address = f"127.0.0.1:{port}"
                return
            self.stop()  # another program was faster in taking the port
        raise AssertionError((directory / "registry.log").read_text())

    def is_up(self, port):
        while self.process.poll() is None:
            if self.within:
                if subprocess.run([*self.within, "bash", "-c", f": </dev/tcp/127.0.0.1/{port}"],
                                  stderr=subprocess.DEVNULL).returncode == 0:
                    return True
            else:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
                    return True
            time.sleep(0.1)
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
