"""The texts of requests."""
from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any, Iterable, List, Optional, Sequence, Tuple, TypeVar, Union

from . import wire
from .errors import invalid
from .wire import Chunks

T = TypeVar("T")
# A text, or two that the model reads together, such as a query and a document.
Text = Union[str, Tuple[str, str]]
_SURROGATE = re.compile("[\ud800-\udfff]")


def as_texts(field: str, texts: Iterable[T]) -> Sequence[T]:
    """Returns a list of texts, which may come from a generator or a column of a table."""
    if isinstance(texts, (list, tuple)):
        return texts
    # A text has letters, a dictionary keys, and a set no order.
    if isinstance(texts, (str, bytes, bytearray, Mapping, Set)) or not isinstance(texts, Iterable):
        raise invalid(field, "a list of texts", f"{type(texts).__name__} {texts!r:.60}")
    return list(texts)


def check_text(field: str, text: Any) -> None:
    """Refuses anything but a text that UTF-8 can encode."""
    if not isinstance(text, str):
        raise invalid(field, "a text", f"{type(text).__name__} {text!r:.60}")
    half = None if text.isascii() else _SURROGATE.search(text)
    if half:
        raise invalid(field, "a text of Unicode characters",
                      f"half a surrogate pair at character {half.start()}, {ascii(half[0])}; "
                      "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') mends or replaces it")


def check_strings(field: str, texts: Sequence[Any]) -> None:
    for index, text in enumerate(texts):
        check_text(f"{field}[{index}]", text)


def check_texts(field: str, texts: Sequence[Any]) -> None:
    """Refuses anything but texts and pairs of texts."""
    for index, text in enumerate(texts):
        pair = isinstance(text, (tuple, list)) and len(text) == 2 and all(isinstance(one, str) for one in text)
        if not pair and not isinstance(text, str):
            raise invalid(f"{field}[{index}]", "a text, or a pair of texts", f"{type(text).__name__} {text!r:.60}")
        for one in text if pair else [text]:
            check_text(f"{field}[{index}]", one)


def paired(texts: Iterable[str], pairs: Optional[Iterable[str]]) -> Sequence[Text]:
    """Returns the texts, each with its second one if there are such, from the fields `texts` and `text_pairs`."""
    firsts = as_texts("texts", texts)
    check_strings("texts", firsts)
    if pairs is None:
        return firsts
    seconds = as_texts("text_pairs", pairs)
    check_strings("text_pairs", seconds)
    if len(seconds) != len(firsts):
        raise invalid("text_pairs", f"one for each of {len(firsts)} texts", len(seconds))
    return list(zip(firsts, seconds))


def unpaired(texts: Sequence[Text]) -> Tuple[List[str], Optional[List[str]]]:
    """Returns the fields `texts` and `text_pairs` for texts that are all single, or all pairs."""
    firsts = [text for text in texts if isinstance(text, str)]
    if len(firsts) == len(texts):
        return firsts, None
    return [text[0] for text in texts], [text[1] for text in texts]


def text_chunks(message: Any, texts: Iterable[str], pairs: Optional[Iterable[str]]) -> Chunks:
    """Returns the fields `texts` and `text_pairs` of a message."""
    given = unpaired(paired(texts, pairs))
    return [chunk for field, values in zip(("texts", "text_pairs"), given)
            for text in values or () for chunk in wire.submessage(message, field, [text.encode()])]
