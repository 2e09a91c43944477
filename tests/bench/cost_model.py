"""The scheduler's cost model, t = a + b T + c (sum of squared lengths), fitted to ragged batches."""
import numpy as np

from cases import PACKED_TOKENS
from results import CostFit

BATCHES_OF_A_SET = 6


def _batches(lengths: tuple) -> list:
    """Batches of consecutive sequences, with ever more tokens."""
    batches, at = [], 0
    for step in range(1, BATCHES_OF_A_SET + 1):
        batch = [lengths[at % len(lengths)]]
        at += 1
        while sum(batch) + lengths[at % len(lengths)] <= PACKED_TOKENS * step / BATCHES_OF_A_SET:
            batch.append(lengths[at % len(lengths)])
            at += 1
        batches.append(batch)
    return batches


def fit_costs(seconds_of, length_sets: list) -> CostFit:
    """Fits the model; `seconds_of(lengths)` measures one batch."""
    batches = [batch for lengths in length_sets for batch in _batches(lengths)]
    measured = np.array([seconds_of(batch) for batch in batches])
    terms = np.array([[1, sum(batch), sum(n * n for n in batch)] for batch in batches], dtype=np.float64)
    # The fit minimises relative errors, so that large batches do not hide what small ones say about a.
    weights = 1 / measured
    solution = np.linalg.lstsq(terms * weights[:, None], measured * weights, rcond=None)[0]
    predicted = terms @ solution
    r2 = 1 - ((measured - predicted) ** 2).sum() / ((measured - measured.mean()) ** 2).sum()
    return CostFit(*map(float, solution), float(r2), measured.tolist(), predicted.tolist())
