"""Verdicts on disk: each is written whole as soon as it is reached, under a key of all that it depends on.

So a run that was killed goes on where it was, and the same answer of two students is checked once, also
by several machines.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from helpers.practice import registry
from helpers.practice.verdict import HEADS
from helpers.teaching.classroom.submissions import Answer
from kernel_xray.machine import cache
from kernel_xray.machine.toolchain import target


@dataclass(frozen=True)
class Checked:
    """A verdict as it is kept.

    `kind` is a key of HEADS; `speed` is what speed.measure returns. As HTML: `table` is the X-ray that shows waste,
    `film` is that of the warp at fault, `picture` shows which elements are wrong. `passing`: a process was killed,
    maybe by the machine, so that the answer is to be judged again.
    """

    exercise: str
    kind: str
    message: str
    printed: str = ""
    table: str = ""
    film: str = ""
    picture: str = ""
    speed: str = ""
    passing: bool = False

    @property
    def accepted(self) -> bool:
        return self.kind == "accepted"


_EMPTY = Checked("", "", "")


def key_of(answer: Answer) -> str:
    """Names what a verdict depends on: the answer, the exercise as the course has it, and where kernels run."""
    solution = registry.find(answer.exercise).solution.read_bytes()
    parts = (answer.exercise, answer.is_cell, answer.text, hashlib.sha256(solution).hexdigest(), target)
    return f"{answer.exercise}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def solution_of(name: str) -> Answer:
    """The course's own solution as an answer: what it wastes, nobody has to save."""
    path = registry.find(name).solution
    return Answer(name, path.read_text(encoding="utf-8"), path.name)


class Store:
    """The verdicts in a folder, one file each. `shared`: other runs may be writing there."""

    def __init__(self, folder: Path, shared: bool = False):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for left in () if shared else folder.glob("*.partial"):  # by a run that was killed while it wrote
            left.unlink()

    def clear(self) -> None:
        for path in self.folder.glob("*.json"):
            path.unlink()

    def get(self, key: str) -> Checked | None:
        """The verdict, or None if there is none or its file is damaged."""
        try:
            given = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            checked = Checked(**given)
        except (OSError, ValueError, TypeError):
            return None
        whole = all(type(value) is type(getattr(_EMPTY, name)) for name, value in asdict(checked).items())
        whole = whole and checked.kind in HEADS
        return checked if whole and key.startswith(f"{checked.exercise}-") else None

    def forget(self, key: str) -> None:
        (self.folder / f"{key}.json").unlink(missing_ok=True)

    def put(self, key: str, checked: Checked) -> None:
        cache.write_whole(self.folder / f"{key}.json", json.dumps(asdict(checked), indent=1) + "\n")
