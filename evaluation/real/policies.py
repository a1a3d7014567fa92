"""Who sets the limits. Each policy runs for real on the node of its run."""

import json
import os
import pathlib
import signal
import subprocess
import threading

import harness
from harness import ROOT, SYSTEM, cgroups, check, eventually, node, read_quota
from mbcas_cluster import build

GENEROUS = 4


class Policy:
    """Static limits, as the workloads declare them; the others differ in something."""

    name, about = "static", "limits as declared"

    def __init__(self, binaries):
        self.binaries = binaries  # of MBCAS
        self.processes = []

    def node_options(self, _directory):
        return []

    def limit(self, workload):
        return workload.limit

    def start(self, world):
        """Before the workloads run."""

    def tick(self, world):
        """Every two seconds."""

    def stop(self):
        for process in self.processes:
            process.stop(signal.SIGKILL)

    def cost(self):
        """CPU seconds so far and MB resident, of all its processes."""
        seconds = resident = 0.0
        for daemon in self.processes:
            pid = daemon.process.pid
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                resident += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            except OSError:
                continue
        return seconds, resident


class Generous(Policy):
    name, about = "generous", f"{GENEROUS} times the declared limits"

    def limit(self, workload):
        return workload.limit * GENEROUS


class NoLimits(Policy):
    name, about = "no limits", "none; the kernel shares by requests"

    def limit(self, workload):
        return None


class Burst(Policy):
    name, about = "cpu burst", "declared, with cpu.max.burst (cfs_burst) of as much"

    def __init__(self, binaries):
        super().__init__(binaries)
        self.done = set()

    def tick(self, world):
        with world.lock:
            for containers in world.containers.values():
                for uid, container in containers.items():
                    if uid not in self.done:
                        container.allow_bursts()
                        self.done.add(uid)


class TwentyPercent(Policy):
    """As Koordinator's CPU burst: while a container is throttled its quota grows by 20 % a second,
    up to three times what is declared; when it no longer is, it shrinks by as much."""

    name, about = "20 % a second", "as Koordinator: up 20 % a second while throttled, to 3 times"

    def start(self, world):
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._loop, args=(world,), daemon=True)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.thread.join()

    def _loop(self, world):
        declared, before = {}, {}
        while not self.ended.wait(1):
            with world.lock:
                todo = [pair for containers in world.containers.values()
                        for pair in containers.items()]
            for uid, container in todo:
                try:
                    limit, throttled = container.limit(), container.throttled()
                    base = declared.setdefault(uid, limit)
                    factor = 1.2 if throttled - before.get(uid, throttled) > 0.01 else 1 / 1.2
                    before[uid] = throttled
                    to = int(min(3 * base, max(base, limit * factor)))
                    if to != limit:
                        container.set_limit(to)
                except OSError:
                    continue


class Mbcas(Policy):
    name, about = "MBCAS", "the responsive profile, defaults"
    flags = ()

    def start(self, world):
        cluster, directory = world.cluster, world.directory
        cluster.install()
        control = harness.controller(
            str(self.binaries / "mbcas-controller"),
            cluster.account_kubeconfig("mbcas-controller", directory / "controller.kubeconfig"),
            directory, *self.flags)
        agent = harness.agent(str(self.binaries / "mbcas-agent"), cluster, directory)
        self.processes = [control, agent]


class MbcasClassic(Mbcas):
    name, about = "MBCAS classic", "the classic profile"
    flags = ("--profile", "classic")


class WithMetrics(Policy):
    """The real metrics-server, behind the API server's aggregator."""

    def node_options(self, directory):
        make_front_proxy(directory)
        return [f"--apiserver-arg={flag}" for flag in (
            "--enable-aggregator-routing=true",
            f"--requestheader-client-ca-file={directory}/front-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={directory}/front.crt",
            f"--proxy-client-key-file={directory}/front.key")]

    def start(self, world):
        self.tools = build.ensure_autoscalers()
        self.world = world
        self.config = inner_kubeconfig(world)
        self.run("metrics-server", "--kubeconfig", self.config, "--authentication-kubeconfig",
                 self.config, "--authorization-kubeconfig", self.config, "--kubelet-insecure-tls",
                 "--metric-resolution=15s", "--secure-port=4443",
                 f"--cert-dir={world.directory}/metrics-server")
        world.apply({"apiVersion": "v1", "kind": "Service",
                     "metadata": {"name": "metrics-server", "namespace": "kube-system"},
                     "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 4443}]}})
        world.apply({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                     "metadata": {"name": "metrics-server", "namespace": "kube-system",
                                  "labels": {"kubernetes.io/service-name": "metrics-server"}},
                     "addressType": "IPv4", "ports": [{"name": "https", "port": 4443}],
                     "endpoints": [{"addresses": ["10.88.0.1"], "conditions": {"ready": True}}]})
        world.apply({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                     "metadata": {"name": "v1beta1.metrics.k8s.io"},
                     "spec": {"service": {"name": "metrics-server", "namespace": "kube-system"},
                              "group": "metrics.k8s.io", "version": "v1beta1",
                              "insecureSkipTLSVerify": True, "groupPriorityMinimum": 100,
                              "versionPriority": 100}})
        eventually("metrics are served", lambda: world.api(
            "GET", "/apis/metrics.k8s.io/v1beta1/nodes")[0] == 200)

    def run(self, program, *flags):
        words = node.inside(self.world.cluster.run, [str(self.tools / program), *flags])
        self.processes.append(harness.Daemon(words, self.world.directory, program))


class Hpa(WithMetrics):
    name, about = "HPA", "60 %, 1 to 3 replicas, metrics-server at 15 s"

    def start(self, world):
        super().start(world)
        for workload in world.scenario.workloads:
            world.apply({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": workload.name, "namespace": "default"},
                "spec": {"minReplicas": 1, "maxReplicas": 3,
                         "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                                            "name": workload.name},
                         "metrics": [{"type": "Resource", "resource": {
                             "name": "cpu", "target": {"type": "Utilization",
                                                       "averageUtilization": 60}}}]}})


class Vpa(WithMetrics):
    name, about = "VPA", "InPlaceOrRecreate, minReplicas 1, otherwise defaults"

    def start(self, world):
        super().start(world)
        world.cluster.kubectl("apply", "--server-side", "-f", str(self.tools / "vpa-crd.yaml"))
        self.run("recommender", "--kubeconfig", self.config)
        self.run("updater", "--kubeconfig", self.config, "--min-replicas=1")
        self.run("admission-controller", "--kubeconfig", self.config, "--register-webhook=false",
                 f"--client-ca-file={world.directory}/front-ca.crt",
                 f"--tls-cert-file={world.directory}/front.crt",
                 f"--tls-private-key={world.directory}/front.key", "--port=8944")
        for workload in world.scenario.workloads:
            eventually("VPAs are taken", lambda: world.api(
                "POST", "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers",
                {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
                 "metadata": {"name": workload.name, "namespace": "default"},
                 "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                                        "name": workload.name},
                          "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
                          "resourcePolicy": {"containerPolicies": [
                              {"containerName": "*", "controlledResources": ["cpu"]}]}}})[0]
                in (200, 201, 409))


ALL = {policy.name: policy for policy in (
    Policy, Generous, NoLimits, Burst, TwentyPercent, Hpa, Vpa, MbcasClassic, Mbcas)}


def make_front_proxy(directory):
    """An authority, and a client of it that the API server is when it asks on."""
    def openssl(*words):
        done = subprocess.run(["openssl", *words], capture_output=True, text=True)
        check(done.returncode == 0, f"openssl: {done.stderr}")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=front-ca",
            "-keyout", f"{directory}/front-ca.key", "-out", f"{directory}/front-ca.crt")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=front-proxy-client",
            "-keyout", f"{directory}/front.key", "-out", f"{directory}/front.csr")
    openssl("x509", "-req", "-in", f"{directory}/front.csr", "-CA", f"{directory}/front-ca.crt",
            "-CAkey", f"{directory}/front-ca.key", "-CAcreateserial", "-days", "2",
            "-out", f"{directory}/front.crt")


def inner_kubeconfig(world):
    """The administrator's, with the address that the server has within the node."""
    config = json.loads(world.cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    config["clusters"][0]["cluster"]["server"] = "https://10.0.0.1:443"
    path = world.directory / "inner.kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)
