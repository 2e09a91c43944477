"""The rows of a request: one padded or packed array, or a list with one array per sequence."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from . import arrays
from .arrays import WireArray
from .errors import invalid
from .options import SEQUENCE_SHAPES
from .wire import Array, Chunks


@dataclass(frozen=True)
class Rows:
    """The rows of one field. lengths: the sequence lengths of a list; None for a single array."""

    arrays: List[WireArray]
    shape: Tuple[int, ...]
    lengths: Optional[List[int]] = None
    # Of each sequence of a list, the tokens that its mask keeps.
    kept: Optional[List[slice]] = None

    def chunks(self) -> Chunks:
        return arrays.tensor_chunks(self.arrays, self.shape)


def is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _converter(field: str) -> Callable[[str, Any], WireArray]:
    return arrays.to_integers if field.endswith("_ids") else arrays.to_floats


def _describe(array: WireArray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _unify(field: str, sequences: List[WireArray]) -> List[WireArray]:
    """Returns the sequences as arrays of one type."""
    if len({sequence.dtype for sequence in sequences}) == 1:
        return sequences
    if field.endswith("_ids"):
        return [WireArray("int64", sequence.array.astype("<i8")) for sequence in sequences]
    for index, sequence in enumerate(sequences):
        if sequence.dtype == "bfloat16":
            raise invalid(f"{field}[{index}]", "arrays of one type", "bfloat16 and other types")
    return [WireArray("float32", sequence.array.astype("<f4")) for sequence in sequences]


def _check_shapes(field: str, sequences: List[WireArray]) -> None:
    dimensions = SEQUENCE_SHAPES[field]
    rest = sequences[0].shape[1:]
    for index, sequence in enumerate(sequences):
        if len(sequence.shape) != dimensions or sequence.shape[1:] != rest:
            expected = "[n]" if dimensions == 1 else "[n, width]" if index == 0 else f"[n, {rest[0]}], as in the first one"
            raise invalid(f"{field}[{index}]", f"a sequence of shape {expected}", _describe(sequence))


def _kept_tokens(field: str, mask: Any, lengths: List[int]) -> List[slice]:
    """Returns the run of tokens that the mask of each sequence keeps."""
    if len(mask) != len(lengths):
        raise invalid(field, f"one mask for each of {len(lengths)} sequences", len(mask))
    kept = []
    for index, (of_sequence, length) in enumerate(zip(mask, lengths)):
        keeps = arrays.to_integers(f"{field}[{index}]", of_sequence).array != 0
        if keeps.shape != (length,):
            raise invalid(f"{field}[{index}]", f"shape [{length}]", list(keeps.shape))
        places = np.flatnonzero(keeps)
        run = slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)
        if run.stop - run.start != len(places):
            raise invalid(f"{field}[{index}]", "one run of kept tokens, or arrays [B, S] instead of lists", "a gap between them")
        kept.append(run)
    return kept


def _cut(sequences: List[WireArray], kept: List[slice]) -> List[WireArray]:
    return [WireArray(sequence.dtype, sequence.array[run]) for sequence, run in zip(sequences, kept)]


def gather(field: str, value: Any, mask: Any = None) -> Rows:
    """Returns the rows of a request's input, or of a memory: `mask` is the attention mask of a list."""
    if not is_list(value):
        array = _converter(field)(field, value)
        return Rows([array], array.shape)
    if not value:
        raise invalid(field, "at least one sequence", "an empty list")
    convert = _converter(field)
    sequences = [convert(f"{field}[{index}]", sequence) for index, sequence in enumerate(value)]
    _check_shapes(field, sequences)
    sequences = _unify(field, sequences)
    kept = None if mask is None else _kept_tokens("attention_mask", mask, [sequence.shape[0] for sequence in sequences])
    if kept is not None:
        sequences = _cut(sequences, kept)
    lengths = [sequence.shape[0] for sequence in sequences]
    return Rows(sequences, (sum(lengths), *sequences[0].shape[1:]), lengths, kept)


def gather_like(field: str, value: Any, rows: Rows) -> Rows:
    """Returns the rows of a field with the form and lengths of the input, such as token_type_ids."""
    if rows.lengths is None:
        return gather(field, value if not is_list(value) else np.asarray(value))
    if not is_list(value) or len(value) != len(rows.lengths):
        raise invalid(field, f"a list of {len(rows.lengths)} sequences, like the input",
                      f"{len(value)} sequences" if is_list(value) else type(value).__name__)
    made = gather(field, value)
    if rows.kept is not None:
        sequences = _cut(made.arrays, rows.kept)
        made = Rows(sequences, (sum(map(len_of, sequences)), *made.shape[1:]), [len_of(one) for one in sequences])
    if made.lengths != rows.lengths:
        raise invalid(field, f"sequences of the lengths {rows.lengths}, like the input", made.lengths)
    return made


def len_of(sequence: WireArray) -> int:
    return sequence.shape[0]


def split(array: Array, lengths: Sequence[int]) -> List[Array]:
    """Returns the sequences of a packed answer, as views. A model may put rows of its own before each that has any."""
    present = sum(1 for length in lengths if length > 0)
    own = (array.shape[0] - sum(lengths)) // present if present else 0
    ends = np.cumsum([length + own if length else 0 for length in lengths])
    return np.split(array, ends[:-1])


def crop(array: Array, lengths: Sequence[int], keys: Optional[int]) -> List[Array]:
    """Returns the probabilities of each sequence, [H, n, n] or [n, n], without padding.

    array: [B, H, S, S], [B, S, S] (their mean over heads) or [B, H, S, k]. keys: what to keep of the last dimension; None: as
    many as of the one before.
    """
    longest = max(lengths, default=0)
    own = array.shape[-2] - longest
    return [one[..., :length + own if length else 0, :(length + own if length else 0) if keys is None else keys]
            for one, length in zip(array, lengths)]
