"""What the tests on a real node share: the cluster, its pods and their cgroups, the daemons."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "cluster" / "cluster"
sys.path[:0] = [str(TOOL.parent), str(ROOT / "test" / "support")]

import machine
from api import run_kubectl
from mbcas_cluster import build, cgroups, kernel, node
from mbcas_cluster.guest import Guest
from mbcas_cluster.run import Run

SYSTEM = "mbcas-system"
# Tests that run on the node of their cluster can run on a virtual machine with cgroup v2 as well.
ON_V2 = os.environ.get("MBCAS_TEST_NODE") == "v2"
INNER_SERVER = "https://10.0.0.1:443"  # as nodes of the cluster know it
WAIT_S = 300  # for what only has to happen
JUDGED_S = 150  # within judged(), which repeats what a busy machine has kept from happening


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


JUDGING = []    # what is being judged
DISTURBED = []  # what could not be judged because of other work on the machine


def patience():
    return JUDGED_S if JUDGING else WAIT_S


def eventually(what, condition, seconds=None):
    """Waits for a condition, and returns what it said."""
    seconds = seconds or patience()
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        check(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(0.2)
    return value


def judged(what, attempt, others=0.3, tries=2):
    """Calls the attempt, and returns what it returns. A Failure of it counts if other work used at
    most `others` CPUs meanwhile. Else it is tried again, and in the end the answer is None: the
    test goes on, and is skipped with the figure unless something else fails."""
    for number in range(1, tries + 1):
        watch = machine.Others()
        JUDGING.append(what)
        try:
            return attempt()
        except Failure as failure:
            used = watch.end()
            if used <= others:
                raise
            figure = (f"{what}: {machine.DISTURBED} {used:.2f} of {machine.CPUS} CPUs in try "
                      f"{number} of {tries}, where {others:.2f} are allowed: {failure}")
            print(figure, flush=True)
        finally:
            JUDGING.pop()
            watch.ended.set()
    DISTURBED.append(figure)
    return None


class Cluster:
    """A node of the test's own, and kubectl for it."""

    def __init__(self, test, kubectl):
        self.test = test
        self.name = f"{test[:3].rstrip('_')}-{os.getpid()}"
        self.program = kubectl
        self.started = time.monotonic()

    def step(self, text):
        print(f"{self.test}: {time.monotonic() - self.started:5.1f} s  {text}", flush=True)

    def tool(self, *arguments):
        result = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, text=True)
        check(result.returncode == 0, f"`cluster {' '.join(arguments)}` failed")
        return result.stdout

    def up(self, *options):
        self.tool("up", "--name", self.name, "--owner", str(os.getpid()), *options)
        self._give_weight(self.run)

    def up_for_pods(self, *options):
        """With one node for pods: the native one, or a virtual machine in its place. Then the
        native one has the control plane only."""
        self.up(*options, *(["--vm"] if ON_V2 else []))
        if ON_V2:
            self.do("stop", "kubelet")
            self.kubectl("delete", "node", self.name)

    @property
    def pods_run(self):
        """The run whose node up_for_pods() left to pods."""
        return Run.load(f"{self.name}-vm") if ON_V2 else self.run

    def processes(self):
        """/proc, as processes of that node see it."""
        return Machine.of(self.pods_run).path("/proc") if ON_V2 else pathlib.Path("/proc")

    def join(self, node, *options):
        """Starts a further node, which `down` removes too, or one that was stopped."""
        self.tool("up", "--name", node, "--join", self.name, *options)
        self._give_weight(Run.load(node))

    @staticmethod
    def _give_weight(run):
        # As the control plane and virtual machines are, which scripts/test started with this test.
        if machine.is_heavy() and "cgroup" in run.state:
            for top in cgroups.existing(run.state["cgroup"]):
                machine.set_weight(top, machine.HEAVY)

    def down(self):
        subprocess.run([TOOL, "down", "--name", self.name], stderr=subprocess.DEVNULL)

    def do(self, *command):
        self.tool("do", "--name", self.name, *command)

    @property
    def run(self):
        return Run.load(self.name)

    def kubeconfig(self):
        return self.run.state["kubeconfig"]

    def kubectl(self, *arguments, stdin=None, may_fail=False):
        words = [str(word) for word in arguments]
        result = run_kubectl(self.program, self.kubeconfig(), words, stdin, may_fail)
        check(may_fail or result.returncode == 0, f"kubectl {' '.join(words)}: {result.stderr}")
        return result.stdout

    def get(self, kind, name, *more):
        return json.loads(self.kubectl("get", kind, name, *more, "-o", "json"))

    def node_name(self):
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))
        return nodes["items"][0]["metadata"]["name"]

    def account_kubeconfig(self, account, path, *bound, server=None):
        """The service account's own: what it may do is what its role says."""
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        token = self.kubectl("create", "token", account, "-n", SYSTEM, "--duration=2h", *bound)
        config["users"][0]["user"] = {"token": token.strip()}
        if server:
            config["clusters"][0]["cluster"]["server"] = server
        path.write_text(json.dumps(config))
        return str(path)

    def install(self):
        self.kubectl("create", "namespace", SYSTEM)
        self.kubectl("apply", "-k", str(ROOT / "config" / "crd"))
        # `kubectl wait` fails on a definition that has no conditions yet.
        eventually("PodAllocation is established", lambda: "True" in self.kubectl(
            "get", "crd/podallocations.allocation.mbcas.io", "-o",
            "jsonpath={.status.conditions[?(@.type=='Established')].status}"))
        self.kubectl("apply", "-k", str(ROOT / "config" / "policy"))
        self.kubectl("apply", "-k", str(ROOT / "config" / "rbac"))

    def make_pod(self, name, containers, init=(), namespace="default", **spec):
        body = {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"terminationGracePeriodSeconds": 1, "dnsPolicy": "Default",
                         "containers": list(containers), "initContainers": list(init), **spec}}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def wait_ready(self, *names, namespace="default"):
        for name in names:
            self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={WAIT_S}s",
                         "-n", namespace)

    def cgroup_of(self, pod, container_name=None):
        """The directories of a container's cgroup, or of its pod's, one in each hierarchy. The pod
        may be the object itself, or the name of one in the namespace default."""
        if isinstance(pod, str):
            pod = self.get("pod", pod)
        identifier = None
        if container_name:
            statuses = pod["status"].get("containerStatuses", []) + pod["status"].get(
                "initContainerStatuses", [])
            status = next(s for s in statuses if s["name"] == container_name)
            identifier = status["containerID"].split("//")[1]
        node_run = Run.load(pod["spec"]["nodeName"])  # of the same name
        qos = pod["status"]["qosClass"].lower()
        if node_run.state.get("vm"):
            path = Machine.of(node_run).path("/sys/fs/cgroup") / systemd_path(
                qos, pod["metadata"]["uid"], identifier)
            return [path] if path.is_dir() else []
        path = pathlib.Path("kubepods") / ("" if qos == "guaranteed" else qos) / (
            "pod" + pod["metadata"]["uid"]) / (identifier or "")
        return [top / path for top in cgroups.existing(node_run.state["cgroup"])
                if (top / path).is_dir()]

    def quota(self, pod, container_name=None):
        """The CPU limit of a container, or of the whole pod, in millicores, by the kernel."""
        for directory in self.cgroup_of(pod, container_name):
            quota = read_quota(directory)
            if quota is not None:
                return quota
        raise Failure(f"no cgroup of {pod}/{container_name}")

    def wait_for(self, name, cpu, container_name="main"):
        eventually(f"{name} has {cpu}m in its cgroup",
                   lambda: self.quota(name, container_name) == cpu)


def systemd_path(qos, uid, identifier=None):
    """Where systemd keeps the cgroup of a pod, or of its container, below the root."""
    parent = "kubepods" if qos == "guaranteed" else f"kubepods-{qos}"
    path = pathlib.PurePosixPath("kubepods.slice")
    if parent != "kubepods":
        path /= f"{parent}.slice"
    path /= f"{parent}-pod{uid.replace('-', '_')}.slice"
    return path / f"cri-containerd-{identifier}.scope" if identifier else path


class MachinePath(pathlib.PurePosixPath):
    """A path in a virtual machine, with what tests need of files there."""

    machine = None  # of the subclass that each machine has

    def is_dir(self):
        return self.machine.read(self) is True

    def exists(self):
        return self.machine.read(self) is not None

    def read_text(self):
        text = self.machine.read(self)
        if text is None or text is True:
            raise FileNotFoundError(f"no file {self} in the machine")
        return text

    def write_text(self, text):
        code, said = self.machine.guest.call(["sh", "-c", 'printf %s "$0" >"$1"', text, self])
        if code != 0:
            raise OSError(f"{self}: {said.decode(errors='replace')}")


class Machine:
    """The virtual machine that a node is, as long as it runs."""

    known = {}  # by name and the process that it runs in
    lock = threading.Lock()

    def __init__(self, run):
        self.guest = Guest(run)
        self.files = None
        self.path = type("PathIn", (MachinePath,), {"machine": self})

    @classmethod
    def of(cls, run):
        key = (run.id, run.state["supervisor"]["pid"])
        with cls.lock:
            if key not in cls.known:
                cls.known[key] = cls(run)
            return cls.known[key]

    def read(self, path):
        """As Files.read(). Where a connection was lost, which happens when the machine is busy for
        long, there is another one."""
        for last in (False, True):
            with self.lock:
                if self.files is None:
                    self.files = self.guest.files()
                files = self.files
            try:
                return files.read(path)
            except OSError:
                files.close()
                with self.lock:
                    if self.files is files:
                        self.files = None
                if last:
                    raise

    def put(self, source, path):
        """Copies a file of this machine into the virtual one, also where a program of that name
        runs."""
        with open(source, "rb", buffering=0) as file:
            code, said = self.guest.call(
                ["sh", "-c", 'cat >"$0.new" && chmod 755 "$0.new" && mv "$0.new" "$0"', path],
                stdin=file)
        check(code == 0, f"copying {source} to {path}: {said.decode(errors='replace')}")


def millicores(text):
    """Of a quantity of CPU as Kubernetes writes it."""
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def read_quota(directory):
    """In millicores, negative without a limit; None where this hierarchy has no such thing."""
    for file in ("cpu.cfs_quota_us", "cpu.max"):
        try:
            quota = (directory / file).read_text().split()[0]
            return -1 if quota == "max" else int(quota) // 100
        except FileNotFoundError:
            continue
    return None


def container(name, cpu_request, cpu_limit, args=("burn", "--on-ms", "5", "--period-ms", "100"),
              **more):
    return {"name": name, "image": "mbcas.local/workload:1", "imagePullPolicy": "Never",
            "args": list(args),
            "resources": {"requests": {"cpu": cpu_request, "memory": "16Mi"},
                          "limits": {"cpu": cpu_limit, "memory": "32Mi"}}, **more}


class Load:
    """A process in a container's cgroup, as if it ran in there."""

    def __init__(self, cluster, directories, threads=1, on_ms=100, period_ms=100):
        workload = str(cluster.run.dir / "workload")
        shape = ["burn", "--threads", str(threads), "--on-ms", str(on_ms), "--period-ms",
                 str(period_ms)]
        self.machine = getattr(directories[0], "machine", None)
        if self.machine:
            self._start_in_machine(workload, directories[0], shape)
            return
        read, write = os.pipe()
        command = [workload, *shape]
        # Into the cgroup first, and only then, at a word, to work.
        self.process = subprocess.Popen(["sh", "-c", 'read -r word; exec "$@"', "sh", *command],
                                        stdin=read, preexec_fn=kernel.die_with_parent)
        os.close(read)
        for directory in directories:
            (directory / "cgroup.procs").write_text(str(self.process.pid))
        self.began = time.time()
        os.write(write, b"go\n")
        os.close(write)

    def _start_in_machine(self, workload, directory, shape):
        """On cgroup v2 a process is in one cgroup."""
        program = "/run/mbcas-workload"
        if not self.machine.path(program).exists():
            self.machine.put(workload, program)
        code, said = self.machine.guest.call(["bash", "-c", """
            (echo $BASHPID >"$0/cgroup.procs" && exec "$@") </dev/null >/dev/null 2>&1 &
            echo $!""", directory, program, *shape])
        check(code == 0, f"a load in the machine: {said.decode(errors='replace')}")
        self.pid = int(said)
        self.began = time.time()

    def end(self):
        if self.machine:
            if self.pid:
                self.machine.guest.call(["kill", "-KILL", self.pid])
            self.pid = None
        elif self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Cgroup:
    """A container's own cgroup, read without asking anybody."""

    def __init__(self, cluster, pod, container_name="main"):
        self.pod = pod
        self.directories = cluster.cgroup_of(pod, container_name)
        self.cpu = next(d for d in self.directories if read_quota(d) is not None)
        self.pod_cpu = self.cpu.parent

    def limit(self):
        return read_quota(self.cpu)

    def counters(self):
        """Throttled periods and seconds, of the container and its pod: either may hold it back."""
        periods = seconds = 0
        for directory in (self.cpu, self.pod_cpu):
            lines = (directory / "cpu.stat").read_text().splitlines()
            values = dict(line.split() for line in lines)
            periods += int(values["nr_throttled"])
            local = directory / "cpu.stat.local"
            if directory == self.cpu and local.exists():
                values |= dict(line.split() for line in local.read_text().splitlines())
                seconds = int(values.get("throttled_time", 0)) / 1e9 or int(
                    values.get("throttled_usec", 0)) / 1e6
            elif directory == self.cpu or not (self.cpu / "cpu.stat.local").exists():
                seconds = max(seconds, int(values.get("throttled_time", 0)) / 1e9 or int(
                    values.get("throttled_usec", 0)) / 1e6)
        return periods, seconds

    def usage(self):
        return usage_of(self.directories, self.pod)


def usage_of(directories, whose):
    """Seconds of CPU of the cgroup with these directories, one in each hierarchy."""
    for directory in directories:
        for file, key, unit in (("cpuacct.usage", None, 1e9), ("cpu.stat", "usage_usec", 1e6)):
            path = directory / file
            if not path.exists():
                continue
            if key is None:
                return int(path.read_text()) / unit
            values = dict(line.split() for line in path.read_text().splitlines())
            if key in values:
                return int(values[key]) / unit
    raise Failure(f"no usage of {whose}")


def used_by(groups, seconds):
    """CPU of each cgroup over the next seconds, in millicores."""
    before, began = [group.usage() for group in groups], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [(group.usage() - usage) / took * 1000 for group, usage in zip(groups, before)]


class Daemon:
    """A process that is started again when it ends by itself, as Kubernetes would."""

    def __init__(self, command, directory, name):
        self.command = command
        self.log = open(directory / f"{name}.log", "a")
        self.out = open(directory / f"{name}.jsonl", "a")
        self.stopping = threading.Event()
        self._start()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _start(self):
        self.process = subprocess.Popen(self.command, stdout=self.out, stderr=self.log,
                                        preexec_fn=kernel.die_with_parent)

    def _watch(self):
        while not self.stopping.is_set():
            self.process.wait()
            if not self.stopping.wait(2):
                self._start()

    def kill(self):
        """SIGKILL; it is started again."""
        self.send(signal.SIGKILL)

    def send(self, number):
        self.process.send_signal(number)

    def stat(self):
        """Its line of /proc; None while there is none."""
        try:
            return pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return None  # it has ended by itself, and is started again in a moment

    def stop(self, number=signal.SIGTERM):
        self.stopping.set()
        if self.process.poll() is None:
            self.send(number)
        self.process.wait(timeout=180)
        self.thread.join()
        self.log.close()
        self.out.close()
        return self.process.returncode


class MachineDaemon(Daemon):
    """The same in a virtual machine."""

    PLACE = "/run/mbcas"  # its files there have names that begin like this

    def __init__(self, run, command, directory, name):
        self.machine = Machine.of(run)
        self.file = f"{self.PLACE}-{name}"
        # One whose connection was lost may still run.
        script = (f'[ ! -e {self.file}.pid ] || kill -KILL $(cat {self.file}.pid) 2>/dev/null; '
                  f'echo $$ >{self.file}.pid; exec "$@" 2>>{self.file}.log')
        super().__init__([TOOL, "exec", "--name", run.id, "--", "sh", "-c", script, "sh", *command],
                         directory, name)

    def send(self, number):
        try:
            pid = self.machine.path(f"{self.file}.pid").read_text().strip()
            self.machine.guest.call(["kill", f"-{int(number)}", pid])
        except OSError:
            self.process.kill()  # the machine does not answer: what is here of the daemon ends

    def stat(self):
        try:
            pid = self.machine.path(f"{self.file}.pid").read_text().strip()
            return self.machine.path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None

    def stop(self, number=signal.SIGTERM):
        try:
            self.log.write(self.machine.path(f"{self.file}.log").read_text())
        except (OSError, ValueError):
            pass  # there is none, or this was called before
        return super().stop(number)


def controller(binary, config, directory, *flags, lease=5):
    return Daemon([binary, "--kubeconfig", config, "--audit-log", str(directory / "audit.jsonl"),
                   "--metrics-bind-address", "0", "--health-probe-bind-address", "127.0.0.1:0",
                   "--leader-elect-lease", str(lease), *flags], directory, "controller")


def agent(binary, cluster, directory, *flags, joined=None):
    """With a token as the DaemonSet's pod has it: bound to a pod on the node. On a node that joined
    the cluster it uses that node's network, as the DaemonSet's pod would."""
    node_name = joined or cluster.node_name()
    name, server, command = "agent", None, [binary]
    if joined:
        name, server = f"agent-{joined}", INNER_SERVER
        first = Run.load(joined).state["supervisor"]["pid"]
        command = ["nsenter", f"--net=/proc/{first}/ns/net", binary]
    if ON_V2:
        server = INNER_SERVER
    cluster.kubectl("apply", "-f", str(ROOT / "config" / "agent" / "rbac.yaml"))
    cluster.make_pod(name, [{"name": "main", "image": "mbcas.local/workload:1",
                             "imagePullPolicy": "Never"}], namespace=SYSTEM, nodeName=node_name,
                     serviceAccountName="mbcas-agent")
    uid = cluster.get("pod", name, "-n", SYSTEM)["metadata"]["uid"]
    config = cluster.account_kubeconfig(
        "mbcas-agent", directory / f"{name}.kubeconfig", "--bound-object-kind", "Pod",
        "--bound-object-name", name, "--bound-object-uid", uid, server=server)
    if ON_V2:
        run = cluster.pods_run
        ca = json.loads(pathlib.Path(config).read_text())["clusters"][0]["cluster"]
        check("certificate-authority-data" in ca or "insecure-skip-tls-verify" in ca,
              f"a kubeconfig that is complete in itself: {ca}")
        for source, place in ((binary, "/run/mbcas-agent"), (config, "/run/mbcas-agent.config")):
            Machine.of(run).put(source, place)
        return MachineDaemon(run, ["/run/mbcas-agent", "--kubeconfig", "/run/mbcas-agent.config",
                                   "--node-name", node_name, *flags], directory, name)
    return Daemon([*command, "--kubeconfig", config, "--node-name", node_name, "--cgroup-root",
                   cgroup_root(directory, node_name), *flags], directory, name)


def agent_state(cluster, path):
    """What the agent shows on its socket."""
    if ON_V2:
        code, said = Machine.of(cluster.pods_run).guest.call(
            ["/run/mbcas-agent", "observe", "--once", "--state-socket", path])
        check(code == 0, f"mbcas-agent observe: {said.decode(errors='replace')}")
        return json.loads(said)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return json.loads(b"".join(parts))


def cgroup_root(directory, node_name):
    """The node's own part of the cgroup tree, as a container on it would have it mounted."""
    name = Run.load(node_name).state["cgroup"]
    mounts = cgroups.hierarchies()
    if all(kind == "cgroup2" for _, kind in mounts):
        return str(mounts[0][0] / name)
    root = directory / f"cgroup-{node_name}"
    if not root.exists():
        root.mkdir()
        for mount, _ in mounts:
            if (mount / name).is_dir():
                (root / mount.name).symlink_to(mount / name)
    return str(root)


def make_images(binaries, directory):
    """Writes the archives of the images; says why there can be none, or None."""
    done = subprocess.run([ROOT / "scripts" / "images", "--bin", binaries, "--out", directory],
                          capture_output=True, text=True)
    print(done.stdout, end="", flush=True)
    if "needs shared libraries" in done.stderr:
        return "the binaries are not linked statically, which an image of them alone needs"
    check(done.returncode == 0, f"scripts/images: {done.stderr}")
    return None


def why_impossible():
    """Why no node for the test can run here, or None."""
    if not ON_V2:
        return node.why_impossible()
    if os.environ.get("MBCAS_SOAK") != "1":
        return "takes minutes: MBCAS_SOAK=1, as in make soak"
    return node.why_no_machine()


def run_test(test, main):
    """Skips where no node can run; else calls main(cluster, directory) with one that is not up."""
    reason = why_impossible()
    if reason:
        print(f"SKIP: {reason}")
        sys.exit(77)
    clean_up_when_told_to_stop()
    binaries = build.ensure(with_node=True)
    with tempfile.TemporaryDirectory(prefix=f"mbcas-{test[:3]}-") as directory:
        try:
            code = main(Cluster(test, str(binaries / "kubectl")), pathlib.Path(directory))
            if code == 0 and DISTURBED:
                print(f"SKIP: {DISTURBED[0]}")
                code = 77
            sys.exit(code)
        except KeyboardInterrupt:
            print(f"{test}: stopped", flush=True)
            sys.exit(130)


def clean_up_when_told_to_stop():
    """A signal unwinds the test, so that it takes its node down; also where a shell has it ignored.
    What SIGKILL leaves behind, the next `make cluster-down` removes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
