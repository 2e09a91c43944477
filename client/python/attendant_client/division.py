"""Division of requests that have more sequences than the server takes in one."""
from __future__ import annotations

from itertools import chain
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import messages
from .answers import Encoded
from .options import SEQUENCE_SHAPES
from .sequences import is_list
from .sparse import SparseVectors

# A request of so few tokens is taken by any server that is not set up to refuse it, and not worth asking how many it takes.
FEW_TOKENS = 256
_INPUTS = ("hidden_states", "input_ids", "features")
_BESIDE = ("attention_mask", "token_type_ids", "position_ids")
# What is not of one sequence, so that the request stays whole.
_SHARED = ("lengths", "query_rows", "attention_bias")


def lengths_of(options: Mapping[str, Any]) -> List[int]:
    """Returns the tokens of each sequence of a request, padding included; none if it cannot be divided, or need not be."""
    given = [name for name in _INPUTS if options.get(name) is not None]
    if len(given) != 1 or any(options.get(name) is not None for name in _SHARED):
        return []
    if options.get("layout") not in (None, "", "batch_first"):
        return []
    value = options[given[0]]
    shape: Tuple[int, ...] = getattr(value, "shape", ())
    lengths = [int(shape[1])] * int(shape[0]) if len(shape) == SEQUENCE_SHAPES[given[0]] + 1 else []
    if is_list(value):
        try:
            lengths = [len(sequence) for sequence in value]
        except TypeError:  # these are no sequences, which is said where the request is made
            return []
    return lengths if len(lengths) > 1 and sum(lengths) > FEW_TOKENS else []


def divide(options: Mapping[str, Any], lengths: Sequence[int], limits: messages.Limits) -> List[Dict[str, Any]]:
    """Returns the options of the requests that a request with sequences of these lengths becomes."""
    if sum(lengths) <= limits.max_request_tokens:
        return [dict(options)]
    most = min(limits.max_batch_tokens, limits.max_request_tokens)
    names = [name for name in (*_INPUTS, *_BESIDE) if options.get(name) is not None]
    return [{**options, **{name: options[name][group[0]:group[-1] + 1] for name in names}} for group in groups(lengths, most)]


def groups(lengths: Sequence[int], most_tokens: int) -> Iterator[List[int]]:
    """Yields the places of sequences of these lengths in groups of at most so many tokens, but of one sequence at least."""
    group: List[int] = []
    tokens = 0
    for place, length in enumerate(lengths):
        if group and tokens + length > most_tokens:
            yield group
            group, tokens = [], 0
        group.append(place)
        tokens += length
    if group:
        yield group


def join(parts: Sequence[Encoded]) -> Encoded:
    """Returns the answer to a request that was divided, from those to its parts. The times and tokens of `execution` are sums."""
    execution = messages.Execution()
    execution.CopyFrom(parts[-1].execution)
    for name in ("queue_ns", "copy_ns", "compute_ns", "tokens", "truncated_tokens"):
        setattr(execution, name, sum(getattr(part.execution, name) for part in parts))
    return Encoded(
        **{name: _join([getattr(part, name) for part in parts]) for name in ("hidden_states", "pooled", "token_vectors")},
        sparse=_join_sparse([part.sparse for part in parts]),
        **{name: {layer: _join([getattr(part, name)[layer] for part in parts]) for layer in getattr(parts[0], name)}
           for name in ("intermediate", "attention_probabilities", "attention_keys")},
        execution=execution)


def _join(parts: List[Any]) -> Any:
    if parts[0] is None:
        return None
    return list(chain.from_iterable(parts)) if is_list(parts[0]) else np.concatenate(parts)


def _join_sparse(parts: Sequence[Optional[SparseVectors]]) -> Optional[SparseVectors]:
    made = [part for part in parts if part is not None]
    if not made:
        return None
    return SparseVectors(*(np.concatenate([getattr(part, name) for part in made]) for name in ("counts", "indices", "weights")))
