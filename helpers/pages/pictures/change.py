"""Shows what one kernel changes against another, line by line: a step of a ladder as code."""

import difflib
import html
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from helpers.pages.pictures.show import CSS, LAYOUT, Source, highlighted, show_kernel

AROUND = 2  # lines shown before and after a change
GAP = "..."
# Behind a line that goes and one that comes: transparent, so legible in the light theme and in the dark one.
COLOURS = {"-": "rgba(220, 60, 60, 0.18)", "+": "rgba(40, 160, 80, 0.20)", " ": "transparent"}


@dataclass(frozen=True)
class Change:
    """Two sources and the lines in which they differ: plain text as a repr, coloured HTML in a notebook."""

    old: Source
    new: Source

    def __repr__(self) -> str:
        shown = (f"{mark}{number} {line}".rstrip() for mark, number, line in self._lines(False))
        return "\n".join([f"- {self.old.title}", f"+ {self.new.title}", *shown])

    def _repr_html_(self) -> str:
        sides = (("-", self.old), ("+", self.new))
        head = "\n".join(f'{mark} <span class="head">{html.escape(side.title)}</span>' for mark, side in sides)
        body = "".join(
            f'<div style="background: {COLOURS[mark]}"><span class="n">{mark}{number}</span> {line}</div>'
            for mark, number, line in self._lines(True)
        )
        return f'{CSS}<pre class="ladder-source" style="{LAYOUT}">{head}\n{body}</pre>'

    def _lines(self, coloured: bool) -> Iterator[tuple[str, str, str]]:
        """Each line that is shown: '-', '+' or ' ', its number in its own source, padded, and its text or HTML."""
        sides = (self.old, self.new)
        old, new = (highlighted(side.text) if coloured else side.text.split("\n") for side in sides)
        width = max(len(str(side.first + side.text.count("\n"))) for side in sides)
        groups = list(differences(self.old.text, self.new.text))
        for group in groups:
            if group is not groups[0]:
                yield " ", " " * width, GAP
            for kind, i, j, k, end in group:
                if kind != "equal":
                    yield from (("-", f"{self.old.first + n:>{width}}", old[n]) for n in range(i, j))
                mark = " " if kind == "equal" else "+"
                yield from ((mark, f"{self.new.first + n:>{width}}", new[n]) for n in range(k, end))


def differences(old: str, new: str) -> Iterable[list[tuple[str, int, int, int, int]]]:
    """Opcodes of difflib, in groups with what is around them. Lines that differ in their indentation are equal.

    A lone brace or `#pragma unroll` is not a sign that two places correspond: it counts only beside a line that is one.
    """
    a, b = ([line.strip() for line in text.split("\n")] for text in (old, new))
    return difflib.SequenceMatcher(_says_nothing, a, b, autojunk=False).get_grouped_opcodes(AROUND)


def _says_nothing(line: str) -> bool:
    return line in ("", "{", "}", "};", "#pragma unroll")


def show_change(a: Source | str | os.PathLike, b: Source | str | os.PathLike) -> Change:
    """The lines in which b differs from a, with what is around them; a cell displays it as its last expression.

    a, b   what `show_kernel` returns, such as two functions of a file, or paths of whole files

    A line that goes is marked -, one that comes +, each with its number in its own file. Raises ValueError if no line
    differs: a lesson that promises a change must show one.
    """
    old, new = (part if isinstance(part, Source) else show_kernel(part) for part in (a, b))
    if not any(differences(old.text, new.text)):
        raise ValueError(f"{old.title} and {new.title} do not differ; give two kernels that do")
    return Change(old, new)
