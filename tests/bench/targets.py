"""The targets of the project, on two cores."""
from cases import MODELS

# Shares of the bound: name -> (f32, bf16 with AVX-512, int8 with AVX-512, bf16 with AMX, int8 with AMX)
_SHARES = {
    "bound.bert-base.8x128": (0.95, 0.95, 0.90, 0.94, 0.72),
    "bound.bert-base.8x512": (0.88, 0.87, 0.76, 0.84, 0.62),
    "bound.bert-base.ragged-uniform": (0.90, 0.90, 0.82, 0.90, 0.66),
    "bound.bert-base.ragged-lognormal": (0.90, 0.93, 0.86, 0.90, 0.68),
    "bound.minilm-l6.8x128": (0.90, 0.88, 0.78, 0.76, 0.54),
    "bound16.bert-base.1x16": (0.95, 0.97, 0.90, 0.95, 0.85),
    "bound16.minilm-l6.1x16": (0.80, 0.70, 0.65, 0.60, 0.50),
}

# Ratios to the best peer, in the same columns.
_RATIOS = {
    "peer.bert-base.8x128": (1.0, 1.05, 1.10, 1.35, 1.4),
    "peer.bert-base.8x512": (1.0, 1.05, 1.05, 1.35, 1.4),
    "peer.bert-base.1x16": (1.08, 1.15, 1.45, 1.3, 1.5),
    "peer.minilm-l6.8x128": (1.12, 1.10, 1.12, 1.8, 1.9),
    "peer.minilm-l6.1x16": (1.1, 1.25, 1.4, 1.5, 1.8),
    "peer.ragged-uniform.arrival": (1.35, 1.5, 2.0, 2.2, 2.4),
    "peer.ragged-uniform.best": (1.08, 1.2, 1.1, 1.35, 1.5),
    "peer.ragged-lognormal.arrival": (1.4, 1.85, 1.95, 2.2, 2.4),
    "peer.ragged-lognormal.best": (1.2, 1.33, 1.7, 1.35, 1.5),
}

# The column of each type by instruction set. Elsewhere, float32 alone has targets.
_COLUMNS = {
    "avx512_vnni": {"f32": 0, "int8": 2},
    "avx512_bf16": {"f32": 0, "bf16": 1, "int8": 2},
    "amx": {"f32": 0, "bf16": 3, "int8": 4},
}

# In float32 only, of models whose weights take gigabytes.
_LARGE = {"bound.qwen3-0.6b.4x512.f32": 0.86,
          "peer.qwen3-0.6b.4x512.f32": 1.05, "peer.qwen3-0.6b.1x32.f32": 1.1,
          "peer.embeddinggemma.8x128.f32": 1.05, "peer.bge-m3.8x128.f32": 1.05}

# For a type that only AMX has, compared with the best peer's f32.
_BF16X3 = {"peer.bert-base.8x128.bf16x3": 1.7}

# For the AMX GEMM, where the engine chose it, compared with the best peer of the same type, and for bf16x3 with
# its f32.
_OWN = {"own.bert-base.8x128.bf16": 1.35, "own.bert-base.1x16.bf16": 1.3, "own.minilm-l6.8x128.bf16": 1.8,
        "own.bert-base.8x128.bf16x3": 2.0}

# Weights in bfloat16 compared with float32: with AVX2, and with AVX-512.
_STORED = {
    "stored.bert-base.1x16.bf16_file": (1.2, 1.35), "stored.bert-base.1x4.bf16_file": (1.3, 1.3),
    "stored.bert-base.8x128.bf16_file": (0.98, 0.98),
}
# With AVX2: int8 compared with float32 and with the best peer's, and the vector GEMM with oneDNN's products.
_AVX2 = {"int8_over_f32.bert-base.8x128": 1.7, "int8_over_f32.bert-base.1x16": 2.0,
         "own_over_onednn.bert-base.8x128.f32": 1.0, "own_over_onednn.bert-base.1x16.f32": 1.0,
         "peer.bert-base.8x128.int8": 1.05, "peer.bert-base.8x512.int8": 1.0, "peer.bert-base.1x16.int8": 1.3,
         "peer.minilm-l6.8x128.int8": 1.05, "peer.minilm-l6.1x16.int8": 1.3}

# For the engine's own answers on real sentences.
_COSINE = {"accuracy.attendant.minilm-l6.bf16.lowest_token_cosine": 0.9997,
           "accuracy.attendant.minilm-l6.int8.lowest_token_cosine": 0.99}
_ERROR = {"accuracy.attendant.bert-base.f32.max_abs_error": 5e-5,
          "accuracy.attendant.minilm-l6.f32.max_abs_error": 5e-5}
_START_SECONDS = {"start_s.bert-base.f32": 2.0}
_CACHE = {"cache.hit_us": 200}
_OVER_WEIGHTS = 1.15  # resident memory without activations

# A share or ratio that misses its target by no more than this has reached it.
_TOLERANCE = 0.02
_TIMED = ("bound.", "bound16.", "peer.", "own.", "own_over_onednn.", "stored.", "int8_over_f32.")


def limits() -> dict:
    """Figure -> largest allowed value."""
    greatest = {**_START_SECONDS, **_CACHE, **_ERROR}
    for model in MODELS:
        greatest[f"start_over_weights.{model}.f32"] = _OVER_WEIGHTS
        for dtype in ("f32", "bf16x3", "bf16", "int8"):
            greatest[f"memory.{model}.{dtype}.over_weights"] = _OVER_WEIGHTS
    return greatest


def own_targets() -> dict:
    """Figure -> wanted value, on CPUs with AMX."""
    return dict(_OWN)


def targets(isa: str) -> dict:
    """Figure -> wanted value; see `reached`."""
    wanted = _COSINE | _LARGE
    if isa == "amx":
        wanted.update(_BF16X3 | _OWN)
    if isa.startswith("avx2"):
        wanted |= {name: values[0] for name, values in _STORED.items()} | _AVX2
    elif isa.startswith(("avx512", "amx")):
        wanted |= {name: values[1] for name, values in _STORED.items()}
    for name, values in (_SHARES | _RATIOS).items():
        for dtype, column in _COLUMNS.get(isa, {"f32": 0}).items():
            wanted[f"{name}.{dtype}"] = values[column]
    return wanted


def reached(name: str, value: float, wanted: float) -> bool:
    """Whether a figure is as large as is wanted."""
    tolerance = _TOLERANCE + 1e-9 if name.startswith(_TIMED) else 0
    return value >= wanted - tolerance
