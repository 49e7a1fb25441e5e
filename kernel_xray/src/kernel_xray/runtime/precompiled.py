"""The headers of the stable ABI, compiled once (compiled_headers.py) for all kernels: this halves a build's time."""

import contextvars
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils import cpp_extension

from kernel_xray.runtime import compiled_headers, faults, libsimt

HEADER = "simt_stable.h"


def folder(flags: list[str]) -> Path | None:
    """The folder to name first among the include paths of a build with `flags`; None if these flags have none."""
    return compiled_headers.folder(HEADER, _arguments(flags), "PyTorch's headers", torch.__version__)


def with_library(flags: list[str]) -> Path | None:
    """The same folder, once `libsimt.so` and the bridge to PyTorch are built too: at the same time, to keep cores busy.

    Raises RuntimeError with the compiler's output if one of these does not build.
    """
    with ThreadPoolExecutor(2) as pool:
        headers = pool.submit(contextvars.copy_context().run, folder, flags)
        bridge = pool.submit(contextvars.copy_context().run, faults.library)
        libsimt.runtime_library()
        bridge.result()
        return headers.result()


def torch_standard() -> str:
    """The flag for the C++ standard with which PyTorch compiles extensions."""
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return "-std=c++20" if release >= (2, 13) else "-std=c++17"


def _arguments(flags: list[str]) -> list[str]:
    paths = [f"-I{libsimt.INCLUDE}", *(f for path in cpp_extension.include_paths() for f in ("-isystem", path))]
    return ["-DTORCH_API_INCLUDE_EXTENSION_H", *paths, "-fPIC", torch_standard(), *flags]
