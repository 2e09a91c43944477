"""Divides lists of texts into requests, and assigns the responses to the texts."""
from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, Sequence, TypeVar, cast

from . import messages
from .answers import Encoded
from .batch import Batch, Sequences
from .errors import AttendantError, InvalidArgument, invalid, refused
from .joining import Joiner
from .options import EncodeOptions, TokenizeOptions, check_names
from .parts import HEAD_BYTES, Load, Room
from .requests import Request, encode_request, tokenize_request
from .stream import StreamAnswer
from .texts import Text, paired, unpaired

A = TypeVar("A")
T = TypeVar("T")
# The most texts in a request.
MOST_TEXTS = 1024
# Bytes of a token, for estimates: only the server counts tokens.
TOKEN_BYTES = 4
# Overhead of a text in bytes.
_TEXT_HEAD_BYTES = 8
_ABOUT_ROWS = ("query_rows", "attention_bias", "hidden_states", "input_ids", "features")
# Errors of a request that may succeed in two halves.
_TOO_LARGE = re.compile(r"(texts|token_ids\.shape): expected at most |the (answer|response|request) (would|could) take ")
_INDEX = re.compile(r"\b(texts|text_pairs)\[(\d+)\]")


def bytes_of(text: Text) -> int:
    if isinstance(text, str):
        return len(text) if text.isascii() else len(text.encode())
    return bytes_of(text[0]) + bytes_of(text[1])


class TextRequests(ABC, Generic[A]):
    """The requests for a list of texts, about as large as the server's batches. If a request turns out to be too large, its halves
    replace it in the next round.

    model: its description. options: the `encode` options for outputs, and `truncation`. by_size: texts of similar size go
    together, long ones first.
    """

    # Whether EncodeStream takes the requests too, and whether making one takes time that an event loop would miss.
    streams = True
    slow = False
    # What errors call a second text of a pair.
    second = "text_pairs"

    def __init__(self, texts: Sequence[Text], model: messages.GetModelResponse, options: Mapping[str, Any],
                 by_size: bool = False) -> None:
        self.model = model
        self.texts = texts
        sizes = [bytes_of(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda index: -sizes[index]) if by_size else range(len(texts))
        # Of each request of this round, the indices of its texts.
        self.groups = list(_groups(texts, sizes, order, _room(sizes, model, options), model.limits))
        self._refused: List[List[int]] = []

    @property
    def path(self) -> str:
        return messages.method_path("Encode" if self.streams else "Tokenize")

    @abstractmethod
    def make(self, group: List[int]) -> Request[A]:
        """Returns the request for some of the texts."""

    @abstractmethod
    def place(self, group: List[int], answer: A) -> None:
        """Keeps the response to a request."""

    def requests(self) -> Iterator[Request[A]]:
        return (self.make(group) for group in self.groups)

    def take(self, answer: StreamAnswer) -> int:
        """Takes the response to a request of this round. Returns how many texts are done. Raises an error that halves would meet
        too."""
        group, error = self.groups[answer.index], answer.error
        if error is None:
            self.place(group, cast(A, answer.encoded))
            return len(group)
        if len(group) == 1 or not _TOO_LARGE.match(error.message):
            raise self._renamed(error, group)
        middle = len(group) // 2
        self._refused += [group[:middle], group[middle:]]
        return 0

    def next_round(self) -> None:
        self.groups, self._refused = self._refused, []

    def _renamed(self, error: AttendantError, group: List[int]) -> AttendantError:
        """Returns the error with the indices that the caller knows."""
        def name(found: re.Match[str]) -> str:
            index = int(found[2])
            field = found[1] if found[1] == "texts" else self.second
            return f"{field}[{group[index]}]" if index < len(group) else found[0]

        message = _INDEX.sub(name, error.message)
        if len(group) == 1 and _TOO_LARGE.match(message):
            message = f"texts[{group[0]}]: " + message.split(": ", 1)[-1]
        return type(error)(message, code=error.code, reason=error.reason, retry_after=error.retry_after)


def _room(sizes: Sequence[int], model: messages.GetModelResponse, options: Mapping[str, Any]) -> Room:
    longest = model.embeddings.max_sequence_length if options.get("truncation") else 0
    tokens = [size // TOKEN_BYTES + 2 for size in sizes]
    return Room(options, Batch("texts", Sequences([min(count, longest or count) for count in tokens])), model)


def _groups(texts: Sequence[Text], sizes: Sequence[int], order: Sequence[int], room: Room,
            limits: messages.Limits) -> Iterator[List[int]]:
    most_tokens = min(limits.max_batch_tokens, limits.max_request_tokens)
    most_bytes = limits.max_request_bytes - HEAD_BYTES
    group: List[int] = []
    load, size = Load(), 0
    for index in order:
        grown, size = room.grown(load, index), size + sizes[index] + _TEXT_HEAD_BYTES
        if group and (len(group) == MOST_TEXTS or size > most_bytes or not room.fits(grown, most_tokens)
                      or isinstance(texts[index], str) != isinstance(texts[group[0]], str)):
            yield group
            group, grown, size = [], room.grown(Load(), index), sizes[index] + _TEXT_HEAD_BYTES
        group.append(index)
        load = grown
    if group:
        yield group


def _check_takes_texts(model: messages.GetModelResponse) -> None:
    if not model.takes_texts:
        why = model.why_no_texts or "the server does not support texts"
        raise refused("texts", f'not supported by model "{model.name}": {why}')


def divides_texts(options: Mapping[str, Any]) -> bool:
    """Whether an `encode` with these options may become several requests with texts: none of them is about rows of tokens."""
    return options.get("texts") is not None and all(options.get(name) is None for name in _ABOUT_ROWS)


class EncodedTexts(TextRequests[Encoded]):
    """The texts of one `encode`."""

    def __init__(self, model: messages.GetModelResponse, options: EncodeOptions) -> None:
        texts = paired(options["texts"], options.get("text_pairs"))
        _check_takes_texts(model)
        if not texts:
            raise invalid("texts", "at least one text", "an empty list")
        check_names(options, EncodeOptions)
        super().__init__(texts, model, options)
        self._options = options
        self._found: Dict[int, Encoded] = {}

    def make(self, group: List[int]) -> Request[Encoded]:
        texts, pairs = unpaired([self.texts[index] for index in group])
        options: EncodeOptions = {**self._options, "texts": texts, "text_pairs": pairs}
        return encode_request(self.model.name, **options)

    def place(self, group: List[int], answer: Encoded) -> None:
        self._found[group[0]] = answer

    def joined(self) -> Encoded:
        """Returns the response to all of them."""
        found = [answer for _, answer in sorted(self._found.items())]
        return found[0] if len(found) == 1 else Joiner(0, [], self._options.get("attention_top_k") or 0).encoded(found)


class TokenizedTexts(TextRequests[messages.TokenizeResponse], Generic[T]):
    """The texts of one `tokenize`. keep: makes what is `found` of a text's tokens."""

    streams = False

    def __init__(self, texts: Sequence[Text], model: messages.GetModelResponse, options: TokenizeOptions,
                 keep: Callable[[messages.TextTokens], T]) -> None:
        _check_takes_texts(model)
        check_names(options, TokenizeOptions)
        super().__init__(texts, model, {"return_hidden_states": False, **options})
        self._options = options
        self._keep = keep
        self._found: Dict[int, List[T]] = {}

    def make(self, group: List[int]) -> Request[messages.TokenizeResponse]:
        texts, pairs = unpaired([self.texts[index] for index in group])
        return tokenize_request(self.model.name, texts, pairs, self._options)

    def place(self, group: List[int], answer: messages.TokenizeResponse) -> None:
        self._found[group[0]] = [self._keep(one) for one in answer.texts]

    def found(self) -> List[T]:
        """Returns the kept results, in the order of the texts."""
        return [one for _, kept in sorted(self._found.items()) for one in kept]
