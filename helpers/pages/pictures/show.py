"""Shows kernel source from its file, and errors as a learner should see them.

Kernels live in .cu files and are shown from there, so that a notebook shows the code that runs. In a notebook the
source is highlighted in the colours of the reader's theme; elsewhere it is plain text with line numbers.
"""

import html
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.paths import ROOT

# Comments, string and character literals, preprocessor lines: brackets and names in them do not count.
OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""", re.DOTALL | re.MULTILINE
)
# A name, its parameter list (nested twice at most), perhaps `const noexcept`: the text before a function's body.
SIGNATURE = re.compile(r"([A-Za-z_]\w*)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)[\s\w]*$")
STRUCT = re.compile(r"\bstruct\s+(\w+)\s*$")
# PyTorch appends C++ stack traces to messages, and the same advice to every CUDA error.
BOILERPLATE = re.compile(r"\n(?:Exception raised from|C\+\+ CapturedTraceback|Search for `|CUDA kernel errors might)")
# JupyterLab defines the variables for its light and dark themes; the fallback colours are legible on both.
CSS = """<style>
.ladder-source .k, .ladder-source .kt, .ladder-source .kr {color: var(--jp-mirror-editor-keyword-color, #1a7f37)}
.ladder-source .c1, .ladder-source .cm, .ladder-source .cp {color: var(--jp-mirror-editor-comment-color, #6a7f8f)}
.ladder-source .s, .ladder-source .cpf {color: var(--jp-mirror-editor-string-color, #c4372f)}
.ladder-source .m {color: var(--jp-mirror-editor-number-color, #2f7d4f)}
.ladder-source .n, .ladder-source .head {opacity: 0.65; user-select: none}
</style>"""
FONT = "font-family: var(--jp-code-font-family, monospace), monospace"
LAYOUT = f"{FONT}; line-height: 1.35; font-size: 90%; white-space: pre; overflow-x: auto"  # notebooks would wrap lines
COLOURED = ("Keyword", "Comment", "Literal.String", "Literal.Number")


@dataclass(frozen=True)
class Source:
    """Lines of a source file: plain text as a repr, highlighted HTML in a notebook."""

    path: str  # as shown
    first: int  # number of the first line, from 1
    text: str
    left_out: frozenset[int] = frozenset()  # numbers of lines of the text that are not shown

    def __repr__(self) -> str:
        numbered = (f"{number}  {line}".rstrip() for number, line in self._numbered(self.text.split("\n")))
        return "\n".join([self.title, *numbered])

    @property
    def title(self) -> str:
        return f"{self.path}, lines {self.first}-{self.first + self.text.count(chr(10))}"

    def _numbered(self, lines: list[str]) -> Iterator[tuple[str, str]]:
        """The lines that are shown, each with its number, padded."""
        width = len(str(self.first + len(lines) - 1))
        for number, line in enumerate(lines, self.first):
            if number not in self.left_out:
                yield f"{number:>{width}}", line

    def _repr_html_(self) -> str:
        numbered = self._numbered(highlighted(self.text))
        body = "\n".join(f'<span class="n">{number}</span>  {line}' for number, line in numbered)
        head = f'<span class="head">{html.escape(self.title)}</span>'
        return f'{CSS}<pre class="ladder-source" style="{LAYOUT}">{head}\n{body}</pre>'


def show_kernel(
    path: str | os.PathLike, name: str | None = None, *, lines: tuple[int, int] | None = None, region: str | None = None
) -> Source:
    """The source of a function, a range of lines, a region or a whole file; a cell displays it as its last expression.

    path    of a .cu or .h file, relative to the working directory
    name    a function or a struct defined in it, shown with its template line and the comment above it
    lines   (first, last), counted from 1, both included
    region  the text between the lines `// region NAME` and `// endregion`

    Give at most one of the three. Raises ValueError if the file has no such part, and names the parts that it has.
    """
    if sum(choice is not None for choice in (name, lines, region)) > 1:
        raise ValueError("give name, lines or region, not several of them")
    path = Path(path)
    text = path.read_text(encoding="utf-8").rstrip("\n")
    count = text.count("\n") + 1
    if name is not None:
        lines = _definition_lines(text, name, path)
    elif region is not None:
        lines = _region_lines(text, region, path)
    first, last = lines or (1, count)
    if not 1 <= first <= last <= count:
        raise ValueError(f"lines={lines}: {path} has lines 1 to {count}")
    return Source(shown_path(path), first, "\n".join(text.split("\n")[first - 1 : last]))


def show_error(function: Callable, *args, **kwargs) -> None:
    """Calls a function that must fail, and prints the error's type and message.

    Paths inside the course are shortened, so that the text is the same on every machine. Raises AssertionError if the
    call does not fail: a lesson that promises an error must get one.
    """
    try:
        function(*args, **kwargs)
    except Exception as error:
        message = BOILERPLATE.split(str(error))[0].rstrip().replace(f"{ROOT}{os.sep}", "")
        print(f"{type(error).__name__}: {message}")
    else:
        raise AssertionError(f"{getattr(function, '__name__', function)} was expected to fail, and did not")


def shown_path(path: Path) -> str:
    """A path, relative to the course if it is inside it."""
    full = path.resolve()
    return full.relative_to(ROOT).as_posix() if full.is_relative_to(ROOT) else path.as_posix()


def functions_in(text: str) -> dict[str, tuple[int, int]]:
    """Functions defined at file or namespace level in C++ source: name -> first and last line, from 1.

    A function begins at the comment directly above it, or at its `template` line.
    """
    return _definitions(text)[0]


def _definitions(text: str) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """The functions and the structs of `functions_in`."""
    code = OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    functions: dict[str, tuple[int, int]] = {}
    structs: dict[str, tuple[int, int]] = {}
    start = at = 0  # `start`: the beginning of the current declaration
    for bracket in re.finditer(r"[{};]", code):
        here = bracket.start()
        if here < at:
            continue  # inside a body that was skipped
        head = code[start:here]
        function, struct = SIGNATURE.search(_without_attributes(head)), STRUCT.search(head)
        if bracket.group() == "{" and (name := function or struct):
            at = _matching_brace(code, here)
            first = code.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
            kind = functions if function else structs
            kind.setdefault(name.group(1), (_with_comment(text, first), code.count("\n", 0, at) + 1))
            start = at + 1
        elif bracket.group() == "{" and re.search(r"\b(struct|class|enum|union)\b|=\s*$", head):
            at = _matching_brace(code, here)  # its `;` follows
        else:
            start = here + 1  # namespace NAME { ... }, or a declaration
    return functions, structs


def _without_attributes(head: str) -> str:
    return re.sub(r"__launch_bounds__\s*\([^()]*\)", lambda match: " " * len(match.group()), head)


def _matching_brace(code: str, opening: int) -> int:
    depth = 0
    for bracket in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if bracket.group() == "{" else -1
        if depth == 0:
            return bracket.start()
    return len(code) - 1


def _with_comment(text: str, line: int) -> int:
    """The first line of the // comment that ends directly above `line`; rules and region marks are not part of it."""
    lines = text.split("\n")
    while line > 1 and re.match(r"\s*//(?!\s*(?:[-=]{10}|#?region))", lines[line - 2]):
        line -= 1
    return line


def _definition_lines(text: str, name: str, path: Path) -> tuple[int, int]:
    functions, structs = _definitions(text)
    found = functions | structs
    if name not in found:
        raise ValueError(f"{path} defines no function or struct {name!r}; it defines {', '.join(found) or 'none'}")
    return found[name]


def _region_lines(text: str, region: str, path: Path) -> tuple[int, int]:
    lines = text.split("\n")
    marks = {m.group(1): i for i, line in enumerate(lines, 1) if (m := re.match(r"\s*//\s*#?region\s+(\S+)", line))}
    if region not in marks:
        raise ValueError(f"{path} has no region {region!r}; it has {', '.join(marks) or 'none'}")
    for i in range(marks[region], len(lines)):
        if re.match(r"\s*//\s*#?endregion\b", lines[i]):
            return marks[region] + 1, i
    raise ValueError(f"{path}: region {region!r} has no // endregion")


def highlighted(text: str) -> list[str]:
    """HTML of each line, coloured by Pygments, which comes with Jupyter."""
    from pygments.lexers import CudaLexer
    from pygments.token import STANDARD_TYPES

    lines = [""]
    for kind, value in CudaLexer(stripnl=False, ensurenl=False).get_tokens(text):
        short = STANDARD_TYPES.get(kind, "")
        css = "s" if short.startswith("s") else "m" if short.startswith("m") else short
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append("")
            if part:
                coloured = str(kind).removeprefix("Token.").startswith(COLOURED)
                escaped = html.escape(part)
                lines[-1] += f'<span class="{css}">{escaped}</span>' if coloured else escaped
    return lines
