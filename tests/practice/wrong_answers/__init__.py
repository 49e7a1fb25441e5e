"""The wrong answers: the solution's cell with a mistake in it, as the tables lesson_NN.toml describe it.

An entry [exercise.mistake] has the arguments of `Wrong`; its comment says what is wrong.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from helpers.practice import marks, registry
from kernel_xray.machine import toml


@dataclass(frozen=True)
class Wrong:
    """A wrong answer to `exercise`, and the message with which the check must reject it.

    The answer is the cell of the solution without comments. `gaps["1"]` replaces the code between the marks of the
    first gap, and so on. Then each key of `replace` is replaced by its value; it must match exactly once.
    """

    exercise: str
    expect: str  # a regular expression
    replace: dict[str, str] = field(default_factory=dict)
    gaps: dict[str, str] = field(default_factory=dict)
    target: str = ""  # the only target that shows the mistake
    fault: str = ""  # what the traced run must say first, a regular expression
    shown: str = ""  # and the line of the code that it must show

    def cell(self) -> str:
        """The answer's text. Raises ValueError naming a replacement that does not match exactly once."""
        return edited(uncommented(cell_of(self.exercise, self.gaps), self.exercise), self.replace)


def cell_of(exercise: str, gaps: dict[str, str] | None = None) -> str:
    """The cell of the solution without marks; `gaps` as in Wrong."""
    left, lines, around, gap = dict(gaps or {}), [], [], 0
    given: str | None = None  # what replaces the gap that the line is in
    for line in registry.find(exercise).solution.read_text(encoding="utf-8").split("\n"):
        if opening := marks.OPENING.fullmatch(line):
            around.append(opening["kind"])
            if opening["kind"] == "solution":
                gap += 1
                if (given := left.pop(str(gap), None)) is not None:
                    lines += given.strip("\n").split("\n")
        elif marks.CLOSING.fullmatch(line):
            around.pop()
            given = None
        elif "cell" in around and given is None:
            lines.append(line)
    if left:
        raise ValueError(f"{exercise} has {gap} gaps, none of them {', '.join(left)}")
    return "".join(f"{line}\n" for line in lines)


def uncommented(text: str, exercise: str) -> str:
    """The text without comments, so that tables and line numbers do not depend on their wording."""
    sign = "#" if registry.find(exercise).solution.suffix == ".py" else "//"
    code = ((line, re.sub(rf"(^|[ \t]+){sign}.*", "", line)) for line in text.splitlines())
    return "".join(f"{kept}\n" for line, kept in code if kept or not line)


def edited(text: str, replace: dict[str, str]) -> str:
    """The text with each key of `replace` replaced. Raises ValueError naming one that does not match exactly once."""
    for old, new in replace.items():
        if text.count(old) != 1:
            raise ValueError(f"{old!r} matches {text.count(old)} times in\n{text}")
        text = text.replace(old, new)
    return text


WRONG = {
    f"{exercise}_{mistake}": Wrong(exercise, **entry)
    for path in sorted(Path(__file__).parent.glob("lesson_*.toml"))
    for exercise, mistakes in toml.loads(path.read_text(encoding="utf-8")).items()
    for mistake, entry in mistakes.items()
}
