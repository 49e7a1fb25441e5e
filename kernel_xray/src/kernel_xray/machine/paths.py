"""Paths of the package's parts, and the folders of headers that every build finds."""

import importlib.util
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
INCLUDE = PACKAGE / "include"  # headers that replace CUDA's
LIBRARIES = PACKAGE / "libraries"  # CUB, BLAS, FFT, random numbers: built when a source asks for one
RUNTIME = PACKAGE / "runtime"
TRACE = PACKAGE / "trace"

# On the include path of every build, after the folders that a call names. Who builds on this package adds to it:
# kernel_xray.include_paths.append(FOLDER).
include_paths: list[Path] = []


def also_include(given: list[Path]) -> list[Path]:
    """The folders `given` for a build, and behind them those of `include_paths` that exist."""
    return [*given, *(path for path in include_paths if path.is_dir() and path not in given)]


@cache
def of_torch() -> Path | None:
    """The folder of PyTorch, which this does not import; None if it is not installed."""
    found = importlib.util.find_spec("torch")
    return Path(found.origin).parent if found and found.origin else None
