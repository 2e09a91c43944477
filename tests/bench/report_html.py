"""The report as one HTML page that needs nothing else."""
import html

import charts
import report_text as text
from report_products import product_tables
from report_stages import PARTS, stage_charts, stage_tables
from report_targets import TARGET_HEAD, target_rows
from results import OURS, ModelResult, Results

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --soft: #5b6675; --line: #d5dbe3 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --paper: #12161c; --soft: #9aa5b4; --line: #2d3743 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
       max-width: 60rem; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem } h3 { font-size: 1rem; margin-bottom: .3rem }
p, li { color: var(--soft) } .wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } td.missed { color: #c2412d } td.reached { color: #2a7d4f }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif } text { fill: var(--ink) }
text.inside { fill: #fff } .mark { stroke: var(--soft); stroke-dasharray: 4 3 }
.frame { fill: none; stroke: var(--line) } .pale { opacity: .55 }
.s0 { fill: #2563a8 } .s1 { fill: #8a94a3 } .s2 { fill: #c97b2a } .s3 { fill: #3f8f6b } .s4 { fill: #8457a6 }
.s5 { fill: #b8475a } .s6 { fill: #4a8aa3 }
"""


def _table(head: list, rows: list) -> str:
    def row(cells, tag):
        return "<tr>" + "".join(f'<{tag} class="{cell if cell in ("missed", "reached") else ""}">'
                                f"{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return (f'<div class="wide"><table><thead>{row(head, "th")}</thead>'
            f'<tbody>{"".join(row(cells, "td") for cells in rows)}</tbody></table></div>')


def _shares(results: Results) -> str:
    rows = [(f"{model.model.name} {found.case.name} {model.dtype}{rounding}", share.median,
             f"{share.median:.3f} ({share.spread(2)})", 0)
            for model in results.models for found in model.cases
            for role, rounding in (("bound", ""), ("bound16", ", T to 16")) if (share := found.bound_share(role))]
    return charts.bars("Share of the GEMM bound", rows, mark=1.0) if rows else ""


def _peer_charts(model: ModelResult) -> list:
    made = []
    for found in model.cases:
        for arrangement, group in found.groups.items():
            if not found.peers(arrangement):
                continue
            title = f"{model.model.name}, {found.case.name}, {model.dtype}" + (
                f", peers' batches: {arrangement}" if found.case.ragged else "")
            fastest_first = sorted(group.items(), key=lambda item: item[1].best)
            rows = [(name, found.case.tokens / timing.best, f"{found.case.tokens / timing.best:.0f}",
                     0 if name.startswith("attendant") else 2 if name.startswith(OURS) else 1)
                    for name, timing in fastest_first]
            made.append(f"<h3>{html.escape(title)}</h3>{charts.bars(title, rows)}")
    return made


def _tables(tables: list) -> str:
    return "".join(f"<p>{html.escape(note)}</p>{_table(head, rows)}" for note, head, rows in tables)


def _products(results: Results) -> str:
    tables = product_tables(results)
    return f"<h2>Matrix products</h2>{_tables(tables)}" if tables else ""


def _stages(results: Results) -> str:
    shown = [charts.stacked(f"Time of each stage of a layer, {case}", PARTS, rows, "ms")
             for case, rows in stage_charts(results).items()]
    if not shown:
        return ""
    return ("<h2>Stages of a layer</h2><p>Milliseconds of each part; the solid part of it is its bound.</p>" +
            "".join(shown) + _tables(stage_tables(results)))


def _costs(results: Results) -> str:
    fitted = [model for model in results.models if model.fit]
    if not fitted:
        return ""
    made = ["<h2>Cost model</h2>", _table(text.FIT_HEAD, text.fit_rows(results))]
    for model in fitted:
        points = [(1e3 * p, 1e3 * m) for p, m in zip(model.fit.predicted, model.fit.measured)]
        title = f"{model.model.name} {model.dtype}: batches of unequal sequences"
        made.append(f"<h3>{html.escape(title)}</h3>{charts.scatter(title, points, 'predicted ms', 'measured ms')}")
    return "".join(made)


def render(results: Results) -> str:
    parts = ["<h1>Attendant: benchmark</h1>", f"<p>{html.escape(text.machine_line(results))}</p>",
             "<h2>Figures with a target</h2>", _table(TARGET_HEAD, target_rows(results)),
             "<h2>Whole encoders</h2>",
             "<p>Token ids in, last hidden state out; valid tokens only. The bound is the models' own matrix products "
             "alone, in the same interleaved rounds, for T rounded up to a multiple of 64: a batch of fewer tokens can "
             "pass it, and so is also compared with T rounded up to 16. Shares and ratios are medians of the rounds; a "
             "spread is the lowest and the highest of them.</p>",
             _shares(results), _table(text.ENGINE_HEAD, text.engine_rows(results))]
    for model in results.models:
        head, rows = text.peer_table(model)
        if rows:
            parts += [f"<h2>{html.escape(text.peer_title(model))}</h2>",
                      "<p>Valid tokens/s, the best of interleaved rounds on the same cores. A configuration that "
                      "the first rounds show to be hopeless takes no further part.</p>",
                      _table(head, rows), *_peer_charts(model)]
    parts += [_products(results), _stages(results), _costs(results), "<h2>Memory and start</h2>",
              _table(text.MEMORY_HEAD, text.memory_rows(results)), f"<p>{html.escape(text.start_line(results))}</p>",
              f"<p>{html.escape(text.cache_line(results))}</p>" if results.cache_hits else "",
              "<h2>Kernels</h2>", _table(text.KERNEL_HEAD, text.kernel_rows(results))]
    if text.not_measured(results):
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in text.not_measured(results))
        parts.append(f"<h2>Not measured</h2><ul>{lines}</ul>")
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Attendant: benchmark</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
            f'<body>{"".join(parts)}</body></html>\n')
