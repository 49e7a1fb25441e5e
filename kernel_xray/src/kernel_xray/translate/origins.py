"""The names that sources have inside a build, and the files that the names stand for in this process.

A build names a source by its contents, not by its folder: so it serves every copy of that source, in another clone or
another user's folder. Debugging information, compilers and the simulator give back these names; `restored` puts the
paths in their place.
"""

import hashlib
import re
from pathlib import Path

from kernel_xray.translate.includes import BY_MACRO

_NAME = re.compile(r"/source-[0-9a-f]{16}/[\w.+-]+")
_UNSAFE = re.compile(r"[^\w.+-]")
# What an #include or a path finds may then depend on the folder of the source.
_OF_ITS_FOLDER = re.compile(r"__FILE__|__has_include|__has_embed|#\s*embed\b|\.incbin\b")

_paths: dict[str, list[str]] = {}  # by name: the files with these contents, the last loaded first


def names(texts: dict[Path, str]) -> dict[Path, str]:
    """The name of each text of a build.

    It is the path itself if any of the texts depends on its folder: that build serves no other.
    """
    if any(_OF_ITS_FOLDER.search(text) or BY_MACRO.search(text) for text in texts.values()):
        return {path: str(path) for path in texts}
    return {path: _name(path, text) for path, text in texts.items()}


def learn(known_as: dict[Path, str]) -> None:
    """From now on, these names stand for these files."""
    for path, name in known_as.items():
        known = _paths.setdefault(name, [])
        if str(path) not in known[:1]:
            known[:] = [str(path), *(other for other in known if other != str(path))]


def restored(text: str) -> str:
    """The text with paths in place of names. Of several files with the same contents, the last loaded that exists."""
    return _NAME.sub(lambda match: _file(match[0]), text) if "/source-" in text else text


def _name(path: Path, text: str) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]
    return f"/source-{digest}/{_UNSAFE.sub('_', path.name)}"


def _file(name: str) -> str:
    known = _paths.get(name, [name])
    return next((path for path in known if Path(path).exists()), known[0])
