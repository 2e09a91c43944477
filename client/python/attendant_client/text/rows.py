"""Requests for one row of numbers per text: its vector, class scores, or late-interaction score."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence

import numpy as np

from .. import messages
from ..answers import Encoded
from ..errors import invalid
from ..options import EncodeOptions
from ..requests import Request, encode_request
from ..text_requests import TextRequests
from ..texts import Text, unpaired
from .tokenizer import ModelTokenizer, check_length


@dataclass(frozen=True)
class Wish:
    """Requested output. pooling: "model", "mean" or "classifier". normalize: scale vectors to length 1. truncation: the side on
    which long texts are truncated; None: refuse them. prompt, prompt_name: the prompt before each text. prompt_tokens: number of
    leading tokens to exclude from the vector, for texts tokenized here. query_vectors: token vectors of a query; the row of a text
    is then its score, for any pooling."""

    pooling: str
    normalize: bool = False
    truncation: Optional[str] = "right"
    prompt: Optional[str] = None
    prompt_name: Optional[str] = None
    prompt_tokens: int = 0
    query_vectors: Any = None


class TextRows(TextRequests[Encoded]):
    """The requests for texts that the server tokenizes, and their `rows` [n, width], in the order of the texts."""

    second = "texts"

    def __init__(self, texts: Sequence[Text], model: messages.GetModelResponse, wish: Wish) -> None:
        self._returned: EncodeOptions = {"pooling": wish.pooling, "normalize": wish.normalize, "return_hidden_states": False}
        if wish.query_vectors is not None:
            self._returned = {"query_vectors": wish.query_vectors, "task": "document", "return_hidden_states": False}
        super().__init__(texts, model, {**self._returned, "truncation": wish.truncation}, by_size=True)
        self.wish = wish
        width = 1 if wish.query_vectors is not None else {"model": model.pooled_width, "mean": model.layer.hidden_size, "classifier": model.classes}[wish.pooling]
        self.rows = np.empty((len(texts), width), np.float32)

    def make(self, group: List[int]) -> Request[Encoded]:
        texts, pairs = unpaired([self.texts[index] for index in group])
        wish = self.wish
        options: EncodeOptions = {**self._returned, "texts": texts, "text_pairs": pairs, "prompt": wish.prompt,
                                  "prompt_name": wish.prompt_name, "truncation": wish.truncation}
        return encode_request(self.model.name, **options)

    def place(self, group: List[int], answer: Encoded) -> None:
        if self.wish.truncation is None and answer.lengths is not None:
            for index, tokens in zip(group, answer.lengths):
                check_length(f"texts[{index}]", tokens, self.model.embeddings.max_sequence_length)
        self.rows[group] = answer.pooled if answer.scores is None else answer.scores[:, None]


class LocalRows(TextRows):
    """The requests for texts that are tokenized here."""

    slow = True

    def __init__(self, texts: Sequence[Text], model: messages.GetModelResponse, wish: Wish, tokenizer: ModelTokenizer) -> None:
        super().__init__(texts, model, wish)
        self._tokenizer = tokenizer

    def make(self, group: List[int]) -> Request[Encoded]:
        before = self.wish.prompt or ""
        texts = [before + text if isinstance(text, str) else (before + text[0], text[1]) for text in (self.texts[index] for index in group)]
        encoded = self._tokenizer.ids(texts, self.wish.truncation)
        if self.wish.truncation is None:
            for index, (ids, _) in zip(group, encoded):
                check_length(f"texts[{index}]", len(ids), self._tokenizer.max_length)
        types = [np.asarray(types, np.int32) for _, types in encoded]
        options: EncodeOptions = {**self._returned, "input_ids": [np.asarray(ids, np.int32) for ids, _ in encoded],
                                  "token_type_ids": types if types[0].size else None,
                                  "prompt_tokens": self.wish.prompt_tokens or None}
        return encode_request(self.model.name, **options)


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
