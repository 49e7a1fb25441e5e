"""A Sphinx extension: docstrings of this project, which are plain text, as reStructuredText.

In a docstring, `name` is code, and a line such as "threads   per block" describes an argument: its name, two spaces or
more, and a text whose further lines are indented.
"""

import re
from typing import Any

ARGUMENT = re.compile(r"(\w+(?:, \w+)*) {2,}(\S.*)")
CODE = re.compile(r"`+[^`]+`+")


def restructured(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText: arguments become a list of definitions."""
    found: list[str] = []
    inside = False  # a list of arguments
    for line in lines:
        argument = ARGUMENT.fullmatch(line)
        if argument:
            names = ", ".join(f"``{name}``" for name in argument.group(1).split(", "))
            found += [*([] if inside else [""]), names, f"   {marked(argument.group(2))}"]
        elif inside and line.startswith(" "):
            found.append(f"   {marked(line.strip())}")
            continue
        else:
            found += [*([""] if inside and line else []), marked(line)]
        inside = bool(argument)
    return found


def marked(line: str) -> str:
    """A line in which `code` has the marks of reStructuredText, and other text none that it would misread."""
    plain, found = 0, ""
    for code in CODE.finditer(line):
        found += _escaped(line[plain : code.start()]) + f"``{code.group().strip('`')}``"
        plain = code.end()
    return found + _escaped(line[plain:])


def _escaped(text: str) -> str:
    return re.sub(r"([*|\\]|_\b)", r"\\\1", text)


def setup(app: Any) -> dict:
    def process(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
        lines[:] = restructured(lines)

    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
