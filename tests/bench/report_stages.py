"""The report's tables about the parts of a layer."""
from results import Results
from stages import STAGES, roofs_of, stages_of

PARTS = [title for title, _ in STAGES.values()]
STAGE_HEAD = ["ms of a layer", *PARTS, "all"]
SHARE_HEAD = ["share of the bound", *PARTS]
RATE_HEAD = ["rate/roof, GOP/s, or B: GB/s", *PARTS]
SHARE_NOTE = ("The bound of a product is oneDNN's plain one of its shape; that of attention is the fastest plain "
              "product in the type of its operands; that of norms and activations is the plainest pass over the same "
              "memory: an addition, and ReLU.")


def stage_rows(results: Results) -> list:
    rows = []
    for case, stages in stages_of(results.kernels).items():
        total = sum(stage.seconds for stage in stages.values())
        rows.append((case, *(f"{stage.seconds * 1e3:.2f} ({100 * stage.seconds / total:.0f} %)"
                             for stage in stages.values()), f"{total * 1e3:.2f}"))
    return rows


def _share_rows(results: Results) -> list:
    return [(case, *(f"{stage.share:.2f}" if stage.share else "-" for stage in stages.values()))
            for case, stages in stages_of(results.kernels).items()]


def _rate_rows(results: Results) -> list:
    return [(case, *((f"{stage.rate / 1e9:.0f}/{stage.roof / 1e9:.0f}" if stage.roof else f"{stage.rate / 1e9:.0f}/-") +
                     (" B" if stage.in_bytes else "") for stage in stages.values()))
            for case, stages in stages_of(results.kernels).items()]


def stage_tables(results: Results) -> list:
    """(note, head, rows) of each table, if there is a layer."""
    roofs = ", ".join(f"{dtype} {rate / 1e9:.0f} GOP/s" for dtype, rate in roofs_of(results.kernels).items())
    tables = (("", STAGE_HEAD, stage_rows(results)), (SHARE_NOTE, SHARE_HEAD, _share_rows(results)),
              (f"The fastest plain product: {roofs}." if roofs else "", RATE_HEAD, _rate_rows(results)))
    return [(note, head, rows) for note, head, rows in tables if rows]


def stage_charts(results: Results) -> dict:
    """Case -> rows of its types: (name, milliseconds and share of the bound of each stage)."""
    charts = {}
    for name, stages in stages_of(results.kernels).items():
        parts = [(stage.seconds * 1e3, stage.share or 1) for stage in stages.values()]
        charts.setdefault(name.rpartition(".")[0], []).append((name, parts))
    return charts
