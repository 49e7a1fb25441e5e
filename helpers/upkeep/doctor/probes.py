"""Probes of the host for `helpers.upkeep.doctor.diagnosis`: Python, PyTorch, compiler, headers, ninja, caches, disk.

Each probe examines one thing and returns a Finding. Paths and versions are parameters that default to this machine's,
so that tests can produce each failure.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

OLDEST_TORCH = (2, 11)
PROBE = "#include <type_traits>\ntemplate <class T> requires std::is_integral_v<T> T one() { return 1; }\n"
COMPILER_HINT = "install g++ or clang++ (Debian, Ubuntu: sudo apt install g++; macOS: xcode-select --install)"
STALE_AFTER = 15 * 60  # seconds; the build of one extension hardly ever takes longer
GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    """The result of one probe. `state` is "ok", "note" (the course still runs) or "problem" (it does not).

    found: what the probe saw; why: why it matters; fix: the command or step that fixes it.
    """

    what: str
    state: str
    found: str
    why: str = ""
    fix: str = ""


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    found = ".".join(map(str, version))
    if version >= (3, 10):
        return Finding("Python", "ok", f"{found} ({sys.executable})")
    return Finding("Python", "problem", found, "PyTorch needs 3.10 or newer", "make setup PYTHON=/path/to/python3")


def check_torch() -> Finding:
    fix = "make setup"
    try:
        import torch
    except ImportError as error:
        return Finding("PyTorch", "problem", f"cannot be imported: {error}", "every kernel is called through it", fix)
    return judge_torch(torch.__version__, torch.version.cuda)


def judge_torch(version: str, cuda: str | None) -> Finding:
    found = f"{version} ({'CUDA ' + cuda if cuda else 'CPU only'})"
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= OLDEST_TORCH:
        return Finding("PyTorch", "ok", found)
    return Finding("PyTorch", "problem", found, "kernels use the stable C++ interface of 2.11 and later", "make setup")


def other_compiler(command: str) -> str | None:
    """A C++ compiler on this machine that is not `command`; the system's own first."""
    mine = os.path.realpath(shutil.which(command.split()[0]) or command.split()[0])
    candidates = ["/usr/bin/g++", "/usr/bin/clang++", shutil.which("g++"), shutil.which("clang++")]
    return next((c for c in candidates if c and os.access(c, os.X_OK) and os.path.realpath(c) != mine), None)


def check_compiler(command: str | None = None) -> Finding:
    """Compiles a line of C++20: a compiler on PATH may be only a stub (as on a new macOS).

    command: the compiler; by default the one that the loader uses.
    """
    from kernel_xray.runtime.libsimt import compiler

    command = command or compiler()
    why = "kernels are C++; without a compiler none can be built"
    other = other_compiler(command)
    fix = f"export CXX={other}" if other else COMPILER_HINT
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE)
        try:
            probe = run([*command.split(), "-std=c++20", "-fsyntax-only", str(source)])
            version = run([*command.split(), "--version"])
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding("C++ compiler", "problem", f"{command} does not run: {error}", why, fix)
    if probe.returncode:
        first = (probe.stderr.strip().splitlines() or ["no message"])[0]
        return Finding("C++ compiler", "problem", f"{command} does not compile C++20: {first}", why, fix)
    return Finding("C++ compiler", "ok", f"{command}: {(version.stdout.splitlines() or ['?'])[0]}")


def check_python_headers(folder: str | None = None) -> Finding:
    folder = folder or sysconfig.get_path("include")
    if Path(folder, "Python.h").is_file():
        return Finding("Python headers", "ok", folder)
    return Finding(
        "Python headers",
        "problem",
        f"no Python.h in {folder}",
        "the simulator and extensions with PYBIND11_MODULE, as in lesson 02, do not compile without it",
        f"sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-dev (Debian, Ubuntu; "
        "or make the environment from a Python that has its headers: make setup PYTHON=/path/to/python3)",
    )


def shell_path() -> str:
    """PATH as this process inherited it, without the folder of ninja that importing helpers adds."""
    try:
        variables = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:  # no /proc, as on macOS
        return os.environ.get("PATH", "")
    return next((v[5:].decode(errors="replace") for v in variables if v.startswith(b"PATH=")), "")


def check_ninja(path: str | None = None, scripts: str | None = None) -> Finding:
    """path: the PATH to search; scripts: the folder of the environment's own programs."""
    scripts = scripts or sysconfig.get_path("scripts")
    found = shutil.which("ninja", path=shell_path() if path is None else path)
    if found:
        return Finding("ninja", "ok", found)
    if os.access(own := Path(scripts, "ninja"), os.X_OK):
        why = "the course finds it there, but PyTorch's own load() requires it on PATH"
        return Finding("ninja", "note", f"{own}, not on PATH", why, f"source {shlex.quote(f'{scripts}/activate')}")
    return Finding("ninja", "problem", "not found", "PyTorch builds extensions with it", "make setup")


def check_cache() -> Finding:
    """Writes a file to the folder of the builds and checks the free space there."""
    from kernel_xray.machine import cache

    why = "every kernel is built there"
    try:
        folder = cache.root()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (cache.CacheError, OSError) as error:
        return Finding(
            "build cache", "problem", str(error), why, 'export KERNEL_XRAY_CACHE="$HOME/kernel_ladder_cache"'
        )
    return judge_space(folder, shutil.disk_usage(folder).free)


def judge_space(folder: Path, free: int) -> Finding:
    """free: bytes left on the disk of `folder`. One build takes 1 to about 10 MB."""
    found = f"{folder}, {free / GIB:.1f} GiB free"
    if free >= GIB:
        return Finding("build cache", "ok", found)
    why = "a build that runs out of space fails with a misleading message"
    fix = "python -m helpers cache clear (all of it is rebuilt when needed), or set KERNEL_XRAY_CACHE"
    return Finding("build cache", "problem" if free < GIB // 8 else "note", found, why, fix)


def check_locks(folder: Path | None = None) -> Finding:
    """Looks for `lock` files left behind by killed builds of PyTorch's own load().

    folder: of the builds
    """
    from torch._appdirs import user_cache_dir  # as cpp_extension, which may not import where something is missing

    folder = folder or Path(os.environ.get("TORCH_EXTENSIONS_DIR") or user_cache_dir("torch_extensions"))
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK | os.R_OK)):
        why = "the course builds elsewhere, but PyTorch's own load() builds there"
        fix = 'export TORCH_EXTENSIONS_DIR="$HOME/torch_extensions"'
        return Finding("PyTorch's locks", "note", f"{folder} is not a writable folder", why, fix)
    locks = sorted([*folder.glob("*/lock"), *folder.glob("*/*/lock")])
    stale = [lock for lock in locks if age(lock) > STALE_AFTER]
    if not stale:
        return Finding("PyTorch's locks", "ok", f"none is stale in {folder}")
    found = f"{len(stale)} older than {STALE_AFTER // 60} minutes: {', '.join(map(str, stale))}"
    why = "PyTorch's own load() waits forever for the lock of a killed build (helpers.load does not)"
    return Finding("PyTorch's locks", "note", found, why, shlex.join(["rm", *map(str, stale)]))


def age(file: Path) -> float:
    """Seconds since the file was written; 0 if it is gone."""
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return 0


def check_addr2line(path: str | None = None) -> Finding:
    """The tool that finds the source line of an address. path: the PATH to search."""
    tools = ("atos",) if sys.platform == "darwin" else ("addr2line", "llvm-addr2line")
    found = next((place for tool in tools if (place := shutil.which(tool, path=path))), None)
    if found:
        return Finding(tools[0], "ok", found)
    fix = "xcode-select --install" if sys.platform == "darwin" else "sudo apt install binutils"
    return Finding(tools[0], "note", "not found", "without it X-rays of kernels cannot name source lines", fix)
