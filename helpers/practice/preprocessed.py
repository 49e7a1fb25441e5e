"""What an answer's source says once the preprocessor has expanded it: nothing that the tracer would not see.

The translator turns inline PTX into calls. What is left of `asm` is not PTX, and code under `no_sanitize` has no hooks:
both would run past the tracer, whatever macro, spliced line or pasted token wrote them.
"""

import json
import re
import shlex
import subprocess
from pathlib import Path

from kernel_xray.machine import cache
from kernel_xray.runtime import libsimt

_MARKER = re.compile(r'# \d+ "(.*)"(?: \d)*')
# A directive that gives other lines or another file's name to what follows: lines then belong to nobody.
_GAP = r"(?:\s|/\*.*?\*/)*"
_RENAMES = re.compile(rf"(?:^|\*/)[^\S\n]*(?:#|%:|\?\?=){_GAP}(?:line\b|\d)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^\s*//(?!.*\*/).*$", re.MULTILINE)  # on a line of its own: what follows `*/` may be a directive
_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_FENCE = '__asm__ __volatile__("" ::: "memory")'  # which a translated fence has
# Built-in functions of a processor, and those that store through a pointer, have no hooks either.
_UNSEEN = re.compile(
    r"\b(asm|__asm|__asm__|(?:__)?no_sanitize\w*|(?:__)?disable_sanitizer\w*|__builtin_(?:ia32|arm|aarch64|neon)_\w+|"
    r"__builtin_(?:sincos|frexp|modf|remquo|lgamma|longjmp|setjmp|eh_return|return|apply)\w*|_mm\d*_\w+|v(?:st|ld)\d\w*_\w+)\b"
)


class Stale(Exception):
    """A kept build cannot be expanded again: a copy of the course made it that has moved or gone with its headers."""


def problem(text: str, source: Path, folder: Path) -> str:
    """Why the answer `source`, with this text, is not loaded from the folder of its build, or "".

    Raises Stale if the preprocessor fails on a source that a compiler has read; the next load builds it again.
    """
    if _RENAMES.search(_COMMENT.sub("", _SPLICE.sub("", text))):
        return "it has a #line directive; leave it away: messages name the lines of the file"
    first = {name for path in (folder / "translated").iterdir() if (name := _name_in(path, source.name))}
    try:
        expanded = _expanded(folder)
    except subprocess.CalledProcessError as error:
        with cache.locked(folder):
            (folder / cache.RECORD).unlink(missing_ok=True)
        raise Stale(f"{source.name} does not expand: {str(error.stderr)[-500:]}") from error
    own = "\n".join(_lines_of(first | {str(source), str(source.resolve())}, expanded))
    found = _UNSEEN.search(own.replace(_FENCE, ""))
    if found is None:
        return ""
    if "asm" not in found[1] and "sanitize" not in found[1]:
        return f"it calls {found[1][:60]}, which is of the host's processor or compiler; leave it away"
    if "sanitize" in found[1]:
        return "it asks the compiler to leave code untraced (no_sanitize); leave that away"
    return "it has an asm statement or a name by asm, which is not PTX that the simulator translates; leave it away"


def _name_in(translated: Path, name: str) -> str:
    """The name of a source inside its build, which its translation's #line says; "" for that of another file."""
    with open(translated, encoding="utf-8", errors="replace") as file:
        for line in (file.readline(), file.readline()):
            if (said := re.match(r'#line 1 "(.*)"', line)) and Path(said[1]).name == name:
                return said[1]
    return ""


def _expanded(folder: Path) -> str:
    """The output of the preprocessor for the sources of a build, without the headers that are precompiled."""
    without = ["-fpch-preprocess"] if libsimt.finds_precompiled_headers() else []  # else -E expands them all anew
    listed = subprocess.run(["ninja", "-t", "compdb"], cwd=folder, capture_output=True, text=True, check=True).stdout
    texts = []
    for step in json.loads(listed):
        words = shlex.split(step["command"])
        if "-c" not in words:
            continue
        for option in ("-o", "-MF"):
            at = words.index(option)
            del words[at : at + 2]
        words = ["-E" if word == "-c" else word for word in words if word not in ("-MMD", "-MD")] + without
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=True)
        texts.append(done.stdout)
    return "\n".join(texts)


def _lines_of(names: set[str], expanded: str) -> list[str]:
    """The lines that come from files of these names."""
    found, inside = [], False
    for line in expanded.split("\n"):
        if marker := _MARKER.fullmatch(line):
            inside = marker[1] in names
        elif inside:
            found.append(line)
    return found
