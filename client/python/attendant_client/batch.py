"""The sequences of a request: finds them in its arrays and lists, and cuts these between sequences."""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, List, Mapping, Optional

import numpy as np

from . import arrays, messages
from .errors import invalid
from .options import SEQUENCE_SHAPES, Memory
from .sequences import is_list
from .wire import Array

INPUTS = ("hidden_states", "input_ids", "features")
# Servers take requests this small by default, so the client does not ask for the limit.
FEW_TOKENS = 256


@dataclass(frozen=True)
class Sequences:
    """Sequences of rows, in a list, in a padded array, or one after the other in a packed array.

    lengths: rows per sequence, padding included. axis: the sequence axis of a padded array. packed: whether the rows are packed.
    """

    lengths: List[int]
    axis: Optional[int] = None
    packed: bool = False

    @property
    def longest(self) -> int:
        return max(self.lengths)

    def with_own(self, rows: int) -> Sequences:
        """Returns the sequences of the response, where the model puts this many rows before each non-empty sequence."""
        return replace(self, lengths=[length + rows if length else 0 for length in self.lengths])

    @cached_property
    def starts(self) -> Array:
        """Returns the first row of each sequence in a packed array, then the number of rows."""
        return np.cumsum([0, *self.lengths])

    def cut(self, value: Any, part: slice) -> Any:
        """Returns the rows of the given sequences."""
        if self.packed:
            return value[int(self.starts[part.start]):int(self.starts[part.stop])]
        return value[:, part] if self.axis == 1 else value[part]

    def find(self, rows: Array) -> Array:
        """Returns the sequence of each row, [R]. Rows have the numbering of query_rows."""
        if self.axis is None:
            return np.searchsorted(self.starts, rows, side="right") - 1
        return rows % len(self.lengths) if self.axis == 1 else rows // self.longest

    def rows_in(self, part: slice, rows: Array) -> List[int]:
        """Renumbers rows for a request that contains only the given sequences."""
        if self.axis == 1:
            count = len(self.lengths)
            own = rows // count * (part.stop - part.start) + rows % count - part.start
        else:
            own = rows - (self.starts[part.start] if self.axis is None else part.start * self.longest)
        return [int(row) for row in own]


@dataclass(frozen=True)
class Batch:
    """The sequences of a request: its input, called `name`, and its memory, if each sequence has its own. The rows of images
    are pixels until `in_patches`."""

    name: str
    rows: Sequences
    memory: Optional[Sequences] = None
    pixels: bool = False

    def in_patches(self, model: messages.GetModelResponse) -> Batch:
        """Returns the batch with the model's patches as the rows of images."""
        if not self.pixels or model.front.patch_size == 0:
            return self
        grid = model.front.image_size // model.front.patch_size  # pixels beyond it belong to no patch
        return replace(self, rows=replace(self.rows, lengths=[grid * grid] * len(self.rows.lengths)))


def _are_pixels(name: str, value: Any) -> bool:
    return name == "features" and len(getattr(value, "shape", ())) == 4


def sequences_of(name: str, value: Any, options: Mapping[str, Any], layout: str) -> Optional[Sequences]:
    """Finds the sequences in an array or a list, using the mask or lengths in `options`. Returns None if they are unknown."""
    mask, lengths = options.get("attention_mask"), options.get("lengths")
    if is_list(value):
        try:
            sizes = [len(sequence) for sequence in value]
            if mask is not None and len(mask) == len(sizes):
                sizes = [int(np.count_nonzero(np.asarray(of_sequence))) for of_sequence in mask]
        except (TypeError, ValueError):  # these are no sequences, which is said where the request is made
            return None
        return Sequences(sizes) if lengths is None else None
    shape = [int(size) for size in getattr(value, "shape", ())]
    dimensions = SEQUENCE_SHAPES[name]
    if len(shape) == dimensions and lengths is not None:
        try:
            packed = Sequences([int(length) for length in lengths], packed=True)
        except (TypeError, ValueError):
            return None
        fits = min(packed.lengths, default=-1) >= 0 and sum(packed.lengths) == shape[0]
        return packed if fits and layout == "batch_first" else None
    if _are_pixels(name, value) and layout == "batch_first":
        return Sequences([shape[2] * shape[3]] * shape[0], axis=0)
    if len(shape) != dimensions + 1 or layout not in ("batch_first", "sequence_first"):
        return None
    axis = 1 if layout == "sequence_first" else 0
    return Sequences([shape[1 - axis]] * shape[axis], axis=axis)


def batch_of(options: Mapping[str, Any]) -> Optional[Batch]:
    """Returns the sequences of a request that may have to be divided. Returns None if it is small, has one sequence or is
    invalid; building the request then reports the error."""
    batch = _batch_of(options)
    if batch is None or len(batch.rows.lengths) < 2:
        return None
    tokens = sum(batch.rows.lengths) + sum(batch.memory.lengths if batch.memory else [])
    return batch if tokens > FEW_TOKENS else None


def _batch_of(options: Mapping[str, Any]) -> Optional[Batch]:
    given = [name for name in INPUTS if options.get(name) is not None]
    if len(given) != 1:
        return None
    layout = options.get("layout") or "batch_first"
    rows = sequences_of(given[0], options[given[0]], options, layout)
    if rows is None or options.get("memory") is None:
        return None if rows is None else Batch(given[0], rows, pixels=_are_pixels(given[0], options[given[0]]))
    memory = memory_of(options)
    keys = sequences_of("hidden_states", memory.hidden_states, vars(memory), layout)
    if keys is None or len(keys.lengths) not in (1, len(rows.lengths)):
        return None
    return Batch(given[0], rows, keys)


def memory_of(options: Mapping[str, Any]) -> Memory:
    given = options["memory"]
    made = given if isinstance(given, Memory) else Memory(given)
    return Memory(**{name: arrays.materialized(value) for name, value in vars(made).items()})


def check_count(field: str, value: Any, count: int) -> None:
    """Refuses a value without exactly one element per sequence; dividing it would hide the error."""
    found = len(value) if hasattr(value, "__len__") else repr(value)
    if found != count:
        raise invalid(field, f"one for each of {count} sequences", found)
