"""AsyncTextModel: the calls of TextModel for asyncio."""
from __future__ import annotations

import asyncio
from typing import Any, Callable, Iterable, List, Optional, Sequence, TypeVar, Union

from .. import messages
from ..aio import AsyncClient
from ..channel import DEFAULT
from ..texts import Text, as_texts, check_texts
from .progress import Progress
from .rows import TextRows, Wish
from .scores import LabelScore, Ranked
from .tasks import Tasks, as_list
from .tokenizer import Tokens

T = TypeVar("T")


class AsyncTextModel:
    """A model that takes texts, for one event loop. Arguments and calls are the same as in TextModel.

    Texts that the server does not take are tokenized on other threads, so that the loop goes on meanwhile.
    """

    def __init__(self, client: Union[AsyncClient, str] = "localhost:8001", model: str = "") -> None:
        self._client = AsyncClient(client) if isinstance(client, str) else client
        self._name = model
        self._found: Optional[Tasks] = None

    async def embed(self, texts: Union[str, Iterable[str]], *, prompt: Optional[str] = None, prompt_name: Optional[str] = None,
                    normalize: bool = False, dimensions: Optional[int] = None, truncation: Optional[str] = "model",
                    progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> Any:
        """As TextModel.embed: [n, E], or [E] for a single text."""
        given, alone = as_list(texts)
        tasks = await self._tasks()
        found = tasks.embed(given, Wish("model", normalize, tasks.side(truncation), prompt, prompt_name))
        await self._run(found, progress, timeout)
        return tasks.vectors(found, dimensions, alone)

    async def rerank(self, query: str, texts: Iterable[str], *, top_n: Optional[int] = None, raw_scores: bool = False,
                     truncation: Optional[str] = "model", progress: Optional[bool] = None,
                     timeout: Optional[float] = DEFAULT) -> List[Ranked]:
        """As TextModel.rerank."""
        texts = as_texts("texts", texts)
        tasks = await self._tasks()
        asked = tasks.query(query, tasks.side(truncation))
        vectors = None if asked is None else (await self._client.encode(tasks.model.name, **asked)).token_vectors[0]
        found = tasks.rerank(query, texts, Wish("classifier", truncation=tasks.side(truncation), query_vectors=vectors))
        await self._run(found, progress, timeout)
        return tasks.ranked(found, texts, top_n, raw_scores)

    async def classify(self, texts: Union[str, Iterable[Text]], *, raw_scores: bool = False,
                       truncation: Optional[str] = "model", progress: Optional[bool] = None,
                       timeout: Optional[float] = DEFAULT) -> List[List[LabelScore]]:
        """As TextModel.classify."""
        given, _ = as_list(texts)
        tasks = await self._tasks()
        found = tasks.classify(given, Wish("classifier", truncation=tasks.side(truncation)))
        await self._run(found, progress, timeout)
        return tasks.classified(found, raw_scores)

    async def tokens(self, text: Text, *, truncation: Optional[str] = "model") -> Tokens:
        """As TextModel.tokens."""
        found = await self._tokens("text", [text], truncation, Tokens.of)
        return (await self._tasks()).checked(found[0], truncation)

    async def count_tokens(self, texts: Iterable[Text]) -> List[int]:
        """As TextModel.count_tokens."""
        return await self._tokens("texts", as_texts("texts", texts), "model", lambda tokens: len(tokens.ids))

    async def _tasks(self) -> Tasks:
        if self._found is None:  # tasks that come meanwhile fetch it too, which does no harm
            model = await self._client.model(self._name)
            self._found = Tasks(model, None if model.takes_texts else await self._client.tokenizer(self._name))
        return self._found

    async def _tokens(self, field: str, texts: Sequence[Text], truncation: Optional[str],
                      keep: Callable[[messages.TextTokens], T]) -> List[T]:
        tasks = await self._tasks()
        check_texts(field, texts)
        side = tasks.side(truncation)
        tokenizer = tasks.tokenizer
        if tokenizer is not None:
            return await asyncio.to_thread(lambda: [keep(one) for one in tokenizer.tokens(texts, side)])
        found = tasks.tokenized(texts, side, keep)
        await self._client.send_texts(found)
        return found.found()

    async def _run(self, found: TextRows, progress: Optional[bool], timeout: Optional[float]) -> None:
        with Progress(len(found.rows), progress) as shown:
            await self._client.send_texts(found, timeout=timeout, progress=shown.add)
