"""From what was recorded in a run to the numbers that are compared."""

import json
import statistics
import subprocess

CALM_MS = 20       # throttled ms a second that nobody notices
CALM_S = 10        # for so long, to call it converged


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def between(samples, begin, end):
    return [sample for sample in samples if begin <= sample[0] <= end]


def rate(samples, column):
    """Of a counter, per second."""
    if len(samples) < 2:
        return 0.0
    return (samples[-1][column] - samples[0][column]) / (samples[-1][0] - samples[0][0])


def throttling(samples):
    """Each second's throttled ms."""
    found = []
    for first in range(0, int(samples[-1][0])) if samples else ():
        part = between(samples, first, first + 1)
        if len(part) > 1:
            found.append((first, rate(part, 3) * 1000))
    return found


def of_workload(scenario, workload, result):
    samples = result["series"][workload.name]
    began = scenario.step_at
    whole = between(samples, began, scenario.seconds)
    last = between(samples, scenario.seconds * 2 / 3, scenario.seconds)
    limits = [sample[1] for sample in whole if sample[1] is not None]
    changes = result["changes"][workload.name]
    later = [at for at, _ in changes if at >= began]
    answers = [latency for at, latency, good in result["answers"].get(workload.name, [])
               if at >= began and good]
    converged = None
    calm_since = None
    for second, ms in throttling(samples):
        if second < began:
            continue
        if ms >= CALM_MS:
            calm_since = None
        elif calm_since is None:
            calm_since = second
    if calm_since is not None and scenario.seconds - calm_since >= CALM_S:
        converged = max(0.0, calm_since - began)
    reserved = statistics.fmean(limits) if limits else None
    used = rate(whole, 2) * 1000
    return {
        "throttled ms/s": rate(whole, 3) * 1000,
        "throttled ms/s, last third": rate(last, 3) * 1000,
        "p50 ms": percentile(answers, 0.50), "p99 ms": percentile(answers, 0.99),
        "p99.9 ms": percentile(answers, 0.999),
        "failed": sum(not good for *_, good in result["answers"].get(workload.name, [])),
        "used m": used, "reserved m": reserved,
        "slack m": None if reserved is None else reserved - used,
        "reaction s": later[0] - began if later else None,
        "convergence s": converged,
        "changes": len(changes),
        "changes, last third": sum(at >= scenario.seconds * 2 / 3 for at, _ in changes),
        "pods": max((sample[4] for sample in whole), default=0),
    }


def fairness(scenario, measured, mbcas, cpus):
    """Jain's index of who got which share of what it wants, and Nash welfare beside the optimum."""
    tenants = [w for w in scenario.workloads if w.wants]
    if not tenants:
        return {}
    shares = {w.name: min(1.0, measured[w.name]["used m"] / w.wants) for w in tenants}
    values = list(shares.values())
    weights = {w.name: w.request * (1 + w.priority / 4000) for w in tenants}
    total = sum(weights.values())

    def welfare(of):
        product = 1.0
        for name, share in of.items():
            product *= max(share, 1e-3) ** (weights[name] / total)
        return product
    problem = {"capacity": sum(measured[w.name]["used m"] for w in tenants),
               "pods": [{"id": w.name, "weight": weights[w.name], "min": 0, "max": w.wants}
                        for w in tenants]}
    done = subprocess.run([mbcas, "solve"], input=json.dumps(problem), capture_output=True,
                          text=True, check=True)
    best = {pod["id"]: pod["cpu"] for pod in json.loads(done.stdout)["pods"]}
    optimum = welfare({w.name: min(1.0, best[w.name] / w.wants) for w in tenants})
    return {"Jain": sum(values) ** 2 / (len(values) * sum(v * v for v in values)),
            "Nash of optimum": welfare(shares) / optimum}


def of_run(scenario, result, mbcas, cpus):
    each = {w.name: of_workload(scenario, w, result) for w in scenario.workloads}
    counted = [w.name for w in scenario.workloads if not w.adversary]
    limits = [each[name]["reserved m"] for name in counted]
    return {
        "workloads": each,
        "throttled ms/s": sum(each[name]["throttled ms/s"] for name in counted),
        "reserved m": None if None in limits else sum(limits),
        "changes": max(each[name]["changes"] for name in counted),
        "restarts": result["restarts"],
        "cost % of a core": result["cost"][0] / scenario.seconds * 100,
        "cost MB": result["cost"][1],
        **fairness(scenario, each, mbcas, cpus),
    }
