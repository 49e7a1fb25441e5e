"""What a build made: found again, checked before it is used, and built again if it was damaged.

When a build has ended, the folder's `finished.json` records the file, its size and its hash, and is written last. A
file that is not what was recorded (a truncated library would end the process with SIGBUS, a truncated header would fail
each later build) is never loaded: the build is repeated, and a line on stderr says so.

A user who can write a library can run code with the rights of the user who loads it. So a file counts only if nobody
but its owner can write it and its folder, and if the owner is this user, root, or the owner of the cache.
"""

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kernel_xray.machine import cache, eviction
from kernel_xray.machine.cache import RECORD

_ALWAYS_HASHED = 1 << 25  # bytes; a larger file is hashed only if its size or time of writing is not the recorded one
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def built(folder: Path, key: str, build: Callable[[], Path], also: Callable[[], str] = str) -> Path:
    """The file in `folder` that build() makes for `key`: made now, or found because it was made before.

    also: a text that has to be what it was after the build, such as a digest of a list that build() keeps elsewhere

    Only one process at a time builds. A folder that the user named may hold a build with another key. Raises CacheError
    if the folder cannot be written or belongs to another user, and what build() raises.
    """
    record = _read(folder)
    made, problem = _find(folder, key + also())
    if made is not None:
        return made
    eviction.limit()  # a wrong limit is an error before the build, not after it
    with cache.locked(folder):
        if _read(folder) != record:  # another process has built it while this one waited
            made, problem = _find(folder, key + also())
            if made is not None:
                return made
        if problem:
            print(f"build cache: {problem}; building it again", file=sys.stderr, flush=True)
        _make_ready(folder, whole=bool(problem))
        made = build()
        _finish(folder, key + also(), made)
    eviction.trim(cache.root(), keep=folder)
    return made


def found(folder: Path, key: str) -> Path | None:
    """The file in `folder` that was made for `key`, if it is there and intact."""
    return _find(folder, key)[0]


def _find(folder: Path, key: str) -> tuple[Path | None, str]:
    """The finished file for `key`, if it is there and intact; else what is wrong with it, if it is there."""
    record = _read(folder)
    if record is None or record.get("key") != key:
        return None, ""
    made = folder / str(record.get("file"))
    if problem := _problem(made, record):
        return None, f"{made} {problem}"
    eviction.mark_used(folder / RECORD)
    return made, ""


def _read(folder: Path) -> dict | None:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not built, or not to the end
    return record if isinstance(record, dict) else None


def _problem(made: Path, record: dict) -> str:
    """What keeps a file from being used, in words; empty if nothing does."""
    try:
        status = made.stat()
        for path in (made, made.parent):
            if _in_cache(made.parent) and (why := _open_to_others(path)):
                return why
        if status.st_size != record.get("bytes"):
            return f"was damaged ({status.st_size:,} of {record.get('bytes', 0):,} bytes)"
        if status.st_size > _ALWAYS_HASHED and status.st_mtime_ns == record.get("written"):
            return ""
        return "" if _hash(made) == record.get("sha256") else "was damaged (other contents)"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _in_cache(folder: Path) -> bool:
    return folder.parent == cache.root()  # not one that the user named, whose rights are the user's affair


def _open_to_others(path: Path) -> str:
    status = path.stat()
    if status.st_uid not in _trusted():
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & _OTHERS_WRITE and _protect(path):
        return "could be written by other users"
    return ""


def _trusted() -> set[int]:
    return {os.geteuid(), 0, cache.root().stat().st_uid}


def _protect(path: Path) -> bool:
    """Lets nobody but the owner write. False on a file system without such rights, where nothing can be done."""
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS_WRITE)
    except OSError:
        return True  # the rights exist, but only the owner can change them
    return not path.stat().st_mode & _OTHERS_WRITE


def _make_ready(folder: Path, whole: bool) -> None:
    """Makes the next build a whole one, unless an intact build for another key lies there and `whole` is false.

    What a killed build left, or a damaged one, may look finished to ninja, which goes by its log.
    """
    if _in_cache(folder):
        if folder.stat().st_uid not in _trusted():
            raise cache.CacheError(f"{folder} belongs to another user; {cache.ADVICE}")
        _protect(folder)
    record = _read(folder)
    if whole or record is None or _problem(folder / str(record.get("file")), record):
        for name in (RECORD, ".ninja_log", ".ninja_deps"):
            (folder / name).unlink(missing_ok=True)


def _finish(folder: Path, key: str, made: Path) -> None:
    """Records a finished file. The record appears whole or not at all."""
    _protect(made)
    status = made.stat()
    record = {"file": made.name, "key": key, "bytes": status.st_size, "sha256": _hash(made), "built": time.time()}
    if status.st_size > _ALWAYS_HASHED:
        record["written"] = status.st_mtime_ns
    cache.write_whole(folder / RECORD, json.dumps(record))


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
