"""How busy the machine is, and with whose work.

A test that measures in real time needs CPU time that other work may be using. `Processes` adds up
the CPU time of everything that a test started, `busy_seconds()` is that of the whole machine; the
difference is what other work used, stolen time of a virtual machine included.

    others = Others()  # than this process and all that it starts from now on
    ...
    others.end()       # mean number of CPUs that other work used since then
"""
import os
import pathlib
import threading
import time

DISTURBED = "other work used"  # in the reason of a test that is skipped for it
MARK = "MBCAS_TEST_MARK"  # in the environment of a test and so of all that it starts
TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count()
YOUNG_S = 3  # until then a process may be about to exec with another environment


def busy_seconds():
    """CPU time of the machine since its start, with what a hypervisor took away."""
    with open("/proc/stat") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / TICKS


class Processes:
    """The CPU time of marked processes and their descendants, dead ones included.

    The kernel adds the time of a child to its parent's when the parent waits for it. So the living
    count with their children's times, and a process that vanished counts on by itself only if no
    marked ancestor is left: the parents in between have vanished since the last reading, and each
    was waited for as the child was. read() has to be called every second or so.
    """

    def __init__(self):
        self.roots = {}  # pids that count though their environment has no mark
        self.marks = {}  # of (pid, start): mark
        self.seen = {}   # marked ones alive at the last reading: (parent's key, seconds)
        self.lost = {}   # by mark: seconds of those whose time went to no other
        self.totals = {}

    def read(self):
        """Seconds by mark."""
        found, keys = {}, {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat") as file:
                    text = file.read()
            except OSError:
                continue  # it has just ended
            fields = text[text.rindex(")") + 2:].split()
            key = (int(name), int(fields[19]))
            keys[key[0]] = key
            found[key] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        marks, seen = {}, {}
        for key, (parent, seconds) in sorted(found.items(), key=lambda item: item[0][1]):
            mark = self.marks.get(key)
            young = now - key[1] / TICKS < YOUNG_S
            if mark is None and (young or key not in self.marks):
                mark = (self.roots.get(key[0]) or _mark_of(key[0])
                        or marks.get(keys.get(parent)))
            marks[key] = mark
            if mark:
                seen[key] = (keys.get(parent), seconds)
        for key in self.seen.keys() - seen.keys():
            ancestor, seconds = self.seen[key]
            while ancestor in self.seen and ancestor not in seen:
                ancestor = self.seen[ancestor][0]
            if ancestor not in seen:
                self.lost[self.marks[key]] = self.lost.get(self.marks[key], 0.0) + seconds
        self.marks, self.seen = marks, seen
        totals = dict(self.lost)
        for key, (_, seconds) in seen.items():
            totals[marks[key]] = totals.get(marks[key], 0.0) + seconds
        # Some parents do not wait, as the first process of a container that is torn down.
        for mark, before in self.totals.items():
            missing = before - totals.get(mark, 0.0)
            if missing > 0:
                self.lost[mark] = self.lost.get(mark, 0.0) + missing
                totals[mark] = before
        self.totals = totals
        return dict(totals)


def _mark_of(pid):
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    for entry in environment.split(b"\0"):
        if entry.startswith(MARK.encode() + b"="):
            return entry.partition(b"=")[2].decode()
    return None


class Others:
    """What other work than the marked processes used, over a span and in its busiest part."""
    WINDOW_S = 10

    def __init__(self, mark=None):
        """Of this process and all that it starts; or of a mark, and then another one calls look()
        with what `Processes` said."""
        self.mark, self.processes = mark, None
        self.lock = threading.Lock()
        self.readings = []  # (time, busy seconds of the machine, of which the marked ones')
        if mark is None:
            self.mark = os.environ.setdefault(MARK, f"{os.getpid()}-{time.monotonic_ns()}")
            self.processes = Processes()
            self.processes.roots[os.getpid()] = self.mark
            self.look()
            self.ended = threading.Event()
            threading.Thread(target=self._keep_looking, daemon=True).start()
        else:
            self.look({})

    def look(self, totals=None):
        """To be called every second or so."""
        with self.lock:
            totals = self.processes.read() if totals is None else totals
            self.readings.append((time.monotonic(), busy_seconds(), totals.get(self.mark, 0.0)))

    def _keep_looking(self):
        while not self.ended.wait(1):
            self.look()

    def end(self):
        """Stops looking. Returns the CPUs that other work used, on average."""
        self.look()
        self.ended.set()
        return self.cpus()

    def own_seconds(self):
        return max(0.0, self.readings[-1][2] - self.readings[0][2])

    def cpus(self):
        """CPUs that other work used, on average so far."""
        return self._between(self.readings[0], self.readings[-1])

    def worst(self):
        """The same of the busiest ten seconds, or of the whole where that is shorter."""
        worst, first = self.cpus(), 0
        for reading in self.readings[1:]:
            while reading[0] - self.readings[first + 1][0] >= self.WINDOW_S:
                first += 1
            if reading[0] - self.readings[first][0] >= self.WINDOW_S:
                worst = max(worst, self._between(self.readings[first], reading))
        return worst

    def stood_still(self):
        """The longest time without a look, beyond the second that is meant to be. It is long where
        the machine itself was stopped, as a virtual one is while it is moved or saved."""
        times = [reading[0] for reading in self.readings]
        return max((later - earlier - 1 for earlier, later in zip(times, times[1:])), default=0.0)

    @staticmethod
    def _between(before, after):
        took = after[0] - before[0]
        if took < 0.1:
            return 0.0
        return max(0.0, (after[1] - before[1] - (after[2] - before[2])) / took)


# A quarter of the most that cgroup v1 and v2 allow, which the kernel's own tests have.
HEAVY = {"cpu.shares": 65536, "cpu.weight": 2500}


class Heavy:
    """A cgroup with so much weight that other work hardly takes CPU time from what is in it.
    It does not exist where there is no cpu controller, or this process may not use it."""

    def __init__(self):
        self.path = None

    def make(self):
        for top in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
            path = pathlib.Path(top) / f"mbcas-tests-{os.getpid()}"
            try:
                path.mkdir()
            except OSError:
                continue
            if not set_weight(path, HEAVY):
                path.rmdir()
                continue
            self.path = path
            return

    def enter(self):
        try:
            if self.path:
                (self.path / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            pass  # without priority, then

    def remove(self):
        """Once everything in it has ended; what has not stays in the cgroup above."""
        if not self.path:
            return
        for _ in range(50):
            for pid in (self.path / "cgroup.procs").read_text().split():
                try:
                    (self.path.parent / "cgroup.procs").write_text(pid)
                except OSError:
                    pass  # it has just ended
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def set_weight(directory, weights):
    """True if the cgroup has such a thing and it may be written."""
    for file, value in weights.items():
        try:
            if (directory / file).exists():
                (directory / file).write_text(str(value))
                return True
        except OSError:
            pass
    return False


def is_heavy():
    """Whether this process is in such a cgroup."""
    return any("/mbcas-tests-" in line for line in open("/proc/self/cgroup"))
