"""The learner's own headers that a source includes, directly or through others."""

import re
from pathlib import Path

from helpers.simt.errors import BuildError

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)


def resolve_include(quote: str, name: str, folder: Path, include_paths: list[Path]) -> Path | None:
    """The learner's own file that an #include names; None for system, PyTorch and CUDA headers."""
    folders = ([folder] if quote == '"' else []) + include_paths
    return next((f / name for f in folders if (f / name).is_file()), None)


def closure(sources: list[Path], include_paths: list[Path]) -> dict[Path, str]:
    """Path and text of `sources` and of all the learner's own headers that they include, directly or not.

    Raises BuildError for a file that is not text.
    """
    texts: dict[Path, str] = {}
    waiting = list(sources)
    while waiting:
        path = waiting.pop(0).resolve()
        if path in texts:
            continue
        try:
            texts[path] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise BuildError(f"{path.name} is not UTF-8 text (byte {error.start}); is it a source file?") from error
        waiting += included(path, texts[path], include_paths)
    return texts


def included(path: Path, text: str, include_paths: list[Path]) -> list[Path]:
    """The learner's own files that the text of a file includes."""
    found = (resolve_include(m[1], m[2], path.parent, include_paths) for m in INCLUDE.finditer(text))
    return [file.resolve() for file in found if file is not None]
