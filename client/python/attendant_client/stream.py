"""Items and answers of EncodeStream."""
from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union, cast

from . import messages, wire
from .answers import Encoded
from .errors import AttendantError, Internal, from_status
from .requests import Request
from .wire import Span


@dataclass(frozen=True)
class Part:
    """A chunk of a sequence, for models whose layers read tokens in order.

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
        """Returns the result, or raises the error."""
        if self.error is not None:
            raise self.error
        return cast(Encoded, self.encoded)


class StreamCodec:
    """Writes the items of one call and reads the responses. One thread may write while another one reads.

    waits: an item that a full server refuses, and says when to send it again, is kept for another stream and has no answer yet.
    Parts always have one, because the server refuses the parts after them too.
    """

    def __init__(self, waits: bool = False) -> None:
        self._waits = waits
        self._sent = 0
        self._unanswered: Dict[int, StreamItem] = {}
        self._refused: Dict[int, StreamItem] = {}
        self._refusal: Optional[AttendantError] = None

    def write(self, item: StreamItem) -> bytes:
        """Returns the message of the next item."""
        index = self._sent
        self._sent += 1
        self._unanswered[index] = item
        return _message(index, item)

    def write_again(self) -> List[bytes]:
        """Returns the messages of the items that were kept."""
        again, self._refused, self._refusal = self._refused, {}, None
        self._unanswered.update(again)
        return [_message(index, item) for index, item in again.items()]

    def read(self, buffer: bytes) -> Optional[StreamAnswer]:
        """Returns the response in a message; None if the item is kept."""
        fields = wire.read_fields(messages.EncodeStreamResponse, buffer, Span(0, len(buffer)))
        index = fields["id"][-1].number or 0 if "id" in fields else 0
        item = self._unanswered.pop(index, None)
        if item is None:
            raise Internal(f"the server answered item {index}, which was not requested")
        if "response" in fields:
            reader: Any = item.request.read if isinstance(item, Part) else item.read
            return StreamAnswer(index, encoded=reader(buffer, span=fields["response"][-1]))
        said = wire.parse(messages.Error, buffer, fields["error"][-1]) if "error" in fields else messages.Error()
        error = from_status(said.code, said.message, said.reason, said.retry_pushback_ms)
        if not self._waits or error.retry_after is None or isinstance(item, Part):
            return StreamAnswer(index, error=error)
        self._keep({index: item}, error)
        return None

    def lose(self, error: AttendantError) -> None:
        """Keeps the items without a response after the stream ended with this error, or raises it."""
        lost, self._unanswered = self._unanswered, {}
        if not self._waits or error.retry_after is None or any(isinstance(item, Part) for item in lost.values()):
            raise error
        self._keep(lost, error)

    def refusal(self) -> Optional[AttendantError]:
        """Returns the error that says when to send the kept items; None if there are none."""
        return self._refusal

    def _keep(self, items: Dict[int, StreamItem], error: AttendantError) -> None:
        self._refused.update(items)
        if self._refusal is None or (self._refusal.retry_after or 0) < (error.retry_after or 0):
            self._refusal = error


def _message(index: int, item: StreamItem) -> bytes:
    part = item if isinstance(item, Part) else Part(item, 0)
    head = messages.EncodeStreamRequest(id=index, sequence=part.sequence, first_token=part.first_token, ends=part.ends)
    return wire.join([head.SerializeToString(),
                      *wire.submessage(messages.EncodeStreamRequest, "request", list(part.request.chunks))])


class ItemWriter:
    """The messages of an iterable's items, for one stream after the other. Each goes on where the last one has ended."""

    def __init__(self, codec: StreamCodec, items: Iterable[StreamItem]) -> None:
        self._codec = codec
        self._items = iter(items)
        self._lock = threading.Lock()
        self._streams = 0
        # An exception of the items, to raise in the caller's thread instead of gRPC's.
        self.failure: Optional[Exception] = None

    def messages(self) -> Iterator[bytes]:
        """Yields the messages of the next stream, on gRPC's thread."""
        with self._lock:
            self._streams += 1
            stream, again = self._streams, self._codec.write_again()
        yield from again
        while True:
            with self._lock:
                if self._streams != stream:
                    return
                try:
                    message = self._codec.write(next(self._items))
                except StopIteration:
                    return
                except Exception as failure:
                    self.failure = failure
                    return
            yield message

    def lose(self, error: AttendantError) -> None:
        """As StreamCodec.lose, of the latest stream, which does not accept more items."""
        with self._lock:
            self._streams += 1
            self._codec.lose(error)
