"""Joins the responses to the parts of a divided request."""
from __future__ import annotations

from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, TypeVar

import numpy as np

from . import messages
from .answers import Attended, Encoded
from .sequences import is_list
from .sparse import SparseVectors
from .wire import Array

A = TypeVar("A", Encoded, Attended)


class Joiner:
    """Joins the responses to the parts of one request. The times and tokens of `execution` are sums.

    axis: the sequence axis of padded arrays. wanted: for each part, the positions of its rows in the query_rows of the
    request, or None without query_rows. top_k: the request's attention_top_k, or 0.
    """

    def __init__(self, axis: int, wanted: Sequence[Optional[Array]], top_k: int) -> None:
        self._axis = axis
        self._wanted = [places for places in wanted if places is not None]
        self._top_k = top_k

    def encoded(self, found: Sequence[Encoded]) -> Encoded:
        return Encoded(
            hidden_states=self._wanted_rows([part.hidden_states for part in found]),
            token_vectors=self._rows([part.token_vectors for part in found]),
            scores=_concatenate([part.scores for part in found], 0),
            pooled=_concatenate([part.pooled for part in found], 0), sparse=_join_sparse([part.sparse for part in found]),
            intermediate={layer: self._rows([part.intermediate[layer] for part in found]) for layer in found[0].intermediate},
            attention_probabilities={layer: self._pairs([part.attention_probabilities[layer] for part in found])
                                     for layer in found[0].attention_probabilities},
            attention_keys={layer: self._pairs([part.attention_keys[layer] for part in found], fill=-1)
                            for layer in found[0].attention_keys},
            lengths=_concatenate([part.lengths for part in found], 0), tokens=_concatenate([part.tokens for part in found], 0),
            execution=_execution(found))

    def attended(self, found: Sequence[Attended]) -> Attended:
        keyed = found[0].attention_keys is not None
        return Attended(
            output=self._wanted_rows([part.output for part in found]),
            attention_probabilities=self._pairs([part.attention_probabilities for part in found]),
            attention_keys=self._pairs([part.attention_keys for part in found], fill=-1) if keyed else None,
            weighted_values=self._pairs([part.weighted_values for part in found], top_k=0), execution=_execution(found))

    def _rows(self, parts: List[Any]) -> Any:
        return _concatenate(parts, self._axis)

    def _wanted_rows(self, parts: List[Any]) -> Any:
        """Joins rows in the order of query_rows, if the request has them."""
        if parts[0] is None or not self._wanted:
            return self._rows(parts)
        joined = np.empty((sum(map(len, self._wanted)), *parts[0].shape[1:]), parts[0].dtype)
        for places, rows in zip(self._wanted, parts):
            joined[places] = rows[:len(places)]
        return joined

    def _pairs(self, parts: List[Any], fill: int = 0, top_k: Optional[int] = None) -> Any:
        """Joins arrays over pairs of rows, padded to the longest sequence of all parts or to top_k keys."""
        top_k = self._top_k if top_k is None else top_k
        if parts[0] is None:
            return None
        if is_list(parts[0]):
            return [_pad(one, (*one.shape[:-1], top_k or one.shape[-1]), fill) for one in chain.from_iterable(parts)]
        shape = np.max([part.shape for part in parts], axis=0)
        shape[-1] = max(shape[-1], top_k)
        return np.concatenate([_pad(part, (len(part), *shape[1:]), fill) for part in parts])


def _pad(array: Array, shape: Sequence[int], fill: int) -> Array:
    missing = [(0, full - size) for full, size in zip(shape, array.shape)]
    return np.pad(array, missing, constant_values=fill) if any(after for _, after in missing) else array


def _concatenate(parts: List[Any], axis: int) -> Any:
    if parts[0] is None:
        return None
    return list(chain.from_iterable(parts)) if is_list(parts[0]) else np.concatenate(parts, axis)


def _execution(parts: Sequence[A]) -> messages.Execution:
    made = messages.Execution()
    made.CopyFrom(parts[-1].execution)
    for name in ("queue_ns", "copy_ns", "compute_ns", "tokenize_ns", "tokens", "truncated_tokens", "cached_sequences"):
        setattr(made, name, sum(getattr(part.execution, name) for part in parts))
    return made


def _join_sparse(parts: Sequence[Optional[SparseVectors]]) -> Optional[SparseVectors]:
    made = [part for part in parts if part is not None]
    if not made:
        return None
    return SparseVectors(*(np.concatenate([getattr(part, name) for part in made]) for name in ("counts", "indices", "weights")))
