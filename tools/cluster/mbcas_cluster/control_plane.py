"""etcd and kube-apiserver: alone on loopback ports for tests, and as part of a node."""

import base64
import json
import random
import secrets
import shutil
import socket
import subprocess
import urllib.request

from .access import ADMIN, Access, open_url
from .common import ClusterError
from .run import Component

SERVICE_RANGE = "10.0.0.0/24"
START_TIMEOUT_S = 150  # below what test/support/control_plane.cc waits
PORT_ATTEMPTS = 10


class Options:
    """What a caller may change about a control plane."""

    def __init__(self, users=(), etcd_args=(), apiserver_args=(), service_accounts=False):
        self.users = users  # "name" or "name,group,group", each given a token of its own
        self.etcd_args = list(etcd_args)
        self.apiserver_args = list(apiserver_args)
        self.service_accounts = service_accounts


class ControlPlane(Access):
    """The two components of one run, with the credentials that clients need."""

    def __init__(self, run, binaries, options, address="127.0.0.1"):
        super().__init__(run.id, run.dir / "ca.crt")
        self.run = run
        self.binaries = binaries
        self.options = options
        self.address = address
        self.service_account_key = run.dir / "service-account.key"
        self.etcd = Component(run, "etcd", [])
        self.apiserver = Component(run, "apiserver", [])
        self._etcd_port = None
        self._write_credentials()

    @property
    def components(self):
        return {"etcd": self.etcd, "apiserver": self.apiserver}

    def _write_credentials(self):
        _run_openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout",
                     "-out", str(self.service_account_key))
        users = [f"{ADMIN},system:masters", *self.options.users]
        with open(self.run.dir / "tokens.csv", "w") as file:
            for user in users:
                name, *groups = user.split(",")
                self.tokens[name] = secrets.token_hex(16)
                file.write(f'{self.tokens[name]},{name},{name},"{",".join(groups)}"\n')

    def start_on_free_ports(self):
        """A port found free may be gone a moment later, so one that is lost is replaced."""
        for component, start in ((self.etcd, self._start_etcd_on),
                                 (self.apiserver, self._start_api_on)):
            for attempt in range(PORT_ATTEMPTS):
                try:
                    start(*_free_ports())
                    break
                except ClusterError:
                    if "address already in use" not in component.log_tail() \
                            or attempt == PORT_ATTEMPTS - 1:
                        raise
                    self.run.log(component.name).unlink()

    def start_on_ports(self, etcd_port, peer_port, api_port):
        self._start_etcd_on(etcd_port, peer_port)
        self._start_api_on(api_port)

    def _start_etcd_on(self, port, peer_port):
        self._etcd_port = port
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        self.etcd.command = [
            str(self.binaries / "etcd"), f"--data-dir={self.run.dir / 'etcd'}", "--unsafe-no-fsync",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}", *self.options.etcd_args]
        self.start("etcd")

    def _start_api_on(self, port, *_):
        self.server = f"https://{self.address}:{port}"
        disabled = [] if self.options.service_accounts \
            else ["--disable-admission-plugins=ServiceAccount"]
        self.apiserver.command = [
            str(self.binaries / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--bind-address={self._bind_address()}", f"--secure-port={port}",
            # Nobody uses the advertised address but the self-made certificate, which names it.
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            f"--cert-dir={self.run.dir / 'certificates'}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.service_account_key}",
            f"--service-account-signing-key-file={self.service_account_key}",
            f"--token-auth-file={self.run.dir / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            *disabled, *self.options.apiserver_args]
        self.start("apiserver")

    def _bind_address(self):
        return self.address if self.address == "127.0.0.1" else "0.0.0.0"

    def start(self, name):
        """Starts a component, for the first time or again, and waits until it serves."""
        component = self.components[name]
        if component.is_running():
            return
        component.start()
        ready = self._etcd_is_healthy if name == "etcd" else self._apiserver_is_ready
        try:
            component.wait_ready(ready, START_TIMEOUT_S)
        except ClusterError:
            component.kill()
            raise

    def _etcd_is_healthy(self):
        return self._etcd_call("/health").get("health") == "true"

    def _apiserver_is_ready(self):
        if not self.ca_file.exists() and not self._extract_ca():
            return False
        try:
            return self.get("/readyz").strip() == "ok"
        except OSError:
            return False

    def _extract_ca(self):
        """The apiserver's certificate file holds its certificate, then that of its authority."""
        try:
            text = (self.run.dir / "certificates" / "apiserver.crt").read_text()
        except OSError:
            return False
        end = "-----END CERTIFICATE-----\n"
        certificates = [part + end for part in text.split(end) if part.strip()]
        if len(certificates) < 2:
            return False
        self.ca_file.write_text(certificates[1])
        return True

    def _etcd_call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._etcd_port}{path}", data)
        try:
            return json.loads(open_url(request))
        except (OSError, ValueError):
            return {}  # not up, or it refuses

    def compact(self):
        """Forgets all history in etcd, so that a watch from an old version must get 410 Gone."""
        head = self._etcd_call("/v3/kv/range", {"key": base64.b64encode(b"\0").decode()})
        revision = head.get("header", {}).get("revision")
        if not revision:
            raise ClusterError("etcd does not answer")
        if "header" not in self._etcd_call("/v3/kv/compaction", {"revision": revision,
                                                                 "physical": True}):
            raise ClusterError(f"etcd refuses to compact at revision {revision}: already done?")
        return int(revision)

    def commands(self):
        """Those of supervisor.obey that concern no component."""
        return {"compact": lambda: {"revision": self.compact()}}

    def write_user_kubeconfigs(self, users, server=None):
        """Token and kubeconfig of each user, given as in Options.users, by name."""
        names = [user.split(",")[0] for user in users]
        return {name: {"token": self.tokens[name],
                       "kubeconfig": str(self.write_kubeconfig(
                           self.run.dir / f"kubeconfig-user-{index}", name, server))}
                for index, name in enumerate(names)}


def _free_ports(count=2):
    """Ports outside the range the kernel takes ports of outgoing connections from."""
    ports = []
    while len(ports) < count:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def _run_openssl(*args):
    if not shutil.which("openssl"):
        raise ClusterError("openssl is not installed: run `make setup`")
    result = subprocess.run(["openssl", *args], capture_output=True, text=True)
    if result.returncode != 0:
        raise ClusterError(f"openssl {args[0]} failed: {result.stderr.strip()}")
