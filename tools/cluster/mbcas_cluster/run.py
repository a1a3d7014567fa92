"""Runs (one control plane or one node each), their registry, and how to remove all of one.

A run is a directory <cache>/run/<id> with state.json and all its data. Each process started for a
run carries the directory's path in its environment, so that what belongs to a run can be found and
killed without trusting recorded process ids, which may have been given to others since.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from . import cgroups
from .common import ClusterError, cache_dir, tail, wait_until
from .kernel import die_with_parent

MARKER = "MBCAS_CLUSTER_RUN"
KEPT_LOG_DIRS = 20


def start_time(pid):
    """In clock ticks since boot; a pid with it is unique. None when there is no such process."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2:].split()
    return None if fields[0] in "ZX" else int(fields[19])


def identity(pid):
    return {"pid": pid, "start": start_time(pid)}


def is_alive(process):
    return bool(process) and process["start"] is not None \
        and start_time(process["pid"]) == process["start"]


class Run:
    def __init__(self, directory):
        self.dir = directory
        self.id = directory.name
        self.log_dir = cache_dir() / "logs" / self.id
        self.state = {}

    @staticmethod
    def create(run_id, kind, owner):
        """Registers a run before anything of it exists. While its owner lives, others spare it."""
        run = Run(cache_dir() / "run" / run_id)
        unborn = Run(run.dir.with_name(f".{run_id}-{os.getpid()}"))
        unborn.dir.mkdir(mode=0o700, parents=True)
        unborn.save(id=run_id, kind=kind, owner=owner, created=time.time())
        unborn.dir.rename(run.dir)  # with its state or not at all: others may be looking
        run.state = unborn.state
        shutil.rmtree(run.log_dir, ignore_errors=True)
        run.log_dir.mkdir(parents=True)
        _prune_logs()
        return run

    @staticmethod
    def load(run_id):
        run = Run(cache_dir() / "run" / run_id)
        if not run.dir.is_dir():
            return None
        try:
            run.state = json.loads((run.dir / "state.json").read_text())
        except (OSError, ValueError):
            run.state = {"kind": "unknown"}
        return run

    @staticmethod
    def all():
        root = cache_dir() / "run"
        names = sorted(path.name for path in root.glob("[!.]*"))
        return [run for run in map(Run.load, names) if run]

    def save(self, **changes):
        self.state.update(changes)
        new = self.dir / "state.json.new"
        new.write_text(json.dumps(self.state, indent=2) + "\n")
        new.rename(self.dir / "state.json")

    def log(self, component):
        return self.log_dir / f"{component}.log"

    def environment(self):
        return dict(os.environ, **{MARKER: str(self.dir)})

    def owner_is_alive(self):
        return is_alive(self.state.get("owner"))

    def processes(self):
        """The ids of all processes started for this run, whoever is their parent by now."""
        marker = f"{MARKER}={self.dir}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if marker in file.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                continue
        return found

    def kill(self):
        """Ends all processes of this run and removes its cgroup. May be called again."""
        supervisor = self.state.get("supervisor")
        if is_alive(supervisor):
            os.kill(supervisor["pid"], signal.SIGKILL)

        def all_killed():
            remaining = [pid for pid in self.processes() if start_time(pid) is not None]
            for pid in remaining:
                _kill(pid)
            return not remaining

        if not wait_until(all_killed, timeout=120):
            raise ClusterError(f"{self.id}: processes {self.processes()} do not die")
        if "cgroup" in self.state:
            cgroups.remove(self.state["cgroup"])

    def destroy(self):
        """Removes everything of this run, dead or alive. May be called again after a failure."""
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
        if self.dir.exists():
            raise ClusterError(f"{self.dir} cannot be removed; is it another user's?")


class Component:
    """One process of a run, started and stopped any number of times, with one log."""

    def __init__(self, run, name, command, pass_fds=()):
        self.name = name
        self.command = command
        self._pass_fds = pass_fds
        self._run = run
        self._process = None

    def start(self):
        with open(self._run.log(self.name), "ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._run.dir,
                env=self._run.environment(), start_new_session=True, preexec_fn=die_with_parent,
                pass_fds=self._pass_fds)

    @property
    def pid(self):
        return self._process.pid if self.is_running() else None

    def process_id(self):
        """The id of the process last started, which may have ended."""
        return self._process.pid if self._process else None

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def signal(self, number):
        if self.is_running():
            self._process.send_signal(number)

    def stop(self, timeout=30):
        self.signal(signal.SIGTERM)
        if self._process is not None and not wait_until(lambda: not self.is_running(), timeout):
            self.kill()

    def kill(self):
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def log_tail(self):
        return tail(self._run.log(self.name))

    def wait_ready(self, is_ready, timeout):
        """Waits for is_ready(); fails early, with the end of the log, when the process exits."""
        wait_until(lambda: not self.is_running() or is_ready(), timeout)
        if not self.is_running():
            raise ClusterError(f"{self.name} exited with code {self._process.returncode}; "
                               f"{self._run.log(self.name)} ends:\n{self.log_tail()}")
        if not is_ready():
            raise ClusterError(f"{self.name} was not ready after {timeout} s; "
                               f"{self._run.log(self.name)} ends:\n{self.log_tail()}")


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _prune_logs():
    def age(path):
        try:
            return path.stat().st_mtime
        except OSError:
            return 0

    for path in sorted((cache_dir() / "logs").iterdir(), key=age)[:-KEPT_LOG_DIRS]:
        if not (cache_dir() / "run" / path.name).exists():
            shutil.rmtree(path, ignore_errors=True)
