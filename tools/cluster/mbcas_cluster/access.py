"""What a client of a run's API server needs: address, certificate authority and token."""

import base64
import json
import os
import ssl
import urllib.request

ADMIN = "admin"


class Access:
    def __init__(self, name, ca_file, server=None, tokens=None):
        self.name = name
        self.ca_file = ca_file
        self.server = server  # None until the API server has a port
        self.tokens = tokens or {}

    @staticmethod
    def to(run, server):
        """To the API server of a run that is up, as its administrator."""
        token = (run.dir / "tokens.csv").read_text().split(",")[0]
        return Access(run.id, run.dir / "ca.crt", server, {ADMIN: token})

    @property
    def token(self):
        return self.tokens[ADMIN]

    def get(self, path):
        """One GET as admin; raises OSError when there is no good answer."""
        request = urllib.request.Request(self.server + path,
                                         headers={"Authorization": f"Bearer {self.token}"})
        return open_url(request, ssl.create_default_context(cafile=str(self.ca_file)))

    def write_kubeconfig(self, path, user=ADMIN, server=None):
        return self._write(path, user, server, {"token": self.tokens[user]})

    def write_node_kubeconfig(self, path, node):
        """As the kubelet of a node. The API server reads its tokens once, at its start, and nodes
        may join later, so the administrator impersonates them."""
        return self._write(path, f"system:node:{node}", None, {
            "token": self.token, "as": f"system:node:{node}", "as-groups": ["system:nodes"]})

    def _write(self, path, user, server, credentials):
        authority = base64.b64encode(self.ca_file.read_bytes()).decode()
        with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(f"""apiVersion: v1
kind: Config
current-context: {self.name}
contexts:
- name: {self.name}
  context: {{cluster: {self.name}, user: "{user}"}}
clusters:
- name: {self.name}
  cluster:
    server: {server or self.server}
    certificate-authority-data: {authority}
users:
- name: "{user}"
  user: {json.dumps(credentials)}
""")
        return path


def open_url(request, context=None):
    handlers = [urllib.request.ProxyHandler({})]
    if context:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    with urllib.request.build_opener(*handlers).open(request, timeout=5) as response:
        return response.read().decode()
