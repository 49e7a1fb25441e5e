"""A line of progress for work that takes longer than a second, so that a cell does not seem to hang."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

# Metadata of a notebook's output that is only progress: not every run has it, so neither files nor tests keep it.
MARK = {"kernel_xray": "progress"}


class Progress:
    """Context manager: says `what` after `after` seconds, and the time taken at the end.

    In a notebook it is an output of the cell, since JupyterLab shows stderr as an error; elsewhere it goes to stderr.
    """

    after = 1.0  # seconds, by default
    _unfinished: Progress | None = None  # the one whose line on stderr still lacks its time

    def __init__(self, what: str, after: float | None = None):
        self._what = what
        # A notebook's outputs belong to the cell that runs; a new thread knows it from the context only.
        self._timer = threading.Timer(
            Progress.after if after is None else after, contextvars.copy_context().run, [self._announce]
        )
        self._timer.daemon = True
        self._announced = False
        self._output: Any = None  # a handle on the notebook's output
        self._start = 0.0

    def __enter__(self) -> Progress:
        self._start = time.perf_counter()
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._timer.cancel()
        self._timer.join()  # it may be about to announce
        if not self._announced:
            return
        spent = f" {time.perf_counter() - self._start:.1f} s"
        if self._output:
            self._output.update(self._text(spent), raw=True, metadata=MARK)
            return
        if Progress._unfinished is not self:  # another line has begun since
            self._begin_line()
        print(spent, file=sys.stderr, flush=True)
        Progress._unfinished = None

    def _announce(self) -> None:
        self._announced = True
        if _in_notebook():
            from IPython.display import display

            self._output = display(self._text(""), raw=True, metadata=MARK, display_id=True)
            return
        self._begin_line()
        Progress._unfinished = self

    def _text(self, spent: str) -> dict[str, str]:
        return {"text/plain": f"{self._what} ...{spent}"}

    def _begin_line(self) -> None:
        before = "\n" if Progress._unfinished else ""
        print(f"{before}{self._what} ...", end="", file=sys.stderr, flush=True)


_PROCESS = os.getpid()


def _in_notebook() -> bool:
    """Whether a cell of a notebook is running this. A fork of the notebook's process cannot send outputs."""
    ipython = sys.modules.get("IPython") if os.getpid() == _PROCESS else None
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


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
