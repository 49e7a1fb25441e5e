"""Builds the simulator's run-time library once, for all kernels and processes, and so the one with CUDA's libraries."""

import os
import platform
import subprocess
import sys
import sysconfig
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from kernel_xray.machine import artifacts, cache, guard
from kernel_xray.machine.paths import INCLUDE as INCLUDE
from kernel_xray.machine.paths import LIBRARIES, PACKAGE, RUNTIME, TRACE, of_torch
from kernel_xray.machine.progress import Progress
from kernel_xray.translate.errors import BuildError

LIBRARY_HEADERS = LIBRARIES / "include"
# What debugging information calls the folders of headers that are not the learner's: a kernel that another clone or
# environment has built names none of its folders.
DEBUG_FOLDERS = {
    INCLUDE: "/simulator-include",
    LIBRARY_HEADERS: "/simulator-libraries",
    **({torch: "/torch"} if (torch := of_torch()) else {}),
    Path(sysconfig.get_path("include")): "/python-include",
}
_IN_LIBSIMT = (RUNTIME / "threads", RUNTIME / "api", TRACE)
_SUFFIXES = (".cpp", ".h")
# What the sources include is named from these: "threads/block.h", "trace/clocks.h", "libraries/fft/fft.h", "cufft.h".
_FOLDERS = [f"-I{RUNTIME}", f"-I{PACKAGE}", f"-iquote{INCLUDE}", f"-iquote{LIBRARY_HEADERS}"]
_FLAGS = [
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-pthread",
]
# What kernels and the tracer spend their time in is optimised. What the host calls takes a third less time to compile.
_LEVELS = {"api": "-Og"}
_TOGETHER = 12  # sources that one compiler reads, and with them their headers once
# The soname makes all kernels of a process share one library, whichever cache they come from. -Bsymbolic keeps the
# library from calling the instrumented copies of the standard library's templates that traced kernels contain.
_LINKING = ["-Wl,-soname,{name}", "-Wl,-Bsymbolic"]
if sys.platform == "darwin":
    _LINKING = ["-install_name", "@rpath/{name}"]


def compiler() -> str:
    """The host's C++ compiler, as PyTorch chooses it: CXX, else c++."""
    return os.environ.get("CXX", "c++")


def is_clang() -> bool:
    """Whether the compiler in use is clang. Raises RuntimeError if there is no such compiler."""
    return "clang" in compiler_identity(compiler())


@lru_cache(maxsize=8)
def compiler_identity(command: str) -> str:
    """The first line of `command --version`. Raises RuntimeError if there is no such compiler."""
    try:
        done = subprocess.run([*command.split(), "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(
            f"no C++ compiler: `{command} --version` failed ({error}). Install g++ or clang++ "
            "(Debian and Ubuntu: apt install g++; macOS: xcode-select --install), or set CXX"
        ) from error
    return done.stdout.splitlines()[0] if done.stdout else command


def headers_digest() -> str:
    """A key for the headers that every kernel is compiled with.

    It does not cover where they lie: debugging information calls their folder DEBUG_FOLDERS[INCLUDE].
    """
    return _headers_digest(_state(_files(INCLUDE) + _files(LIBRARY_HEADERS)))


# A load asks for these keys several times. Files are read again only if one of them has changed.
_State = tuple[tuple[str, int, int], ...]  # path, bytes and time of writing of each file


def _state(files: list[str]) -> _State:
    statuses = [(path, os.stat(path)) for path in files]
    return tuple((path, status.st_size, status.st_mtime_ns) for path, status in statuses)


@lru_cache(maxsize=1)
def _headers_digest(state: _State) -> str:
    folders = INCLUDE, LIBRARY_HEADERS
    places = {
        path: next(folder for folder in folders if path.is_relative_to(folder)) for path in (Path(p) for p, *_ in state)
    }
    return cache.digest([(str(path.relative_to(folder)), path.read_bytes()) for path, folder in places.items()])


@lru_cache(maxsize=4)
def _key(state: _State, headers: str, command: str, libraries: tuple[str, ...]) -> str:
    texts = [(Path(path).name, Path(path).read_bytes()) for path, *_ in state]
    identity = (command, compiler_identity(command), platform.machine())
    return cache.digest(texts, headers, *identity, _FLAGS, _LEVELS, _LINKING, list(libraries))


def runtime_library() -> Path:
    """The folder with `libsimt.so`, built if needed. Raises RuntimeError with the compiler's output if it fails."""
    return _library("simt", _runtime_files(), [])


@lru_cache(maxsize=1)
def runtime_key() -> str:
    """A key for `libsimt.so`, to which each kernel is linked."""
    return _place("simt", _runtime_files(), [])[1]


def _runtime_files() -> list[str]:
    return [path for place in _IN_LIBSIMT for path in _files(place) if path.endswith(_SUFFIXES)]


def cuda_libraries() -> Path:
    """The folder with `libsimt-libraries.so` (cuBLAS, cuRAND, cuFFT), built if needed. Raises RuntimeError."""
    return _library("simt-libraries", _library_files(), linked(runtime_library(), "simt"))


def _library_files() -> list[str]:
    return [path for path in _files(LIBRARIES) if not path.startswith(f"{LIBRARY_HEADERS}{os.sep}")]


def linked(folder: Path, name: str) -> list[str]:
    """The linker's flags for a library, "simt" or "simt-libraries", which is found there at run time too."""
    return [f"-L{folder}", f"-l{name}", f"-Wl,-rpath,{folder}"]


def _library(name: str, files: list[str], libraries: list[str]) -> Path:
    folder, key = _place(name, files, libraries)
    library = folder / f"lib{name}.so"
    what = "the simulator" if name == "simt" else "the simulator's part of CUDA's libraries"

    def make() -> Path:
        with Progress(f"building {what}, once for all kernels"):
            _compile([path for path in files if path.endswith(".cpp")], library, libraries)
        return library

    artifacts.built(folder, key, make)
    return folder


def _place(name: str, files: list[str], libraries: list[str]) -> tuple[Path, str]:
    """The folder of a library in the cache, and its key."""
    key = _key(_state(files), headers_digest(), compiler(), tuple(libraries))
    return cache.root() / f"{name}-{key}", key


def _compile(sources: list[str], library: Path, libraries: list[str]) -> None:
    folder = library.parent
    units = _units(sources, folder)
    objects = [unit.with_suffix(".o") for unit in units]
    commands = [
        [*compiler().split(), *_FLAGS, _level(unit), *_FOLDERS, "-c", str(unit), "-o", str(target)]
        for unit, target in zip(units, objects, strict=True)
    ]
    done = guard.run_all(commands, BuildError)
    failed = [process.stdout + process.stderr for process in done if process.returncode]
    if failed:
        raise RuntimeError(f"{library.name}, a part of the simulator, did not build:\n" + failed[0])
    options = [option.format(name=library.name) for option in _LINKING]
    run_compiler(["-shared", "-pthread", *options, *map(str, objects), *libraries], library)


def _level(unit: Path) -> str:
    return _LEVELS.get(unit.stem.rpartition("_")[0], "-O2")


def _units(sources: list[str], folder: Path) -> list[Path]:
    """Files in `folder` that include the sources, some of one folder each: so no two of these give a name twice."""
    units = []
    for place, together in groupby(sources, os.path.dirname):
        paths = list(together)
        parts = -(-len(paths) // _TOGETHER)
        for i in range(parts):
            units.append(folder / f"{os.path.basename(place)}_{i}.cpp")
            units[-1].write_text("".join(f'#include "{path}"\n' for path in paths[i::parts]))
    return units


def finds_precompiled_headers() -> bool:
    """Whether the compiler looks for `x.h.gch` in the folders where it looks for `x.h`, as g++ does."""
    return platform.system() == "Linux" and "clang" not in compiler_identity(compiler())


def run_compiler(arguments: list[str], output: Path) -> None:
    """Runs the host's compiler, which writes `output` completely or not at all. Raises RuntimeError."""
    partial = output.with_suffix(".partial")
    command = [*compiler().split(), *arguments, "-o", str(partial)]
    (done,) = guard.run_all([command], BuildError)
    if done.returncode:
        raise RuntimeError(f"{output.name}, a part of the simulator, did not build:\n{done.stderr}")
    partial.rename(output)


def _files(folder: Path) -> list[str]:
    """The paths of the files in a folder, or of the file itself; as text, since each load asks for hundreds."""
    return sorted(f"{place}{os.sep}{name}" for place, _, names in os.walk(folder) for name in names) or [str(folder)]
