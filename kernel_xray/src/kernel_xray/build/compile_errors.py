"""Turns a compiler's output into an error that a learner can act on."""

import os
import re
from pathlib import Path

from kernel_xray.machine.paths import INCLUDE, LIBRARIES
from kernel_xray.translate.errors import BuildError, UnsupportedError
from kernel_xray.translate.refusals import REFUSAL

# g++ and clang: `file.cu:3:7: error: text`; nvcc: `file.cu(3): error: text`. A path may contain spaces, `:` and `(`.
_DIAGNOSTIC = re.compile(
    r"^(?P<file>\S.*?)(?::(?P<line>\d+)(?::(?P<column>\d+))?:|\((?P<nvcc_line>\d+)\):) "
    r"(?P<kind>(?:fatal )?error|warning|note)(?: #[\w-]+)?: (?P<text>.*)$"
)
_INSTANTIATED = re.compile(
    r"^(?P<file>\S.*?):(?P<line>\d+):(?P<nvcc_line>\d+): +(?:required from|note: in instantiation)"
)
_OTHER = re.compile(r"^(?:FAILED: |ninja: |\[\d+/\d+\]|In file included|\S+: In |\d+ errors? detected|\d+ errors? gen)")
_LINKER = re.compile(
    r"\bld: error: |undefined reference to|cannot find -l|multiple definition of|ld returned|undefined symbol"
)
# A name of CUDA's that nothing declares, as g++ and clang say it
_CUDA = r"cu(?:da|blas|rand|fft)?[A-Z]\w*|curand_\w+|__\w+"
_UNDECLARED = re.compile(
    rf"['‘](?P<name>{_CUDA})['’] (?:was not|has not been) declared"
    rf"|(?:use of undeclared identifier|unknown type name) '(?P<clangs>{_CUDA})'"
)
_CONTEXT_LINES = 6
_OURS = (str(INCLUDE), str(LIBRARIES))


def explain(name: str, output: str) -> BuildError:
    """The error for the build of extension `name` that printed `output`."""
    lines = output.splitlines()
    found = [(i, m) for i, text in enumerate(lines) if (m := _DIAGNOSTIC.match(text)) and "error" in m["kind"]]
    for index, match in found:
        if REFUSAL in match["text"]:
            sentence = match["text"].split(REFUSAL, 1)[1].strip().strip('"')
            return UnsupportedError(f"{_place(_origin(lines, index, match))}: {REFUSAL}{sentence}", output)
    if not found:
        linker = [text.strip() for text in lines if _LINKER.search(text)]
        text = linker[0] if linker else _without_line(lines)
        return BuildError(f"{name} did not build: {text}{_more(len(linker) - 1)}", output)
    index, match = found[0]
    message = [f"{_place(_origin(lines, index, match))}: error: {match['text']}"]
    for text in lines[index + 1 : index + 1 + _CONTEXT_LINES]:
        if not text.strip() or _DIAGNOSTIC.match(text) or _OTHER.match(text):
            break
        message.append(text)
    if len(message) == 1:
        message += _code(match)
    if undeclared := _UNDECLARED.search(match["text"]):
        message.append(f"If nvcc takes {undeclared['name'] or undeclared['clangs']}: the simulator does not have it.")
    return BuildError("\n".join(message) + _more(len(found) - 1), output)


def names_change_meaning(output: str) -> bool:
    """Whether all errors are of names that get another meaning in a class: `using Part = Part<int>;`.

    nvcc gives g++ the class with qualified names. Without that, g++ takes it with -fpermissive.
    """
    errors = re.findall(r"\berror: (.*)", output)
    return bool(errors) and all("changes meaning of" in text and "-fpermissive" in text for text in errors)


def _without_line(lines: list[str]) -> str:
    """What a compiler said that failed without naming a line: it was killed, say, or its temporary file was."""
    failed = next((i for i, text in enumerate(lines) if text.startswith("FAILED: ")), None)
    said = lines if failed is None else lines[failed + 2 :]  # the command follows
    said = [text for text in said if text.strip() and not _OTHER.match(text)] or lines[-1:]
    errors = [text for text in said if " error" in text]
    return [*errors[:1], *said[-1:], "the compiler printed nothing"][0].strip()


def _origin(lines: list[str], index: int, error: re.Match[str]) -> re.Match[str]:
    """The source of an error in one of the simulator's headers: the line that instantiated the template."""
    if not error["file"].startswith(_OURS):
        return error
    around = [*reversed(lines[max(0, index - 12) : index]), *lines[index + 1 : index + 12]]
    origins = (_INSTANTIATED.match(text) for text in around)
    return next((m for m in origins if m and not m["file"].startswith(_OURS)), error)


def _place(match: re.Match[str]) -> str:
    path = Path(match["file"])
    try:
        relative = Path(os.path.relpath(path))
    except ValueError:
        relative = path
    shown = relative if len(str(relative)) < len(str(path)) else path
    return f"{shown}:{match['line'] or match['nvcc_line']}"


def _code(match: re.Match[str]) -> list[str]:
    """The line of an error as compilers show it, where they could not read the file under the name that they have."""
    try:
        text = Path(match["file"]).read_text(errors="replace").split("\n")[int(match["line"]) - 1]
    except (OSError, TypeError, IndexError):
        return []
    below = [f"      | {' ' * (int(match['column']) - 1)}^"] if match["column"] else []
    return [f"{match['line']:>5} | {text}", *below]


def _more(count: int) -> str:
    if count <= 0:
        return ""
    return f"\n... and {count} more error{'s' if count > 1 else ''}; the exception's `output` holds everything"
