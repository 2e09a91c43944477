"""Checks whether a contender's answers are those of the model, by comparing them with torch's in float64 on real
sentences."""
import dataclasses

import numpy as np

from results import Accuracy


class NotAnAnswer(Exception):
    """The reason why answers belong to another model, or to none."""


@dataclasses.dataclass(frozen=True)
class Bound:
    least_cosine: float  # over all tokens
    most_error: float = float("inf")  # over all elements


# The bounds hold for every contender. On the real MiniLM, the peers' lowest cosines are 0.9996 to 0.9999 in bf16, and
# 0.54, 0.83, 0.95 and 0.97 in int8: the first two of these lose the meaning of some tokens, and do not agree. Their
# speed may still be that of the best peer, but it is always marked.
BOUNDS = {"f32": Bound(0.99999, 5e-5), "bf16x3": Bound(0.99999, 2e-4), "bf16": Bound(0.9995), "int8": Bound(0.90)}
# Below this, float answers are garbage, and their speed does not count. Quantisation alone may lead that far.
GARBAGE_COSINE = 0.5


def judge(dtype: str, actual: np.ndarray, expected: np.ndarray, ours: np.ndarray | None) -> Accuracy:
    """Compares last hidden states [T, E] with those in float64, and with the engine's if it has any."""
    if actual.shape != expected.shape:
        raise NotAnAnswer(f"answers of shape {actual.shape}, expected {expected.shape}")
    norms = np.linalg.norm(actual, axis=1) * np.linalg.norm(expected, axis=1)
    if not np.isfinite(actual).all() or not (norms > 0).all():
        raise NotAnAnswer("answers of zeros, NaN or Inf")
    cosine = float(((actual * expected).sum(axis=1) / norms).min())
    error = float(np.abs(actual - expected).max())
    if dtype != "int8" and cosine < GARBAGE_COSINE:
        raise NotAnAnswer(f"garbage: the lowest cosine of a token is {cosine:.2f}")
    bound = BOUNDS[dtype]
    return Accuracy(cosine, error, None if ours is None else float(np.abs(actual - ours).max()),
                    cosine >= bound.least_cosine and error <= bound.most_error)
