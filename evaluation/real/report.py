"""The tables, the pictures, and one page with everything that needs no network."""

import html
import math
import statistics

import measures

# (measure, title, what it is, which way is better: "less", "more" or neither)
COLUMNS = [
    ("throttled", "throttled, ms/s", "by limits, all containers together", "less"),
    ("waited", "waited, %", "PSI: time in which something in a container waited for CPU, whatever "
     "the reason; added up", "less"),
    ("psi", "PSI improvement, %", "how much less than with static limits that is; only where the "
     "kernel has PSI", "more"),
    ("p50", "p50, ms", "latency of the (first) service, from when a request was due", "less"),
    ("p99", "p99, ms", "", "less"),
    ("p99.9", "p99.9, ms", "", "less"),
    ("second p99", "silver p99, ms", "of the second service", "less"),
    ("failed", "failed", "requests without an answer within 30 s", "less"),
    ("reaction", "reaction, s", "from the step until its limits together are higher in the "
     "cgroups, be it by a new replica; –: not by then", "less"),
    ("calm", "calm after, s", "from the step until throttling stays below "
     f"{measures.CALM_MS} ms/s; –: not by then", "less"),
    ("used", "used, m", "millicores, all workloads together", None),
    ("limit", "reserved, m", "the sum of their limits, mean over time", "less"),
    ("slack", "slack, m", "reserved less used", "less"),
    ("changes", "changes", "of limits, of the workload that saw most", "less"),
    ("restarts", "restarts", "of containers", "less"),
    ("jain", "Jain", "index of what each tenant got of what it wants", "more"),
    ("nash", "Nash", "weighted geometric mean of the same, of the best that the used CPU allowed",
     "more"),
    ("cost", "cost, % CPU", "of a core, of the policy's own programs", "less"),
    ("memory", "cost, MB", "resident", "less"),
    ("rest", "rest, cores", "CPU used by everything on the machine but the workloads", None),
]
COLOURS = {"static": "#cf222e", "generous": "#bf8700", "no limits": "#57606a",
           "cpu burst": "#bc4c00", "20 % a second": "#8250df", "HPA": "#bf3989", "VPA": "#6639ba",
           "MBCAS classic": "#0a7ea4", "MBCAS": "#1a7f37"}
LIMIT, USED, THROTTLED = "#0969da", "#1a7f37", "#cf222e"
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72em;margin:1.5em auto;padding:0 1em;
color:#1f2328;background:#fff}
div.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;white-space:nowrap}
td,th{padding:.3em .6em;border-bottom:1px solid #d0d7de;text-align:right}
td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:#fff}
.best{font-weight:bold;background:#dafbe1}.spread{color:#57606a;font-size:11px}
figure{display:inline-block;margin:.4em .8em .4em 0;width:430px;max-width:100%}
figcaption{font-size:13px}svg{width:100%;height:auto}dt{font-weight:bold}"""


def shown(value):
    if value is None or value == math.inf:
        return "–"
    if float(value).is_integer() or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def by_scenario(results, order):
    """{scenario's name: {row: [result, ...]}}. A row is a policy, or runs of it that had another
    length than its first."""
    found = {}
    for policy in order:
        for result in results:
            if result["policy"] != policy:
                continue
            rows = found.setdefault(result["scenario"].name, {})
            seconds = result["scenario"].seconds
            same_length = policy not in rows or rows[policy][0]["scenario"].seconds == seconds
            rows.setdefault(policy if same_length else f"{policy}, {seconds} s", []).append(result)
    return {name: found[name] for name in dict.fromkeys(r["scenario"].name for r in results)}


class Table:
    """The medians of one scenario with their spread, without columns in which nothing is known."""

    def __init__(self, policies):
        self.rows = {policy: {key: [run["measured"].get(key) for run in runs]
                              for key, *_ in COLUMNS} for policy, runs in policies.items()}
        self.add_psi_improvement()
        self.columns = [column for column in COLUMNS if any(
            value is not None for row in self.rows.values() for value in row[column[0]])]
        self.runs = {policy: len(runs) for policy, runs in policies.items()}
        self.seconds = {policy: runs[0]["scenario"].seconds for policy, runs in policies.items()}

    def add_psi_improvement(self):
        """Compared with the median of static limits, whose own is left out: it is 0."""
        static = self.median("static", "waited") if "static" in self.rows else None
        for policy, row in self.rows.items():
            row["psi"] = [None if not static or waited is None or policy == "static"
                          else (1 - waited / static) * 100 for waited in row["waited"]]

    def ranked(self, policy, key):
        """What a run did not reach lies beyond what any other did."""
        return sorted(math.inf if value is None else value for value in self.rows[policy][key])

    def median(self, policy, key):
        median = statistics.median(self.ranked(policy, key))
        return None if median == math.inf else median

    def is_best(self, policy, column):
        key, better = column[0], column[3]
        medians = [self.median(row, key) for row in self.rows]
        mine = self.median(policy, key)
        if better is None or mine is None or len(set(medians)) == 1:
            return False
        best = min if better == "less" else max
        return mine == best(median for median in medians if median is not None)

    def spread(self, policy, key):
        ranked = self.ranked(policy, key)
        least, most = shown(ranked[0]), shown(ranked[-1])
        return "" if least == most else f"{least}…{most}"

    def html(self):
        text = ["<div class=wide><table><tr><th>policy</th><th>runs</th>" + "".join(
            f'<th title="{html.escape(about)}">{html.escape(title)}</th>'
            for _, title, about, _ in self.columns) + "</tr>"]
        for policy in self.rows:
            cells = "".join(
                f"<td{' class=best' if self.is_best(policy, column) else ''}>"
                f"{shown(self.median(policy, column[0]))} "
                f"<span class=spread>{self.spread(policy, column[0])}</span></td>"
                for column in self.columns)
            text.append(f"<tr><td>{html.escape(policy)}</td><td>{self.runs[policy]} × "
                        f"{self.seconds[policy]} s</td>{cells}</tr>")
        return "\n".join([*text, "</table></div>"])

    def markdown(self):
        lines = ["| policy | runs | " + " | ".join(title for _, title, *_ in self.columns) + " |",
                 "|---" * (len(self.columns) + 2) + "|"]
        for policy in self.rows:
            cells = []
            for column in self.columns:
                text = shown(self.median(policy, column[0]))
                spread = self.spread(policy, column[0])
                cells.append((f"**{text}**" if self.is_best(policy, column) else text)
                             + (f" ({spread})" if spread else ""))
            lines.append(f"| {policy} | {self.runs[policy]} × {self.seconds[policy]} s | "
                         + " | ".join(cells) + " |")
        return "\n".join(lines)


class Plot:
    WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 430, 200, 62, 34, 22

    def __init__(self, title, x_axis, x_range, y_range, x_log=False, x_ticks=None, y_ticks=None):
        """Ticks are (value, text), or five at even distances."""
        self.x_range, self.y_range, self.x_log = x_range, y_range, x_log
        self.parts = [f'<text x="{self.LEFT}" y="14" font-weight="bold" fill="#1f2328">'
                      f"{html.escape(title)}</text>",
                      f'<text x="{self.WIDTH - 8}" y="{self.HEIGHT - 5}" text-anchor="end">'
                      f"{html.escape(x_axis)}</text>"]
        for value, text in y_ticks or self._even(y_range):
            at = self.y(value)
            self.parts.append(f'<line x1="{self.LEFT}" x2="{self.WIDTH - 8}" y1="{at:.1f}" '
                              f'y2="{at:.1f}" stroke="#d0d7de"/><text x="{self.LEFT - 5}" '
                              f'y="{at + 4:.1f}" text-anchor="end">{text}</text>')
        for value, text in x_ticks or self._even(x_range):
            self.parts.append(f'<text x="{self.x(value):.1f}" y="{self.HEIGHT - 19}" '
                              f'text-anchor="middle">{text}</text>')

    @staticmethod
    def _even(limits):
        values = [limits[0] + (limits[1] - limits[0]) * i / 4 for i in range(5)]
        return [(value, shown(value)) for value in values]

    def x(self, value):
        low, high = self.x_range
        value = min(max(value, low), high)
        share = (math.log(value / low) / math.log(high / low) if self.x_log
                 else (value - low) / (high - low))
        return self.LEFT + share * (self.WIDTH - self.LEFT - 12)

    def y(self, value):
        low, high = self.y_range
        value = min(max(value, low), high)
        return self.HEIGHT - self.BOTTOM - (value - low) / (high - low) * (
            self.HEIGHT - self.BOTTOM - self.TOP)

    def line(self, points, colour, width=1.6):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                          f'stroke-width="{width}"/>')

    def group(self, x=0, y=0):
        return f'<g transform="translate({x},{y})">' + "".join(self.parts) + "</g>"


def picture(plots, columns=1, legend=()):
    """One SVG of several plots in a grid."""
    rows = math.ceil(len(plots) / columns)
    width, height = Plot.WIDTH * min(columns, len(plots)), Plot.HEIGHT * rows
    texts, at = [], 10
    for name, colour in legend:
        if at == 10 or at + 8 * len(name) > width:
            at, height = 10, height + 18
        texts.append(f'<text x="{at}" y="{height - 5}" fill="{colour}" font-weight="bold">'
                     f"{html.escape(name)}</text>")
        at += 8 * len(name) + 14
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-size="11" font-family="system-ui, sans-serif" fill="#57606a">'
            f'<rect width="100%" height="100%" fill="#fff"/>'
            + "".join(plot.group(i % columns * Plot.WIDTH, i // columns * Plot.HEIGHT)
                      for i, plot in enumerate(plots)) + "".join(texts) + "</svg>")


def first_of(scenario):
    return next(w for w in scenario.workloads if not w.adversary)


def highest_of(policies):
    """The top of the scale that all pictures of a scenario share."""
    highest = max([1000] + [sample[measures.LIMIT] or 0 for runs in policies.values() for sample
                            in runs[0]["recorded"]["series"][first_of(
                                runs[0]["scenario"]).name]])
    return math.ceil(highest / 400) * 400


def course(policy, result, top):
    """Limit, use and throttling of the first workload over time."""
    scenario = result["scenario"]
    workload = first_of(scenario)
    samples = result["recorded"]["series"][workload.name]
    plot = Plot(f"{policy}: {workload.name}", "s", (0, scenario.seconds), (0, top))
    changes = result["recorded"]["changes"][workload.name]
    if samples[0][measures.LIMIT] is not None:
        ends = [at for at, _ in changes[1:]] + [scenario.seconds]
        plot.line([(at, limit) for (began, limit), ended in zip(changes, ends)
                   for at in (began, ended)], LIMIT, 2)
    for column, colour in ((measures.USED, USED), (measures.THROTTLED, THROTTLED)):
        plot.line([(at, value * 1000) for at, value in measures.rates(samples, column, 1)], colour)
    return plot


COURSE_LEGEND = (("limit, m", LIMIT), ("used, m", USED), ("throttled, ms/s", THROTTLED))


def distribution(policies, service):
    """The share of requests that took longer, by latency: the tail is what matters."""
    plot = Plot(f"{service}: how many requests took longer", "ms", (5, 20000), (-3, 0), True,
                [(value, shown(value)) for value in (10, 100, 1000, 10000)],
                [(0, "all"), (-1, "1 in 10"), (-2, "1 in 100"), (-3, "1 in 1000")])
    names = []
    for policy, runs in policies.items():
        if policy not in COLOURS:
            continue  # runs of another length
        latencies = sorted(latency for run in runs
                           for at, latency, good in run["recorded"]["answers"].get(service, [])
                           if good and at >= run["scenario"].measured_from)
        if len(latencies) < 2:
            continue
        names.append((policy, COLOURS[policy]))
        shares = [10 ** (-number / 40) for number in range(121)]
        plot.line([(measures.percentile(latencies, 1 - share), math.log10(share))
                   for share in shares if share * len(latencies) >= 1],
                  COLOURS[policy], 2.4 if policy == "MBCAS" else 1.4)
    return picture([plot], 1, names) if names else ""


def pictures(results, order):
    """{file name: SVG}"""
    made = {}
    for name, policies in by_scenario(results, order).items():
        top = highest_of(policies)
        made[f"{name}.svg"] = picture([course(policy, runs[0], top) for policy, runs
                                       in policies.items()], 2, COURSE_LEGEND)
        scenario = next(iter(policies.values()))[0]["scenario"]
        for workload in scenario.workloads:
            if workload.service and (drawn := distribution(policies, workload.name)):
                made[f"{name}-{workload.name}.svg"] = drawn
    return made


def page(results, known, facts):
    order = list(known)
    drawn = pictures(results, order)
    parts = ["<!doctype html><html lang=en><head><meta charset=utf-8>"
             '<meta name=viewport content="width=device-width,initial-scale=1">'
             f"<title>MBCAS and others on a real node</title><style>{STYLE}</style></head><body>"
             f"<h1>MBCAS and others on a real node</h1><p>{html.escape(facts)}</p>"]
    for name, policies in by_scenario(results, order).items():
        scenario = next(iter(policies.values()))[0]["scenario"]
        parts.append(f"<h2>{html.escape(name)}</h2><p>{html.escape(scenario.about)} Measured from "
                     f"second {scenario.measured_from} on.</p>" + Table(policies).html())
        for workload in scenario.workloads:
            if (file := f"{name}-{workload.name}.svg") in drawn:
                parts.append(f"<figure>{drawn[file]}</figure>")
        top = highest_of(policies)
        parts += [f"<figure>{picture([course(policy, runs[0], top)], 1, COURSE_LEGEND)}</figure>"
                  for policy, runs in policies.items()]
    parts.append("<h2>Policies</h2><dl>")
    parts += [f"<dt>{html.escape(name)}<dd>{html.escape(policy.about)}"
              for name, policy in known.items() if any(r["policy"] == name for r in results)]
    parts.append("</dl><h2>Measures</h2><dl>")
    parts += [f"<dt>{html.escape(title)}<dd>{html.escape(about or 'likewise')}"
              for _, title, about, _ in COLUMNS]
    parts.append(
        "</dl><h2>Method</h2><p>One node: kubelet, containerd and the control plane, in namespaces "
        "of its own. Each run has pods of its own, starts when the policy is ready to act, and "
        "follows the same schedule; requests arrive at the same random moments, whether or not "
        "earlier ones were answered. The order of runs is shuffled. Cgroups are read ten times a "
        "second. Tables show medians over runs with the least and the most; the best is marked. "
        "Pictures of courses show the first run.</p></body></html>\n")
    return "\n".join(parts)


def markdown(results, order):
    """The tables for a terminal, and for documents."""
    return "\n".join(f"\n{name}\n\n{Table(policies).markdown()}"
                     for name, policies in by_scenario(results, order).items())
