"""What a learner gets to see: text in a terminal, a coloured bar with folded hints in a notebook."""

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from helpers.pages.pictures.show import Source, shown_path
from helpers.practice import registry
from helpers.practice.marks import marks_in

HEADS = {
    "accepted": "accepted",
    "rejected": "not right yet",
    "not built": "does not build",
    "fault": "failed while running",
    "unsolved": "not solved yet",
    "interrupted": "interrupted",
    "unchecked": "not checked here",
    "unknown": "unknown exercise",
}
# Of the bar beside a verdict, visible on light and dark; no colour has the contrast that text needs on both.
COLOURS = {"accepted": "#2e9e4f", "unsolved": "#8a8f98", "interrupted": "#8a8f98", "unchecked": "#8a8f98"}
WRONG = "#d9822b"
WITHOUT = "this copy of the course has no solutions; ask your instructor"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of a check. `kind` is a key of HEADS; `message` says why."""

    name: str
    kind: str
    message: str
    printed: str = ""  # by the kernels
    table: str = ""  # the X-ray that shows the waste, as HTML
    film: str = ""  # of the warp with the fault, or that wrote the first wrong element, as HTML that is folded
    beside: Callable[[], Any] | None = field(default=None, compare=False)  # makes an accepted answer's Beside

    @property
    def accepted(self) -> bool:
        return self.kind == "accepted"

    def text(self) -> str:
        """The message and what the kernels printed, without the name of the exercise."""
        return self.message + (f"\nprinted:\n{self.printed}" if self.printed else "")

    def __repr__(self) -> str:
        head = f"{self.name}: {HEADS[self.kind]}"
        text = self.text()
        return f"{head}\n{text}" if "\n" in text else f"{head}: {text}"

    def _repr_html_(self) -> str:
        colour = COLOURS.get(self.kind, WRONG)
        text = self.text()
        if self.kind == "unsolved":  # a sentence of its own here; in a terminal it goes on after a colon
            text = text[:1].upper() + text[1:]
        body = html.escape(text)
        if "\n" in body:
            body = f'<pre style="margin: 4px 0; overflow-x: auto">{body}</pre>'
        folded = f"<details><summary>The X-ray of this call</summary>{self.table}</details>" if self.table else ""
        folded += self.film
        folded += help_for(self.name) if self.kind not in ("accepted", "unknown") else ""
        folded += self.beside().as_html() if self.beside else ""
        return (
            f'<div style="border-left: 4px solid {colour}; padding: 2px 10px">'
            f"<b>{html.escape(self.name)}: {HEADS[self.kind]}.</b> {body}{folded}</div>"
        )


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
