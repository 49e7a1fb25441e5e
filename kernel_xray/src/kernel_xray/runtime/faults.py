"""Faults of simulated kernels as Python exceptions."""

import importlib.util
import sys
import sysconfig
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    spec = importlib.util.spec_from_file_location("simt_faults", library())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.raise_as(KernelFault)
    return module


def library() -> Path:
    """The bridge to PyTorch as a library, built if needed. Raises RuntimeError with the compiler's output."""
    source = RUNTIME / "bridge" / "simt_faults.cpp"
    of_torch = Path(torch.__file__).parent
    includes = [INCLUDE, of_torch / "include", sysconfig.get_path("include")]
    flags = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden"]
    linking = ["-shared", "-lsimt", "-lc10"]
    if sys.platform == "darwin":
        linking += ["-undefined", "dynamic_lookup"]
    options = flags, linking
    key = cache.digest(source.read_bytes(), torch.__version__, sys.version_info[:3], *options, libsimt.runtime_key())
    made = cache.root() / f"simt-faults-{key}" / "simt_faults.so"

    def make() -> Path:
        with Progress("building the bridge between simulator and PyTorch, once"), ThreadPoolExecutor(1) as pool:
            code = made.with_suffix(".o")
            compiling = [*flags, *(f"-I{i}" for i in includes), "-c", str(source)]
            compiled = pool.submit(libsimt.run_compiler, compiling, code)
            runtime = libsimt.runtime_library()  # an interrupt ends what this thread builds
            compiled.result()
            beside = f"{'@loader_path' if sys.platform == 'darwin' else '$ORIGIN'}/../{runtime.name}"
            folders = [f"-L{runtime}", f"-Wl,-rpath,{beside}", f"-L{of_torch / 'lib'}"]
            libsimt.run_compiler([str(code), *folders, *linking], made)
            code.unlink()
        return made

    built = artifacts.built(made.parent, key, make)
    libsimt.runtime_library()  # which it loads
    return built
