"""Landlock: a process gives up all files but those named, for good, with no privilege and no other program.

Facts from the kernel's documentation, "Landlock: unprivileged access control" (userspace-api/landlock, of Linux 6.x,
read 2026-11-22): the numbers of the system calls, which are the same on all architectures but alpha; access rights by
version of the interface (ABI); a process in a Landlock domain cannot ptrace one outside, or read its environment, its
memory or its open files below /proc; ABI 4 adds TCP ports, ABI 6 abstract UNIX sockets and signals.
"""

import ctypes
import os
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL  # the others are for folders only
_NO_NEW_PRIVILEGES = 38  # of prctl(2)

# ABI -> bits of the rights on files that it knows
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
LIBC = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The kernel's ABI, 0 if it has no Landlock or does not permit it here."""
    return max(0, LIBC.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def restrict(read: Iterable[str], execute: Iterable[str], write: Iterable[str]) -> None:
    """From now on, this process and its children can use only files at or below these paths, and no TCP.

    A path that does not exist is left out. `execute` may also be read; `write` may be read, but not executed.
    Raises OSError.
    """
    abi = version()
    if not abi:
        raise OSError("the kernel has no Landlock")
    known = (1 << _RIGHTS[min(abi, max(_RIGHTS))]) - 1
    attributes = struct.pack("QQQ", known, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE, ctypes.create_string_buffer(attributes, 24), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, rights in (
            (read, _READ | _LIST),
            (execute, _READ | _LIST | _EXECUTE),
            (write, known & ~_EXECUTE & ~_IOCTL),
        ):
            for path in paths:
                _allow(ruleset, path, rights & known)
        if LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = rights if os.path.isdir(path) else rights & _OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
        _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(place)


def _call(*arguments: object) -> int:
    result = LIBC.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
