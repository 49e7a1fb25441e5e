"""Files that a build read although no `#include "name"` in the sources names them: `#include MACRO`, `#include_next`.

The compiler lists what it read (-MD). The list and a digest of the contents are kept beside the builds, and a change of
one of these files leads to another build, as a change of a source does. Headers of the system, of Python, of PyTorch,
of CUDA and of the simulator are not watched.
"""

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from kernel_xray.machine import cache, toolchain
from kernel_xray.machine.paths import PACKAGE, of_torch


def current(key: str) -> str:
    """The key of a build, given the key of its sources: another one if a file that the last build read has changed."""
    while (known := _read(key)) is not None:
        now = _state(known["files"])
        if now == known["state"]:
            break
        key = cache.digest(key, now)
    return key


def state(key: str) -> str:
    """A digest of the list of a build, "" if there is none: it differs if the list was lost or damaged."""
    return known["state"] if (known := _read(key)) is not None else ""


def record(key: str, read: Iterable[Path], sources: Iterable[Path], since: float) -> bool:
    """Notes which files a build read besides its `sources`, and returns whether there are any.

    since: when it began, in seconds since the epoch
    """
    foreign = _foreign()
    own = {p.resolve() for p in read} - set(sources)
    files = sorted(str(path) for path in own if not any(path.is_relative_to(folder) for folder in foreign))
    if not files:
        return False
    # A file that was written after the build had begun may have been read before: no state is right for it.
    # A later time than now says nothing: the clock was set back since, or is another machine's.
    stale = any(not (p := Path(f)).exists() or since <= p.stat().st_mtime <= time.time() for f in files)
    place = _place(key)
    place.parent.mkdir(exist_ok=True)
    cache.write_whole(place, json.dumps({"files": files, "state": "unknown" if stale else _state(files)}))
    return True


def of_ninja(folder: Path) -> list[Path]:
    """What the compilers of the last build in a folder of PyTorch's read."""
    done = subprocess.run(
        ["ninja", "-t", "deps"], cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    return [folder / line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]


def of_makefiles(files: Iterable[Path]) -> list[Path]:
    """What the compilers read that wrote these files with -MD -MF: `target: file file \\`, blanks as `\\ `."""
    found = []
    for file in files:
        if file.exists():
            text = file.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ").partition(": ")[2]
            found += [Path(re.sub(r"\\(.)", r"\1", name)) for name in re.findall(r"(?:\\.|\S)+", text)]
    return found


def _place(key: str) -> Path:
    return cache.root() / "dependencies" / f"{key}.json"


def _read(key: str) -> dict | None:
    try:
        known = json.loads(_place(key).read_text(encoding="utf-8"))
        return known if isinstance(known["files"], list) and isinstance(known["state"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _state(files: list[str]) -> str:
    return cache.digest([(name, _hash(Path(name))) for name in files])


def _hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _foreign() -> list[Path]:
    """The folders whose headers are not watched."""
    nvcc = toolchain.find_nvcc()
    folders = [PACKAGE, *filter(None, [of_torch()]), Path(sys.prefix), Path(sys.base_prefix), Path("/usr")]
    folders += [cache.root(), *([nvcc.resolve().parent.parent] if nvcc else [])]
    return [folder.resolve() for folder in folders]
