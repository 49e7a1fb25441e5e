"""Large headers that a program names and, as it seems, does not read: each `#include` of one waits for a macro.

    #if defined(CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED)
    #include "mma_sm90_gmma_ext.hpp"
    #endif

Those of CuTe are 60% of its text. A header is left out if no text of the program defines such a macro and no flag names
it. A system header may define it all the same: then the compiler comes to `#error` with LEFT_OUT in the header's place,
and the program is built once more, with all headers.
"""

import re
from collections.abc import Iterable
from pathlib import Path

LEFT_OUT = "the simulator left out a header"
_LARGE = 1 << 16  # bytes: a smaller header costs less than it may cost to build twice
_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*(?:(?P<opens>ifn?def|if)\b(?P<condition>[^\n]*)|(?P<turns>elif|else)\b|(?P<ends>endif)\b"
    r"|(?:include|import)[ \t]*[<\"](?P<file>[^>\"\n]+))",
    re.MULTILINE,
)
_DEFINED = re.compile(r"[ \t]*(?:defined\b[ \t]*\(?[ \t]*)?([A-Za-z]\w*)[ \t]*\)?[ \t]*(?://.*|/\*[^\n]*\*/[ \t]*)?$")
_BRINGS_TEXT = ("-include", "-imacros", "@")  # flags by which anything may be defined


def may_wait(file: Path) -> bool:
    """Whether a header is large enough to be left out."""
    return file.stat().st_size > _LARGE


def guards(text: str) -> dict[str, str]:
    """The files, as written, that the text includes only where a macro is defined, with that macro."""
    found: dict[str, str] = {}
    open_ones: list[str] = []  # of each #if around: its macro, if the branch asks for nothing else
    for match in _DIRECTIVE.finditer(text):
        if match["opens"]:
            asked = _DEFINED.match(match["condition"])
            simple = match["opens"] == ("if" if "defined" in match["condition"] else "ifdef")
            open_ones.append(asked[1] if asked and simple else "")
        elif match["turns"] and open_ones:
            open_ones[-1] = ""
        elif match["ends"] and open_ones:
            open_ones.pop()
        elif file := match["file"]:
            macro = next(filter(None, open_ones), "")
            found[file] = macro if found.get(file, macro) == macro else ""
    return {file: macro for file, macro in found.items() if macro}


def may_be_defined(macros: set[str], texts: Iterable[str], flags: list[str]) -> set[str]:
    """Those of the macros that a text defines, or a flag may define."""
    if any(flag.startswith(_BRINGS_TEXT) for flag in flags):
        return macros
    found = {macro for macro in macros if any(macro in flag for flag in flags)}
    for text in texts:
        named = {macro for macro in macros - found if macro in text}
        found |= {macro for macro in named if re.search(rf"#[ \t]*define[ \t]+{macro}\b", text)}
    return found
