"""Patience: the timeout of a call, and its waiting for a full server."""
from __future__ import annotations

import time
from typing import Callable, Optional

from .errors import AttendantError


class Patience:
    """The patience of one call.

    waits: the call is sent again where a full server says when. timeout: seconds for all of it; None: no limit. clock: returns
    the seconds since some time.
    """

    def __init__(self, waits: bool, timeout: Optional[float], clock: Callable[[], float] = time.monotonic) -> None:
        self._waits = waits
        self._clock = clock
        self._end = None if timeout is None else clock() + timeout

    def left(self) -> Optional[float]:
        """Returns the seconds that are left; None: no limit."""
        return None if self._end is None else max(0.0, self._end - self._clock())

    def pause(self, error: AttendantError) -> float:
        """Returns the seconds to wait before the next try. Raises the error if there is none: the server has not asked for it, or
        would be asked after the end of the time."""
        left = self.left()
        if not self._waits or error.retry_after is None or (left is not None and left <= error.retry_after):
            raise error
        return error.retry_after
