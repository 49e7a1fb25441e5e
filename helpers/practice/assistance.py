"""What helps with an exercise: its hints, one more at each call, and its solution, folded."""

import html
from dataclasses import dataclass

from helpers.pages.pictures.show import Source, shown_path
from helpers.practice import registry
from helpers.practice.marks import marks_in

WITHOUT = "this copy of the course has no solutions; ask your instructor"


def help_for(name: str) -> str:
    """The hints and the solution of an exercise as HTML, each folded."""
    hints = registry.read(name).hints
    items = [(f"Hint {i} of {len(hints)}", html.escape(hint)) for i, hint in enumerate(hints, 1)]
    if registry.with_solutions():
        items.append(("A solution", solution_source(name)._repr_html_()))
    return "".join(f"<details><summary>{summary}</summary>{text}</details>" for summary, text in items)


def solution_source(name: str) -> Source:
    """The cell of the solution, shown without the lines that mark what a learner writes."""
    path = registry.find(name).solution
    first, last = registry.read(name).solution_cell
    text = path.read_text(encoding="utf-8")
    return Source(shown_path(path), first, "\n".join(text.split("\n")[first - 1 : last]), marks_in(text))


@dataclass(frozen=True, repr=False)
class Hints:
    """The first `shown` hints of an exercise."""

    name: str
    shown: int
    in_terminal: bool = False

    def _rest(self) -> str:
        left = len(registry.read(self.name).hints) - self.shown
        if left:
            again = f"python -m helpers hint {self.name}" if self.in_terminal else f'hint("{self.name}")'
            return f"{again} shows the next one; {left} left"
        if not registry.with_solutions():
            return "no more hints"
        if self.in_terminal:
            return f"no more hints; {Solution(self.name)}"
        return f'no more hints; solution("{self.name}") is next'

    def __repr__(self) -> str:
        hints = registry.read(self.name).hints[: self.shown]
        return "\n".join([*(f"{i}. {hint}" for i, hint in enumerate(hints, 1)), f"({self._rest()})"])

    def _repr_html_(self) -> str:
        hints = registry.read(self.name).hints[: self.shown]
        items = "".join(f"<li>{html.escape(hint)}</li>" for hint in hints)
        return f"<ol>{items}</ol><small>{html.escape(self._rest())}</small>"


@dataclass(frozen=True, repr=False)
class Solution:
    """The solution of an exercise: folded in a notebook, elsewhere the path of its file."""

    name: str

    def __repr__(self) -> str:
        if not registry.with_solutions():
            return WITHOUT
        return f"the solution of {self.name} is in {shown_path(registry.find(self.name).solution)}"

    def _repr_html_(self) -> str:
        if not registry.with_solutions():
            return WITHOUT
        source = solution_source(self.name)._repr_html_()
        return f"<details><summary>A solution of {html.escape(self.name)}</summary>{source}</details>"
