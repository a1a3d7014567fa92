"""What runs on the node, and when: the same schedule under every policy.

A workload is a Deployment of one pod. What it does is a list of (second, what): for a service
requests a second, each 10 ms of work; else (threads, ms of work, period in ms), or None for
nothing. The first is done from the pod's start; second 0 is when the policy is ready. CPU is in
millicores.
"""

import dataclasses

REQUEST_MS = 10
NORMAL, HIGH = 1000, 1000000  # priorities
# MBCAS helps a pod that is deprived after half a minute of evidence and half a minute of trial.
HELP_S = 75


@dataclasses.dataclass
class Workload:
    name: str
    request: int
    limit: int
    does: list
    service: bool = False
    priority: int = 0
    ready: bool = True       # false: it never becomes ready
    adversary: bool = False  # not counted in the measures of the node
    wants: int = 0           # what it would use if it were alone; 0: not said


@dataclasses.dataclass
class Scenario:
    name: str
    about: str
    seconds: int
    measured_from: int       # second
    workloads: list
    is_step: bool = False    # of the first workload, at that second


def step(seconds):
    return Scenario(
        "step", "A pod with a request of 100m and a limit of 200m goes from 2 % of a core to one "
        "thread that never waits.", seconds, 5,
        [Workload("step", 100, 200, [(0, (1, 2, 100)), (5, (1, 100, 100))])], is_step=True)


def mixed(seconds):
    """About one of two cores in all."""
    top = 45
    tide = [(second, top - (top - 15) * abs(2 * second / seconds - 1))
            for second in range(0, seconds, 5)]
    return Scenario(
        "mixed", "Nothing is scarce: a service (limit 250m) with a tide of 15 to 45 requests a "
        "second, bursts of 60 ms every 500 ms (limit 200m), and a batch job of 40 % of a core that "
        "comes and goes (limit 300m).", seconds, 0,
        [Workload("web", 100, 250, tide, service=True),
         Workload("bursty", 100, 200, [(0, (1, 60, 500))]),
         Workload("batch", 100, 300, [(0, None), (seconds // 3, (1, 40, 100)),
                                      (seconds * 2 // 3, None)])])


def contention(seconds):
    """Requests say nothing of importance, so that without limits the kernel does not know of it."""
    return Scenario(
        "contention", "CPU is scarce: a service of high priority (gold, 50 requests a second) and "
        "one of normal priority (silver, 30 a second), limits of 500m, and two hogs of two threads "
        "each (limits of 1000m). All request 200m.", seconds, HELP_S,
        [Workload("gold", 200, 500, [(0, 10), (5, 50)], service=True, priority=HIGH, wants=500),
         Workload("silver", 200, 500, [(0, 10), (5, 30)], service=True, priority=NORMAL,
                  wants=300),
         *(Workload(hog, 200, 1000, [(0, None), (5, (2, 100, 100))], wants=2000)
           for hog in ("hog-a", "hog-b"))])


def adversaries(seconds):
    spins = [(second + offset, what) for second in range(0, seconds, 30)
             for offset, what in ((0, None), (5, (2, 100, 100)), (10, None))]
    return Scenario(
        "adversaries", "A service (limit 250m, 25 requests a second) beside a pod that spins on "
        "two threads for 5 s in 30, one that bursts for 90 ms a second to be given more, and one "
        "that spins and never becomes ready (limits of 200m).", seconds, 0,
        [Workload("web", 100, 250, [(0, 25)], service=True, wants=250),
         Workload("spins", 100, 200, spins, adversary=True, wants=333),
         Workload("farms", 100, 200, [(0, (1, 90, 1000))], adversary=True, wants=90),
         Workload("unready", 100, 200, [(0, (1, 100, 100))], ready=False, adversary=True,
                  wants=1000)])


# With how often each is repeated.
ALL = [(step(35), 3), (mixed(120), 2), (contention(150), 2), (adversaries(60), 1)]
# VPA looks once a minute: it has more time, and runs once. MBCAS tries less after some minutes.
SLOW = [(step(600), ("VPA",)), (mixed(300), ("VPA", "MBCAS")),
        (contention(300), ("no limits", "HPA", "MBCAS"))]
QUICK = [(step(30), 1), (mixed(36), 1)]
CHECK = [(step(18), 1), (mixed(24), 1)]
