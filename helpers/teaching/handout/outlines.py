"""An exercise without its solution: the outline, a solution file with nothing between the marks of a solution.

It has the same headline, hints, cell and starter, so `helpers.practice` needs no more than outlines to check answers.
"""

import re

from helpers.practice import marks, registry


def outline(text: str) -> str:
    """A solution file's text without the lines between `[solution: ...]` and `[end]`."""
    kept, inside = [], ""
    for line in text.split("\n"):
        opening = marks.OPENING.fullmatch(line)
        if inside == "solution" and not marks.CLOSING.fullmatch(line):
            continue
        kept.append(line)
        inside = opening["kind"] if opening else "" if marks.CLOSING.fullmatch(line) else inside
    return "\n".join(kept)


def removed_lines(text: str) -> list[str]:
    """The lines of a solution file that its outline lacks, in their order."""
    kept, removed = outline(text).split("\n"), []
    for line in text.split("\n"):
        if kept and line == kept[0]:
            kept.pop(0)
        else:
            removed.append(line)
    return removed


def builds_upon(name: str) -> list[str]:
    """Other exercises whose solution the starter of `name` loads; it cannot run without them."""
    starter = registry.read(name).starter
    files = {exercise.name: exercise.solution.name for exercise in registry.exercises()}
    return [other for other, file in files.items() if other != name and re.search(rf'"{re.escape(file)}"', starter)]
