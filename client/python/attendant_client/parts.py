"""Divides a request with more sequences than the server takes at once into smaller requests."""
from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

import numpy as np

from . import arrays, messages
from .batch import Batch, check_count, memory_of
from .errors import invalid
from .options import Memory, integers
from .sequences import is_list
from .wire import Array

# Room in a message for the fields other than tensors.
HEAD_BYTES = 64 << 10


@dataclass(frozen=True)
class Part:
    """A request with some of the sequences of a larger request.

    options: the arguments of the request. wanted: the positions of its rows in the query_rows of the larger request, in
    order, or None without query_rows.
    """

    options: Dict[str, Any]
    wanted: Optional[Array] = None


class Load(NamedTuple):
    """The size of a request: sequences, rows including the model's own and memory rows, and rows of the longest sequence and memory."""

    sequences: int = 0
    tokens: int = 0
    longest: int = 0
    longest_keys: int = 0


class Room:
    """Checks whether a request and its response fit the limits. Bytes are upper bounds: four per element."""

    def __init__(self, options: Mapping[str, Any], batch: Batch, model: messages.GetModelResponse) -> None:
        self._limits = model.limits
        self._batch = batch
        self._own = model.front.own_rows if batch.name == "features" else 0
        bias: Any = options.get("attention_bias")
        self._bias = np.shape(bias) if np.ndim(bias) == 4 else None
        layer = model.layer
        self._row = max(layer.hidden_size, layer.key_input_width + layer.value_input_width, model.front.feature_width, 6)
        heads, width = layer.heads, max(layer.hidden_size, layer.heads * layer.value_width)
        wanted = options.get("query_rows") is None and options.get("return_hidden_states", True)
        self._of_token = width * (int(wanted) + _count(options, "intermediate_layers"))
        self._of_token += model.token_head.width if options.get("return_token_vectors") else 0
        layers = _count(options, "attention_layers") + int(bool(options.get("return_attention_probabilities")))
        self._of_pair = heads * layers * (2 if options.get("attention_form") == "top_keys" else 1)
        self._of_pair += heads * layer.value_width if options.get("return_weighted_values") else 0
        self._of_sequence = max(width, model.pooled_width) if options.get("pooling") else 0
        self._of_sequence += 2 * model.sparse_width if options.get("return_sparse") else 0
        self._of_sequence += 1 if options.get("query_vectors") is not None else 0

    def grown(self, load: Load, place: int) -> Load:
        """Returns the load with one more sequence."""
        rows = self._batch.rows.lengths[place]
        rows += self._own if rows else 0
        keys = self._batch.memory
        shared = keys is not None and len(keys.lengths) == 1
        memory = 0 if keys is None else keys.lengths[0 if shared else place]
        tokens = rows + (0 if shared and load.sequences else memory)
        longest = max(load.longest, rows)
        return Load(load.sequences + 1, load.tokens + tokens, longest, longest if keys is None else max(load.longest_keys, memory))

    def fits(self, load: Load, most_tokens: int) -> bool:
        if load.tokens > most_tokens or self._request_bytes(load) > self._limits.max_request_bytes:
            return False
        pairs = load.sequences * load.longest * load.longest_keys
        elements = load.tokens * self._of_token + pairs * self._of_pair + load.sequences * self._of_sequence
        return 4 * elements + HEAD_BYTES <= self._limits.max_answer_bytes

    def _request_bytes(self, load: Load) -> int:
        if self._bias is None:
            return 0  # the server's limit follows from the token limit
        bias = (load.sequences, self._bias[1], load.longest, load.longest_keys)
        elements = np.prod([full if given > 1 else 1 for given, full in zip(self._bias, bias)], dtype=np.int64)
        return 4 * (int(elements) + load.tokens * self._row) + HEAD_BYTES


def _count(options: Mapping[str, Any], name: str) -> int:
    value = options.get(name)
    return 0 if value is None else int(np.size(value))


def divide(options: Mapping[str, Any], batch: Batch, model: messages.GetModelResponse) -> List[Part]:
    """Returns the parts of a request, or an empty list if it fits the limits undivided."""
    if is_list(options.get("attention_bias")):
        options = {**options, "attention_bias": arrays.to_floats("attention_bias", options["attention_bias"]).array}
    room = Room(options, batch, model)
    count, limits = len(batch.rows.lengths), model.limits
    if room.fits(reduce(room.grown, range(count), Load()), limits.max_request_tokens):
        return []
    cutter = _Cutter(options, batch, model)
    most = min(limits.max_batch_tokens, limits.max_request_tokens)
    # Only the server knows how many sequences a registered memory has. A first part with one sequence fails at once if it
    # has several, which could not be assigned to the sequences of other parts.
    places = _places(room, count, most, first_alone=bool(options.get("memory_handle")))
    return [cutter.part(some) for some in places]


def _places(room: Room, count: int, most_tokens: int, first_alone: bool) -> Iterator[slice]:
    """Yields the sequences of each part. The server refuses a request without rows, so a sequence without rows shares a part."""
    first, load = 0, Load()
    for place in range(count):
        grown = room.grown(load, place)
        divides = load.longest > 0 and grown.tokens > load.tokens and not room.fits(grown, most_tokens)
        if place > first and (divides or (first_alone and place == 1)):
            yield slice(first, place)
            first, grown = place, room.grown(Load(), place)
        load = grown
    yield slice(first, count)


class _Cutter:
    """Splits the options of a request among its parts."""

    def __init__(self, options: Mapping[str, Any], batch: Batch, model: messages.GetModelResponse) -> None:
        self._options = dict(options)
        self._batch = batch
        self._count = len(batch.rows.lengths)
        self._answer = batch.rows.with_own(model.front.own_rows if batch.name == "features" else 0)
        for name in ("attention_mask", "lengths"):
            if options.get(name) is not None:
                check_count(name, options[name], self._count)
        for name in ("token_type_ids", "position_ids"):
            if options.get(name) is not None and is_list(options[name]) and not is_list(options[batch.name]):
                self._options[name] = np.asarray(options[name])
        if np.ndim(options.get("prompt_tokens", 0)) > 0 and len(options["prompt_tokens"]) > 1:
            check_count("prompt_tokens", options["prompt_tokens"], self._count)
        if options.get("attention_bias") is not None:
            self._options["attention_bias"] = self._checked_bias(options["attention_bias"])
        rows = integers("query_rows", [] if options.get("query_rows") is None else options["query_rows"])
        self._rows = np.asarray(rows) if rows else None
        if self._rows is not None:
            sequences = self._find_rows(self._rows)
            self._order = np.argsort(sequences, kind="stable")
            self._ends = np.searchsorted(sequences[self._order], np.arange(self._count + 1))  # of the rows before each sequence

    def part(self, places: slice) -> Part:
        batch, made = self._batch, dict(self._options)
        for name in (batch.name, "token_type_ids", "position_ids"):
            if made.get(name) is not None:
                made[name] = batch.rows.cut(made[name], places)
        for name in ("attention_mask", "lengths"):
            if made.get(name) is not None:
                made[name] = made[name][places]
        if np.ndim(made.get("prompt_tokens", 0)) > 0 and len(made["prompt_tokens"]) > 1:
            made["prompt_tokens"] = made["prompt_tokens"][places]
        keys = batch.memory
        if keys is not None and len(keys.lengths) > 1:
            made["memory"] = _cut_memory(memory_of(made), batch, places)
        longest = max(self._answer.lengths[places])
        longest_keys = longest if keys is None else max(keys.lengths if len(keys.lengths) == 1 else keys.lengths[places])
        if made.get("attention_bias") is not None:
            made["attention_bias"] = self._cut_bias(made["attention_bias"], places, longest, longest_keys)
        most = self._most_keys()
        if made.get("attention_top_k") and most is not None and made["attention_top_k"] <= most:
            made["attention_top_k"] = max(1, min(made["attention_top_k"], longest_keys))
        return Part(made, self._wanted(places, made))

    def _most_keys(self) -> Optional[int]:
        """Returns the number of attention columns, or None for a registered memory, because only the server knows its size."""
        if self._options.get("memory_handle"):
            return None
        return self._answer.longest if self._batch.memory is None else self._batch.memory.longest

    def _checked_bias(self, bias: Any) -> Any:
        full = (self._count, None, self._answer.longest, self._most_keys())
        shape = [int(size) for size in np.shape(bias)]
        if len(shape) != 4 or any(each not in (1, size) for each, size in zip(shape, full) if size is not None):
            sizes = ", ".join(letter if size is None else str(size) for letter, size in zip("BHSM", full))
            raise invalid("attention_bias", f"shape [{sizes}] or 1 in places", shape)
        return bias

    def _cut_bias(self, bias: Any, places: slice, longest: int, longest_keys: int) -> Any:
        ends = [longest, longest_keys if self._most_keys() is not None else bias.shape[3]]
        return bias[(places if bias.shape[0] > 1 else slice(None), slice(None),
                     *(slice(None) if size == 1 else slice(end) for size, end in zip(bias.shape[2:], ends)))]

    def _find_rows(self, rows: Array) -> Array:
        count = sum(self._answer.lengths)
        for place, row in enumerate(rows):
            if row >= count:
                raise invalid(f"query_rows[{place}]", f"0..{count - 1}", row)
        return self._answer.find(rows)

    def _wanted(self, places: slice, made: Dict[str, Any]) -> Optional[Array]:
        """Sets the query_rows of a part. A part without any requests its first row: empty query_rows would request all rows."""
        if self._rows is None:
            return None
        wanted: Array = self._order[self._ends[places.start]:self._ends[places.stop]]
        has_rows = sum(self._answer.lengths[places]) > 0
        made["query_rows"] = self._answer.rows_in(places, self._rows[wanted]) or [0] * has_rows
        return wanted


def _cut_memory(memory: Memory, batch: Batch, places: slice) -> Memory:
    keys = batch.memory
    assert keys is not None
    for name in ("attention_mask", "lengths"):
        if getattr(memory, name) is not None:
            check_count(f"memory.{name}", getattr(memory, name), len(keys.lengths))
    mask, lengths = (None if value is None else value[places] for value in (memory.attention_mask, memory.lengths))
    return Memory(keys.cut(memory.hidden_states, places), mask, lengths,
                  None if memory.values is None else keys.cut(memory.values, places))
