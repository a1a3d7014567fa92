"""One page with everything: tables with the best marked, curves, distributions. No network."""

import html
import math
import statistics

import measures

# (title, from the measures of a run, of its first workload or of all, whether less is better)
COLUMNS = [
    ("throttled, ms/s", lambda m, first: m["throttled ms/s"], True),
    ("p50, ms", lambda m, first: m["workloads"][first]["p50 ms"], True),
    ("p99, ms", lambda m, first: m["workloads"][first]["p99 ms"], True),
    ("p99.9, ms", lambda m, first: m["workloads"][first]["p99.9 ms"], True),
    ("reaction, s", lambda m, first: m["workloads"][first]["reaction s"], True),
    ("converged, s", lambda m, first: m["workloads"][first]["convergence s"], True),
    ("reserved, m", lambda m, first: m["reserved m"], True),
    ("used by the first, m", lambda m, first: m["workloads"][first]["used m"], None),
    ("changes", lambda m, first: m["changes"], None),
    ("restarts", lambda m, first: m["restarts"], True),
    ("Jain", lambda m, first: m.get("Jain"), False),
    ("Nash / optimum", lambda m, first: m.get("Nash of optimum"), False),
    ("cost, % of a core", lambda m, first: m["cost % of a core"], True),
    ("cost, MB", lambda m, first: m["cost MB"], True),
]
COLOURS = ["#6e7781", "#a371f7", "#1f6feb", "#bf8700", "#d4572a", "#8250df", "#57606a", "#2da44e",
           "#116329"]
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;
color:#1f2328}
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto;white-space:nowrap}
td,th{padding:.3em .6em;border-bottom:1px solid #d0d7de;text-align:right}
td:first-child,th:first-child{text-align:left}
.best{font-weight:bold;color:#116329}.spread{color:#6e7781;font-size:11px}
figure{display:inline-block;margin:.5em 1em .5em 0;max-width:100%}figcaption{font-size:13px}
svg{max-width:100%;height:auto}"""


def shown(value):
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"


def grouped(results):
    """{scenario: {policy: [result, ...]}}"""
    found = {}
    for result in results:
        scenario = result["scenario"]
        found.setdefault((scenario.name, scenario.seconds), {}).setdefault(
            result["policy"], []).append(result)
    return found


def first_of(scenario):
    return next(w.name for w in scenario.workloads if not w.adversary)


def rows(policies_of, order):
    """[(policy, [[value of each run] for each column])], only columns that say anything."""
    names = [name for name in order if name in policies_of]
    table = []
    for name in names:
        runs = policies_of[name]
        first = first_of(runs[0]["scenario"])
        table.append((name, [[column[1](run["measured"], first) for run in runs]
                             for column in COLUMNS]))
    used = [i for i in range(len(COLUMNS))
            if any(value is not None for _, values in table for value in values[i])]
    return [(name, [values[i] for i in used]) for name, values in table], [COLUMNS[i] for i in used]


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def table(policies_of, order):
    lines, columns = rows(policies_of, order)
    best = []
    for i, (_, _, less) in enumerate(columns):
        medians = [m for m in (median(values[i]) for _, values in lines) if m is not None]
        best.append(None if less is None or not medians else min(medians) if less else max(medians))
    text = ["<table><tr><th>policy</th>"
            + "".join(f"<th>{html.escape(column[0])}</th>" for column in columns) + "</tr>"]
    for name, values in lines:
        cells = []
        for i, each in enumerate(values):
            middle = median(each)
            mark = ' class="best"' if middle is not None and middle == best[i] else ""
            known = [value for value in each if value is not None]
            spread = (f' <span class="spread">{shown(min(known))}…{shown(max(known))}</span>'
                      if len(known) > 1 else "")
            cells.append(f"<td{mark}>{shown(middle)}{spread}</td>")
        text.append(f"<tr><td>{html.escape(name)}</td>{''.join(cells)}</tr>")
    return "\n".join([*text, "</table>"])


class Plot:
    WIDTH, HEIGHT, LEFT, BOTTOM = 420, 190, 44, 24

    def __init__(self, x_range, y_range, y_log=False, x_log=False):
        self.x_range, self.y_range, self.x_log = x_range, y_range, x_log
        self.parts = []
        for i in range(5):
            y = y_range[0] + (y_range[1] - y_range[0]) * i / 4
            at = self.y(y)
            self.parts.append(f'<line x1="{self.LEFT}" x2="{self.WIDTH}" y1="{at:.1f}" '
                              f'y2="{at:.1f}" stroke="#d0d7de"/><text x="{self.LEFT - 5}" '
                              f'y="{at + 4:.1f}" text-anchor="end">{shown(y)}</text>')
        for i in range(5):
            x = (x_range[0] * (x_range[1] / x_range[0]) ** (i / 4) if x_log
                 else x_range[0] + (x_range[1] - x_range[0]) * i / 4)
            self.parts.append(f'<text x="{self.x(x):.1f}" y="{self.HEIGHT - 6}" '
                              f'text-anchor="middle">{shown(x)}</text>')

    def x(self, value):
        low, high = self.x_range
        share = (math.log(max(value, low) / low) / math.log(high / low) if self.x_log
                 else (value - low) / (high - low))
        return self.LEFT + share * (self.WIDTH - self.LEFT - 8)

    def y(self, value):
        low, high = self.y_range
        return self.HEIGHT - self.BOTTOM - (value - low) / (high - low) * (
            self.HEIGHT - self.BOTTOM - 10)

    def line(self, points, colour, dash=""):
        if len(points) > 1:
            low, high = self.y_range
            path = " ".join(f"{self.x(x):.1f},{self.y(min(max(y, low), high)):.1f}"
                            for x, y in points)
            self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                              f'stroke-width="1.6" stroke-dasharray="{dash}"/>')

    def svg(self):
        return (f'<svg viewBox="0 0 {self.WIDTH} {self.HEIGHT}" width="{self.WIDTH}" '
                f'height="{self.HEIGHT}" font-size="11" font-family="system-ui" fill="#57606a">'
                + "".join(self.parts) + "</svg>")


def curves(result):
    scenario, recorded = result["scenario"], result["recorded"]
    samples = recorded["series"][first_of(scenario)]
    plot = Plot((0, scenario.seconds), (0, 2000))
    plot.line([(s[0], s[1]) for s in samples if s[1] is not None], "#1f6feb")
    used = [(b[0], (b[2] - a[2]) / (b[0] - a[0]) * 1000)
            for a, b in zip(samples, samples[2:]) if b[0] > a[0]]
    plot.line(used, "#2da44e")
    plot.line(measures.throttling(samples), "#cf222e", "3 2")
    return plot.svg()


def distribution(policies_of, order):
    scenario = next(iter(policies_of.values()))[0]["scenario"]
    services = [w.name for w in scenario.workloads if w.service]
    if not services:
        return ""
    plot, legend = Plot((1, 10000), (0, 1), x_log=True), []
    for number, name in enumerate(order):
        if name not in policies_of:
            continue
        found = sorted(latency for run in policies_of[name]
                       for at, latency, good in run["recorded"]["answers"][services[0]]
                       if good and at >= scenario.step_at)
        if not found:
            continue
        colour = COLOURS[number % len(COLOURS)]
        plot.line([(found[int(i * (len(found) - 1) / 200)], i / 200) for i in range(201)], colour)
        legend.append(f'<span style="color:{colour}">{html.escape(name)}</span>')
    return (f"<figure>{plot.svg()}<figcaption>{services[0]}: share of answers within so many ms "
            f"(log). {', '.join(legend)}</figcaption></figure>")


def page(results, known, facts):
    order = list(known)
    parts = ["<!doctype html><html lang=en><meta charset=utf-8>"
             '<meta name=viewport content="width=device-width,initial-scale=1">'
             f"<title>MBCAS and others on a real node</title><style>{STYLE}</style>"
             "<h1>MBCAS and others on a real node</h1>"
             f"<p>{html.escape(facts['machine'])}. Each run on a node of its own: kubelet, "
             "containerd, and the real programs of each policy; the same schedule of load for all, "
             "in shuffled order. Medians over runs, with the least and the most. Latencies count "
             "from when a request was due. CPU in millicores.</p><ul>"]
    parts += [f"<li><b>{html.escape(name)}</b>: {html.escape(policy.about)}"
              for name, policy in known.items() if any(r["policy"] == name for r in results)]
    parts.append("</ul>")
    for (name, seconds), policies_of in grouped(results).items():
        scenario = next(iter(policies_of.values()))[0]["scenario"]
        parts.append(f"<h2>{html.escape(name)}</h2><p>{html.escape(scenario.about)}; {seconds} s, "
                     f"measured from second {scenario.step_at:.0f} on.</p>"
                     + table(policies_of, order) + distribution(policies_of, order))
        parts.append(f"<p>{first_of(scenario)}: <span style='color:#1f6feb'>limit</span>, "
                     "<span style='color:#2da44e'>usage</span>, <span style='color:#cf222e'>"
                     "throttled ms/s</span>, over seconds.</p>")
        for policy in order:
            if policy in policies_of:
                parts.append(f"<figure>{curves(policies_of[policy][0])}<figcaption>"
                             f"{html.escape(policy)}</figcaption></figure>")
    return "\n".join([*parts, "</html>", ""])


def text(results):
    """The tables for a terminal, and for docs/evaluation.md."""
    order = sorted({r["policy"] for r in results}, key=[r["policy"] for r in results].index)
    lines = []
    for (name, seconds), policies_of in grouped(results).items():
        body, columns = rows(policies_of, order)
        lines += [f"\n{name}, {seconds} s\n",
                  "| policy | " + " | ".join(column[0] for column in columns) + " |",
                  "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {policy} | " + " | ".join(shown(median(values)) for values in row) + " |"
                  for policy, row in body]
    return "\n".join(lines)
