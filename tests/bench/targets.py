"""The targets of the project, on two cores."""
from cases import MODELS

# model.case -> (f32, bf16, int8, bf16 with AMX, int8 with AMX)
_BOUND = {
    "bert-base.8x128": (0.93, 0.90, 0.80, 0.94, 0.72),
    "bert-base.8x512": (0.87, 0.82, 0.70, 0.82, 0.60),
    "minilm-l6.8x128": (0.87, 0.80, 0.66, 0.74, 0.50),
    "bert-base.1x16": (0.93, 0.90, 0.80, 0.93, 0.80),
    "bert-base.ragged-uniform": (0.88, 0.84, 0.72, 0.90, 0.65),
}

# name -> (f32, bf16, int8)
_PEER = {
    "bert-base.8x128": (1.0, 1.1, 1.2),
    "bert-base.8x512": (1.0, 1.1, 1.2),
    "minilm-l6.8x128": (1.15, 1.5, 1.8),
    "bert-base.1x16": (1.05, 1.15, 1.3),
    "ragged-uniform.arrival": (1.4, 2.2, 2.4),
    "ragged-lognormal.arrival": (1.4, 2.2, 2.4),
    "ragged-uniform.best": (1.05, 1.35, 1.5),
    "ragged-lognormal.best": (1.05, 1.35, 1.5),
}

# For a type that only AMX has, compared with the best peer's f32.
_BF16X3 = {"peer.bert-base.8x128.bf16x3": 1.7}

# For the AMX GEMM, where the engine chose it, compared with the best peer of the same type, and for bf16x3 with
# its f32.
_OWN = {"own.bert-base.8x128.bf16": 1.35, "own.bert-base.1x16.bf16": 1.3, "own.minilm-l6.8x128.bf16": 1.8,
        "own.bert-base.8x128.bf16x3": 2.0}

# For the engine's own answers on real sentences.
_COSINE = {"accuracy.attendant.minilm-l6.bf16.lowest_token_cosine": 0.9997,
           "accuracy.attendant.minilm-l6.int8.lowest_token_cosine": 0.99}
_ERROR = {"accuracy.attendant.bert-base.f32.max_abs_error": 5e-5,
          "accuracy.attendant.minilm-l6.f32.max_abs_error": 5e-5}
_START_SECONDS = {"start_s.bert-base.f32": 2.0}
_OVER_WEIGHTS = 1.15  # resident memory without activations


def limits() -> dict:
    """Figure -> largest allowed value."""
    greatest = {**_START_SECONDS, **_ERROR}
    for model in MODELS:
        greatest[f"start_over_weights.{model}.f32"] = _OVER_WEIGHTS
        for dtype in ("f32", "bf16x3", "bf16", "int8"):
            greatest[f"memory.{model}.{dtype}.over_weights"] = _OVER_WEIGHTS
    return greatest


def own_targets() -> dict:
    """Figure -> smallest allowed value, on CPUs with AMX."""
    return dict(_OWN)


def targets(isa: str) -> dict:
    """Figure -> smallest allowed value."""
    columns = {"f32": 0, "bf16": 3, "int8": 4} if isa == "amx" else {"f32": 0, "bf16": 1, "int8": 2}
    least = dict(_COSINE)
    if isa == "amx":
        least.update(_BF16X3 | _OWN)
    for name, values in _BOUND.items():
        for dtype, column in columns.items():
            least[f"bound.{name}.{dtype}"] = values[column]
    for name, values in _PEER.items():
        for dtype, value in zip(("f32", "bf16", "int8"), values):
            least[f"peer.{name}.{dtype}"] = value
    return least
