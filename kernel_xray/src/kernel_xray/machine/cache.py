"""The build cache: where it lies, the keys of its folders, and a lock that a killed process cannot leave behind.

It holds one folder for each distinct build; artifacts.py says when what lies there may be used, and eviction.py keeps
the whole within a limit.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import IO

VARIABLE = "KERNEL_XRAY_CACHE"
LOCK, RECORD = ".in_use", "finished.json"  # files in the folder of a build: see artifacts.py for the second
# The path of the cache is part of compiler and linker flags, where these characters separate or quote.
_REFUSED = re.compile(r"[^\w ./+=@~-]")


class CacheError(RuntimeError):
    """The cache folder cannot be used."""


def root() -> Path:
    """The cache folder: KERNEL_XRAY_CACHE, or `kernel_xray` in the user's cache folder; made if it is missing.

    It need not be writable: what it holds can be used all the same. Raises CacheError.
    """
    chosen = os.environ.get(VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = _absolute(chosen or str(Path(base) / "kernel_xray"))
    if found := _REFUSED.search(str(folder)):
        raise CacheError(
            f"the path of the build cache, {folder}, contains {found[0]!r}, which compilers and linkers do not take; "
            f"set {VARIABLE} to a path without it"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    except OSError as error:
        raise CacheError(f"the build cache {folder} cannot be created ({error.strerror}); {ADVICE}") from error
    return folder


ADVICE = f"set {VARIABLE} to a folder that you may write to"


@lru_cache(maxsize=8)
def _absolute(path: str) -> Path:
    """A relative path counts from the folder in which this process first asked."""
    return Path(path).expanduser().absolute()


def digest(*parts: object) -> str:
    """A key of 16 hexadecimal digits for `parts`: objects with distinct reprs."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


# Descriptors of the locks that this thread holds. A lock is free once every process that inherited its descriptor has
# ended: guard.py gives it to what ends the compilers, so that none of them writes while another process builds.
held: ContextVar[tuple[int, ...]] = ContextVar("held", default=())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks `folder` for this process; others wait.

    If the process dies, the operating system releases the lock when the compilers that it started are gone. Raises
    CacheError if the folder cannot be written.
    """
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            file = open(folder / LOCK, "w")  # noqa: SIM115
            try:
                holder = lock(file)
            except OSError:
                file.close()
                raise
        except FileNotFoundError:  # another process evicted the folder in between
            continue
        except OSError as error:
            raise CacheError(
                f"{folder.name} is not in the build cache {folder.parent}, and cannot be built there "
                f"({error.strerror}); {ADVICE}"
            ) from error
        with file, holder:
            if not _is(file.fileno(), folder / LOCK):
                continue  # evicted while this process waited
            # PyTorch's own lock is a plain file: a killed build leaves it behind, and the next build waits for it
            # forever. While this process holds the folder, no build can be running, so the file is stale.
            (folder / "lock").unlink(missing_ok=True)
            before = held.set((*held.get(), holder.fileno()))
            try:
                yield
            finally:
                held.reset(before)
            fcntl.flock(holder, fcntl.LOCK_UN)  # closing is not enough if another thread has forked this process
            return


def lock(file: IO, how: int = fcntl.LOCK_EX) -> IO:
    """Locks an open file as flock does, and returns the file whose closing ends the lock.

    That is another one, in the temporary folder, where the file system has no flock, as NFS without a lock manager or
    Lustre without its option of that name: then only the processes of this machine wait for each other. Raises OSError.
    """
    try:
        fcntl.flock(file, how)
        return file
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    folder = Path(tempfile.gettempdir()) / f"kernel_xray_locks_{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.fstat(file.fileno())
    other = open(folder / f"{found.st_dev}_{found.st_ino}", "w")  # noqa: SIM115
    try:
        fcntl.flock(other, how)
    except OSError:
        other.close()
        raise
    return other


def _is(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def write_whole(path: Path, text: str) -> None:
    """Writes a file that appears whole or not at all, also if several processes and machines write it at a time."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(6)}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def size(folder: Path) -> int:
    """The bytes of all files in a folder, without those that vanish meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat(follow_symlinks=False).st_size
    return total
