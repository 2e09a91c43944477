"""The progress bar of long lists."""
from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Optional, Type

# Fewer texts need none.
LONG_LIST = 1000


class Progress:
    """Shows how many of `total` texts are done. wanted: None: of long lists, on a terminal. To be used in a `with` statement."""

    def __init__(self, total: int, wanted: Optional[bool]) -> None:
        shown = (total >= LONG_LIST and sys.stderr.isatty()) if wanted is None else wanted
        self._bar: Any = None
        if shown:
            import tqdm
            self._bar = tqdm.tqdm(total=total, unit="text")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, texts: int) -> None:
        if self._bar is not None:
            self._bar.update(texts)
