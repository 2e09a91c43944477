"""Items and answers of EncodeStream."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Union, cast

from . import messages, wire
from .answers import Encoded
from .errors import AttendantError, Internal, from_status
from .requests import Request
from .wire import Span


@dataclass(frozen=True)
class Part:
    """A part of a sequence that comes in several, for models whose layers read tokens one after the other.

    request: the rows of this part, one sequence.
    sequence: a number above 0 that all its parts have.
    first_token: tokens of the sequence before this part, which is refused if they are not as many as have been computed.
    ends: the sequence ends with this part.
    """

    request: Request[Encoded]
    sequence: int
    first_token: Optional[int] = None
    ends: bool = False


StreamItem = Union[Request[Encoded], Part]


@dataclass(frozen=True)
class StreamAnswer:
    """The answer to an item of a stream.

    index: which item it was, from 0. error: why it was refused or failed, which does not end the stream; None: it was computed.
    """

    index: int
    encoded: Optional[Encoded] = None
    error: Optional[AttendantError] = None

    def result(self) -> Encoded:
        """Returns what was computed, or raises the error."""
        if self.error is not None:
            raise self.error
        return cast(Encoded, self.encoded)


class StreamCodec:
    """Writes the items of one stream and reads its answers. One thread may write while another one reads."""

    def __init__(self) -> None:
        self._sent = 0
        # How to read the answers that are still to come, by the index of their items.
        self._readers: Dict[int, Callable[..., Encoded]] = {}

    def write(self, item: StreamItem) -> bytes:
        """Returns the message of the next item."""
        part = item if isinstance(item, Part) else Part(item, 0)
        head = messages.EncodeStreamRequest(
            id=self._sent, sequence=part.sequence, first_token=part.first_token, ends=part.ends)
        self._readers[self._sent] = part.request.read
        self._sent += 1
        return wire.join([head.SerializeToString(),
                          *wire.submessage(messages.EncodeStreamRequest, "request", list(part.request.chunks))])

    def read(self, buffer: bytes) -> StreamAnswer:
        """Returns the answer in a message."""
        fields = wire.read_fields(messages.EncodeStreamResponse, buffer, Span(0, len(buffer)))
        index = fields["id"][-1].number or 0 if "id" in fields else 0
        reader: Any = self._readers.pop(index, None)
        if reader is None:
            raise Internal(f"the server answered item {index}, which was not asked for")
        if "response" in fields:
            return StreamAnswer(index, encoded=reader(buffer, span=fields["response"][-1]))
        error = wire.parse(messages.Error, buffer, fields["error"][-1]) if "error" in fields else messages.Error()
        return StreamAnswer(index, error=from_status(error.code, error.message))
