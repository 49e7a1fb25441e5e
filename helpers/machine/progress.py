"""A line of progress for work that takes longer than a second, so that a cell does not seem to hang."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType


class Progress:
    """Context manager: prints `what` to stderr after `after` seconds, and the time taken at the end."""

    _unfinished: Progress | None = None  # the one whose line still lacks its time

    def __init__(self, what: str, after: float = 1.0):
        self._what = what
        self._timer = threading.Timer(after, self._announce)
        self._timer.daemon = True
        self._announced = False
        self._start = 0.0

    def __enter__(self) -> Progress:
        self._start = time.perf_counter()
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._timer.cancel()
        if self._announced:
            if Progress._unfinished is not self:  # another line has begun since
                self._begin_line()
            print(f" {time.perf_counter() - self._start:.1f} s", file=sys.stderr, flush=True)
            Progress._unfinished = None

    def _announce(self) -> None:
        self._announced = True
        self._begin_line()
        Progress._unfinished = self

    def _begin_line(self) -> None:
        before = "\n" if Progress._unfinished else ""
        print(f"{before}{self._what} ...", end="", file=sys.stderr, flush=True)
