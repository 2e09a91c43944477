"""Scores of pairs and of classes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple, cast

from ..text import LabelScore, Ranked, Text, rows
from .exchange import Call
from .models import Served
from .numbers import check_finite


@dataclass(frozen=True)
class Wish:
    """How scores are wanted. field: the member of the request that has the texts.

    truncation: the side on which texts that are too long are cut; None: they are refused. raw_scores: what the model's head
    says, without the function that makes probabilities of it. top_n: only so many of the best; None: all.
    """

    field: str
    truncation: Optional[str] = "right"
    raw_scores: bool = False
    top_n: Optional[int] = None


async def rerank(call: Call, served: Served, query: str, texts: Sequence[str], wish: Wish) -> Tuple[List[Ranked], int]:
    """Returns the texts by how well they fit the query, best first, and how many tokens were computed."""
    made = served.tasks.rerank(query, texts, _text_wish(wish))
    await _run(call, made)
    return served.tasks.ranked(made, texts, wish.top_n, wish.raw_scores), cast(rows.LocalRows, made).tokens


async def classify(call: Call, served: Served, texts: Sequence[Text], wish: Wish) -> List[List[LabelScore]]:
    """Returns for each text, or pair of texts, its classes, best first."""
    made = served.tasks.classify(texts, _text_wish(wish))
    await _run(call, made)
    return [scores[:wish.top_n] for scores in served.tasks.classified(made, wish.raw_scores)]


def _text_wish(wish: Wish) -> rows.Wish:
    return rows.Wish("classifier", truncation=wish.truncation, field=wish.field)


async def _run(call: Call, made: rows.TextRows) -> None:
    await call.front.client.send_texts(made, timeout=call.remaining())
    check_finite(made.rows)
