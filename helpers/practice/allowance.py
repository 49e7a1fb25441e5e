"""How long an answer may take over a question: seconds of its processor time, of which a busy machine gives it few.

A process that waits uses none, so time is limited too: to WAITING times as many seconds.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

WAITING = 15  # a machine whose cores have thirty processes each still gives a right answer the seconds that it takes


class Allowance:
    """Begins when it is made.

    process  the process; what the children that it has waited for have used counts as its own
    seconds  of processor time
    end      of all questions to the process, by time.monotonic()
    """

    def __init__(self, process: int | None, seconds: float, end: float = math.inf):
        self._process, self._seconds, self.end = process, seconds, end
        self._began, self._used = time.monotonic(), processor_seconds(process)

    def left(self) -> float:
        """Seconds after which to ask again whether something is left; 0 or less if nothing is."""
        now = time.monotonic()
        left = self._seconds - (now - self._began)
        if left <= 0:
            left = min(self._seconds - self.used(), WAITING * self._seconds - (now - self._began))
        return min(left, self.end - now)

    def used(self) -> float:
        """The processor time since the beginning. Where it is not known, the time."""
        used = processor_seconds(self._process)
        return time.monotonic() - self._began if used is None or self._used is None else used - self._used

    def in_words(self) -> str:
        """What was exceeded."""
        used = self.used()
        if used < self._seconds:
            waited = f"did not end within {WAITING * self._seconds:g} s, of which it computed for {used:.0f} s"
            return f"{waited}: does it wait for something that never comes?"
        return f"did not end within {self._seconds:g} s: does every loop end?"


def processor_seconds(process: int | None) -> float | None:
    """What a process has used, with the children that it has waited for; None where Linux does not say it."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def only_child(process: int) -> int | None:
    """The one process below another, such as what a reaper has started; None where Linux does not say it."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if len(children) == 1 else None
