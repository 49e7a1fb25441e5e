"""What a learner gets to see: text in a terminal, a coloured bar with folded hints in a notebook."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.practice.assistance import help_for

if TYPE_CHECKING:
    from helpers.practice.beside import Beside
    from helpers.practice.traced_run import Counts

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


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of a check. `kind` is a key of HEADS; `message` says why."""

    name: str
    kind: str
    message: str
    printed: str = ""  # by the kernels
    table: str = ""  # the X-ray that shows the waste, as HTML
    film: str = ""  # of the warp with the fault, or that wrote the first wrong element, as HTML that is folded
    picture: str = ""  # of the wrong elements, as SVG with a caption
    case: str = ""  # the label of a case, of an accepted answer,
    counts: Counts | None = None  # and what it costs
    killed: bool = False  # the answer's process, by something else than the answer: another check may end otherwise

    @property
    def accepted(self) -> bool:
        return self.kind == "accepted"

    def beside(self) -> Beside:
        """An accepted answer beside the solution, which is built if it was not yet."""
        from helpers.practice import beside  # with PyTorch: the other verdicts need little time and memory

        return beside.beside(self.name, self.case, self.counts)

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
        if "\n" not in body:
            body = re.sub("`([^`]+)`", r"<code>\1</code>", body)
        else:
            body = f'<pre style="margin: 4px 0; overflow-x: auto">{body}</pre>'
        folded = f"<details><summary>The X-ray of this call</summary>{self.table}</details>" if self.table else ""
        folded += (
            f"<details><summary>Which elements are wrong</summary>{self.picture}</details>" if self.picture else ""
        )
        folded += self.film
        folded += help_for(self.name) if self.kind not in ("accepted", "unknown") else ""
        folded += self.beside().as_html() if self.accepted else ""
        return (
            f'<div style="border-left: 4px solid {colour}; padding: 2px 10px">'
            f"<b>{html.escape(self.name)}: {HEADS[self.kind]}.</b> {body}{folded}</div>"
        )
