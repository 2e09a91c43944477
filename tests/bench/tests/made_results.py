"""Made-up results of a run, with seconds that are easy to divide."""
from cases import MODELS, Case, log_normal, uniform
from results import CaseResult, ModelResult, Results
from timing import Timing


def timings(**seconds) -> dict:
    """Contender -> Timing, with one pass in each round; `bound_team` stands for bound-team."""
    return {name.replace("_", "-"): Timing([[each] for each in rounds]) for name, rounds in seconds.items()}


def case_of(model: str, name: str) -> Case:
    lengths = {"8x128": (128,) * 8, "8x512": (512,) * 8, "1x16": (16,), "4x512": (512,) * 4, "1x32": (32,),
               "ragged-uniform": uniform(24), "ragged-lognormal": log_normal(96)}[name]
    return Case(MODELS[model], name, lengths, min(8, len(lengths)))


def result_of(model: str, name: str, **groups) -> CaseResult:
    """groups: arrangement -> timings."""
    return CaseResult(case_of(model, name), groups)


def plan_of(gemm: str, width_in: int = 768, width_out: int = 768, speedup: float = 0) -> dict:
    """The plan of a linear layer's products, as the engine reports it."""
    return {"in": width_in, "out": width_out, "k_block": min(768, width_in), "gemm": gemm, "tiles_speedup": speedup,
            "tile_rows": [256, 64, 16] if gemm == "onednn" else [],
            "implementations": ["brg:avx512_core"] if gemm == "onednn" else []}


def results_of(dtype: str, *cases: CaseResult, isa: str = "avx512_vnni") -> Results:
    """One model in one data type."""
    found = ModelResult(cases[0].case.model, dtype)
    found.cases = list(cases)
    return Results(machine={"cpu": "a CPU", "isa": isa, "threads": 2}, models=[found])
