"""Seccomp filters: a process gives up system calls for good.

The numbers are those of the kernel's tables for x86-64 and arm64 (arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h of Linux 6.x, read 2026-11-22). A call that is given up fails with EPERM; clone3,
whose arguments a filter cannot see, with ENOSYS, upon which the C library uses clone.
"""

import ctypes
import errno
import platform
import struct

from helpers.teaching.classroom.landlock import LIBC

# Name -> number on x86-64 and on arm64; None where there is no such call.
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),  # memory that no process's size shows
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
}
_CLONE, _CLONE3, _FORK = (56, 220), (435, 435), (57, None)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the table, and AUDIT_ARCH
_CLONE_VM, _CLONE_VFORK, _CLONE_THREAD, _NEW_NAMESPACES = 0x100, 0x4000, 0x10000, 0x7E020000

_LOAD, _EQUAL, _ANY_BIT, _RETURN, _AND, _AT_LEAST = 0x20, 0x15, 0x45, 0x06, 0x54, 0x35
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # from this number on, x86-64's calls with 32-bit pointers
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38


def supported() -> bool:
    return platform.machine() in _MACHINES and LIBC.prctl(21, 0, 0, 0, 0) >= 0


def give_up_reaching_out() -> None:
    """No sockets, no other processes' memory, no mounts or namespaces, no kernel interfaces. Raises OSError."""
    column, _ = _MACHINES[platform.machine()]
    denied = [numbers[column] for numbers in _CALLS.values()]
    program = [step for number in denied if number is not None for step in _refuse(number, errno.EPERM)]
    # clone with a new namespace
    program += [(_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _FIRST), (_AND, 0, 0, _NEW_NAMESPACES)]
    program += [(_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _ERROR | errno.EPERM), (_LOAD, 0, 0, _NUMBER)]
    program += _refuse(_CLONE3[column], errno.ENOSYS)
    _install(program)


def give_up_forks() -> None:
    """No new processes but by vfork, whose caller waits for the program that it starts; threads. Raises OSError."""
    column, _ = _MACHINES[platform.machine()]
    program = [] if _FORK[column] is None else _refuse(_FORK[column] or 0, errno.EPERM)
    wanted = _CLONE_VM | _CLONE_VFORK
    program += [(_EQUAL, 0, 5, _CLONE[column]), (_LOAD, 0, 0, _FIRST), (_ANY_BIT, 3, 0, _CLONE_THREAD)]
    program += [(_AND, 0, 0, wanted), (_EQUAL, 1, 0, wanted), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    program += [(_LOAD, 0, 0, _NUMBER)]
    _install(program)


def _refuse(number: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]


def _install(program: list[tuple[int, int, int, int]]) -> None:
    _, architecture = _MACHINES[platform.machine()]
    refused = (_RETURN, 0, 0, _ERROR | errno.EPERM)
    head = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), refused, (_LOAD, 0, 0, _NUMBER)]
    if platform.machine() == "x86_64":
        head += [(_AT_LEAST, 0, 1, _X32), refused]
    steps = [*head, *program, (_RETURN, 0, 0, _ALLOW)]
    raw = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer)), 16)
    failed = LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or LIBC.prctl(_SET_SECCOMP, _FILTER, described, 0, 0)
    if failed:
        raise OSError(ctypes.get_errno(), "seccomp filter")
