"""The learner's own headers that a source includes, directly or through others."""

import re
from functools import lru_cache
from pathlib import Path

from kernel_xray.translate.errors import BuildError
from kernel_xray.translate.guards import guards, may_be_defined, may_wait

# Between the words of a directive: blanks, continued lines, comments.
_GAP = r"(?:[ \t]|\\\n|/\*(?:[^*]|\*(?!/))*\*/)*"
INCLUDE = re.compile(rf"^{_GAP}#{_GAP}(?:include|import){_GAP}([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)
_FILE = r"\"[^\"\n]+\"|<[^>\n]+>"
_NAMED = re.compile(  # a macro that stands for a file, the end of one, and an #include of one
    rf"^{_GAP}#{_GAP}(?:define[ \t]+(\w+)[ \t]+({_FILE})[ \t]*$|undef[ \t]+(\w+)|(?:include|import)[ \t]+(\w+))",
    re.MULTILINE,
)
# The toolkit's other name of its folders, also where a macro makes the name of a file: `<cccl/cuda/std/header>`.
_TOOLKIT = re.compile(r"<cccl/(?=(?:cuda|cub|thrust|nv)/)")
BY_MACRO = re.compile(rf"^{_GAP}#{_GAP}(?:include|import){_GAP}\w", re.MULTILINE)  # and #include_next


def resolve_include(quote: str, name: str, folder: Path, include_paths: list[Path]) -> Path | None:
    """The learner's own file that an #include names; None for system, PyTorch and CUDA headers."""
    folders = ([folder] if quote == '"' else []) + include_paths
    return next((f / name for f in folders if (f / name).is_file()), None)


def closure(sources: list[Path], include_paths: list[Path], flags: list[str] | None = None) -> dict[Path, str]:
    """Path and text of `sources` and of all the learner's own headers that they include, directly or not.

    flags: the compiler's; without large headers that none of the macros which they wait for lets in (guards.py)

    A byte that is not UTF-8, as of a comment in Latin-1, is a lone surrogate in the text; `write_source` restores it.
    Raises BuildError for a file that is not text.
    """
    texts: dict[Path, str] = {}
    files: dict[str, str] = {}
    waiting = list(sources)
    left: set[tuple[Path, str]] = set()  # headers, each with a macro that would let it in
    while waiting or (waiting := _let_in(left, texts, flags or [])):
        path = waiting.pop(0).resolve()
        if path in texts:
            continue
        texts[path] = _with_files(_TOOLKIT.sub("<", read_source(path)), files)
        if "\0" in texts[path]:
            at = f"byte {path.read_bytes().index(0)} is zero"
            raise BuildError(f"{path.name} is not text in UTF-8 or another code of single bytes: {at}")
        guarded = {} if flags is None else _guarded(path, texts[path], include_paths)
        left |= guarded.items()
        waiting += [file for file in included(path, texts[path], include_paths) if file not in guarded]
    return texts


def _let_in(left: set[tuple[Path, str]], texts: dict[Path, str], flags: list[str]) -> list[Path]:
    """Those of the headers left out that a macro may let in."""
    waiting = {(file, macro) for file, macro in left if file not in texts}
    defined = may_be_defined({macro for _, macro in waiting}, texts.values(), flags)
    return sorted({file for file, macro in waiting if macro in defined})


def _guarded(path: Path, text: str, include_paths: list[Path]) -> dict[Path, str]:
    """The large headers that a file includes only where a macro is defined, each with that macro."""
    large = {
        name: file.resolve()
        for quote, name in directives(text)
        if (file := resolve_include(quote, name, path.parent, include_paths)) and may_wait(file)
    }
    return {file: macro for name, macro in guards(text).items() if (file := large.get(name))} if large else {}


def read_source(path: Path) -> str:
    """The text of a source; a byte that is not UTF-8 is a lone surrogate in it."""
    return path.read_text(encoding="utf-8-sig", errors="surrogateescape")


def write_source(path: Path, text: str) -> None:
    """Writes a text that `read_source` has read, as the bytes that it was read from."""
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def _with_files(text: str, files: dict[str, str]) -> str:
    """The text with files in place of the macros that its #includes name; `files` has those that are defined by now.

    A macro that a condition asks for, or that may stand for another file, stays: only the compiler knows its value.
    """

    def named(match: re.Match[str]) -> str:
        name, file, ended, macro = match.groups()
        if name:
            files[name] = "" if name in files or re.search(rf"(?:ifn?def|defined)\b[ \t(]*{name}\b", text) else file
        files.pop(ended, None)
        file = files.get(macro)
        return match[0][: -len(macro)] + file if file else match[0]

    return _NAMED.sub(named, text)


def included(path: Path, text: str, include_paths: list[Path]) -> list[Path]:
    """The learner's own files that the text of a file includes."""
    found = (resolve_include(quote, name, path.parent, include_paths) for quote, name in directives(text))
    return [file.resolve() for file in found if file is not None]


@lru_cache(maxsize=1024)  # a build asks several times, and a template library has megabytes
def directives(text: str) -> list[tuple[str, str]]:
    """The #includes of a text: the quote that opens each name, and the name."""
    return INCLUDE.findall(text)
