"""What a verdict may quote: the text of the answer, read once before any of it runs, and the course's own kernels.

The answer's process names a file and a line for each fact. The name is looked up here, and nothing is opened for it.
"""

import os
import stat
from pathlib import Path

from helpers.paths import KERNELS
from helpers.practice import registry

BYTES = 4_000_000  # an answer has a few thousand, a notebook with pictures some hundred thousand
_PUBLIC = ("*.cu", "include/*.h", "matmul/*.cu")  # what the starters include, below kernels/


class Unreadable(ValueError):
    """A file is not the text of an answer. The message says what it is."""


def contents(path: Path) -> bytes:
    """The bytes of a regular file of at most BYTES, which is not a link. Raises Unreadable, and OSError."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise Unreadable("is not a regular file")
        found = file.read(BYTES + 1)
    if len(found) > BYTES:
        raise Unreadable(f"is larger than {BYTES // 1_000_000} MB")
    return found


def texts(name: str, source: Path, text: str) -> dict[str, str]:
    """The texts that a verdict on `source` may quote, by the names that X-rays give them.

    In a cell's source, the text around the cell has the name of the learner's file: it is the starter's.
    """
    public = {str(path): path for pattern in _PUBLIC for path in KERNELS.glob(pattern)}
    found = {file: contents(path.resolve()).decode(errors="replace") for file, path in public.items()}
    with_starter = {str(registry.find(name).starter): registry.read(name).starter} if _is_exercise(name) else {}
    return {**found, **with_starter, str(source): text, str(source.resolve()): text}


def _is_exercise(name: str) -> bool:
    return any(exercise.name == name for exercise in registry.exercises())
