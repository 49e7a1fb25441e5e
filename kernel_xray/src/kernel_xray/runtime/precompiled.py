"""The headers of the stable ABI, compiled once for all kernels: this halves the time of a build.

Only for g++. It finds `simt_stable.h.gch` in a folder that precedes the folder of `simt_stable.h`, and uses it if the
flags are the same; otherwise it reads the header itself. So a failure here cannot break a build, and is ignored.
"""

import contextvars
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils import cpp_extension

from kernel_xray.machine import artifacts, cache
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime import faults, libsimt

HEADER = "simt_stable.h"


def folder(flags: list[str]) -> Path | None:
    """The folder to name first among the include paths of a build with `flags`; None if these flags have none."""
    if not libsimt.finds_precompiled_headers():
        return None
    identity = libsimt.compiler_identity(libsimt.compiler())
    # `#pragma once` knows a header by its place: what is compiled here serves only kernels that find the headers there.
    places = str(libsimt.INCLUDE), cpp_extension.include_paths()
    key = cache.digest(flags, torch.__version__, libsimt.headers_digest(), libsimt.compiler(), identity, places)
    place = cache.root() / f"headers-{key}"
    made = place / f"{HEADER}.gch"  # of 90 to 100 MB

    def make() -> Path:
        with Progress("preparing PyTorch's headers, once for all kernels"):
            libsimt.run_compiler(_arguments(flags), made)
        return made

    try:
        return artifacts.built(place, key, make).parent
    except RuntimeError:
        return None


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
    options = ["-DTORCH_API_INCLUDE_EXTENSION_H", *paths, "-fPIC", torch_standard(), *flags]
    return [*options, "-x", "c++-header", str(libsimt.INCLUDE / HEADER)]
