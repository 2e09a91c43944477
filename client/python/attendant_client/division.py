"""Division of requests with more sequences than the server accepts in one request."""
from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from . import messages
from .answers import Attended, Encoded
from .arrays import all_materialized
from .batch import batch_of
from .joining import Joiner
from .parts import Part, divide


class Division:
    """A request and, if it exceeds the server's limits, the smaller requests that replace it.

    options: the arguments of the request, with iterators read into lists. parts: the replacements; empty if it fits.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = all_materialized(options)
        self.parts: List[Part] = []
        self._batch = batch_of(self.options)

    def may_be_needed(self) -> bool:
        return self._batch is not None

    def fit(self, model: messages.GetModelResponse) -> None:
        """Divides the request to fit the limits of this model."""
        if self._batch is not None:
            self._batch = self._batch.in_patches(model)
            self.parts = divide(self.options, self._batch, model)

    def join_encoded(self, found: Sequence[Encoded]) -> Encoded:
        """Joins the responses to the parts, given in order."""
        return self._joiner().encoded(found)

    def join_attended(self, found: Sequence[Attended]) -> Attended:
        return self._joiner().attended(found)

    def _joiner(self) -> Joiner:
        axis = self._batch.rows.axis if self._batch is not None else None
        return Joiner(axis or 0, [part.wanted for part in self.parts], self.options.get("attention_top_k") or 0)
