"""The progress of long lists."""
from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Optional, Type

# Fewer texts need none.
LONG_LIST = 1000
SECONDS_BETWEEN = 0.1


class Progress:
    """Shows on stderr how many of `total` texts are done. wanted: None: of long lists, on a terminal. To be used in a `with`
    statement."""

    def __init__(self, total: int, wanted: Optional[bool]) -> None:
        self._shown = (total >= LONG_LIST and sys.stderr.isatty()) if wanted is None else wanted
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._written = self._begun

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._shown:
            self._write("\n")

    def add(self, texts: int) -> None:
        self._done += texts
        if self._shown and time.monotonic() - self._written >= SECONDS_BETWEEN:
            self._write("")

    def _write(self, end: str) -> None:
        self._written = time.monotonic()
        rate = self._done / max(self._written - self._begun, 1e-9)
        print(f"\r{self._done}/{self._total} texts, {rate:.0f}/s ", end=end, file=sys.stderr, flush=True)
