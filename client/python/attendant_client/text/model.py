"""TextModel: calls that wait for their answer."""
from __future__ import annotations

import threading
from itertools import chain
from typing import Any, Iterable, List, Optional, Sequence, Union

from ..channel import DEFAULT
from ..client import Client
from .plan import Plan, Wish
from .progress import Progress
from .scores import LabelScore, Ranked
from .tasks import Tasks, as_list, as_texts
from .tokenizer import Text, Tokens


class TextModel:
    """A model that takes texts. Threads may share it.

    client: a Client, or the address of a server. model: its name; empty: the only one that is served.

    The model's description and tokenizer are fetched once, with the first call. NotFound: there is no such model, or its folder
    has no tokenizer.json that can be read. FailedPrecondition: the package tokenizers cannot read it.
    """

    def __init__(self, client: Union[Client, str] = "localhost:8001", model: str = "") -> None:
        self._client = Client(client) if isinstance(client, str) else client
        self._name = model
        self._lock = threading.Lock()
        self._found: Optional[Tasks] = None

    @property
    def name(self) -> str:
        """The model's name."""
        return str(self._tasks().model.name)

    @property
    def max_length(self) -> int:
        """Tokens of the longest text, special ones included; 0: any. Longer ones are cut."""
        return self._tasks().tokenizer.max_length

    def embed(self, texts: Union[str, Iterable[str]], *, prompt: Optional[str] = None, prompt_name: Optional[str] = None,
              normalize: bool = False, dimensions: Optional[int] = None, truncation: Optional[str] = "right",
              progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> Any:
        """Returns the vectors of texts, [n, E] float32, or [E] of a text alone, pooled as the model's files say.

        prompt: goes before each text. prompt_name: one of the model's own prompts instead; neither: its default one, if any.
        normalize: scale vectors to length 1 even if the model does not. dimensions: the first numbers of each alone; what had
            length 1 has it again. truncation: "right" or "left", where long texts are cut; None: they are refused.
        progress: show a bar; None: for long lists, on a terminal. timeout: seconds for all of it.
        """
        given, alone = as_list(texts)
        tasks = self._tasks()
        plan = tasks.plan_embed(given, prompt, prompt_name, Wish("model", normalize, truncation))
        self._run(plan, progress, timeout)
        return tasks.vectors(plan, dimensions, alone)

    def rerank(self, query: str, texts: Iterable[str], *, top_n: Optional[int] = None, raw_scores: bool = False,
               truncation: Optional[str] = "right", progress: Optional[bool] = None,
               timeout: Optional[float] = DEFAULT) -> List[Ranked]:
        """Returns the texts by how well they fit the query, best first. For models with one class.

        top_n: only so many. raw_scores: what the model's head says, without the function that
            brings it to 0..1, or that a CrossEncoder was saved with.
        """
        texts = as_texts("texts", texts)
        tasks = self._tasks()
        plan = tasks.plan_rerank(query, texts, Wish("classifier", truncation=truncation))
        self._run(plan, progress, timeout)
        return tasks.ranked(plan, texts, top_n, raw_scores)

    def classify(self, texts: Union[str, Iterable[Text]], *, raw_scores: bool = False, truncation: Optional[str] = "right",
                 progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> List[List[LabelScore]]:
        """Returns for each text, or pair of texts, all classes with their scores, best first: probabilities of one class among
        all, or of each by itself, or the values of a regression, as the model's config.json says.

        raw_scores: what the model's head says, without the softmax or sigmoid.
        """
        given, _ = as_list(texts)
        tasks = self._tasks()
        plan = tasks.plan_classify(given, Wish("classifier", truncation=truncation))
        self._run(plan, progress, timeout)
        return tasks.classified(plan, raw_scores)

    def tokens(self, text: Text, *, truncation: Optional[str] = "right") -> Tokens:
        """Returns the tokens that the model takes of a text, or of two."""
        return self._tasks().tokens(text, truncation)

    def count_tokens(self, texts: Iterable[Text]) -> List[int]:
        """Returns how many tokens the model takes of each text, or pair."""
        texts = as_texts("texts", texts)
        return self._tasks().counts(texts)

    def _tasks(self) -> Tasks:
        with self._lock:
            if self._found is None:
                self._found = Tasks(self._client.model(self._name), self._client.tokenizer(self._name))
            return self._found

    def _run(self, plan: Plan, progress: Optional[bool], timeout: Optional[float]) -> None:
        windows = list(plan.windows())
        first = plan.requests(windows[0]) if windows else []
        if len(windows) <= 1 and len(first) <= 1:
            for request in first:  # as a call of its own it may be tried again
                plan.place(0, self._client.send(request, timeout=timeout))
            return
        # The stream takes requests on another thread, so that texts are tokenized while others are computed.
        more = (request for window in windows[1:] for request in plan.requests(window))
        with Progress(len(plan.rows), progress) as shown:
            for answer in self._client.encode_stream(chain(first, more), timeout=None if timeout == DEFAULT else timeout):
                shown.add(plan.place(answer.index, answer.result()))
