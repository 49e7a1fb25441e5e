"""From a solution with marked lines to the starter that a learner gets.

A solution is a .cu file, or a .py file with `#` for `//`. Four kinds of marks open a region that `// [end]` closes:

    // [hints]                      in the header comment: `// - a hint`, which may span several lines
    // [cell]                       around the part that a learner edits in a notebook
    // [solution: about 3 lines]    within the cell: the code that the learner has to write
    // [broken]                     within the cell, before a solution: code with a bug, as a comment `// code`

The starter is the same text without marks and hints, with `// YOUR CODE HERE: about 3 lines` in place of each solution.
So solving an exercise only adds lines, unless the learner has to find and fix a bug: then the starter has the broken
code in place of the solution after it, and nothing says where it is. The first line of the file names the exercise:

    // NAME.cu: Title. Exercise 1 of lesson 01, about 5 minutes.

and the first paragraph of the comment after it is the specification.
"""

import re
from dataclasses import dataclass

HEADLINE = re.compile(
    r"(?P<sign>//|#) (?P<name>\w+)\.(?:cu|py): (?P<title>[^.]+)\. "
    r"Exercise (?P<number>\d+) of lesson (?P<lesson>\d\d), about (?P<minutes>\d+) minutes\."
)
OPENING = re.compile(
    r"(?P<indent>\s*)(?://|#) \[(?P<kind>hints|cell|solution|broken)(?:: (?P<size>about \d+ lines?))?\]\s*"
)
CLOSING = re.compile(r"\s*(?://|#) \[end\]\s*")
GAP = "YOUR CODE HERE"


@dataclass(frozen=True)
class Marked:
    """The parts of a solution file."""

    name: str
    title: str
    number: int  # within its lesson, from 1
    lesson: str  # two digits, as notebooks are numbered
    minutes: int
    specification: str  # one paragraph, without line breaks
    hints: tuple[str, ...]
    starter: str  # the whole text of the starter
    cell: tuple[int, int]  # its first and last line in the starter, from 1
    solution_cell: tuple[int, int]  # its first and last line in the solution, without the marks around it
    gaps: tuple[tuple[str, int], ...]  # stated size and lines of code of each solution
    broken: bool = False  # the starter has a bug, and no gaps to fill in

    def task(self, place: str) -> str:
        """What a learner has to do in `place`, with the size of it."""
        sizes = [size for size, _ in self.gaps]
        size = sizes[0]
        if len(sizes) > 1:
            size = f"{size} each" if len(set(sizes)) == 1 else f"{', '.join(sizes[:-1])} and {sizes[-1]}"
        if self.broken:
            return f"find and fix the bug in {place} ({size})"
        comments = "the comment" if len(sizes) == 1 else f"the {len(sizes)} comments"
        return f"replace {comments} in {place} with your code ({size})"

    @property
    def cell_text(self) -> str:
        """The starter's lines that a learner edits, ending in a newline."""
        return "".join(f"{line}\n" for line in self.starter.split("\n")[self.cell[0] - 1 : self.cell[1]])

    @property
    def around_cell(self) -> tuple[str, str]:
        """The starter's text before the cell and after it."""
        lines = self.starter.split("\n")
        return "\n".join(lines[: self.cell[0] - 1]) + "\n", "\n".join(lines[self.cell[1] :])


def marks_in(text: str) -> frozenset[int]:
    """The numbers, from 1, of a solution's lines that are marks, or broken code: nothing that a reader looks for."""
    found, broken = set(), False
    for number, line in enumerate(text.split("\n"), 1):
        opening, closing = OPENING.fullmatch(line), CLOSING.fullmatch(line)
        broken = opening["kind"] == "broken" if opening else broken
        if opening or closing or broken:
            found.add(number)
        broken = broken and not closing
    return frozenset(found)


def parse(text: str, file: str) -> Marked:
    """Reads a solution, called `file` in messages. Raises ValueError naming the line that breaks the rules."""

    def fail(line: int, problem: str) -> ValueError:
        return ValueError(f"{file}:{line}: {problem}")

    lines = text.split("\n")
    head = HEADLINE.fullmatch(lines[0])
    if not head:
        raise fail(1, "the first line must be '// NAME.cu: Title. Exercise N of lesson NN, about N minutes.'")
    sign = head["sign"]
    starter: list[str] = []
    hints: list[str] = []
    gaps: list[tuple[str, int]] = []
    open_marks: list[tuple[str, int]] = []  # kind and line
    cell: tuple[int, int] | None = None
    solution_cell = (0, 0)
    cell_start = 0
    broken: list[str] | None = None  # the broken code, if the next region is the solution that replaces it
    fixes = 0
    for number, line in enumerate(lines, 1):
        inside = open_marks[-1][0] if open_marks else ""
        if opening := OPENING.fullmatch(line):
            kind, size = opening["kind"], opening["size"]
            if inside != ("cell" if kind in ("solution", "broken") else ""):
                raise fail(number, f"[{kind}] inside [{inside}]" if inside else f"[{kind}] outside of [cell]")
            if broken is not None and kind != "solution":
                raise fail(number, "after [broken] comes its [solution]")
            if (kind == "solution") != bool(size):
                raise fail(number, "write '[solution: about N lines]'; the other marks have no size")
            if kind == "cell" and cell:
                raise fail(number, "a second [cell]")
            if kind == "solution":
                starter += [f"{opening['indent']}{sign} {GAP}: {size}"] if broken is None else broken
                fixes, broken = fixes + (broken is not None), None
                gaps.append((size, 0))
            elif kind == "broken":
                broken = []
            cell_start = len(starter) + 1 if kind == "cell" else cell_start
            open_marks.append((kind, number))
        elif CLOSING.fullmatch(line):
            if not open_marks:
                raise fail(number, "[end] with nothing open")
            kind, opened = open_marks.pop()
            if kind == "cell":
                cell, solution_cell = (cell_start, len(starter)), (opened + 1, number - 1)
        elif inside == "hints":
            text = line.removeprefix(sign)
            if text.startswith(" - "):
                hints.append(text[3:])
            elif text.startswith("   ") and hints:
                hints[-1] += " " + text.strip()
            else:
                raise fail(number, "a hint begins with '// - ' and continues with '//   '")
        elif inside == "broken":
            code = re.fullmatch(rf"(\s*){sign} (.*)", line)
            if not code or broken is None:
                raise fail(number, f"broken code is a comment: '{sign} code'")
            broken.append(code[1] + code[2])
        elif broken is not None:
            raise fail(number, "after [broken] comes its [solution]")
        elif inside == "solution":
            size, count = gaps[-1]
            gaps[-1] = (size, count + bool(line.strip() and not line.strip().startswith(sign)))
        else:
            starter.append(line)
    if open_marks:
        raise fail(open_marks[-1][1], f"[{open_marks[-1][0]}] without [end]")
    if cell is None or not gaps or not hints:
        raise fail(len(lines), "a solution needs one [cell], at least one [solution] and [hints]")
    if fixes not in (0, len(gaps)):
        raise fail(len(lines), "put [broken] before each [solution], or before none")
    # Drop the empty comment line before the hints, now the last line of the starter's header.
    text = re.sub(rf"\n{sign}\n(?!{sign})", "\n", "\n".join(starter), count=1)
    removed = len(starter) - text.count("\n") - 1
    return Marked(
        name=head["name"],
        title=head["title"],
        number=int(head["number"]),
        lesson=head["lesson"],
        minutes=int(head["minutes"]),
        specification=_specification(lines, sign),
        hints=tuple(hints),
        starter=text,
        cell=(cell[0] - removed, cell[1] - removed),
        solution_cell=solution_cell,
        gaps=tuple(gaps),
        broken=fixes > 0,
    )


def _specification(lines: list[str], sign: str) -> str:
    """The first paragraph of the header comment after the first line."""
    paragraph: list[str] = []
    for line in lines[1:]:
        if line.startswith(f"{sign} "):
            paragraph.append(line.removeprefix(sign).strip())
        elif paragraph or not line.startswith(sign):
            break
    return " ".join(paragraph)
