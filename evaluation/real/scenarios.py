"""What runs on the node, and when: the same schedule under every policy.

A workload is a Deployment of one pod. What it does is a list of (second, what): for a burner
(threads, ms of work, period in ms), or None for nothing; for a service requests a second. Each
request is 10 ms of work. CPU is in millicores.
"""

import dataclasses

REQUEST_MS = 10


@dataclasses.dataclass
class Workload:
    name: str
    request: int
    limit: int
    does: list
    service: bool = False
    priority: int = 0
    ready: bool = True       # false: it never becomes ready
    adversary: bool = False  # not counted in the measures of the others
    wants: int = 0           # what it could use while CPU is contended; 0: nothing is claimed


@dataclasses.dataclass
class Scenario:
    name: str
    about: str
    seconds: int
    workloads: list
    step_at: float = 0.0     # the load of the first workload rises here
    scarce: bool = False


def burn(cores, period_ms=100):
    """So many whole threads, or a part of one."""
    threads = max(1, round(cores))
    return (threads, period_ms * min(1.0, cores / threads), period_ms)


def step(seconds=90):
    return Scenario(
        "step", "a pod of 200m goes from 2 % of a core to a whole one", seconds,
        [Workload("step", 100, 200, [(0, burn(0.02)), (20, burn(1.0))])], step_at=20)


def service(seconds=120):
    return Scenario(
        "service", "a service under 250m; its requests rise from 10 to 40 a second, and fall again",
        seconds, [Workload("web", 100, 250, [(0, 10), (30, 40), (seconds - 30, 10)], service=True)],
        step_at=30)


def mixed(seconds=150):
    """Not scarce: about 1.2 of two cores."""
    tide = [(t, 15 + 15 * (1 - abs(t / seconds * 2 - 1))) for t in range(0, seconds, 10)]
    return Scenario(
        "mixed", "a service with a tide of 15 to 30 requests a second, bursts of 60 ms every "
        "500 ms, a batch job that comes and goes", seconds,
        [Workload("web", 100, 250, tide, service=True),
         Workload("bursty", 100, 200, [(0, (1, 60, 500))]),
         Workload("batch", 100, 300, [(0, None), (40, burn(0.5)), (100, None)])], step_at=0)


def contention(seconds=120):
    """Scarce: three tenants want more than two cores."""
    return Scenario(
        "contention", "three tenants on two cores: a service of high priority at 60 requests a "
        "second, one of normal priority, and a hog", seconds,
        [Workload("gold", 400, 600, [(0, 20), (20, 60)], service=True, priority=2000, wants=600),
         Workload("silver", 200, 400, [(0, 20), (20, 40)], service=True, priority=1000, wants=400),
         Workload("hog", 100, 1000, [(0, None), (20, (4, 100, 100))], wants=2000)],
        step_at=20, scarce=True)


def adversaries(seconds=150):
    return Scenario(
        "adversaries", "a service beside a pod that spins 5 s in 30, one that bursts to be given "
        "more, and one that is never ready", seconds,
        [Workload("web", 100, 250, [(0, 25)], service=True),
         Workload("spins", 100, 200, [(t + offset, what) for t in range(0, seconds, 30)
                                      for offset, what in ((0, (2, 100, 100)), (5, None))],
                  adversary=True),
         Workload("farms", 100, 200, [(0, (1, 90, 1000))], adversary=True),
         Workload("unready", 100, 200, [(0, burn(1.0))], ready=False, adversary=True)])


ALL = [step(), service(), mixed(), contention(), adversaries()]
QUICK = [step(45), service(90), contention(80)]
CHECK = [service(60)]
# VPA needs minutes to see anything.
SLOW = [step(600), mixed(600)]
