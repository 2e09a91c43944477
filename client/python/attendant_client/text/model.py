"""TextModel: blocking calls."""
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
    """A model that accepts texts. Thread-safe.

    client: a Client, or the address of a server. model: its name; optional if the server has only one model.

    The first call fetches the model's description; NotFound if there is no such model. The server tokenizes the texts. If it
    does not support this model's tokenizer, or is too old, the client fetches tokenizer.json and uses the package tokenizers.
    NotFound: no such file. ImportError: no such package. FailedPrecondition: the package cannot read the file.
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
        """Maximum length of a text in tokens, including special tokens; 0: unlimited. Longer texts are truncated."""
        return self._tasks().max_length

    def embed(self, texts: Union[str, Iterable[str]], *, prompt: Optional[str] = None, prompt_name: Optional[str] = None,
              normalize: bool = False, dimensions: Optional[int] = None, truncation: Optional[str] = "model",
              progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> Any:
        """Returns the vectors of texts, [n, E] float32, or [E] for a single text, pooled as the model's files specify.

        prompt: prepended to each text. prompt_name: use one of the model's own prompts instead. Default: its default prompt, if any.
        normalize: scale vectors to length 1 even if the model does not. dimensions: return only the first numbers of each
            vector, rescaled to length 1 if it had length 1. truncation: truncate long texts on the "right" or "left"; "model": on
            the side of the model's tokenizer, mostly right; None: refuse.
        progress: show a progress bar; None: for long lists, on a terminal. timeout: seconds in total.
        """
        given, alone = as_list(texts)
        tasks = self._tasks()
        found = tasks.embed(given, Wish("model", normalize, tasks.side(truncation), prompt, prompt_name))
        self._run(found, progress, timeout)
        return tasks.vectors(found, dimensions, alone)

    def rerank(self, query: str, texts: Iterable[str], *, top_n: Optional[int] = None, raw_scores: bool = False,
               truncation: Optional[str] = "model", progress: Optional[bool] = None,
               timeout: Optional[float] = DEFAULT) -> List[Ranked]:
        """Returns the texts ranked by their relevance to the query, best first. For models with one class, and for
        late-interaction models (ColBERT, bge-m3), where scores are sums of dot products.

        top_n: return only this many. raw_scores: return the raw output of the model's head, without sigmoid or the
            activation that a CrossEncoder was saved with.
        """
        texts = as_texts("texts", texts)
        tasks = self._tasks()
        asked = tasks.query(query, tasks.side(truncation))
        vectors = None if asked is None else (self._client.encode(tasks.model.name, **asked)).token_vectors[0]
        found = tasks.rerank(query, texts, Wish("classifier", truncation=tasks.side(truncation), query_vectors=vectors))
        self._run(found, progress, timeout)
        return tasks.ranked(found, texts, top_n, raw_scores)

    def classify(self, texts: Union[str, Iterable[Text]], *, raw_scores: bool = False, truncation: Optional[str] = "model",
                 progress: Optional[bool] = None, timeout: Optional[float] = DEFAULT) -> List[List[LabelScore]]:
        """Returns all classes with their scores for each text or pair of texts, best first. The model's config.json decides
        whether scores are probabilities over all classes, probabilities of each class, or regression values.

        raw_scores: return the raw output of the model's head, without softmax or sigmoid.
        """
        given, _ = as_list(texts)
        tasks = self._tasks()
        found = tasks.classify(given, Wish("classifier", truncation=tasks.side(truncation)))
        self._run(found, progress, timeout)
        return tasks.classified(found, raw_scores)

    def tokens(self, text: Text, *, truncation: Optional[str] = "model") -> Tokens:
        """Returns the tokens of a text or a pair of texts."""
        found = self._tokens("text", [text], truncation, Tokens.of)
        return self._tasks().checked(found[0], truncation)

    def count_tokens(self, texts: Iterable[Text]) -> List[int]:
        """Returns the number of tokens of each text or pair."""
        return self._tokens("texts", as_texts("texts", texts), "model", lambda tokens: len(tokens.ids))

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
        side = tasks.side(truncation)
        if tasks.tokenizer is not None:
            return [keep(one) for one in tasks.tokenizer.tokens(texts, side)]
        found = tasks.tokenized(texts, side, keep)
        self._client.send_texts(found)
        return found.found()

    def _run(self, found: TextRows, progress: Optional[bool], timeout: Optional[float]) -> None:
        with Progress(len(found.rows), progress) as shown:
            self._client.send_texts(found, timeout=timeout, progress=shown.add)
