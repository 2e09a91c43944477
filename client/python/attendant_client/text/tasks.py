"""What embed, rerank and classify do before and after the texts are sent, for the clients of both kinds."""
from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any, Iterable, List, Optional, Sequence, Tuple, TypeVar, Union

from .. import messages
from ..errors import FailedPrecondition, invalid
from . import scores
from .plan import Plan, Wish, cut
from .scores import LabelScore, Ranked
from .tokenizer import ModelTokenizer, Text, Tokens, check_text, check_texts

T = TypeVar("T")


class Tasks:
    """One model's tasks. model: its description. found: what the server has answered of its tokenizer."""

    def __init__(self, model: messages.GetModelResponse, found: messages.GetTokenizerResponse) -> None:
        self.model = model
        self.tokenizer = ModelTokenizer(found, model)
        self._found = found
        self.labels = list(found.labels)
        # How the vectors of texts are pooled, and their width.
        self.pooling, self.width = text_pooling(model)

    def plan_embed(self, texts: Sequence[str], prompt: Optional[str], prompt_name: Optional[str], wish: Wish) -> Plan:
        if self.width == 0:
            raise FailedPrecondition(f"model {self.model.name} makes no vector of a text: its files say nothing about pooling")
        check_strings(wish.field, texts)
        before = self.tokenizer.prompt(prompt, prompt_name)
        return Plan(self.model, self.tokenizer, [before + text for text in texts] if before else texts,
                    replace(wish, pooling=self.pooling, prompt_tokens=self.prompt_tokens(before, wish.truncation)))

    def prompt_tokens(self, prompt: str, truncation: Optional[str]) -> int:
        """Returns how many tokens of each text the model leaves out of its vector, as they are a prompt's."""
        if not prompt or self.pooling != "model" or not self.model.pooling.excludes_prompt:
            return 0
        if truncation == "left":
            raise invalid("truncation", '"right" or None with a prompt that the model leaves out of its vectors', '"left"')
        return self.tokenizer.prompt_tokens(prompt)

    def plan_rerank(self, query: str, texts: Sequence[str], wish: Wish) -> Plan:
        if self.model.classes != 1:
            raise FailedPrecondition(f"model {self.model.name} is no reranker: it has {self.model.classes or 'no'} classes, not 1")
        check_strings("query", [query])
        check_strings(wish.field, texts)
        return Plan(self.model, self.tokenizer, [(query, text) for text in texts], wish)

    def plan_classify(self, texts: Sequence[Text], wish: Wish) -> Plan:
        if self.model.classes == 0:
            raise FailedPrecondition(f"model {self.model.name} scores no classes: its checkpoint has no classification head")
        check_texts(wish.field, texts)
        return Plan(self.model, self.tokenizer, texts, wish)

    def vectors(self, plan: Plan, dimensions: Optional[int], alone: bool) -> Any:
        rows = cut(plan.rows, dimensions)
        return rows[0] if alone else rows

    def ranked(self, plan: Plan, texts: Sequence[str], top_n: Optional[int], raw_scores: bool) -> List[Ranked]:
        made = plan.rows if raw_scores else scores.apply(self._found.rank_scores, plan.rows)
        return scores.ranking(made[:, 0], texts, top_n)

    def classified(self, plan: Plan, raw_scores: bool) -> List[List[LabelScore]]:
        made = plan.rows if raw_scores else scores.apply(self._found.class_scores, plan.rows)
        return scores.label_scores(made, self.labels)

    def tokens(self, text: Text, truncation: Optional[str]) -> Tokens:
        check_texts("text", [text])
        made = self.tokenizer.tokens(text, truncation)
        if truncation is None:
            self.tokenizer.check_length("text", len(made.ids))
        return made

    def counts(self, texts: Sequence[Text]) -> List[int]:
        check_texts("texts", texts)
        return [len(ids) for ids, _ in self.tokenizer.ids(texts)]


def text_pooling(model: messages.GetModelResponse) -> Tuple[str, int]:
    """Returns how a model's vectors of texts are pooled, as in EncodeOptions, and their width; 0: it makes none."""
    if model.text_pooling == messages.MEAN:
        return "mean", model.layer.hidden_size
    return "model", model.pooled_width


def as_texts(field: str, texts: Iterable[T]) -> Sequence[T]:
    """Returns a list of texts, which may come from a generator or a column of a table."""
    if isinstance(texts, (list, tuple)):
        return texts
    # A text has letters, a dictionary keys, and a set no order.
    if isinstance(texts, (str, bytes, bytearray, Mapping, Set)) or not isinstance(texts, Iterable):
        raise invalid(field, "a list of texts", f"{type(texts).__name__} {texts!r:.60}")
    return list(texts)


def as_list(texts: Union[str, Iterable[Any]]) -> Tuple[Sequence[Any], bool]:
    """Returns a list of texts, and whether a text alone was given."""
    return ([texts], True) if isinstance(texts, str) else (as_texts("texts", texts), False)


def check_strings(field: str, texts: Sequence[str]) -> None:
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise invalid(f"{field}[{index}]", "a text", f"{type(text).__name__} {text!r:.60}")
        check_text(f"{field}[{index}]", text)
