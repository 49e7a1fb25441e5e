"""Lines of solutions in what students get: in files, notebooks' cells and outputs, archives, and git's history.

A line of a solution is distinctive if no starter, course kernel or lesson has it as well, and if it is long enough not
to be written by chance. Of a solution without such a line, all lines together are looked for. Texts are compared
without white space and without HTML's tags, so that neither a new layout nor colours hide a line. Comments of a
solution count too.
"""

import contextlib
import html
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from helpers.paths import KERNELS, NOTEBOOKS
from helpers.practice import registry
from helpers.practice.cells import named_in
from helpers.teaching.handout.outlines import removed_lines

SHORTEST = 12  # characters without white space: `out[i]=x[i];` is the work of a moment
_COMMENT = re.compile(r"(?<![:\"'])(?://|#(?!\s*(?:include|pragma|define|if|endif|else))).*")


class Leak(NamedTuple):
    """A line of the solution of `exercise` that is in the file `where`."""

    exercise: str
    line: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: has a line of the solution of {self.exercise}: {self.line}"


@lru_cache(maxsize=1)
def distinctive() -> dict[str, dict[str, str]]:
    """Exercise -> its distinctive lines, squeezed -> as written. Code and comment of a line are two lines."""
    public = "\n".join(_public())
    found: dict[str, dict[str, str]] = {}
    for exercise in registry.exercises():
        lines: dict[str, str] = {}
        removed = list(removed_lines(exercise.solution.read_text(encoding="utf-8")))
        for line in removed:
            comment = _COMMENT.search(line)
            for part in (_COMMENT.sub("", line), comment[0].lstrip("/# ") if comment else ""):
                if len(squeezed(part)) >= SHORTEST and squeezed(part) not in public:
                    lines[squeezed(part)] = part.strip()
        whole = "\n".join(removed)
        if not lines and squeezed(whole) not in public:
            lines[squeezed(whole)] = whole.strip()
        found[exercise.name] = lines
    return found


def _public() -> Iterator[str]:
    """Texts that students may see, squeezed: starters, specifications and hints, kernels, and cells of lessons."""
    for exercise in registry.exercises():
        marked = registry.read(exercise.name)
        yield from map(squeezed, (marked.starter, marked.specification, *marked.hints))
    for path in sorted(KERNELS.rglob("*")):
        if path.suffix in (".cu", ".cuh", ".h", ".cpp", ".py") and path.relative_to(KERNELS).parts[0] != "solutions":
            yield squeezed(path.read_text(encoding="utf-8"))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if named_in(source) is None:
                yield squeezed(source)


def squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def leaks(release: Path) -> list[Leak]:
    """The distinctive lines that a folder or an archive holds, in its history as well."""
    return [Leak(*found, where) for where, content in _contents(release) for found in _found_in(content)]


@lru_cache(maxsize=4096)  # most files are in the folder, in its history and in archives
def _found_in(content: bytes) -> tuple[tuple[str, str], ...]:
    """Exercise and line of what a file's content holds."""
    text, lines = _searchable(content), distinctive()
    return tuple((name, line) for name in lines for short, line in lines[name].items() if short in text)


def _contents(release: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; of a git repository, each object that it holds in place of its packed files."""
    if release.suffix == ".zip":
        with zipfile.ZipFile(release) as archive:
            yield from ((f"{release.name}:{name}", archive.read(name)) for name in archive.namelist())
        return
    for path in sorted(release.rglob("*")):
        where = path.relative_to(release)
        if path.is_file() and where.parts[0] != ".git":
            yield (where.as_posix(), path.read_bytes())
    if (release / ".git").is_dir():
        yield from _objects(release)


def _objects(repository: Path) -> Iterator[tuple[str, bytes]]:
    """Every blob, commit and tag of a repository, whether a branch leads to it or not."""
    command = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    start = 0
    while start < len(listed):  # a line with name, kind and size; the content; a line break
        head = listed.index(b"\n", start)
        name, kind, size = listed[start:head].decode().split()
        start = head + 1 + int(size) + 1
        if kind != "tree":
            yield f".git {kind} {name}", listed[head + 1 : start - 1]


def _searchable(content: bytes) -> str:
    """The text of a file, squeezed, without tags; of JSON such as a notebook, all of its strings."""
    text = content.decode("utf-8", errors="replace")
    if text.lstrip().startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):  # not JSON after all
            text = "\n".join(_strings(json.loads(text)))
    plain = html.unescape(re.sub(r"</?(?:span|b|i|em|div|br|pre|code|td|tr|a|p)\b[^<>]*>", "", text))
    return squeezed(text) + "\n" + squeezed(plain)


def _strings(value: Any) -> Iterator[str]:
    """All strings within a JSON value; lines of a cell or an output, which are a list, as one text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            yield "".join(value)
        else:
            for item in value:
                yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
