"""The parts of embed, rerank and classify before and after sending, for both kinds of clients."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, TypeVar, Union

from .. import messages
from ..errors import FailedPrecondition, refused
from ..options import EncodeOptions
from ..text_requests import TokenizedTexts
from ..texts import Text, as_texts, check_strings, check_text, check_texts
from . import scores
from .rows import LocalRows, TextRows, Wish, cut
from .scores import LabelScore, Ranked
from .tokenizer import ModelTokenizer, Tokens, check_length

T = TypeVar("T")


class Tasks:
    """One model's tasks. model: its description. found: its tokenizer files, to tokenize texts here; None: the
    server tokenizes them."""

    def __init__(self, model: messages.GetModelResponse, found: Optional[messages.GetTokenizerResponse]) -> None:
        self.model = model
        self.tokenizer = ModelTokenizer(found, model) if found is not None else None
        self.max_length = int(model.embeddings.max_sequence_length) if found is None else int(found.max_sequence_length)
        self.labels = list(model.labels if found is None else found.labels)
        # Pooling and width of text vectors.
        self.pooling, self.width = text_pooling(model)

    def side(self, truncation: Optional[str]) -> Optional[str]:
        """Returns the side on which to truncate long texts."""
        if truncation != "model":
            return truncation
        return "left" if self.model.embeddings.truncates_left else "right"

    def embed(self, texts: Sequence[str], wish: Wish) -> TextRows:
        if self.width == 0:
            raise FailedPrecondition(f"model {self.model.name} has no text vectors: its files define no pooling")
        check_strings("texts", texts)
        if self.tokenizer is not None:
            prompt = self.tokenizer.prompt(wish.prompt, wish.prompt_name)
            wish = replace(wish, prompt=prompt, prompt_tokens=self.prompt_tokens(prompt, wish.truncation))
        return self._rows(texts, replace(wish, pooling=self.pooling))

    def prompt_tokens(self, prompt: str, truncation: Optional[str]) -> int:
        """Returns the number of prompt tokens that the model excludes from the vector of each text."""
        if not prompt or self.tokenizer is None or self.pooling != "model" or not self.model.pooling.excludes_prompt:
            return 0
        # A tokenizer that truncates on the left does so in sentence-transformers too.
        if truncation == "left" and not self.model.embeddings.truncates_left:
            raise refused("truncation", f'"left" not supported by model "{self.model.name}": it excludes its prompt from pooling; '
                                        'use "right"')
        return self.tokenizer.prompt_tokens(prompt)

    def query(self, query: str, truncation: Optional[str]) -> Optional[EncodeOptions]:
        """Returns the arguments of the `encode` that makes the vectors of a query's tokens; None: the model reads pairs."""
        interacts = self.model.multi_vector and self.model.classes == 0 and self.tokenizer is None
        if self.model.classes != 1 and not interacts:
            classes = self.model.classes or "no"
            raise FailedPrecondition(f"model {self.model.name} is not a reranker: it has {classes} classes, not 1, and no token vectors")
        check_text("query", query)
        if not interacts:
            return None
        return {"texts": [query], "task": "query", "return_token_vectors": True, "return_hidden_states": False,
                "truncation": truncation}

    def rerank(self, query: str, texts: Sequence[str], wish: Wish) -> TextRows:
        check_text("query", query)
        check_strings("texts", texts)
        if wish.query_vectors is not None:
            return self._rows(texts, wish)
        return self._classes([(query, text) for text in texts], wish)

    def classify(self, texts: Sequence[Text], wish: Wish) -> TextRows:
        if self.model.classes == 0:
            raise FailedPrecondition(f"model {self.model.name} has no class scores: its checkpoint has no classification head")
        check_texts("texts", texts)
        return self._classes(texts, wish)

    def _classes(self, texts: Sequence[Text], wish: Wish) -> TextRows:
        if self.tokenizer is not None:
            wish = replace(wish, prompt=self.tokenizer.prompt(wish.prompt, wish.prompt_name))
        return self._rows(texts, wish)

    def _rows(self, texts: Sequence[Text], wish: Wish) -> TextRows:
        return TextRows(texts, self.model, wish) if self.tokenizer is None else LocalRows(texts, self.model, wish, self.tokenizer)

    def vectors(self, found: TextRows, dimensions: Optional[int], alone: bool) -> Any:
        rows = cut(found.rows, dimensions)
        return rows[0] if alone else rows

    def ranked(self, found: TextRows, texts: Sequence[str], top_n: Optional[int], raw_scores: bool) -> List[Ranked]:
        made = found.rows if raw_scores or found.wish.query_vectors is not None else scores.apply(self.model.rank_scores, found.rows)
        return scores.ranking(made[:, 0], texts, top_n)

    def classified(self, found: TextRows, raw_scores: bool) -> List[List[LabelScore]]:
        made = found.rows if raw_scores else scores.apply(self.model.class_scores, found.rows)
        return scores.label_scores(made, self.labels)

    def tokenized(self, texts: Sequence[Text], truncation: Optional[str],
                  keep: Callable[[messages.TextTokens], T]) -> TokenizedTexts[T]:
        """Returns the requests for tokens of texts that the server tokenizes."""
        return TokenizedTexts(texts, self.model, {"prompt": "", "truncation": truncation}, keep)

    def checked(self, tokens: Tokens, truncation: Optional[str]) -> Tokens:
        if truncation is None:
            check_length("text", len(tokens.ids), self.max_length)
        return tokens


def text_pooling(model: messages.GetModelResponse) -> Tuple[str, int]:
    """Returns the pooling of a model's text vectors, as in EncodeOptions, and their width; 0: none."""
    if model.text_pooling == messages.MEAN:
        return "mean", model.layer.hidden_size
    return "model", model.pooled_width


def as_list(texts: Union[str, Iterable[Any]]) -> Tuple[Sequence[Any], bool]:
    """Returns a list of texts, and whether a single text was given."""
    return ([texts], True) if isinstance(texts, str) else (as_texts("texts", texts), False)
