"""Builds a package for the simulator: `setup.py` uses it in place of CUDAExtension on machines without a GPU.

Such a package links to the simulator's library in the build cache, so it runs on this machine only. It is for writing
and testing a package; ship one that nvcc has built.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from setuptools import Extension
from torch.utils.cpp_extension import CppExtension

from kernel_xray.build import flags, libraries, sources
from kernel_xray.runtime import libsimt
from kernel_xray.translate import includes


def simulator_extension(
    name: str,
    cuda_sources: Sequence[str],
    compile_args: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    build: str | os.PathLike = "build/simulator",
) -> Extension:
    """An abi3 extension of `.cu` files for the simulator: the counterpart of `CUDAExtension(name, ...)`.

    name          with dots, such as "my_op._C"
    cuda_sources  relative to the current folder, that of setup.py
    compile_args  for the host's compiler, such as -D...
    include_dirs  folders of headers that are not beside the sources
    build         folder for the translated sources

    Raises FileNotFoundError for a missing source and BuildError for code that the simulator cannot translate.
    """
    paths = [Path(source).resolve() for source in cuda_sources]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no source {path}")
    folders = [Path(folder).resolve() for folder in include_dirs]
    texts = includes.closure(paths, folders)
    places = sources.write_translated(texts, Path(build).resolve(), folders, {}, {path: str(path) for path in texts})
    runtime = libsimt.runtime_library()
    return CppExtension(
        name,
        [os.path.relpath(places[path]) for path in paths],  # setuptools refuses absolute paths
        include_dirs=[str(libsimt.INCLUDE), *map(str, folders)],
        extra_compile_args=[
            *flags.NVCC_DEFINES,
            *flags.simulator(traced=False),
            *libraries.compile_flags(texts),
            *libraries.headers(texts),
            *compile_args,
        ],
        extra_link_args=[*libraries.linking(texts, []), *libsimt.linked(runtime, "simt")],
        py_limited_api=True,
    )
