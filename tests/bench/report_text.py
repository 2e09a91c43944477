"""The report as plain text tables."""
from report_products import own_not_measured, product_tables
from report_stages import stage_tables
from report_targets import DISAGREES, TARGET_HEAD, target_rows
from results import ModelResult, Results
from stages import is_kernel
from timing import Ratio


def table(head: list, rows: list) -> str:
    """Aligns the first column to the left and the others to the right."""
    cells = [head, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(head))]
    return "\n".join("  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in cells)


def engine_rows(results: Results) -> list:
    rows = []
    for model in results.models:
        if model.refused:
            rows.append((model.name, "refused", *[""] * (len(ENGINE_HEAD) - 2)))
            continue
        for found in model.cases:
            case, engine = found.case, found.engine_seconds()
            if engine is None:
                continue
            rows.append((f"{model.model.name}.{case.name}.{model.dtype}", case.tokens,
                         f"{case.tokens / engine.best:.0f}", f"{case.tokens / engine.median:.0f}",
                         f"{case.model.flops(case.lengths) / engine.best / 1e9:.0f}",
                         *_share_cells(found.bound_share()), *_share_cells(found.bound_share("bound16")),
                         f"{engine.best * 1e3:.1f}"))
    return rows


def _share_cells(share: Ratio | None) -> list:
    return [f"{share.median:.3f}", share.spread()] if share else ["", ""]


def peer_table(model: ModelResult) -> tuple:
    """Valid tokens/s: a row for each contender, a column for each case and arrangement."""
    columns = [(found, arrangement) for found in model.cases for arrangement in found.groups
               if found.peers(arrangement)]
    if not columns:
        return [], []
    names = dict.fromkeys(name for found, arrangement in columns for name in found.groups[arrangement])
    head = ["valid tokens/s", *(f"{found.case.name} {arrangement}" if found.case.ragged else found.case.name
                                for found, arrangement in columns), *ACCURACY_HEAD]
    rows = []
    for name in names:
        row = [name]
        for found, arrangement in columns:
            timing = found.groups[arrangement].get(name)
            row.append(f"{found.case.tokens / timing.best:.0f}" if timing else "-")
        rows.append(row + _accuracy_cells(model.accuracy.get(name)))
    if model.refused:
        return head, rows
    rows.append(["ratio to the best peer", *(_ratio(found.peer_ratio(arrangement)) +
                                             ("*" if found.best_peer(arrangement) in model.disagreeing() else "")
                                             for found, arrangement in columns), *("" for _ in ACCURACY_HEAD)])
    rows.append(["its spread", *(_spread(found.peer_ratio(arrangement)) for found, arrangement in columns),
                 *("" for _ in ACCURACY_HEAD)])
    if model.disagreeing():
        agreeing = set(names) - set(model.disagreeing())
        rows.append(["ratio to the best that agrees", *(_ratio(found.peer_ratio(arrangement, agreeing))
                                                        for found, arrangement in columns),
                     *("" for _ in ACCURACY_HEAD)])
    return head, rows


def peer_title(model: ModelResult) -> str:
    alone = f": peers alone, the engine refuses ({model.refused})" if model.refused else ""
    return f"{model.model.name}, {model.dtype}, beside its peers{alone}"


def _ratio(ratio: Ratio | None) -> str:
    return "-" if ratio is None else f"{ratio.median:.2f}"


def _spread(ratio: Ratio | None) -> str:
    return "-" if ratio is None else ratio.spread(2)


def _accuracy_cells(accuracy) -> list:
    if accuracy is None:
        return ["" for _ in ACCURACY_HEAD]
    difference = accuracy.max_abs_difference
    return [f"{accuracy.lowest_token_cosine:.7f}", f"{accuracy.max_abs_error:.1e}",
            "-" if difference is None else f"{difference:.1e}", "agrees" if accuracy.agrees else f"* {DISAGREES}"]


def not_measured(results: Results) -> list:
    """The contenders that did not take part, and the reasons."""
    lines = list(results.notes)
    for model in results.models:
        if model.refused:
            lines.append(f"{model.name}, attendant: refused, {model.refused}")
        lines += [f"{model.name}, {contender}: {reason}" for contender, reason in model.failures.items()]
    return lines + own_not_measured(results)


def fit_rows(results: Results) -> list:
    return [(model.name, f"{model.fit.a * 1e3:.3f}", f"{model.fit.b * 1e6:.2f}",
             f"{model.fit.c * 1e9:.3f}", f"{model.fit.r2:.5f}") for model in results.models if model.fit]


def memory_rows(results: Results) -> list:
    mib = 1 << 20
    rows = [(model.name, *(f"{value / mib:.0f}" for value in (
        model.memory.weight_bytes, model.memory.loaded_bytes, model.memory.resident_bytes, model.memory.file_bytes,
        model.memory.touched_bytes)), f"{model.memory.over_weights:.3f}") for model in results.models if model.memory]
    return rows + [(f"server, {start.model}.f32", f"{start.weight_bytes / mib:.0f}",
                    f"{start.resident_bytes / mib:.0f}", "", f"{start.file_bytes / mib:.0f}", "",
                    f"{start.over_weights:.3f}")
                   for start in results.starts if start.over_weights]


def kernel_rows(results: Results) -> list:
    rows = []
    for name, seconds, counters in results.kernels:
        if is_kernel(name):
            rate = (f"{counters['flops'] / 1e9:.1f} GFLOP/s" if "flops" in counters else
                    f"{1e9 / counters['elements']:.3f} ns/element" if "elements" in counters else "")
            rows.append((name, f"{seconds * 1e6:.1f}", rate))
    return rows


# The columns about real sentences: the lowest cosine to float64, and the largest differences from float64 and from the
# engine.
ACCURACY_HEAD = ["token cosine >=", "error <=", "from ours <=", "answers"]
ENGINE_HEAD = ["engine", "tokens", "tokens/s", "median", "useful GFLOP/s", "share of bound", "spread",
               "T to 16", "spread", "ms"]
FIT_HEAD = ["t = a + b T + c sum(len^2)", "a ms", "b us", "c ns", "R^2"]
MEMORY_HEAD = ["MiB", "packed weights", "resident when loaded", "after the first case", "of it program and libraries",
               "of it activations", "all but activations / weights"]
KERNEL_HEAD = ["kernel", "us", "rate"]


def machine_line(results: Results) -> str:
    return ", ".join(f"{key} {value}" for key, value in results.machine.items()) + (
        f", ragged sets of seed {results.seed}")


def start_line(results: Results) -> str:
    return "".join(f"Start to ready, {start.model} f32: {start.seconds:.2f} s. " for start in results.starts).rstrip()


def cache_line(results: Results) -> str:
    hits = results.cache_hits
    return (f"A call whose 64 vectors are in the cache, {hits.model}, {hits.tokens} tokens: {hits.seconds * 1e6:.0f} us in "
            f"the server ({hits.lowest * 1e6:.0f} to {hits.highest * 1e6:.0f}).")


def render(results: Results) -> str:
    parts = [machine_line(results), table(ENGINE_HEAD, engine_rows(results))]
    for model in results.models:
        head, rows = peer_table(model)
        if rows:
            parts.append(f"{peer_title(model)}\n{table(head, rows)}")
    for note, head, rows in product_tables(results) + stage_tables(results):
        parts.append(f"{note}\n{table(head, rows)}".lstrip())
    for head, rows in ((FIT_HEAD, fit_rows(results)), (MEMORY_HEAD, memory_rows(results)),
                       (KERNEL_HEAD, kernel_rows(results))):
        if rows:
            parts.append(table(head, rows))
    if results.starts:
        parts.append(start_line(results))
    if results.cache_hits:
        parts.append(cache_line(results))
    if not_measured(results):
        parts.append("Not measured:\n" + "\n".join(f"  {line}" for line in not_measured(results)))
    parts.append(table(TARGET_HEAD, target_rows(results)))
    return "\n\n".join(parts) + "\n"
