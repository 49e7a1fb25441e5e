"""Faults of simulated kernels as Python exceptions."""

import importlib.util
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import torch

from kernel_xray.machine import artifacts, cache
from kernel_xray.machine.paths import INCLUDE, RUNTIME
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime import libsimt
from kernel_xray.runtime.kernel_fault import KernelFault

_LOCK = threading.Lock()


@contextmanager
def fresh_allocations_known() -> Iterator[None]:
    """Inside the context, new CPU tensors are known to the tracer, poisoned, and far from other memory."""
    module = install()
    module.use_fresh_allocator(True)
    try:
        yield
    finally:
        module.use_fresh_allocator(False)


def install() -> ModuleType:
    """Makes faults raise KernelFault in this process. Builds the bridge to PyTorch on first use."""
    with _LOCK:  # lru_cache alone would let two threads load the bridge, which may be loaded once
        return _installed()


@lru_cache(maxsize=1)
def _installed() -> ModuleType:
    runtime = libsimt.runtime_library()
    source = RUNTIME / "bridge" / "simt_faults.cpp"
    torch_include = Path(torch.__file__).parent / "include"
    includes = [INCLUDE, torch_include, sysconfig.get_path("include")]
    flags = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-shared"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    torch_library = Path(torch.__file__).parent / "lib"
    beside = f"{'@loader_path' if sys.platform == 'darwin' else '$ORIGIN'}/../{runtime.name}"
    libraries = [f"-L{runtime}", "-lsimt", f"-Wl,-rpath,{beside}", f"-L{torch_library}", "-lc10"]
    key = cache.digest(source.read_bytes(), torch.__version__, sys.version_info[:3], flags, libsimt.runtime_key())
    library = cache.root() / f"simt-faults-{key}" / "simt_faults.so"

    def make() -> Path:
        with Progress("building the bridge between simulator and PyTorch, once"):
            libsimt.run_compiler([*flags, *(f"-I{i}" for i in includes), str(source), *libraries], library)
        return library

    artifacts.built(library.parent, key, make)
    spec = importlib.util.spec_from_file_location("simt_faults", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.raise_as(KernelFault)
    return module
