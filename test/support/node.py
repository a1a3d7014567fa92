"""A real node for a test: started in a cache of its own, asked and measured, gone at the end.

    def main(node): ...
    sys.exit(node.run("install_test", main))

Exit code 77 and a line `SKIP: reason` where the machine cannot run one.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "cluster" / "cluster"
sys.path.insert(0, str(TOOL.parent))

from mbcas_cluster import build, cgroups
from mbcas_cluster import node as machine
from mbcas_cluster.common import cache_dir
from mbcas_cluster.run import Run

WAIT_S = 150


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def eventually(what, condition, patience=WAIT_S, every=0.2):
    """Waits for a condition and returns what it said."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f"not within {patience} s: {what}")
        time.sleep(every)


class Node:
    def __init__(self, title, kubectl):
        self.name = f"{title.split('_')[0]}-{os.getpid()}"
        self._title = title
        self._kubectl = kubectl
        self._started = time.monotonic()

    def say(self, text):
        print(f"{self._title}: {time.monotonic() - self._started:5.1f} s  {text}", flush=True)

    # ---- the tool

    def tool(self, *arguments):
        done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, text=True)
        check(done.returncode == 0, f"`cluster {' '.join(arguments)}` failed")
        return done.stdout

    def up(self, *options):
        self.tool("up", "--name", self.name, "--owner", str(os.getpid()), *options)

    def down(self):
        subprocess.run([TOOL, "down", "--name", self.name], stderr=subprocess.DEVNULL)

    def state(self):
        return Run.load(self.name).state

    def logs(self):
        return sorted((cache_dir() / "logs" / self.name).glob("*.log"))

    # ---- the cluster

    def kubectl(self, *arguments, stdin=None, may_fail=False):
        words = [str(word) for word in arguments]
        done = subprocess.run([self._kubectl, "--kubeconfig", self.state()["kubeconfig"], *words],
                              input=stdin, capture_output=True, text=True)
        check(may_fail or done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def get(self, kind, name=None, namespace="default", selector=None):
        """One object, or with a selector or without a name a list of them."""
        words = [kind, *([name] if name else []), "-n", namespace, "-o", "json"]
        found = json.loads(self.kubectl("get", *words, *(["-l", selector] if selector else [])))
        return found if name else found["items"]

    def name_of_the_node(self):
        return self.get("nodes")[0]["metadata"]["name"]

    # ---- the kernel, of a pod as the API has it

    def cgroup(self, pod, container=None):
        """The directory with the CPU files of a pod, or of one of its containers."""
        qos = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
        path = pathlib.Path("kubepods", qos[pod["status"]["qosClass"]],
                            "pod" + pod["metadata"]["uid"])
        if container:
            statuses = [status for field in ("containerStatuses", "initContainerStatuses")
                        for status in pod["status"].get(field, [])]
            status, = [status for status in statuses if status["name"] == container]
            path /= status["containerID"].split("//")[1]
        for top in cgroups.existing(self.state()["cgroup"]):
            if any((top / path / file).exists() for file in ("cpu.cfs_quota_us", "cpu.max")):
                return top / path
        raise Failure(f"no cgroup of {pod['metadata']['name']}/{container}")

    def quota(self, pod, container=None):
        """The CPU limit in force, in millicores."""
        directory = self.cgroup(pod, container)
        for file in ("cpu.cfs_quota_us", "cpu.max"):
            if (directory / file).exists():
                return int((directory / file).read_text().split()[0]) // 100

    def throttled(self, pod, container):
        """How long its threads have been held back so far, in seconds."""
        # cpu.stat.local counts what the pod's own limit does too; without it, the larger of both.
        places = [self.cgroup(pod, container) / "cpu.stat.local"]
        if not places[0].exists():
            places = [self.cgroup(pod, container) / "cpu.stat", self.cgroup(pod) / "cpu.stat"]
        times = []
        for place in places:
            fields = dict(line.split() for line in place.read_text().splitlines())
            times.append(int(fields["throttled_time"]) / 1e9 if "throttled_time" in fields
                         else int(fields["throttled_usec"]) / 1e6)
        return max(times)

    def throttling(self, seconds, *containers):
        """Held back in the next seconds, as ms/s, of each (pod, container)."""
        before = [self.throttled(*container) for container in containers]
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return [(self.throttled(*container) - earlier) / took * 1000
                for container, earlier in zip(containers, before)]

    def processes(self, pod, container):
        return [int(pid) for pid in
                (self.cgroup(pod, container) / "cgroup.procs").read_text().split()]


def run(title, main):
    """Runs main(node) with a node that is up, and takes it down whatever happens."""
    reason = machine.why_impossible()
    if reason:
        print(f"SKIP: {reason}")
        return 77
    binaries = build.ensure(with_node=True)
    # A registry of its own, so that nothing here can touch what others run on this machine.
    with tempfile.TemporaryDirectory(prefix="mbcas-test-") as cache:
        os.symlink(binaries.parent, f"{cache}/kubernetes")
        os.environ["MBCAS_CACHE"] = cache
        node = Node(title, str(binaries / "kubectl"))
        try:
            main(node)
        except Failure as failure:
            node.say(f"FAILED: {failure}")
            for file in node.logs():
                print(f"---- the end of {file.name}\n{file.read_text(errors='replace')[-1500:]}")
            return 1
        finally:
            node.down()
        node.say("passed")
        return 0
