"""Turns: no more compilers, and no more checks, at the same time than this machine has cores.

A class that hands in at once would else share cores and memory among all of its checks, until they fail for want of
either. The limit holds for all processes of one user. The locks are flock's, which end with the process that holds
them, however it ends.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

SECONDS = 0.05  # between two looks at the turns, by the first in the queue
_held: set[str] = set()


@contextmanager
def turn(kind: str, places: int | None = None) -> Iterator[None]:
    """Waits until fewer than `places` (default: the number of cores) other processes have a turn of this kind.

    Inside a turn of the same kind it does nothing. So it does where the temporary folder cannot be written.
    """
    with ExitStack() as files:
        try:
            taken = None if kind in _held else _wait(kind, places or os.cpu_count() or 1, files)
        except OSError:
            taken = None
        if taken is None:
            yield
            return
        _held.add(kind)
        try:
            yield
        finally:
            _held.discard(kind)
            fcntl.flock(taken, fcntl.LOCK_UN)  # a fork of this process may still have the file open


def _wait(kind: str, places: int, files: ExitStack) -> IO[bytes]:
    """The locked file of a turn. Only the first in the queue looks for one; the others sleep until they are first."""
    folder = Path(tempfile.gettempdir()) / f"kernel_xray_turns_{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    turns = [files.enter_context((folder / f"{kind}_{number}").open("ab")) for number in range(places)]
    with (folder / f"{kind}_queue").open("ab") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        while True:
            for file in turns:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                return file
            time.sleep(SECONDS)
