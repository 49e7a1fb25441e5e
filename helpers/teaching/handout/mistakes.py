"""The mistakes that learners make: those of the wrong answers in tests/practice/wrong_answers/, which the checks find.

An entry [exercise.mistake] of these tables has a comment that says what is wrong, on its line or before it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from helpers.paths import TESTS
from helpers.practice import registry

TABLES = TESTS / "practice" / "wrong_answers"
_ENTRY = re.compile(r"\[(?P<exercise>\w+)\.(?P<mistake>\w+)\](?: +# +(?P<comment>.+))?")


class Mistake(NamedTuple):
    """A wrong answer to an exercise, and what is wrong with it in one sentence or two."""

    exercise: str
    name: str
    sentence: str


def mistakes(tables: Path = TABLES) -> Iterator[Mistake]:
    """All mistakes, in the order of the tables. Raises ValueError naming an entry without a comment."""
    for path in sorted(tables.glob("*.toml")):
        before: list[str] = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            entry = _ENTRY.fullmatch(line.strip())
            if entry:
                sentence = entry["comment"] or " ".join(before)
                if not sentence:
                    raise ValueError(f"{path.name}:{number}: [{entry['exercise']}.{entry['mistake']}] has no comment")
                yield Mistake(entry["exercise"], entry["mistake"], sentence.strip())
            before = [*before, line.lstrip("# ")] if line.startswith("#") else []


def by_exercise() -> str:
    """A Markdown list of the mistakes for each exercise, in the order of the lessons."""
    listed: dict[str, list[Mistake]] = {exercise.name: [] for exercise in registry.exercises()}
    for mistake in mistakes():
        listed[mistake.exercise].append(mistake)
    parts = []
    for name, found in listed.items():
        marked = registry.read(name)
        lines = "".join(f"- {mistake.sentence}\n" for mistake in found)
        parts.append(f"**`{name}`** ({marked.title}, lesson {marked.lesson})\n\n{lines}")
    return "\n".join(parts)
