"""From what was recorded in a run to the numbers that are compared."""

import json
import subprocess

CALM_MS = 20  # throttled ms a second that nobody notices
TIME, LIMIT, USED, THROTTLED, WAITED, PODS = range(6)  # of a sample; see world.py


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def rate(samples, column):
    """Of a counter, per second; None where it was not known."""
    known = [sample for sample in samples if sample[column] is not None]
    if len(known) < 2:
        return None
    return (known[-1][column] - known[0][column]) / (known[-1][TIME] - known[0][TIME])


def rates(samples, column, window=2):
    """[(second, per second)] over windows of so many seconds."""
    found, first = [], 0
    for number, sample in enumerate(samples):
        while sample[TIME] - samples[first][TIME] > window:
            first += 1
        if sample[TIME] - samples[first][TIME] > window / 2:
            found.append((sample[TIME], rate(samples[first:number + 1], column)))
    return found


def mean(samples, column):
    """Over time; None where it was ever not known."""
    values = [sample[column] for sample in samples]
    return None if None in values or not values else sum(values) / len(values)


def of_workload(scenario, workload, recorded):
    begin = scenario.measured_from
    samples = [s for s in recorded["series"][workload.name] if s[TIME] >= begin]
    answers = [a for a in recorded["answers"].get(workload.name, []) if a[0] >= begin]
    latencies = [latency for _, latency, good in answers if good]
    changes = recorded["changes"][workload.name]
    before = ([limit for at, limit in changes if at <= begin] or [changes[0][1]])[-1]
    later = [at for at, limit in changes if at > begin and limit > before] \
        if before else []
    restless = [at for at, ms in rates(samples, THROTTLED) if ms * 1000 >= CALM_MS]
    calm = restless[-1] if restless else samples[0][TIME]
    limit, used = mean(samples, LIMIT), rate(samples, USED) * 1000
    waited = rate(samples, WAITED)
    return {
        "throttled": rate(samples, THROTTLED) * 1000,
        "waited": None if waited is None else waited * 100,
        "p50": percentile(latencies, 0.5), "p99": percentile(latencies, 0.99),
        "p99.9": percentile(latencies, 0.999), "failed": len(answers) - len(latencies),
        "used": used, "limit": limit, "slack": None if limit is None else limit - used,
        "reaction": later[0] - begin if later else None,
        "calm": calm - begin if calm < samples[-1][TIME] - 5 else None,
        "changes": len(changes) - 1,
    }


def weight(workload):
    """As MBCAS weighs: by request and priority."""
    return workload.request * min(1 + max(0, workload.priority - 1000) / 2000, 4)


def fairness(scenario, each, mbcas):
    """Of what each got of what it wants: Jain's index, and the weighted geometric mean beside the
    best that could have been done with what all of them used together."""
    tenants = [w for w in scenario.workloads if w.wants]
    if len(tenants) < 2:
        return {"jain": None, "nash": None}

    def shares(used):
        return [max(1e-3, min(1.0, used[w.name] / w.wants)) for w in tenants]

    def welfare(of):
        product, total = 1.0, sum(map(weight, tenants))
        for workload, share in zip(tenants, of):
            product *= share ** (weight(workload) / total)
        return product
    used = {w.name: each[w.name]["used"] for w in tenants}
    problem = {"capacity": round(sum(used.values())), "objective": "welfare",
               "pods": [{"id": w.name, "weight": weight(w), "max": w.wants} for w in tenants]}
    done = subprocess.run([mbcas, "solve", "-o", "json"], input=json.dumps(problem),
                          capture_output=True, text=True, check=True)
    best = {pod["id"]: pod["cpu"] for pod in json.loads(done.stdout)["pods"]}
    got = shares(used)
    return {"jain": sum(got) ** 2 / (len(got) * sum(share * share for share in got)),
            "nash": welfare(got) / welfare(shares(best))}


def of_run(scenario, recorded, mbcas):
    each = {w.name: of_workload(scenario, w, recorded) for w in scenario.workloads}
    good = [w for w in scenario.workloads if not w.adversary]
    services = [w.name for w in good if w.service]

    def total(key):
        values = [each[w.name][key] for w in good]
        return None if None in values else sum(values)

    def of_service(number, key):
        return each[services[number]][key] if len(services) > number else None
    return {
        "throttled": total("throttled"), "waited": total("waited"),
        "p50": of_service(0, "p50"), "p99": of_service(0, "p99"),
        "p99.9": of_service(0, "p99.9"), "failed": of_service(0, "failed"),
        "second p99": of_service(1, "p99"),
        "used": total("used"), "limit": total("limit"), "slack": total("slack"),
        # A step is one of the first workload.
        "reaction": each[good[0].name]["reaction"] if scenario.is_step else None,
        "calm": each[good[0].name]["calm"] if scenario.is_step else None,
        "changes": max(each[w.name]["changes"] for w in good),
        "restarts": recorded["restarts"],
        **fairness(scenario, each, mbcas),
        "cost": recorded["cost"][0], "memory": recorded["cost"][1],
        "rest": recorded["rest of the machine"],
        "workloads": each,
    }
