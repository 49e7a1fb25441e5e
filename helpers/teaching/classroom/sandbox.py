"""Confines the process that builds and runs an answer, from the inside and for good, before it has seen the answer.

What it may use: the compiler, Python and its packages, the course without solutions, tests and notebooks, all
read-only; a folder of its own; no network; no process but its own children; limited sizes of files. docs/sandbox.md
says what this protects, and what it does not.
"""

import contextlib
import ctypes
import os
import resource
import shutil
import socket
import struct
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch

from helpers.paths import HELPERS, INSTRUMENT, KERNEL_INCLUDE, KERNELS
from helpers.practice import isolated, object_code
from helpers.teaching.classroom import landlock, system_calls
from kernel_xray.machine import cache
from kernel_xray.machine.paths import PACKAGE

FILE_BYTES = 256_000_000  # of a file that it writes; a library of a kernel has under a million
_LIMITS = {resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 4096}
# In the cache, what is built once for all kernels; other folders there may hold solutions.
_SHARED = ("simt-", "headers-")
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/opt")
_READ = ("/proc", "/sys/devices/system", "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom")
_WRITE = ("/dev/null", "/dev/zero")
_KEPT = (
    "CC",
    "CXX",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "TZ",
    "KERNEL_LADDER_",
    "KERNEL_XRAY_",
    "TORCHINDUCTOR_",
)
_NEW_NAMESPACES = 0x10000000 | 0x40000000 | 0x08000000 | 0x04000000  # user, network, IPC, host name
_CAPABILITIES_VERSION, _CAPSET = 0x20080522, {"x86_64": 126, "aarch64": 91}


def enter(folder: Path, files: tuple[int, ...], given: Iterable[Path] = ()) -> None:
    """Confines this process, which must have one thread, to `folder`; all open files but `files` are closed.

    given: what it may read besides
    Raises OSError if the kernel does not permit it: see `problem`.
    """
    readable = [
        *_READ,
        *_SYSTEM,
        str(HELPERS),
        str(PACKAGE),
        str(KERNEL_INCLUDE),
        *_pythons(),
        *_make_cache(folder),
        *map(str, given),
    ]
    executable = [*_SYSTEM, *_pythons()]
    _close_all_but(files)
    _clean_environment(folder)
    _limit(resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first to be ended if the machine has no memory left
    with contextlib.suppress(OSError):
        _leave_namespaces()
    _drop_capabilities()
    landlock.restrict(readable, executable, [*_WRITE, str(folder)])
    system_calls.give_up_reaching_out()
    _give_up_forks_when_built(folder)


def enter_worker(folder: Path) -> None:
    """Confines this process, which must have one thread, and those that it starts: it judges answers in `folder`.

    It reads the course and writes to the build cache. /proc is for what a confined answer writes of itself there. What
    it needs no longer, such as the class's folder, is out of reach, should a message of an answer ever open a file.
    Raises OSError if the kernel does not permit it.
    """
    _limit(resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)
    course = [str(HELPERS), str(KERNELS), str(INSTRUMENT)]
    executable = [*_SYSTEM, *_pythons()]
    landlock.restrict([*_READ, *course], executable, [*_WRITE, "/proc", str(cache.root()), str(folder)])


def needed(environment: Mapping[str, str], more: tuple[str, ...] = ()) -> dict[str, str]:
    """The variables that compilers, Python and the simulator read, and those that begin as one of `more`."""
    return {name: value for name, value in environment.items() if name.startswith((*_KEPT, *more))}


def problem() -> str:
    """Why answers cannot be confined on this machine, or "". Tries it in a process of its own."""
    if not sys.platform.startswith("linux"):
        return "only Linux can confine a process in this way"
    if isolated.METHOD != "fork":
        return "answers run on the GPU, which a confined process could not use"
    if not landlock.version():
        return "the kernel has no Landlock (Linux 5.13), or does not permit it"
    if not object_code.supported():
        return "objdump of binutils is missing, which shows what an answer's code would call"
    if not system_calls.supported():
        return "the kernel or the processor's system calls are not supported"
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return "the kernel does not list a process's children (CONFIG_PROC_CHILDREN), so nothing could be watched"
    folder = tempfile.mkdtemp(prefix="answer_")
    try:
        return "" if _in_a_fork(lambda: _try(Path(folder))) == 0 else "the kernel did not confine a process that asked"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_a_container() -> bool:
    """Whether this is a container, which can be thrown away after the grading."""
    marks = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
    return any(map(os.path.exists, marks)) or bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _try(folder: Path) -> None:
    """Raises AssertionError unless what is confined is confined."""
    outside = folder.parent / f"{folder.name}.outside"
    enter(folder, ())
    (folder / "inside").write_text("x")
    for attempt in (lambda: outside.write_text("x"), lambda: os.listdir(folder.parent), socket.socket):
        try:
            attempt()
        except PermissionError:
            continue
        raise AssertionError


def _in_a_fork(function: Callable[[], object]) -> int:
    pid = os.fork()
    if not pid:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# -- the steps ---------------------------------------------------------------------------------------------------------


def _pythons() -> list[str]:
    """The folders of Python, of the environment and of PyTorch."""
    folders = {sys.prefix, sys.base_prefix, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    folders |= {str(Path(torch.__file__).parent), str(Path(sys.executable).resolve().parent.parent)}
    return sorted(os.path.realpath(folder) for folder in folders)


def _make_cache(folder: Path) -> list[str]:
    """A build cache in `folder` that leads to what is built once for all kernels. Returns what it leads to."""
    own, leads_to = folder / "cache", []
    own.mkdir(exist_ok=True)
    for shared in sorted(cache.root().iterdir()):
        if shared.name.startswith(_SHARED) and shared.is_dir():
            (own / shared.name).symlink_to(shared.resolve())
            leads_to.append(str(shared.resolve()))
    return leads_to


def _limit(*resources: int) -> None:
    for what in resources:
        most, before = _LIMITS[what], resource.getrlimit(what)[1]
        most = min(most, before) if before >= 0 else most
        resource.setrlimit(what, (most, most))


def _close_all_but(files: tuple[int, ...]) -> None:
    first = 3
    for number in sorted(number for number in files if number >= 3):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, 1 << 16)


def _clean_environment(folder: Path) -> None:
    for name in os.environ.keys() - needed(os.environ).keys():
        del os.environ[name]
    own = str(folder)
    os.environ.update({"HOME": own, "TMPDIR": own, "USER": "answer", cache.VARIABLE: str(folder / "cache")})
    tempfile.tempdir = own
    os.chdir(folder)


def _leave_namespaces() -> None:
    """Moves to a user namespace, where root has no rights, and to an empty network."""
    user, group = os.getuid(), os.getgid()
    if landlock.LIBC.unshare(_NEW_NAMESPACES):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _drop_capabilities() -> None:
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_VERSION, 0))
    none = ctypes.create_string_buffer(24)
    if landlock.LIBC.syscall(_CAPSET[os.uname().machine], header, none):
        raise OSError(ctypes.get_errno(), "capset")


def _give_up_forks_when_built(folder: Path) -> None:
    """A build needs processes; the code of the answer, which begins when its library is loaded, does not.

    An answer in Python builds a kernel itself, and so may start processes until its library is loaded.
    """
    load = torch.ops.load_library

    def locked(path: str) -> None:
        if path.startswith(str(folder)):
            system_calls.give_up_forks()
            torch.ops.load_library = load
        load(path)

    torch.ops.load_library = locked
