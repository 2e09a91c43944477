"""Class scores, from the output of a classification head."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence

import numpy as np

from .. import messages

# From a head's outputs to scores: messages.SCORES_SOFTMAX, …
ScoreFunction = int


@dataclass(frozen=True)
class LabelScore:
    """label: the class's name, or LABEL_i where the checkpoint does not name it. score: its probability, where the checkpoint
    has probabilities, or the raw score."""

    label: str
    score: float


@dataclass(frozen=True)
class Ranked:
    """index: position of the text in the list. score: relevance to the query, from 0 to 1 unless the checkpoint says
    otherwise, or the raw score."""

    index: int
    score: float
    text: str


def apply(function: ScoreFunction, outputs: Any) -> Any:
    """Returns scores [n, classes] float64 of a head's outputs [n, classes]. SCORES_UNKNOWN, of older servers: a sigmoid of a
    single class, else a softmax."""
    exact = np.asarray(outputs, np.float64)
    if function == messages.SCORES_PLAIN:
        return exact
    if function == messages.SCORES_SIGMOID or (function == messages.SCORES_UNKNOWN and exact.shape[1] == 1):
        # Of the magnitude, so that nothing overflows.
        small = np.exp(-np.abs(exact))
        return np.where(exact >= 0, 1 / (1 + small), small / (1 + small))
    exponents = np.exp(exact - exact.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def label_scores(scores: Any, labels: Sequence[str]) -> List[List[LabelScore]]:
    """Returns for each row of [n, classes] its classes, best first."""
    names = [*labels, *(f"LABEL_{index}" for index in range(len(labels), scores.shape[1]))]
    return [[LabelScore(names[index], float(row[index])) for index in np.argsort(-row, kind="stable")] for row in scores]


def ranking(scores: Any, texts: Sequence[str], top_n: Optional[int]) -> List[Ranked]:
    """Returns the texts by their scores [n], best first; equal ones in their order. top_n: only so many."""
    order = np.argsort(-np.asarray(scores), kind="stable")[:top_n]
    return [Ranked(int(index), float(scores[index]), texts[index]) for index in order]
