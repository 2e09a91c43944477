"""Whether a contender's answers are those of the model: beside torch's in float64, on real sentences."""
import dataclasses

import numpy as np

from results import Accuracy


class NotAnAnswer(Exception):
    """Why answers are of another model, or of none."""


@dataclasses.dataclass(frozen=True)
class Bound:
    least_cosine: float  # of any token
    most_error: float = float("inf")  # of any element


# Of every contender alike. On the real MiniLM peers' lowest cosines are 0.9996 to 0.9999 in bf16, and 0.54, 0.83, 0.95
# and 0.97 in int8: the first two lose what some tokens mean, and do not agree. Their speed counts all the same, as the
# best peer's, but never without a mark.
BOUNDS = {"f32": Bound(0.99999, 5e-5), "bf16x3": Bound(0.99999, 2e-4), "bf16": Bound(0.9995), "int8": Bound(0.90)}
# Below it float answers are garbage, whose speed is nobody's. Quantisation alone may take one far.
GARBAGE_COSINE = 0.5


def judge(dtype: str, actual: np.ndarray, expected: np.ndarray, ours: np.ndarray | None) -> Accuracy:
    """Last hidden states [T, E] beside those in float64, and beside the engine's if it has any."""
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
