"""A real node, and one run on it: the workloads, what drives them, and what is recorded."""

import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test" / "cluster"), str(ROOT / "test" / "support")]

import harness
from api import Api
from harness import Cgroup, Failure, Load, check, eventually, read_quota
from scenarios import REQUEST_MS

IMAGE = "mbcas.local/workload:1"
PORT = 8080
NODE_ADDRESS, METRICS_PORT = "10.88.0.1", 4443
SAMPLE_S, KEPT = 0.1, 5  # every so many samples are written down
if harness.ON_V2:
    SAMPLE_S, KEPT = 0.5, 1  # in a virtual machine it takes its CPU time


class Node:
    """One for all runs, with the API extensions that the policies need."""

    def __init__(self, kubectl, directory):
        self.cluster = harness.Cluster("evaluation", kubectl)
        self.directory = directory
        self.metrics_server = None

    def start(self, metrics_server, priorities):
        _make_front_proxy(self.directory)
        self.cluster.up_for_pods(*(f"--apiserver-arg={flag}" for flag in (
            "--enable-aggregator-routing=true",
            f"--requestheader-client-ca-file={self.directory}/front-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={self.directory}/front.crt",
            f"--proxy-client-key-file={self.directory}/front.key")))
        config = json.loads(self.cluster.kubectl("config", "view", "--raw", "-o", "json"))
        state = self.cluster.run.state
        self.api = Api(state["server"], state["caFile"], config["users"][0]["user"]["token"])
        kernel = self.cluster.get("node", self.cluster.node_name())["status"]["nodeInfo"][
            "kernelVersion"]
        self.about = f"Linux {kernel}" + (" in a virtual machine" if harness.ON_V2 else "")
        self.cluster.install()
        for priority in priorities:
            self.make("/apis/scheduling.k8s.io/v1/priorityclasses", {
                "metadata": {"name": f"p{priority}"}, "value": priority})
        if metrics_server:
            self._serve_metrics(metrics_server, config)

    def stop(self):
        if self.metrics_server:
            self.metrics_server.stop()
        self.cluster.down()

    def make(self, path, body):
        code, answer = self.api("POST", path, body)
        check(code in (200, 201), f"POST {path}: {code} {answer}")

    def inside(self, *command):
        """In the node's network, where its pods can be reached."""
        return ["nsenter", f"--net=/proc/{self.cluster.run.state['supervisor']['pid']}/ns/net",
                "--", *map(str, command)]

    def _serve_metrics(self, program, config):
        """The real metrics-server, behind the API server's aggregator."""
        config["clusters"][0]["cluster"]["server"] = "https://10.0.0.1:443"
        inner = self.inner_kubeconfig = self.directory / "inner.kubeconfig"
        inner.write_text(json.dumps(config))
        self.metrics_server = harness.Daemon(self.inside(
            program, "--kubeconfig", inner, "--authentication-kubeconfig", inner,
            "--authorization-kubeconfig", inner, "--kubelet-insecure-tls",
            "--kubelet-preferred-address-types=InternalIP", "--metric-resolution=15s",
            f"--secure-port={METRICS_PORT}", f"--cert-dir={self.directory}/metrics-server"),
            self.directory, "metrics-server")
        name = {"name": "metrics-server", "namespace": "kube-system"}
        self.make("/api/v1/namespaces/kube-system/services", {
            "metadata": name, "spec": {"ports": [
                {"name": "https", "port": 443, "targetPort": METRICS_PORT}]}})
        self.make("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
            "metadata": {**name, "labels": {"kubernetes.io/service-name": "metrics-server"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": METRICS_PORT}],
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}]})
        self.make("/apis/apiregistration.k8s.io/v1/apiservices", {
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"service": name, "group": "metrics.k8s.io", "version": "v1beta1",
                     "insecureSkipTLSVerify": True, "groupPriorityMinimum": 100,
                     "versionPriority": 100}})

        def available():
            found = self.api("GET", "/apis/apiregistration.k8s.io/v1/apiservices/"
                                    "v1beta1.metrics.k8s.io")[1]
            return any(condition["type"] == "Available" and condition["status"] == "True"
                       for condition in found.get("status", {}).get("conditions", []))
        eventually("metrics are served", available)


def _make_front_proxy(directory):
    """An authority, and the API server's certificate of it for asking extensions."""
    def openssl(*words):
        done = subprocess.run(["openssl", *words], capture_output=True, text=True)
        check(done.returncode == 0, f"openssl: {done.stderr}")
    files = {name: f"{directory}/{name}" for name in (
        "front-ca.key", "front-ca.crt", "front.key", "front.csr", "front.crt")}
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=front-ca",
            "-keyout", files["front-ca.key"], "-out", files["front-ca.crt"])
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=front-proxy-client",
            "-keyout", files["front.key"], "-out", files["front.csr"])
    openssl("x509", "-req", "-in", files["front.csr"], "-CA", files["front-ca.crt"], "-CAkey",
            files["front-ca.key"], "-CAcreateserial", "-days", "2", "-out", files["front.crt"])


class Container(Cgroup):
    """With what is recorded of a container, and what policies that bypass Kubernetes do to it."""

    def read(self):
        """Limit, seconds used, throttled and waited. Once it has ended, what was read last."""
        try:
            self.last = (self.limit(), self.usage(), self.counters()[1], self.pressure())
            self.runs = True
        except (OSError, Failure):
            self.runs = False
        return self.last

    def limit(self):
        """Of the container or its pod, whichever is lower; None: no limit."""
        limits = [limit for limit in (read_quota(self.cpu), read_quota(self.pod_cpu))
                  if limit is not None and limit > 0]
        return min(limits) if limits else None

    def pressure(self):
        """Seconds in which something in it waited for CPU; None where the kernel does not say."""
        for directory in self.directories:
            if (directory / "cpu.pressure").exists():
                some = (directory / "cpu.pressure").read_text().split("\n", 1)[0]
                return int(some.rpartition("total=")[2]) / 1e6
        return None

    def set_limit(self, millicores):
        """The pod has to make room first."""
        order = [self.pod_cpu, self.cpu]
        if millicores < read_quota(self.cpu):
            order.reverse()
        for directory in order:
            if (directory / "cpu.max").exists():
                (directory / "cpu.max").write_text(f"{millicores * 100} 100000")
            else:
                (directory / "cpu.cfs_quota_us").write_text(str(millicores * 100))

    def allow_bursts(self):
        """What was not used of a period may be used later, as much as a period's quota."""
        for directory in (self.pod_cpu, self.cpu):
            v2 = directory / "cpu.max.burst"
            file = v2 if v2.exists() else directory / "cpu.cfs_burst_us"
            file.write_text(str(read_quota(directory) * 100))


class Driver:
    """Requests to a service's pods, at random moments, whether or not earlier ones are answered."""

    def __init__(self, node, seed):
        self.process = subprocess.Popen(
            node.inside(node.cluster.run.dir / "workload", "drive", PORT, "--seed", seed),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.answers = []  # (second of the monotonic clock, ms, whether it was answered)
        self.targets = None
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self):
        for line in self.process.stdout:
            due, latency, good = line.split()
            self.answers.append((float(due) / 1000, float(latency), good == "1"))

    def aim(self, addresses):
        if addresses and addresses != self.targets:
            self.targets = addresses
            self._tell("targets " + " ".join(addresses))

    def rate(self, requests_a_second):
        self._tell(f"rate {requests_a_second}")

    def _tell(self, line):
        self.process.stdin.write(line + "\n")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


def busy_cores_seconds():
    """Of the whole machine, since its start."""
    fields = [int(word) for word in
              pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")


class World:
    """One run."""

    def __init__(self, node, scenario, policy, number):
        self.node, self.scenario, self.policy = node, scenario, policy
        self.seed = number + 1
        self.namespace = f"run-{time.monotonic_ns()}"
        self.containers = {w.name: {} for w in scenario.workloads}  # by name and pod UID
        self.addresses = {}
        self.series = {name: [] for name in self.containers}
        self.changes = {name: [] for name in self.containers}  # (second, all its limits together)
        self.restarts = 0
        self.drivers, self.loads = {}, {}
        self.ended = threading.Event()
        self.lock = threading.Lock()

    def run(self):
        """Returns what was recorded."""
        self.node.make("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        try:
            self.policy.start(self)
            eventually("the namespace has its service account", lambda: self.node.api(
                "GET", f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default")[0] == 200)
            for workload in self.scenario.workloads:
                self.make("apps/v1", "deployments", self._deployment(workload))
            eventually("the workloads run", self._look)
            for number, workload in enumerate(self.scenario.workloads):
                if workload.service:
                    driver = Driver(self.node, self.seed * 10 + number)
                    self.drivers[workload.name] = driver
                    eventually("the service is ready",
                               lambda name=workload.name: self._look() and self.addresses[name])
                    driver.aim(self.addresses[workload.name])
                self._do(workload.name, workload.does[0][1])
            self.policy.wait_ready(self)
            time.sleep(random.Random(self.seed).uniform(0, self.policy.period))
            return self._measure()
        finally:
            self.ended.set()
            for thing in (*self.drivers.values(), *self.loads.values()):
                thing.end()
            self.policy.stop()
            self.node.api("DELETE", f"/api/v1/namespaces/{self.namespace}")
            # The next run must not share the node with pods of this one.
            eventually("the pods are gone", lambda: not self._pods())

    def make(self, version, kind, body):
        prefix = "/api/v1" if version == "v1" else f"/apis/{version}"
        self.node.make(f"{prefix}/namespaces/{self.namespace}/{kind}", body)

    def get(self, version, kind):
        return self.node.api("GET", f"/apis/{version}/namespaces/{self.namespace}/{kind}")[1]

    def _deployment(self, workload):
        args = ["serve", str(PORT), "--work-ms", str(REQUEST_MS)] if workload.service else ["pause"]
        limit = self.policy.limit(workload)
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "args": args,
                     "resources": {"requests": {"cpu": f"{workload.request}m", "memory": "16Mi"},
                                   "limits": {"memory": "64Mi"}}}
        if limit:
            container["resources"]["limits"]["cpu"] = f"{limit}m"
        if not workload.ready:
            container["readinessProbe"] = {"exec": {"command": ["/workload", "never"]}}
        spec = {"terminationGracePeriodSeconds": 1, "dnsPolicy": "Default",
                "enableServiceLinks": False, "containers": [container]}
        if workload.priority:
            spec["priorityClassName"] = f"p{workload.priority}"
        labels = {"app": workload.name}
        return {"metadata": {"name": workload.name},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                         "template": {"metadata": {"labels": labels}, "spec": spec}}}

    def _pods(self):
        code, answer = self.node.api("GET", f"/api/v1/namespaces/{self.namespace}/pods")
        check(code == 200, f"listing pods: {code}")
        return answer["items"]

    def _look(self):
        """Which pods there are. True once every workload has one that runs."""
        restarts, addresses = 0, {name: [] for name in self.containers}
        for pod in self._pods():
            app, uid = pod["metadata"]["labels"]["app"], pod["metadata"]["uid"]
            statuses = pod["status"].get("containerStatuses", [])
            restarts += sum(status["restartCount"] for status in statuses)
            if not statuses or "running" not in statuses[0].get("state", {}):
                continue
            if statuses[0]["ready"] and pod["status"].get("podIP"):
                addresses[app].append(pod["status"]["podIP"])
            if uid not in self.containers[app]:
                container = Container(self.node.cluster, pod)
                with self.lock:
                    self.containers[app][uid] = container
        self.restarts, self.addresses = restarts, addresses
        return all(self.containers.values())

    def _measure(self):
        todo = sorted(((at, w.name, what) for w in self.scenario.workloads
                       for at, what in w.does[1:]), key=lambda item: item[0])
        self.began = time.monotonic()
        cost, busy = self.policy.cost()[0], busy_cores_seconds()
        threads = [threading.Thread(target=target, daemon=True)
                   for target in (self._sample, self._watch)]
        for thread in threads:
            thread.start()
        for at, name, what in [*todo, (self.scenario.seconds, None, None)]:
            time.sleep(max(0.0, self.began + at - time.monotonic()))
            if name:
                self._do(name, what)
        took = time.monotonic() - self.began
        seconds, megabytes = self.policy.cost()
        busy = (busy_cores_seconds() - busy) / took
        self.ended.set()
        for thread in threads:
            thread.join()
        pods = sum((samples[-1][2] - samples[0][2]) / took
                   for samples in self.series.values() if samples)
        return {
            "series": {name: [[round(value, 4) if value is not None else None for value in sample]
                              for sample in samples[::KEPT]]
                       for name, samples in self.series.items()},
            "changes": self.changes,
            "answers": {name: [[round(at - self.began, 3), latency, good] for at, latency, good
                               in driver.answers if at >= self.began]
                        for name, driver in self.drivers.items()},
            "restarts": self.restarts,
            "cost": [(seconds - cost) / took * 100, megabytes],
            "rest of the machine": busy - pods,
            "node": self.node.about,
        }

    def _do(self, name, what):
        if name in self.drivers:
            self.drivers[name].rate(what)
            return
        if name in self.loads:
            self.loads.pop(name).end()
        if what:
            threads, on_ms, period_ms = what
            container = next(iter(self.containers[name].values()))
            self.loads[name] = Load(self.node.cluster, container.directories, threads, on_ms,
                                    period_ms)

    def _sample(self):
        """Second, limits, seconds used, throttled, waited, and pods, each for all pods together."""
        number = 0
        while not self.ended.wait(max(0.0, self.began + number * SAMPLE_S - time.monotonic())):
            number += 1
            now = time.monotonic() - self.began
            with self.lock:
                everything = {name: list(those.values()) for name, those in self.containers.items()}
            for name, containers in everything.items():
                read = [container.read() for container in containers]
                used, throttled, waited = (None if None in column else sum(column)
                                           for column in list(zip(*read))[1:])
                running = [each[0] for each, container in zip(read, containers) if container.runs]
                limits = None if None in running else sum(running)
                if not self.changes[name] or self.changes[name][-1][1] != limits:
                    self.changes[name].append((round(now, 2), limits))
                self.series[name].append((now, limits, used, throttled, waited, len(running)))

    def _watch(self):
        while not self.ended.wait(0.5):
            try:
                self._look()
            except (OSError, Failure, StopIteration):
                continue  # the next look will tell
            for name, driver in self.drivers.items():
                driver.aim(self.addresses[name])
