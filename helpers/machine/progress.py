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


class ProgressBar:
    """Context manager: a bar on stderr, advanced by `step`. Where stderr is not a terminal, a line for every tenth."""

    def __init__(self, what: str, total: int):
        self._what, self._total = what, total
        self._done = 0
        self._start = time.perf_counter()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if sys.stderr.isatty():
            print(file=sys.stderr, flush=True)

    def step(self, count: int = 1, note: str = "") -> None:
        """`count` more parts are done; `note` is shown behind the bar."""
        tenths = self._done * 10 // max(1, self._total)
        self._done += count
        spent = time.perf_counter() - self._start
        left = spent * (self._total - self._done) / self._done
        full = self._done * 30 // max(1, self._total)
        text = f"{self._what} [{'#' * full:<30}] {self._done}/{self._total}, {left:.0f} s left {note}"
        if sys.stderr.isatty():
            print(f"\r{text[:110]:<110}", end="", file=sys.stderr, flush=True)
        elif self._done * 10 // max(1, self._total) > tenths:
            print(text.rstrip(), file=sys.stderr, flush=True)
