"""Plan: which requests a list of texts becomes, and where their answers go. It neither sends nor waits."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np

from .. import messages
from ..answers import Encoded
from ..division import groups
from ..errors import invalid
from ..requests import Request, encode_request
from .tokenizer import ModelTokenizer, Text

# Texts that are tokenized together, while the server computes those before.
WINDOW = 512
# Texts of no more characters together are tokenized in about half a millisecond, which is not worth the CPU time of handing them
# to another thread and back.
FEW_CHARACTERS = 2000


@dataclass(frozen=True)
class Wish:
    """What is wanted of texts. pooling: "model", "mean" or "classifier". normalize: scale vectors to length 1. truncation: the side on
    which long texts are cut; None: they are refused. field: what messages call the texts. prompt_tokens: how many of each text's
    first tokens are left out of its vector."""

    pooling: str
    normalize: bool = False
    truncation: Optional[str] = "right"
    field: str = "texts"
    prompt_tokens: int = 0


class Plan:
    """The requests for `texts`, their `rows` [n, width], in the order of the texts, and the number of `tokens` sent so far.

    Texts of similar lengths go together, long ones first, in requests as large as the server's batches.
    """

    def __init__(self, model: messages.GetModelResponse, tokenizer: ModelTokenizer, texts: Sequence[Text], wish: Wish) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._texts = texts
        self._wish = wish
        self._members: List[List[int]] = []  # of each request that has been made: the indices of its texts
        width = {"model": model.pooled_width, "mean": model.layer.hidden_size, "classifier": model.classes}[wish.pooling]
        self.rows = np.empty((len(texts), width), np.float32)
        self.tokens = 0

    def windows(self) -> Iterator[List[int]]:
        """Yields the indices of texts that are to be tokenized together."""
        order = sorted(range(len(self._texts)), key=lambda index: -_characters(self._texts[index]))
        for first in range(0, len(order), WINDOW):
            yield order[first:first + WINDOW]

    def quick(self, window: Sequence[int]) -> bool:
        """Whether `requests` takes no time that an event loop would miss."""
        few = sum(_characters(self._texts[index]) for index in window) <= FEW_CHARACTERS
        return few and self._tokenizer.loaded(self._wish.truncation)

    def requests(self, window: Sequence[int]) -> List[Request[Encoded]]:
        """Tokenizes the texts of a window. The n-th request that the plan has made is the n-th for `place`."""
        texts = [self._texts[index] for index in window]
        encoded = self._tokenizer.ids(texts, self._wish.truncation)
        if self._wish.truncation is None:
            for index, (ids, _) in zip(window, encoded):
                self._tokenizer.check_length(f"{self._wish.field}[{index}]", len(ids))
        return [self._request([window[place] for place in group], [encoded[place] for place in group])
                for group in groups([len(ids) for ids, _ in encoded], self._most_tokens())]

    def place(self, number: int, answer: Encoded) -> int:
        """Puts the rows of the answer to a request where they belong, and returns how many they are."""
        members = self._members[number]
        self.rows[members] = answer.pooled
        return len(members)

    def _most_tokens(self) -> int:
        limits = self._model.limits
        return min(limits.max_batch_tokens, limits.max_request_tokens)

    def _request(self, members: List[int], encoded: Sequence[Any]) -> Request[Encoded]:
        self._members.append(members)
        self.tokens += sum(len(ids) for ids, _ in encoded)
        types = [np.asarray(types, np.int32) for _, types in encoded]
        return encode_request(
            self._model.name, input_ids=[np.asarray(ids, np.int32) for ids, _ in encoded],
            token_type_ids=types if types[0].size else None, pooling=self._wish.pooling, normalize=self._wish.normalize,
            return_hidden_states=False, prompt_tokens=self._wish.prompt_tokens or None)


def cut(rows: Any, dimensions: Optional[int]) -> Any:
    """Returns the first `dimensions` columns of vectors [n, E]; those that had length 1 have it again."""
    if dimensions is None:
        return rows
    if not 1 <= dimensions <= rows.shape[1]:
        raise invalid("dimensions", f"1..{rows.shape[1]}, the width of the model's vectors", dimensions)
    unit = np.abs(np.linalg.norm(rows, axis=1, keepdims=True) - 1) < 1e-3
    rows = rows[:, :dimensions]
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return np.where(unit, rows / lengths, rows).astype(np.float32)


def _characters(text: Text) -> int:
    return len(text) if isinstance(text, str) else len(text[0]) + len(text[1])
