"""Responses, from the received bytes to arrays."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from . import messages, wire
from .arrays import read_numbers, read_tensor
from .sequences import crop, split
from .sparse import SparseVectors, read_sparse
from .wire import Array, Span

Lengths = Optional[List[int]]


@dataclass(frozen=True)
class Encoded:
    """The result of `encode`. Rows are an array in the layout of the request or, if that had a list or texts, a list of arrays.

    hidden_states: [B, S, E], [S, B, E], [T, E], a list of [n, E], or [R, E] with query_rows; None if not requested. Padded
        rows are zeros.
    pooled: [B, P], one vector per sequence; None if not requested.
    token_vectors: shaped like hidden_states, with width P; None if not requested.
    scores: [B], with query_vectors; otherwise None.
    sparse: SparseVectors, one vector per sequence; None if not requested.
    intermediate: by layer, shaped like hidden_states.
    attention_probabilities: by layer, [B, H, S, S], [B, S, S] or [B, H, S, k] as attention_form says, or a list of these
        without B and padding.
    attention_keys: by layer, int32, the keys of "top_keys"; -1: no key.
    lengths: with texts, the number of tokens of each, including special tokens, after truncation; otherwise None.
    tokens: with texts, a TextTokens for each, with one element per token in its lists; None if not requested.
    execution: how the request was computed: times in nanoseconds, tokens, the batch, the compute type.
    """

    hidden_states: Any = None
    pooled: Any = None
    token_vectors: Any = None
    scores: Any = None
    sparse: Optional[SparseVectors] = None
    intermediate: Dict[int, Any] = field(default_factory=dict)
    attention_probabilities: Dict[int, Any] = field(default_factory=dict)
    attention_keys: Dict[int, Any] = field(default_factory=dict)
    lengths: Lengths = None
    tokens: Optional[List[messages.TextTokens]] = None
    execution: messages.Execution = field(default_factory=messages.Execution)


@dataclass(frozen=True)
class Attended:
    """The result of `attend`. Rows are an array in the layout of the request or, if that had a list, a list of arrays.

    output: [B, S, W], [S, B, W], [T, W], a list of [n, W], or [R, W] with query_rows. W is the width of the stage.
    attention_probabilities: [B, H, S, M], [B, S, M] or [B, H, S, k], where M is S without a memory; with a list and without
        a memory a list of these without B and padding; None if not asked for.
    attention_keys: int32, the keys of "top_keys"; -1: no key.
    weighted_values: [B, H, keys, queries, D], padded with zeros; None if not requested.
    execution: how the request was computed.
    """

    output: Any
    attention_probabilities: Any = None
    attention_keys: Any = None
    weighted_values: Any = None
    execution: messages.Execution = field(default_factory=messages.Execution)


def _split_rows(array: Array, lengths: Lengths) -> Any:
    return array if lengths is None else split(array, lengths)


def _crop_rows(array: Array, lengths: Lengths, keys: Optional[int]) -> Any:
    return array if lengths is None else crop(array, lengths, keys)


def _execution(buffer: bytes, spans: List[Span]) -> messages.Execution:
    made: messages.Execution = wire.parse(messages.Execution, buffer, spans[-1]) if spans else messages.Execution()
    return made


def _read_layers(buffer: bytes, spans: List[Span]) -> Dict[int, Array]:
    found = {}
    for span in spans:
        fields = wire.read_fields(messages.LayerTensor, buffer, span)
        layer = fields["layer"][-1].number or 0 if "layer" in fields else 0
        found[layer] = read_tensor(buffer, fields["tensor"][-1])
    return found


def read_encoded(buffer: bytes, *, lengths: Lengths, all_rows: bool, span: Optional[Span] = None) -> Encoded:
    """Parses a serialized EncodeResponse.

    lengths: the sequence lengths of a list. all_rows: no query_rows requested. span: the message's place in the buffer.
    """
    fields = wire.read_fields(messages.EncodeResponse, buffer, span or Span(0, len(buffer)))
    counted = list(read_numbers(buffer, fields["lengths"])) if "lengths" in fields else None
    lengths = lengths if counted is None else counted
    of_rows = lengths if all_rows else None
    layers = {name: _read_layers(buffer, fields.get(name, []))
              for name in ("intermediate", "attention_probabilities", "attention_keys")}
    # With "top_keys", the last dimension is k, the same for all sequences.
    keys = next((array.shape[-1] for array in layers["attention_keys"].values()), None)
    tensors = {name: read_tensor(buffer, fields[name][-1])
               for name in ("hidden_states", "pooled", "token_vectors", "scores") if name in fields}
    return Encoded(
        hidden_states=_split_rows(tensors["hidden_states"], of_rows) if "hidden_states" in tensors else None,
        pooled=tensors.get("pooled"),
        token_vectors=_split_rows(tensors["token_vectors"], lengths) if "token_vectors" in tensors else None,
        scores=tensors.get("scores"),
        sparse=read_sparse(buffer, fields["sparse"][-1]) if "sparse" in fields else None,
        intermediate={layer: _split_rows(array, lengths) for layer, array in layers["intermediate"].items()},
        attention_probabilities={layer: _crop_rows(array, lengths, keys)
                                 for layer, array in layers["attention_probabilities"].items()},
        attention_keys={layer: _crop_rows(array, lengths, keys) for layer, array in layers["attention_keys"].items()},
        lengths=counted,
        tokens=[wire.parse(messages.TextTokens, buffer, one) for one in fields["tokens"]] if "tokens" in fields else None,
        execution=_execution(buffer, fields.get("execution", [])))


def read_attended(buffer: bytes, *, lengths: Lengths, all_rows: bool, own_keys: bool) -> Attended:
    """Parses a serialized AttendResponse. own_keys: the sequences attended to themselves."""
    fields = wire.read_fields(messages.AttendResponse, buffer, Span(0, len(buffer)))
    found = {name: read_tensor(buffer, fields[name][-1])
             for name in ("output", "attention_probabilities", "attention_keys", "weighted_values") if name in fields}
    to_crop = lengths if own_keys else None
    keys = found["attention_keys"].shape[-1] if "attention_keys" in found else None
    return Attended(
        output=_split_rows(found["output"], lengths if all_rows else None),
        attention_probabilities=_crop_rows(found["attention_probabilities"], to_crop, keys)
        if "attention_probabilities" in found else None,
        attention_keys=_crop_rows(found["attention_keys"], to_crop, keys) if "attention_keys" in found else None,
        weighted_values=found.get("weighted_values"),
        execution=_execution(buffer, fields.get("execution", [])))


