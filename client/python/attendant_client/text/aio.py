"""AsyncTextModel: the calls of TextModel for asyncio."""
from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Iterable, List, Optional, Sequence, Union

from ..aio import AsyncClient
from ..answers import Encoded
from ..channel import DEFAULT
from ..requests import Request
from .plan import Plan, Wish
from .progress import Progress
from .scores import LabelScore, Ranked
from .tasks import Tasks, as_list, as_texts
from .tokenizer import Text, Tokens


class AsyncTextModel:
    """A model that takes texts, for one event loop. Its arguments and calls are those of TextModel.

    All but a few short texts are tokenized on other threads, so that the loop goes on meanwhile.
    """

    def __init__(self, client: Union[AsyncClient, str] = "localhost:8001", model: str = "") -> None:
        self._client = AsyncClient(client) if isinstance(client, str) else client
        self._name = model
        self._found: Optional[Tasks] = None

    async def embed(self, texts: Union[str, Iterable[str]], *, prompt: Optional[str] = None, prompt_name: Optional[str] = None,
                    normalize: bool = False, dimensions: Optional[int] = None, truncation: Optional[str] = "right",
                    progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> Any:
        """As TextModel.embed: [n, E], or [E] of a text alone."""
        given, alone = as_list(texts)
        tasks = await self._tasks()
        plan = tasks.plan_embed(given, prompt, prompt_name, Wish("model", normalize, truncation))
        await run(self._client, plan, progress, timeout)
        return tasks.vectors(plan, dimensions, alone)

    async def rerank(self, query: str, texts: Iterable[str], *, top_n: Optional[int] = None, raw_scores: bool = False,
                     truncation: Optional[str] = "right", progress: Optional[bool] = None,
                     timeout: Optional[float] = DEFAULT) -> List[Ranked]:
        """As TextModel.rerank."""
        texts = as_texts("texts", texts)
        tasks = await self._tasks()
        plan = tasks.plan_rerank(query, texts, Wish("classifier", truncation=truncation))
        await run(self._client, plan, progress, timeout)
        return tasks.ranked(plan, texts, top_n, raw_scores)

    async def classify(self, texts: Union[str, Iterable[Text]], *, raw_scores: bool = False,
                       truncation: Optional[str] = "right", progress: Optional[bool] = None,
                       timeout: Optional[float] = DEFAULT) -> List[List[LabelScore]]:
        """As TextModel.classify."""
        given, _ = as_list(texts)
        tasks = await self._tasks()
        plan = tasks.plan_classify(given, Wish("classifier", truncation=truncation))
        await run(self._client, plan, progress, timeout)
        return tasks.classified(plan, raw_scores)

    async def tokens(self, text: Text, *, truncation: Optional[str] = "right") -> Tokens:
        """As TextModel.tokens."""
        return (await self._tasks()).tokens(text, truncation)

    async def count_tokens(self, texts: Iterable[Text]) -> List[int]:
        """As TextModel.count_tokens."""
        texts = as_texts("texts", texts)
        tasks = await self._tasks()
        return await asyncio.to_thread(tasks.counts, texts)

    async def _tasks(self) -> Tasks:
        if self._found is None:  # tasks that come meanwhile fetch it too, which does no harm
            model, found = await asyncio.gather(self._client.model(self._name), self._client.tokenizer(self._name))
            self._found = Tasks(model, found)
        return self._found


async def _requests(plan: Plan, window: Sequence[int]) -> List[Request[Encoded]]:
    """The requests of a window."""
    return plan.requests(window) if plan.quick(window) else await asyncio.to_thread(plan.requests, window)


async def run(client: AsyncClient, plan: Plan, progress: Optional[bool], timeout: Optional[float]) -> None:
    """Sends the requests of a plan and places their answers."""
    windows = list(plan.windows())
    first = await _requests(plan, windows[0]) if windows else []
    if len(windows) <= 1 and len(first) <= 1:
        for request in first:
            plan.place(0, await client.send(request, timeout=timeout))
        return

    async def requests() -> AsyncIterator[Request[Encoded]]:
        for request in first:
            yield request
        for window in windows[1:]:
            for request in await _requests(plan, window):
                yield request

    with Progress(len(plan.rows), progress) as shown:
        async for answer in client.encode_stream(requests(), timeout=None if timeout == DEFAULT else timeout):
            shown.add(plan.place(answer.index, answer.result()))
