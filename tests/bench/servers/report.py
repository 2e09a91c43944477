"""The report on all contenders: a table, a plot, and figures. `found`: contender -> what measure.py printed, or {"not_run": reason}."""
import math

import charts  # of tests/bench

OURS, FLOOR = "attendant", "sentence-transformers"
FEWEST_OTHERS = 2  # that must have run for a figure beside the best of them
TARGETS = {"server.over_best.throughput.c1": (">=", 1.05), "server.over_best.throughput.c8": (">=", 1.25),
           "server.over_best.throughput.c32": (">=", 1.4), "server.over_best.p99.at80": ("<=", 0.5),
           "text.over_ids": (">=", 0.93)}
HEAD = ("", "texts/s: 1 caller", "8", "32", "short: 1", "8", "32", "p99 ms: 1 caller", "8", "32", "at 1/2", "at 4/5",
        "memory MB", "disk MB", "start s", "cosine")
COLOURS = ("#2563a8", "#c97b2a", "#3f8f6b", "#8457a6", "#b8475a", "#8a94a3")
STYLE = "".join(("<style>text { font: 12px system-ui, sans-serif; fill: #5b6675 } .frame, .mark { stroke: #d5dbe3 } ",
                 ".frame, polyline { fill: none } polyline { stroke-width: 2.5 } ",
                 *(f"circle.s{i} {{ fill: {colour} }} polyline.s{i} {{ stroke: {colour} }} " for i, colour in enumerate(COLOURS)),
                 "</style>"))


def ran(found: dict) -> dict:
    return {name: one for name, one in found.items() if "not_run" not in one}


def servers(found: dict) -> dict:
    """The others that ran, without the library."""
    return {name: one for name, one in ran(found).items() if name not in (OURS, FLOOR)}


def best_server(found: dict) -> str:
    """The other server with the highest capacity; empty: fewer than FEWEST_OTHERS ran."""
    others = servers(found)
    return max(others, key=lambda name: others[name]["capacity"]) if len(others) >= FEWEST_OTHERS else ""


def _over_best(found: dict) -> dict:
    """Returns the ratios of Attendant's figures to those of the best other server, without those that one of the two lacks."""
    best, ours = best_server(found), ran(found).get(OURS)
    if not best or not ours:
        return {}
    figures = {}
    for kind, name in (("closed", "throughput"), ("short", "short.throughput")):
        for callers, loop in ours[kind].items():
            throughput = max(one[kind][callers]["texts_per_s"] for one in servers(found).values())
            figures[f"server.over_best.{name}.c{callers}"] = loop["texts_per_s"] / throughput
    rate = f"{0.8 * found[best]['capacity']:.6g}"
    mine, other = ours["open"].get(rate, {}).get("p99_ms"), found[best]["open"].get(rate, {}).get("p99_ms")
    if mine is not None and other is not None:
        figures["server.over_best.p99.at80"] = mine / other
    return figures


def _over_ids(found: dict) -> dict:
    """What text over HTTP costs Attendant; `text.over_ids` is the lowest of the ratios."""
    ratios = ran(found).get(OURS, {}).get("text_over_ids", {})
    made = {f"text.over_ids.c{callers}": ratio for callers, ratio in ratios.items()}
    return made | ({"text.over_ids": min(ratios.values())} if ratios else {})


def figures(found: dict) -> dict:
    made = _over_best(found) | _over_ids(found)
    for name, one in ran(found).items():
        for callers, loop in one["closed"].items():
            made[f"server.{name}.texts_per_s.c{callers}"] = loop["texts_per_s"]
            made[f"server.{name}.p99_ms.c{callers}"] = loop["p99_ms"]
        for callers, loop in one["short"].items():
            made[f"server.{name}.short.texts_per_s.c{callers}"] = loop["texts_per_s"]
        for share, loop in zip(("half", "at80"), one["open"].values()):
            made[f"server.{name}.p99_ms.{share}"] = loop["p99_ms"]
        made |= {f"server.{name}.memory_bytes": one["memory_bytes"], f"server.{name}.disk_bytes": one["disk_bytes_for_cpus"],
                 f"server.{name}.ready_s": one["ready_s"], f"server.{name}.cosine": one["cosine"]}
    return {name: value for name, value in made.items() if value is not None}


def _milliseconds(loop: dict) -> str:
    return "failed" if loop["p99_ms"] is None else f"{loop['p99_ms']:.0f}"


def _row(name: str, one: dict) -> list:
    closed, loops = one["closed"].values(), list(one["open"].values())
    return [name, *(f"{loop['texts_per_s']:.0f}" for loop in [*closed, *one["short"].values()]), *map(_milliseconds, closed),
            *map(_milliseconds, loops[:2]), f"{one['memory_bytes'] / 1e6:.0f}", f"{one['disk_bytes_for_cpus'] / 1e6:.0f}",
            f"{one['ready_s']:.1f}", f"{one['cosine']:.6f}"]


def table(found: dict, machine: dict) -> str:
    """The best first. Disk space is without what torch brings for GPUs."""
    rows = [_row(name, one) for name, one in sorted(ran(found).items(), key=lambda item: -item[1]["capacity"])]
    widths = [max(map(len, column)) for column in zip(HEAD, *rows)]
    lines = [", ".join(f"{name}: {value}" for name, value in machine.items()), ""]
    for row in (HEAD, *rows):
        lines.append("  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))))
    lines.append("")
    lines += [f"{name}: {one['settings']}" for name, one in ran(found).items()]
    lines += [f"{name}: not run: {one['not_run']}" for name, one in found.items() if "not_run" in one]
    lines += [f"{name}: {count} calls failed with {callers} callers: {why}" for name, one in ran(found).items()
              for callers, loop in one["closed"].items() for why, count in loop["failures"].items()]
    made = _over_best(found) | _over_ids(found)
    for name, (sense, target) in TARGETS.items():
        if (value := made.get(name)) is not None:
            met = value >= target if sense == ">=" else value <= target
            lines.append(f"{name}: {value:.3f}, aim {sense} {target:g}: {'met' if met else 'MISSED'}")
    return "\n".join(lines)


def plot(found: dict) -> str:
    """An SVG file: a curve for each contender through its loops with 1, 8 and 32 callers."""
    curves = [(name, [(loop["texts_per_s"], loop["p99_ms"]) for loop in one["closed"].values()
                      if loop["p99_ms"] and math.isfinite(loop["p99_ms"])])
              for name, one in sorted(ran(found).items(), key=lambda item: -item[1]["capacity"])]
    drawn = charts.curves("Latency and throughput with 1, 8 and 32 callers", [curve for curve in curves if curve[1]],
                          "texts a second", "99th percentile of the latency, ms")
    head, _, body = drawn.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">{STYLE}{body}\n'
