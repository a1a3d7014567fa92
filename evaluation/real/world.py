"""A node of its own for one run, with the workloads on it and all that is measured."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test" / "cluster"), str(ROOT / "test" / "support")]

import harness
from api import Api
from harness import cgroups, check, eventually, node, read_quota
from scenarios import REQUEST_MS

IMAGE = "mbcas.local/workload:1"
PORT = 8080
SAMPLE_S = 0.1


class Container:
    """The cgroup of a workload's container, read without asking anybody."""

    def __init__(self, directories):
        self.directories = directories
        self.cpu = next(d for d in directories if read_quota(d) is not None)

    def limit(self):
        """Millicores; None: no limit."""
        own, pod = read_quota(self.cpu), read_quota(self.cpu.parent)
        limits = [limit for limit in (own, pod) if limit is not None and limit > 0]
        return min(limits) if limits else None

    def throttled(self):
        """Seconds, by its own limit or its pod's."""
        times = []
        for directory in (self.cpu, self.cpu.parent):
            values = dict(line.split() for line in
                          (directory / "cpu.stat").read_text().splitlines())
            times.append(int(values["throttled_time"]) / 1e9 if "throttled_time" in values
                         else int(values["throttled_usec"]) / 1e6)
        return max(times)

    def used(self):
        """Seconds of CPU."""
        for directory in self.directories:
            if (directory / "cpuacct.usage").exists():
                return int((directory / "cpuacct.usage").read_text()) / 1e9
        values = dict(line.split() for line in (self.cpu / "cpu.stat").read_text().splitlines())
        return int(values["usage_usec"]) / 1e6

    def set_limit(self, millicores):
        """As a controller without Kubernetes does; the pod's first where that has to make room."""
        order = [self.cpu.parent, self.cpu]
        if millicores < (read_quota(self.cpu) or 0):
            order.reverse()
        for directory in order:
            if (directory / "cpu.max").exists():
                (directory / "cpu.max").write_text(f"{millicores * 100} 100000")
            else:
                (directory / "cpu.cfs_quota_us").write_text(str(millicores * 100))

    def allow_bursts(self):
        """What was not used of a period may be used later, as much as a period's quota."""
        for directory in (self.cpu.parent, self.cpu):
            quota = read_quota(directory)
            v2 = directory / "cpu.max.burst"
            file = v2 if v2.exists() else directory / "cpu.cfs_burst_us"
            file.write_text(str(quota * 100))


class Driver:
    """Requests to a service's pods, at random moments, whether or not earlier ones are answered."""

    def __init__(self, world):
        program = str(world.cluster.run.dir / "workload")
        self.process = subprocess.Popen(
            node.inside(world.cluster.run, [program, "drive", str(PORT)]), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)
        self.answers = []  # (second of the monotonic clock, ms, whether it was answered)
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        self.targets = None

    def _listen(self):
        for line in self.process.stdout:
            due, latency, good = line.split()
            self.answers.append((float(due) / 1000, float(latency), good == "1"))

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def aim(self, addresses):
        if addresses and addresses != self.targets:
            self.targets = addresses
            self.tell("targets " + " ".join(addresses))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


class Burner:
    """A process in a container's cgroup, as if it ran in there."""

    def __init__(self, world, directories, what):
        threads, on_ms, period_ms = what
        command = [str(world.cluster.run.dir / "workload"), "burn", "--threads", str(threads),
                   "--on-ms", str(on_ms), "--period-ms", str(period_ms)]
        read, write = os.pipe()
        # Into the cgroup first, and only then, at a word, to work.
        self.process = subprocess.Popen(["sh", "-c", 'read -r word; exec "$@"', "sh", *command],
                                        stdin=read)
        os.close(read)
        for directory in directories:
            (directory / "cgroup.procs").write_text(str(self.process.pid))
        os.write(write, b"go\n")
        os.close(write)

    def end(self):
        self.process.kill()
        self.process.wait()


class World:
    def __init__(self, cluster, directory, scenario, policy):
        self.cluster, self.directory = cluster, directory
        self.scenario, self.policy = scenario, policy
        self.containers = {}  # workload -> {pod uid: Container}
        self.addresses = {}
        self.series = {}      # workload -> [(second, limits together, used, throttled, pods)]
        self.changes = {}     # workload -> [(second, limit)] of its first pod
        self.restarts = 0
        self.ended = threading.Event()
        self.lock = threading.Lock()

    # ---- the node and what is on it

    def start(self):
        self.cluster.up(*self.policy.node_options(self.directory))
        state = self.cluster.run.state
        token = json.loads(self.cluster.kubectl("config", "view", "--raw", "-o", "json"))[
            "users"][0]["user"]["token"]
        self.api = Api(state["server"], state["caFile"], token)
        for priority in {w.priority for w in self.scenario.workloads} - {0}:
            self.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                        "metadata": {"name": f"p{priority}"}, "value": priority})
        for workload in self.scenario.workloads:
            self.apply(self.deployment(workload))
            self.containers[workload.name] = {}
            self.series[workload.name], self.changes[workload.name] = [], []
        self.policy.start(self)
        eventually("the workloads run", self.look)

    def apply(self, body):
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def deployment(self, workload):
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
        return {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": workload.name, "namespace": "default"},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                         "template": {"metadata": {"labels": labels}, "spec": spec}}}

    def look(self):
        """Which pods there are. True once every workload has one that runs."""
        code, answer = self.api("GET", "/api/v1/namespaces/default/pods")
        check(code == 200, f"listing pods: {code}")
        restarts, addresses = 0, {w.name: [] for w in self.scenario.workloads}
        for pod in answer["items"]:
            app = pod["metadata"]["labels"]["app"]
            statuses = pod["status"].get("containerStatuses", [])
            restarts += sum(status["restartCount"] for status in statuses)
            if not statuses or "running" not in statuses[0].get("state", {}):
                continue
            if statuses[0]["ready"] and pod["status"].get("podIP"):
                addresses[app].append(pod["status"]["podIP"])
            uid = pod["metadata"]["uid"]
            if uid not in self.containers[app]:
                directories = self.cluster.cgroup_of(pod, "main")
                if directories:
                    with self.lock:
                        self.containers[app][uid] = Container(directories)
        self.restarts, self.addresses = restarts, addresses
        return all(self.containers.values())

    # ---- the run

    def run(self):
        self.drivers = {w.name: Driver(self) for w in self.scenario.workloads if w.service}
        self.burners = {}
        todo = sorted((at, w.name, what) for w in self.scenario.workloads
                      for at, what in sorted(w.does, key=lambda item: item[0]))
        todo = [(at, name, what) for at, name, what in todo]
        for name, driver in self.drivers.items():
            driver.aim(self.addresses[name])
        self.began = time.monotonic()
        self.cpu_before = self.policy.cost()
        sampler = threading.Thread(target=self._sample, daemon=True)
        watcher = threading.Thread(target=self._watch, daemon=True)
        sampler.start()
        watcher.start()
        try:
            for at, name, what in todo:
                time.sleep(max(0.0, self.began + at - time.monotonic()))
                self._do(name, what)
            time.sleep(max(0.0, self.began + self.scenario.seconds - time.monotonic()))
        finally:
            self.ended.set()
            sampler.join()
            watcher.join()
            for thing in (*self.drivers.values(), *self.burners.values()):
                thing.end()
        self.cpu_after = self.policy.cost()

    def _do(self, name, what):
        if name in self.drivers:
            self.drivers[name].tell(f"rate {what}")
            return
        if name in self.burners:
            self.burners.pop(name).end()
        if what:
            container = next(iter(self.containers[name].values()))
            self.burners[name] = Burner(self, container.directories, what)

    def _sample(self):
        number = 0
        while not self.ended.wait(max(0.0, self.began + number * SAMPLE_S - time.monotonic())):
            number += 1
            now = time.monotonic() - self.began
            with self.lock:
                for name, containers in self.containers.items():
                    limits, used, throttled = [], 0.0, 0.0
                    for container in containers.values():
                        try:
                            limits.append(container.limit())
                            used += container.used()
                            throttled += container.throttled()
                        except OSError:
                            pass  # it has just ended
                    if not limits:
                        continue
                    if not self.changes[name] or self.changes[name][-1][1] != limits[0]:
                        self.changes[name].append((now, limits[0]))
                    total = None if None in limits else sum(limits)
                    self.series[name].append((now, total, used, throttled, len(limits)))

    def _watch(self):
        while not self.ended.wait(2):
            self.look()
            for name, driver in self.drivers.items():
                driver.aim(self.addresses[name])
            self.policy.tick(self)

    # ---- what came of it

    def result(self):
        series = {name: [[round(t, 2), limit, round(used, 4), round(throttled, 4), pods]
                         for t, limit, used, throttled, pods in samples[::5]]
                  for name, samples in self.series.items()}
        return {
            "series": series,
            "changes": {name: changes[1:] for name, changes in self.changes.items()},
            "answers": {name: [[round(at - self.began, 3), latency, good]
                               for at, latency, good in driver.answers]
                        for name, driver in self.drivers.items()},
            "restarts": self.restarts,
            "cost": [after - before for before, after in zip(self.cpu_before[:1],
                                                             self.cpu_after[:1])]
                    + [self.cpu_after[1]],
        }
