"""Sparse vectors over the vocabulary."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Tuple

import numpy as np

from . import messages, wire
from .arrays import read_numbers, read_tensor
from .errors import Internal
from .wire import Array, Span


@dataclass(frozen=True)
class SparseVectors:
    """One vector for each sequence, without its zeros. `vectors[b]` is the (indices, weights) of one of them.

    counts: int64 [B], how many elements of each vector are not zero; N is their sum.
    indices: int32 [N], their places, ascending within a vector; they are token ids.
    weights: [N], the elements themselves.
    """

    counts: Array
    indices: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, sequence: int) -> Tuple[Array, Array]:
        if not -len(self) <= sequence < len(self):
            raise IndexError(f"expected an index below {len(self)}; got {sequence}")
        ends = np.cumsum(self.counts)
        end = int(ends[sequence])
        begin = end - int(self.counts[sequence])
        return self.indices[begin:end], self.weights[begin:end]

    def __iter__(self) -> Iterator[Tuple[Array, Array]]:
        return (self[sequence] for sequence in range(len(self)))

    def to_dense(self, width: int) -> Array:
        """Returns the vectors with their zeros, [B, width]; width: the model's sparse_width."""
        dense = np.zeros((len(self), width), self.weights.dtype)
        dense[np.repeat(np.arange(len(self)), self.counts), self.indices] = self.weights
        return dense


def read_sparse(buffer: bytes, span: Span) -> SparseVectors:
    """Returns the vectors of a SparseVectors message. Internal: they are unsound."""
    fields = wire.read_fields(messages.SparseVectors, buffer, span)
    counts = read_numbers(buffer, fields.get("counts", []))
    if "indices" not in fields or "weights" not in fields:
        raise Internal("the response has sparse vectors without indices or weights")
    indices = read_tensor(buffer, fields["indices"][-1])
    weights = read_tensor(buffer, fields["weights"][-1])
    # A negative count reads as one beyond 2^63, which the sum of a sound answer cannot reach.
    count = sum(counts)
    if indices.shape != (count,) or weights.shape != (count,) or indices.dtype != np.int32 or weights.dtype.kind != "f":
        raise Internal(f"the response has sparse vectors of {count} elements with indices {indices.dtype}{list(indices.shape)} "
                       f"and weights {weights.dtype}{list(weights.shape)}")
    begins = np.zeros(count, bool)
    ends = np.cumsum(np.asarray(counts, np.int64))
    begins[[end - length for end, length in zip(ends, counts) if length > 0]] = True
    ascending = np.diff(indices, prepend=np.int32(-1)) > 0
    if count and (indices.min() < 0 or not np.all(ascending | begins)):
        raise Internal("the response has sparse vectors with negative or unordered indices")
    return SparseVectors(np.asarray(counts, np.int64), indices, weights)
