"""TextModel: calls that wait for their answer."""
from __future__ import annotations

import threading
from typing import Any, Callable, Iterable, List, Optional, Sequence, TypeVar, Union

from .. import messages
from ..channel import DEFAULT
from ..client import Client
from ..texts import Text, as_texts, check_texts
from .progress import Progress
from .rows import TextRows, Wish
from .scores import LabelScore, Ranked
from .tasks import Tasks, as_list
from .tokenizer import Tokens

T = TypeVar("T")


class TextModel:
    """A model that takes texts. Threads may share it.

    client: a Client, or the address of a server. model: its name; empty: the only one that is served.

    The model's description is fetched once, with the first call. NotFound: there is no such model. The server tokenizes the texts.
    If it does not take them for this model, or is older, its tokenizer.json is fetched too and read by the package tokenizers.
    NotFound: there is no such file. ImportError: nor is the package. FailedPrecondition: the package cannot read the file.
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
        return self._tasks().max_length

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
        found = tasks.embed(given, Wish("model", normalize, truncation, prompt, prompt_name))
        self._run(found, progress, timeout)
        return tasks.vectors(found, dimensions, alone)

    def rerank(self, query: str, texts: Iterable[str], *, top_n: Optional[int] = None, raw_scores: bool = False,
               truncation: Optional[str] = "right", progress: Optional[bool] = None,
               timeout: Optional[float] = DEFAULT) -> List[Ranked]:
        """Returns the texts by how well they fit the query, best first. For models with one class, and for models of
        late interaction (ColBERT, bge-m3), whose scores are sums of dot products.

        top_n: only so many. raw_scores: what the model's head says, without the function that
            brings it to 0..1, or that a CrossEncoder was saved with.
        """
        texts = as_texts("texts", texts)
        tasks = self._tasks()
        asked = tasks.query(query, truncation)
        vectors = None if asked is None else (self._client.encode(tasks.model.name, **asked)).token_vectors[0]
        found = tasks.rerank(query, texts, Wish("classifier", truncation=truncation, query_vectors=vectors))
        self._run(found, progress, timeout)
        return tasks.ranked(found, texts, top_n, raw_scores)

    def classify(self, texts: Union[str, Iterable[Text]], *, raw_scores: bool = False, truncation: Optional[str] = "right",
                 progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> List[List[LabelScore]]:
        """Returns for each text, or pair of texts, all classes with their scores, best first: probabilities of one class among
        all, or of each by itself, or the values of a regression, as the model's config.json says.

        raw_scores: what the model's head says, without the softmax or sigmoid.
        """
        given, _ = as_list(texts)
        tasks = self._tasks()
        found = tasks.classify(given, Wish("classifier", truncation=truncation))
        self._run(found, progress, timeout)
        return tasks.classified(found, raw_scores)

    def tokens(self, text: Text, *, truncation: Optional[str] = "right") -> Tokens:
        """Returns the tokens that the model takes of a text, or of two."""
        found = self._tokens("text", [text], truncation, Tokens.of)
        return self._tasks().checked(found[0], truncation)

    def count_tokens(self, texts: Iterable[Text]) -> List[int]:
        """Returns how many tokens the model takes of each text, or pair."""
        return self._tokens("texts", as_texts("texts", texts), "right", lambda tokens: len(tokens.ids))

    def _tasks(self) -> Tasks:
        with self._lock:
            if self._found is None:
                model = self._client.model(self._name)
                self._found = Tasks(model, None if model.takes_texts else self._client.tokenizer(self._name))
            return self._found

    def _tokens(self, field: str, texts: Sequence[Text], truncation: Optional[str],
                keep: Callable[[messages.TextTokens], T]) -> List[T]:
        tasks = self._tasks()
        check_texts(field, texts)
        if tasks.tokenizer is not None:
            return [keep(one) for one in tasks.tokenizer.tokens(texts, truncation)]
        found = tasks.tokenized(texts, truncation, keep)
        self._client.send_texts(found)
        return found.found()

    def _run(self, found: TextRows, progress: Optional[bool], timeout: Optional[float]) -> None:
        with Progress(len(found.rows), progress) as shown:
            self._client.send_texts(found, timeout=timeout, progress=shown.add)
