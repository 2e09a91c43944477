"""What the application is made with."""
from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import FrozenSet, Iterable, Mapping, Optional, Union

from ..channel import Connection, Tls


@dataclass(frozen=True)
class Limits:
    """How much one caller may ask for.

    timeout: seconds from a request's headers to its answer. A caller may ask for less with a header.
    body_bytes: the largest body of a request.
    texts: the most texts, or documents, of a request.
    text_characters: the longest text. What a model cuts off counts, because it has to be tokenized first.
    requests: requests under way at the same time.
    """

    timeout: float = 60.0
    body_bytes: int = 4 << 20
    texts: int = 2048
    text_characters: int = 200_000
    requests: int = 256


@dataclass(frozen=True)
class Settings:
    """Where the server is, which of its models are offered, and to whom.

    server, tls, token: as the arguments of a Client.
    models: the models that are offered: the server's name of each, by the name that callers use. Empty: all, by their own.
    api_keys: SHA-256 digests of the keys of which callers have to send one; empty: anybody may call.
    truncate: texts that are too long for a model are cut, unless a request says otherwise.
    """

    server: str = "localhost:8001"
    tls: Union[Tls, bool] = False
    token: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    api_keys: FrozenSet[bytes] = frozenset()
    truncate: bool = True
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        Connection(self.server, self.tls, self.token)  # which checks them

    def truncation(self) -> Optional[str]:
        """Returns the side on which texts are cut, where a request does not say; None: they are refused."""
        return "right" if self.truncate else None


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def read_keys(lines: Iterable[str]) -> FrozenSet[bytes]:
    """Returns the digests of the keys in the lines of a file: one key a line; empty ones and those after "#" are ignored.

    ValueError: a line is no key, or there is none.
    """
    keys = set()
    for number, line in enumerate(lines, 1):
        key = line.strip()
        if not key or key.startswith("#"):
            continue
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise ValueError(f"line {number}: expected one key of printable ASCII characters without spaces")
        keys.add(digest(key))
    if not keys:
        raise ValueError("expected at least one key; got none")
    return frozenset(keys)


def named_model(text: str) -> "tuple[str, str]":
    """Returns the name that callers use and the server's name, of "NAME=SERVED", or of "NAME" for both. ValueError: neither."""
    name, equals, served = text.partition("=")
    if not name or "/" in name or (equals and not served):
        raise ValueError(f"expected NAME or NAME=SERVED, where NAME has no slash; got {text!r}")
    return name, served or name
