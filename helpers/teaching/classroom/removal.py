"""Deletes what an answer has left in its folder, whatever that is."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(folder: Path) -> None:
    """Deletes a folder with all that is in it. Nothing is opened but folders, and no link is followed.

    A folder in it is emptied into the top one, so neither depth nor the length of a path has a limit. What cannot be
    deleted, as by another user's rights, is left. No process may still write there.
    """
    with suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)
        top = os.open(folder, _FOLDER)
        try:
            while sum(_removed(top, entry) for entry in _entries(top)):
                pass
        finally:
            os.close(top)
        os.rmdir(folder)


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(found)


def _removed(top: int, entry: os.DirEntry[str]) -> bool:
    """Deletes what `entry` of the folder `top` is; whether that changed anything."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=top)
            return True
        os.chmod(entry.name, stat.S_IRWXU, dir_fd=top)
        inside = os.open(entry.name, _FOLDER, dir_fd=top)
        try:
            for each in _entries(inside):
                if each.is_dir(follow_symlinks=False):
                    os.chmod(each.name, stat.S_IRWXU, dir_fd=inside)  # its `..` changes
                    os.rename(each.name, secrets.token_hex(16), src_dir_fd=inside, dst_dir_fd=top)
                else:
                    os.unlink(each.name, dir_fd=inside)
        finally:
            os.close(inside)
        os.rmdir(entry.name, dir_fd=top)
        return True
    except OSError:
        return False
