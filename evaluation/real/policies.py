"""Who sets the limits. Each policy runs for real, on the node."""

import os
import threading
import time

import harness
from harness import eventually

GENEROUS = 4


class Policy:
    """Static limits, as the workloads declare them; the others differ in something."""

    name, about = "static", "limits as declared"
    needs_metrics = False
    period = 0  # s, between two looks of it; the schedule begins anywhere in one

    def __init__(self, tools):
        self.tools = tools  # where the programs are, by name
        self.daemons = []   # with the metrics-server where that is needed

    def limit(self, workload):
        return workload.limit

    def start(self, world):
        """Before there are pods."""

    def wait_ready(self, world):
        """Until it could react."""

    def stop(self):
        for daemon in self.daemons:
            daemon.stop()

    def cost(self):
        """CPU seconds so far, and MB resident."""
        return processes_cost(self.daemons)


def processes_cost(daemons):
    seconds = resident = 0.0
    for daemon in daemons:
        text = daemon.stat()
        if text is None:
            continue
        fields = text.rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        resident += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return seconds, resident


class Generous(Policy):
    name, about = "generous", f"limits {GENEROUS} times those declared"

    def limit(self, workload):
        return workload.limit * GENEROUS


class NoLimits(Policy):
    name, about = "no limits", "the kernel shares by requests"

    def limit(self, workload):
        return None


class Burst(Policy):
    name = "cpu burst"
    about = "limits as declared, with cpu.max.burst (cfs_burst_us) of as much"

    def wait_ready(self, world):
        for containers in world.containers.values():
            for container in containers.values():
                container.allow_bursts()


class TwentyPercent(Policy):
    name = "20 % a second"
    about = ("as Koordinator's CFS quota burst: while a container is throttled and the pods use "
             "less than 45 % of the node, 20 % more every second, up to 3 times the declared "
             "limit; from 50 % on, 20 % less")

    def start(self, world):
        self.seconds = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._loop, args=(world,), daemon=True)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.thread.join()

    def cost(self):
        return self.seconds, 0.0

    def _loop(self, world):
        declared, before = {}, {}
        while not self.ended.wait(1):
            with world.lock:
                containers = [container for those in world.containers.values()
                              for container in those.values()]
            now = {}
            for container in containers:
                try:
                    now[container] = (container.usage(), container.counters()[1])
                except (OSError, harness.Failure):
                    continue
            load = sum(used - before[container][0] for container, (used, _) in now.items()
                       if container in before) / os.cpu_count()
            for container in now.keys() & before.keys():
                limit = container.limit()
                base = declared.setdefault(container, limit)
                if load >= 0.5:
                    wanted = limit * 0.8
                elif load < 0.45 and now[container][1] > before[container][1]:
                    wanted = limit * 1.2
                else:
                    continue
                wanted = int(min(3 * base, max(base, wanted)))
                if wanted != limit:
                    container.set_limit(wanted)
            before = now
            self.seconds = time.thread_time()


class Mbcas(Policy):
    name, about = "MBCAS", "agent and controller, responsive profile"
    profile = "responsive"
    period = 1

    def start(self, world):
        cluster, directory = world.node.cluster, world.node.directory
        self.daemons = [
            harness.controller(
                self.tools["mbcas-controller"],
                cluster.account_kubeconfig("mbcas-controller", directory / "controller.kubeconfig"),
                directory, "--profile", self.profile, lease=30),
            harness.agent(self.tools["mbcas-agent"], cluster, directory)]

    def wait_ready(self, world):
        def judged():
            items = world.get("allocation.mbcas.io/v1alpha1", "podallocations")["items"]
            return sum("bounds" in item.get("status", {}) for item in items) >= len(
                world.containers)
        eventually("every pod has bounds", judged)
        path = f"/api/v1/namespaces/{harness.SYSTEM}/configmaps/mbcas"
        eventually(f"the profile is {self.profile}", lambda: world.node.api("GET", path)[1].get(
            "data", {}).get("profile") == self.profile)


class MbcasClassic(Mbcas):
    name, about = "MBCAS classic", "the same with the classic profile"
    profile = "classic"


class Hpa(Policy):
    name = "HPA"
    about = ("declared limits; 60 % of the request, 1 to 3 replicas, the controller-manager's own, "
             "metrics-server every 15 s")
    needs_metrics = True
    period = 15

    def start(self, world):
        for workload in world.scenario.workloads:
            world.make("autoscaling/v2", "horizontalpodautoscalers", {
                "metadata": {"name": workload.name},
                "spec": {"minReplicas": 1, "maxReplicas": 3,
                         "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                                            "name": workload.name},
                         "metrics": [{"type": "Resource", "resource": {
                             "name": "cpu", "target": {"type": "Utilization",
                                                       "averageUtilization": 60}}}]}})
        self.metrics_server = world.node.metrics_server

    def wait_ready(self, world):
        def knows():
            items = world.get("autoscaling/v2", "horizontalpodautoscalers")["items"]
            known = [item["metadata"]["name"] for item in items if any(
                "averageUtilization" in metric.get("resource", {}).get("current", {})
                for metric in item["status"].get("currentMetrics") or [])]
            return all(w.name in known for w in world.scenario.workloads if w.ready)
        eventually("HPA sees what every pod uses", knows)

    def cost(self):
        return processes_cost([self.metrics_server])


class Vpa(Policy):
    name = "VPA"
    about = ("InPlaceOrRecreate, minReplicas 1, CPU only; recommender, updater and admission "
             "controller with their defaults, metrics-server every 15 s")
    needs_metrics = True

    def start(self, world):
        tools, directory = self.tools["vpa"], world.node.directory
        world.node.cluster.kubectl("apply", "--server-side", "-f", tools / "crd.yaml")
        self.metrics_server = world.node.metrics_server

        def run(program, *flags):
            self.daemons.append(harness.Daemon(
                world.node.inside(tools / program, "--kubeconfig", world.node.inner_kubeconfig,
                                  *flags), directory, program))
        run("recommender")
        run("updater")
        # The updater acts only while this one says that it lives.
        run("admission-controller", "--register-webhook=false",
            f"--client-ca-file={directory}/front-ca.crt",
            f"--tls-cert-file={directory}/front.crt", f"--tls-private-key={directory}/front.key")
        for workload in world.scenario.workloads:
            body = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
                    "metadata": {"name": workload.name}, "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                              "name": workload.name},
                "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
                "resourcePolicy": {"containerPolicies": [
                    {"containerName": "*", "controlledResources": ["cpu"]}]}}}
            path = (f"/apis/autoscaling.k8s.io/v1/namespaces/{world.namespace}"
                    "/verticalpodautoscalers")
            # Its definition may have been made a moment ago.
            eventually("VPA objects are taken",
                       lambda body=body: world.node.api("POST", path, body)[0] == 201)

    def wait_ready(self, world):
        def recommends():
            items = world.get("autoscaling.k8s.io/v1", "verticalpodautoscalers")["items"]
            return all("recommendation" in item.get("status", {}) for item in items)
        eventually("VPA recommends something", recommends, 300)

    def cost(self):
        return processes_cost([self.metrics_server, *self.daemons])


ALL = {policy.name: policy for policy in (
    Policy, Generous, NoLimits, Burst, TwentyPercent, Hpa, Vpa, MbcasClassic, Mbcas)}
FAST = [name for name in ALL if name != "VPA"]
QUICK = ["static", "generous", "no limits", "HPA", "MBCAS"]
CHECK = ["static", "MBCAS"]
