"""Functions of the files in kernels/, built extensions and Triton's kernels, and of packages that peers come from."""

import functools
import importlib
import importlib.metadata
import sys
from collections.abc import Callable
from typing import Any

from helpers.paths import KERNELS
from kernel_xray.build import loader

# Peers of packages that the course does not install, by their name in records: they take part where they are.
PACKAGES = {"fa4": "flash-attn-4", "quack": "quack-kernels"}


def missing(peer: str) -> bool:
    """Whether a peer comes from a package that is not installed."""
    return peer in PACKAGES and version(peer) is None


def version(peer: str) -> str | None:
    """The version of a peer's package; None if the peer has none, or it is not installed."""
    try:
        return importlib.metadata.version(PACKAGES[peer])
    except (KeyError, importlib.metadata.PackageNotFoundError):
        return None


@functools.cache
def extension(
    name: str,
    files: tuple[str, ...],
    *,
    flags: tuple[str, ...] = (),
    python_module: bool = False,
    traced: bool = False,
) -> Any:
    """The extension `name` of these files in kernels/ (or of absolute paths), built at the first call.

    flags          nvcc's
    python_module  whether it is a pybind11 module; otherwise the namespace of the operators that it registers
    traced         for the simulator's traced mode

    Raises as helpers.load.
    """
    return loader.load(
        name=name,
        sources=[KERNELS / file for file in files],
        extra_cuda_cflags=list(flags),
        is_python_module=python_module,
        traced=traced,
    )


def triton_function(module: str, name: str) -> Callable:
    """A function of kernels/MODULE.py. Raises ImportError without Triton, which only PyTorch's CUDA builds bring."""
    if str(KERNELS) not in sys.path:
        sys.path.append(str(KERNELS))
    return getattr(importlib.import_module(module), name)
