"""The report's tables about matrix products: those that the engine chose, and what they cost and gain."""
from figures import figures_of
from results import ModelResult, Results
from targets import own_targets

PRODUCT_HEAD = ["matrix products", "in x out", "K block", "row tiles", "whose", "oneDNN's kernel", "ours over oneDNN's"]
PRICE_HEAD = ["price of equal bits", "ms in row tiles and K blocks", "ms of plain products", "price", "spread"]
OWN_HEAD = ["own GEMM", "tokens/s", "with oneDNN's", "ratio", "spread"]
WHOSE = {"onednn": "oneDNN", "tiles": "ours", "vector": "ours"}
PRODUCT_NOTE = ("Loading chooses, for each width of a linear layer, whose products it has and how oneDNN's are cut: "
                "into row tiles and K blocks for which a row's bits depend on no other row.")
PRICE_NOTE = ("What that costs: oneDNN's products alone as the engine cuts them, beside the bound's plain ones, all "
              "layers, for T rounded up alike.")
OWN_NOTE = ("attendant is the engine as users get it, with the products that it chose: every figure is of it, the "
            "comparisons with the bound and the peers too. attendant-onednn is the same with only oneDNN's products, "
            "attendant-bf16-file with weights in bfloat16, attendant-f32 in float32.")


def _product_rows(results: Results) -> list:
    """The plans that the engine found best when it loaded the model."""
    return [(model.name, f"{plan['in']}x{plan['out']}", plan["k_block"],
             " ".join(map(str, plan["tile_rows"])) or "-", WHOSE[plan["gemm"]],
             " ".join(plan["implementations"]) or "-",
             f"{plan['tiles_speedup']:.2f}" if plan["tiles_speedup"] else "-")
            for model in results.models for plan in model.plans]


def _price_rows(results: Results) -> list:
    return [(f"{model.model.name}.{found.case.name}.{model.dtype}", f"{price.other.best * 1e3:.2f}",
             f"{price.timing.best * 1e3:.2f}", f"{price.median:.3f}", price.spread())
            for model in results.models for found in model.cases if (price := found.price())]


def _own_rows(results: Results) -> list:
    return [(f"{model.model.name}.{found.case.name}.{model.dtype}", f"{found.case.tokens / ratio.timing.best:.0f}",
             f"{found.case.tokens / ratio.other.best:.0f}", f"{ratio.median:.3f}", ratio.spread())
            for model in results.models for found in model.cases if (ratio := found.own_over_onednn())]


def product_tables(results: Results) -> list:
    """(note, head, rows) of each table that has rows."""
    tables = ((PRODUCT_NOTE, PRODUCT_HEAD, _product_rows(results)), (PRICE_NOTE, PRICE_HEAD, _price_rows(results)),
              (OWN_NOTE, OWN_HEAD, _own_rows(results)))
    return [(note, head, rows) for note, head, rows in tables if rows]


def own_not_measured(results: Results) -> list:
    """The reasons why figures of the AMX GEMM are missing, among the cases that were measured."""
    if not results.machine:  # nothing was measured
        return []
    figures, reasons = figures_of(results), {}
    for figure in own_targets():
        _, name, case, dtype = figure.split(".")
        for model in results.models:
            if model.name == f"{name}.{dtype}" and figure not in figures:
                if reason := _why_not_own(results, model, case):
                    reasons.setdefault(reason, []).append(figure)
    return [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]


def _why_not_own(results: Results, model: ModelResult, case: str) -> str:
    """The reason; empty if the case is not part of this run."""
    if not model.refused and case not in [found.case.name for found in model.cases]:
        return ""
    if results.machine["isa"] != "amx":
        return "this CPU has no AMX"
    if model.refused:
        return model.refused
    if model.chose_tiles:
        return "no peer took part"
    speedups = [plan["tiles_speedup"] for plan in model.plans if plan["tiles_speedup"]]
    timed = f", ours were at most {max(speedups):.2f} times as fast" if speedups else ""
    return f"oneDNN's products were chosen{timed}"
