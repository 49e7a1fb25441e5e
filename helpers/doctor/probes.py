"""Probes of the host for `helpers.doctor.diagnosis`: Python, PyTorch, compiler, headers, ninja, caches, disk.

Each probe looks at the machine itself and returns a Finding. What it looks at are parameters, whose defaults are this
machine's, so that each failure can be produced at will.
"""

from __future__ import annotations

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
STALE_AFTER = 15 * 60  # seconds; hardly a build of one extension takes longer
GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `state` is "ok", "note" (the course runs all the same) or "problem" (it does not).

    found: what the probe saw; why: what it matters for; mend: the command, or the step, that mends it.
    """

    what: str
    state: str
    found: str
    why: str = ""
    mend: str = ""


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    found = ".".join(map(str, version))
    if version >= (3, 10):
        return Finding("Python", "ok", f"{found} ({sys.executable})")
    return Finding("Python", "problem", found, "PyTorch needs 3.10 or newer", "make setup PYTHON=/path/to/python3")


def check_torch() -> Finding:
    mend = "make setup"
    try:
        import torch
    except ImportError as error:
        return Finding("PyTorch", "problem", f"cannot be imported: {error}", "every kernel is called through it", mend)
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
    """Compiles a line of C++20, for a name on PATH may be an empty promise (as on a new macOS).

    command: the compiler; None for the one that the loader uses.
    """
    from helpers.simt.libsimt import compiler

    command = command or compiler()
    why = "kernels are C++; without a compiler none can be built"
    other = other_compiler(command)
    mend = f"export CXX={other}" if other else COMPILER_HINT
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE)
        try:
            probe = run([*command.split(), "-std=c++20", "-fsyntax-only", str(source)])
            version = run([*command.split(), "--version"])
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding("C++ compiler", "problem", f"{command} does not run: {error}", why, mend)
    if probe.returncode:
        first = (probe.stderr.strip().splitlines() or ["no message"])[0]
        return Finding("C++ compiler", "problem", f"{command} does not compile C++20: {first}", why, mend)
    return Finding("C++ compiler", "ok", f"{command}: {(version.stdout.splitlines() or ['?'])[0]}")


def check_python_headers(folder: str | None = None) -> Finding:
    folder = folder or sysconfig.get_path("include")
    if Path(folder, "Python.h").is_file():
        return Finding("Python headers", "ok", folder)
    return Finding(
        "Python headers",
        "problem",
        f"no Python.h in {folder}",
        "extensions with PYBIND11_MODULE, as in lesson 02, do not compile without it",
        f"sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-dev (Debian, Ubuntu; "
        "or make the environment from a Python that has its headers: make setup PYTHON=/path/to/python3)",
    )


def shell_path() -> str:
    """PATH as this process was given it: importing helpers puts the environment's own ninja on PATH."""
    try:
        variables = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:  # no /proc, as on macOS
        return os.environ.get("PATH", "")
    return next((v[5:].decode(errors="replace") for v in variables if v.startswith(b"PATH=")), "")


def check_ninja(path: str | None = None, scripts: str | None = None) -> Finding:
    """path: the PATH to look on; scripts: the folder of the environment's own programs."""
    scripts = scripts or sysconfig.get_path("scripts")
    found = shutil.which("ninja", path=shell_path() if path is None else path)
    if found:
        return Finding("ninja", "ok", found)
    if os.access(own := Path(scripts, "ninja"), os.X_OK):
        why = "the course finds it there, but PyTorch's own load() says that ninja is required"
        return Finding("ninja", "note", f"{own}, not on PATH", why, f"source {shlex.quote(f'{scripts}/activate')}")
    return Finding("ninja", "problem", "not found", "PyTorch builds extensions with it", "make setup")


def check_cache() -> Finding:
    """Writes a file where builds go, and looks at the room that is left there."""
    from helpers.machine import cache

    why = "every kernel is built there"
    try:
        folder = cache.root()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (cache.CacheError, OSError) as error:
        return Finding(
            "build cache", "problem", str(error), why, 'export KERNEL_LADDER_CACHE="$HOME/kernel_ladder_cache"'
        )
    return judge_space(folder, shutil.disk_usage(folder).free)


def judge_space(folder: Path, free: int) -> Finding:
    """free: bytes left on the disk of `folder`. One build takes 1 to some 10 MB."""
    found = f"{folder}, {free / GIB:.1f} GiB free"
    if free >= GIB:
        return Finding("build cache", "ok", found)
    why = "a build that runs out of room fails with a message about something else"
    mend = f"rm -rf {shlex.quote(str(folder))} (all of it is rebuilt when needed), or set KERNEL_LADDER_CACHE"
    return Finding("build cache", "problem" if free < GIB // 8 else "note", found, why, mend)


def torch_extensions() -> Path:
    """Where PyTorch's own load() builds."""
    if chosen := os.environ.get("TORCH_EXTENSIONS_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    linux = Path(base, "torch_extensions")
    return Path.home() / "Library/Caches/torch_extensions" if sys.platform == "darwin" else linux


def check_locks(folder: Path | None = None, now: float | None = None) -> Finding:
    """Looks for the `lock` files that killed builds of PyTorch's own load() leave behind.

    folder: of the builds; now: the time in seconds since the epoch, by which a lock's age is judged.
    """
    folder = folder or torch_extensions()
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK | os.R_OK)):
        why = "the course builds elsewhere, but PyTorch's own load() builds there"
        mend = 'export TORCH_EXTENSIONS_DIR="$HOME/torch_extensions"'
        return Finding("PyTorch's locks", "note", f"{folder} is no folder that can be written", why, mend)
    now = time.time() if now is None else now
    locks = sorted([*folder.glob("*/lock"), *folder.glob("*/*/lock")])
    stale = [lock for lock in locks if age(lock, now) > STALE_AFTER]
    if not stale:
        return Finding("PyTorch's locks", "ok", f"none is stale in {folder}")
    found = f"{len(stale)} older than {STALE_AFTER // 60} minutes: {', '.join(map(str, stale))}"
    why = "PyTorch's own load() waits for ever for a lock whose build was killed (helpers.load does not)"
    return Finding("PyTorch's locks", "note", found, why, shlex.join(["rm", *map(str, stale)]))


def age(file: Path, now: float) -> float:
    """Seconds since the file was written; 0 if it is gone."""
    try:
        return now - file.stat().st_mtime
    except OSError:
        return 0


def check_addr2line(path: str | None = None) -> Finding:
    """The tool that finds the source line of an address. path: the PATH to look on."""
    tools = ("atos",) if sys.platform == "darwin" else ("addr2line", "llvm-addr2line")
    found = next((place for tool in tools if (place := shutil.which(tool, path=path))), None)
    if found:
        return Finding(tools[0], "ok", found)
    mend = "xcode-select --install" if sys.platform == "darwin" else "sudo apt install binutils"
    return Finding(tools[0], "note", "not found", "X-rays of kernels cannot name source lines without it", mend)
