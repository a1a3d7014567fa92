"""An API server for tests in Python: started, asked and ended."""

import json
import pathlib
import ssl
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "cluster" / "cluster"
# What kubectl says when the server, or the network path to it, is slow for a moment.
PASSING = ("TLS handshake timeout", "i/o timeout", "connection refused", "connection reset",
           "unexpected EOF", "http2: client connection", "etcdserver: ", "ServiceUnavailable",
           "the server is currently unable", "in the time allotted", "too many requests",
           "context deadline exceeded", "Client.Timeout exceeded")
# Verbs whose repetition changes nothing.
REPEATABLE = ("get", "apply", "patch", "wait", "logs", "describe", "annotate", "label", "rollout",
              "api-resources")


def run_kubectl(program, kubeconfig, words, stdin=None, may_fail=False):
    """Runs kubectl, and repeats a command that failed only because the server was slow."""
    command = words[2:] if words[0] == "-n" else words
    for wait in (1, 2, 4, 8, 0):
        done = subprocess.run([program, "--kubeconfig", kubeconfig, *words], input=stdin,
                              capture_output=True, text=True)
        if (done.returncode == 0 or may_fail or command[0] not in REPEATABLE
                or not any(text in done.stderr for text in PASSING)):
            break
        time.sleep(wait)
    return done


class Api:
    """Requests to one API server, as the bearer of a token."""

    def __init__(self, server, ca_file, token):
        self.server, self.ca_file, self.token = server, ca_file, token
        self._context = ssl.create_default_context(cafile=ca_file)

    def bearing(self, token):
        return Api(self.server, self.ca_file, token)

    def __call__(self, method, path, body=None, kind="application/json"):
        """The status and the answer, parsed; its text where a path is not served (yet). PATCH
        without another kind is a merge."""
        if method == "PATCH" and kind == "application/json":
            kind = "application/merge-patch+json"
        request = urllib.request.Request(
            self.server + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind,
                     "Accept": "application/json"})
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                return error.code, json.loads(text or b"null")
            except ValueError:
                return error.code, text.decode(errors="replace")

    def apply(self, path, body, manager):
        return self("PATCH", f"{path}?fieldManager={manager}&force=true", body,
                    "application/apply-patch+yaml")


class ControlPlane:
    """An etcd and an apiserver of its own, until the end of a `with`. Options are those of
    `cluster control-plane`."""

    def __init__(self, *options):
        self._options = options

    @staticmethod
    def skip_reason():
        done = subprocess.run([TOOL, "build", "control-plane", "--check"])
        return None if done.returncode == 0 else "Kubernetes is not built"

    def __enter__(self):
        self._process = subprocess.Popen([TOOL, "control-plane", "--json", *self._options],
                                         text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        facts = json.loads(self._process.stdout.readline())
        self.kubeconfig, self._kubectl = facts["kubeconfig"], facts["kubectl"]
        self.api = Api(facts["server"], facts["caFile"], facts["token"])
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(timeout=180)
        self._process.stdout.close()

    def kubectl(self, *arguments, stdin=None):
        words = [str(word) for word in arguments]
        done = run_kubectl(self._kubectl, self.kubeconfig, words, stdin)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout


def eventually(what, condition, patience=300):
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.1)
