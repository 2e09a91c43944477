"""The models that callers may name, and what each of them can do."""
from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

from .. import messages
from ..aio import AsyncClient
from ..errors import NotFound
from ..text.tasks import Tasks
from ..text.tokenizer import ModelTokenizer
from .refusals import INVALID, NO_MODEL, UNFIT, Refusal

# For so long, what is known of a model is taken to be true of the one that is served now.
FRESH_SECONDS = 5.0


@dataclass(frozen=True)
class Served:
    """A model for texts, under the name that callers use."""

    name: str
    description: messages.GetModelResponse
    tasks: Tasks

    @property
    def tokenizer(self) -> ModelTokenizer:
        assert self.tasks.tokenizer is not None
        return self.tasks.tokenizer

    def embeds(self) -> bool:
        # What a classifier pools is for its classes.
        return self.tasks.width > 0 and self.description.classes == 0

    def classifies(self) -> bool:
        return self.description.classes > 0

    def reranks(self) -> bool:
        return self.description.classes == 1


@dataclass(frozen=True)
class Purpose:
    """What a route needs a model for. sentence: what follows on "a model that …" if it fits."""

    sentence: str
    fits: Callable[[Served], bool]


ANY = Purpose("takes texts", lambda served: True)
EMBED = Purpose("makes one vector of a text", Served.embeds)
CLASSIFY = Purpose("has a head that scores classes", Served.classifies)
RERANK = Purpose("is a reranker, which scores one class", Served.reranks)


class Models:
    """The models of a server, for one event loop. offered: as in Settings. clock: seconds."""

    def __init__(self, client: AsyncClient, offered: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._offered = offered
        self._clock = clock
        self._lock = asyncio.Lock()
        self._known: Dict[str, Tuple[float, Served]] = {}  # with the time when it was last asked for
        self._listed: Tuple[float, List[Served]] = (-FRESH_SECONDS, [])

    async def find(self, name: str) -> Served:
        """Returns the model of this name. NotFound, Refusal: there is none, or it takes no texts."""
        if self._offered and name not in self._offered:
            raise Refusal(NO_MODEL, f'model: expected one of {", ".join(self._offered)}; got "{name}"', "model")
        async with self._lock:  # so that requests which come together ask for it once
            return await self._find(name)

    async def _find(self, name: str) -> Served:
        known = self._known.get(name)
        if known and self._clock() - known[0] < FRESH_SECONDS:
            return known[1]
        description = await self._client.model(self._offered.get(name, name))
        if known and known[1].description.model_version == description.model_version:
            made = known[1]
        else:  # a new version may have another tokenizer
            made = Served(name, description, Tasks(description, await self._client.tokenizer(description.name)))
        self._known[name] = (self._clock(), made)
        return made

    async def all(self) -> Sequence[Served]:
        """Returns the models that take texts."""
        checked, found = self._listed
        if self._clock() - checked < FRESH_SECONDS:
            return found
        found = []
        for name in self._offered or await self._client.models():
            try:
                found.append(await self.find(name))
            except NotFound:
                continue  # it has no tokenizer, it is gone since, or the server has never had it
        self._listed = (self._clock(), found)
        return found

    async def choose(self, name: str, purpose: Purpose) -> Served:
        """Returns the model of this name or, if it is empty, the only one that fits. Refusal: there is none, or several."""
        if name:
            served = await self.find(name)
            if not purpose.fits(served):
                raise Refusal(UNFIT, f'model: expected one that {purpose.sentence}; "{name}" does not', "model")
            return served
        fitting = [served for served in await self.all() if purpose.fits(served)]
        if not fitting:
            raise Refusal(UNFIT, f"model: expected one that {purpose.sentence}; none that is served does", "model")
        if len(fitting) > 1:
            names = ", ".join(served.name for served in fitting)
            raise Refusal(INVALID, f"model: expected one of {names}, in the body or as /models/NAME/…; got none", "model")
        return fitting[0]
