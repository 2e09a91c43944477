"""Writes and reads messages with tensors without copying their data more than once.

protobuf's Python runtime would copy the data of a tensor when it is set and when its message is serialized, and again when it
is read. Here the fields with tensors are framed by hand, around buffers that stay where they are until one `join`; all other
fields are left to protobuf. Fields may come in any order on the wire, so that one part follows the other.
"""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Type, Union, cast

import numpy as np
import numpy.typing as npt

from .errors import Internal

Array = npt.NDArray[Any]
# Pieces of a message, one after the other. Arrays are of bytes: one dimension, uint8.
Chunks = List[Union[bytes, Array]]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class Span(NamedTuple):
    """The content of a field: the bytes from `start` to `stop` of the buffer, or a number."""

    start: int
    stop: int
    number: Optional[int] = None


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def submessage(message: Type[Any], field: str, chunks: Chunks) -> Chunks:
    """Returns the chunks as the field of a message: a submessage, or bytes."""
    number = message.DESCRIPTOR.fields_by_name[field].number
    return [varint(number << 3 | _LENGTH) + varint(sum(len(chunk) for chunk in chunks)), *chunks]


def join(chunks: Sequence[Union[bytes, Array]]) -> bytes:
    """Returns the message: the one copy between arrays and the wire. A single piece is not copied."""
    return b"".join(cast(Iterable[bytes], chunks))  # arrays are buffers, too


def read_varint(buffer: bytes, at: int) -> Tuple[int, int]:
    """Returns the number at `at` and the position after it."""
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def read_fields(message: Type[Any], buffer: bytes, span: Span) -> Dict[str, List[Span]]:
    """Returns where the fields of a message lie in the buffer, by name, those that are repeated in their order.

    Internal: the bytes are not a valid message.
    """
    names = {field.number: field.name for field in message.DESCRIPTOR.fields}
    found: Dict[str, List[Span]] = {}
    at = span.start
    try:
        while at < span.stop:
            tag, at = read_varint(buffer, at)
            content, at = _read_content(buffer, at, tag & 7)
            if tag >> 3 in names:
                found.setdefault(names[tag >> 3], []).append(content)
    except IndexError:
        at = span.stop + 1
    if at != span.stop:
        raise Internal(f"the response is not a valid {message.DESCRIPTOR.full_name}")
    return found


def _read_content(buffer: bytes, at: int, wire_type: int) -> Tuple[Span, int]:
    """Returns the content of the field at `at` and the position after it."""
    if wire_type == _VARINT:
        value, at = read_varint(buffer, at)
        return Span(at, at, value), at
    if wire_type == _LENGTH:
        size, at = read_varint(buffer, at)
        return Span(at, at + size), at + size
    if wire_type in (_FIXED32, _FIXED64):
        size = 4 if wire_type == _FIXED32 else 8
        return Span(at, at + size), at + size
    raise Internal(f"the response has a field of the wire type {wire_type}")


def parse(message: Type[Any], buffer: bytes, span: Span) -> Any:
    """Returns a message without tensors, as protobuf reads it."""
    return message.FromString(buffer[span.start:span.stop])
