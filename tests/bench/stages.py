"""The parts of a layer, as stages_bench.cc times them: the time of each, and what it could be."""
import dataclasses

# In the order of a layer: name in stages_bench.cc -> (name in the report, number in a layer).
STAGES = {"qkv": ("QKV", 1), "attention": ("attention", 1), "output": ("output", 1), "norm": ("2 norms", 2),
          "ff1": ("FF1", 1), "activation": ("activation", 1), "ff2": ("FF2", 1)}
STAGE_PREFIX, BOUND_PREFIX, ROOF_PREFIX = "stage/", "bound/", "roof/"  # of the micro-benchmarks' names
_ATTENDS_IN = {"bf16": "bf16", "int8": "bf16"}  # the type of attention's operands, where the CPU has units for it


@dataclasses.dataclass(frozen=True)
class Stage:
    """One part of a layer. The roof is the rate of the same work done in the plainest way: for a product, oneDNN's
    plain one of the same shape; for attention, the fastest plain product in the type of its operands; for norms and
    activations, the plainest pass over the same memory."""
    seconds: float
    rate: float  # operations a second, or bytes a second
    roof: float | None  # in the same unit
    in_bytes: bool

    @property
    def share(self) -> float | None:
        """The share of the bound."""
        return self.rate / self.roof if self.roof else None

    @property
    def unit(self) -> str:
        return "gbs" if self.in_bytes else "gops"


def _split(kernels: list, prefix: str) -> dict:
    """Case and type -> {stage: (seconds, counters)} of the micro-benchmarks with this prefix."""
    found = {}
    for name, seconds, counters in kernels:
        if name.startswith(prefix):
            case, _, stage = name.removeprefix(prefix).partition("/")
            found.setdefault(case, {})[stage] = (seconds, counters)
    return found


def roofs_of(kernels: list) -> dict:
    """Type -> operations a second of the fastest plain product."""
    plain = [(case.rpartition(".")[2], counters) for prefix in (ROOF_PREFIX, BOUND_PREFIX)
             for case, stages in _split(kernels, prefix).items() for _, counters in stages.values()]
    roofs = {}
    for dtype, counters in plain:
        if "flops" in counters:
            roofs[dtype] = max(counters["flops"], roofs.get(dtype, 0))
    return roofs


def stages_of(kernels: list) -> dict:
    """Case and type -> {stage: Stage}, in the order of STAGES, without the cases that lack a stage."""
    bounds, roofs = _split(kernels, BOUND_PREFIX), roofs_of(kernels)

    def make(case: str, stage: str, seconds: float, counters: dict) -> Stage:
        dtype = case.rpartition(".")[2]
        unit = "bytes" if "bytes" in counters else "flops"
        roof = bounds.get(case, {}).get(stage, (0, {}))[1].get(unit)
        if stage == "attention":
            roof = roofs.get(_ATTENDS_IN.get(dtype), roofs.get("f32"))
        return Stage(seconds * STAGES[stage][1], counters[unit], roof, unit == "bytes")

    return {case: {stage: make(case, stage, *stages[stage]) for stage in STAGES}
            for case, stages in _split(kernels, STAGE_PREFIX).items() if set(STAGES) <= set(stages)}


def is_kernel(name: str) -> bool:
    """Whether a micro-benchmark is of a kernel by itself."""
    return not name.startswith((STAGE_PREFIX, BOUND_PREFIX, ROOF_PREFIX))
