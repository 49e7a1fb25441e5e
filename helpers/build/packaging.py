"""Building a package for the simulator: what `setup.py` uses in place of CUDAExtension where there is no GPU.

Such a package runs on this machine only, since it refers to the simulator's library in the build cache. It is for
writing and testing a package; what is shipped is built by nvcc.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from setuptools import Extension
from torch.utils.cpp_extension import CppExtension

from helpers.build import flags, sources
from helpers.simt import includes, libsimt


def simulator_extension(
    name: str,
    cuda_sources: Sequence[str],
    compile_args: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    build: str | os.PathLike = "build/simulator",
) -> Extension:
    """An abi3 extension of `.cu` files for the simulator, as `CUDAExtension(name, ...)` is one for a GPU.

    name          with dots, such as "my_op._C"
    cuda_sources  relative to the folder of setup.py, which is the current one
    compile_args  such as -D..., for the host's compiler
    include_dirs  where headers of the sources lie, if not beside them
    build         where the translated sources go

    Raises FileNotFoundError for a missing source and BuildError for what the simulator cannot translate.
    """
    paths = [Path(source).resolve() for source in cuda_sources]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no source {path}")
    folders = [Path(folder).resolve() for folder in include_dirs]
    texts = includes.closure(paths, folders)
    places = sources.write_translated(texts, Path(build).resolve(), folders, {})
    runtime = libsimt.runtime_library()
    return CppExtension(
        name,
        [os.path.relpath(places[path]) for path in paths],  # setuptools takes no absolute ones
        include_dirs=[str(libsimt.INCLUDE), *map(str, folders)],
        extra_compile_args=[*flags.NVCC_DEFINES, *flags.SIMULATOR, *compile_args],
        extra_link_args=[f"-L{runtime}", "-lsimt", f"-Wl,-rpath,{runtime}"],
        py_limited_api=True,
    )
