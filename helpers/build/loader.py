"""`load` and `load_inline`: PyTorch's extension loader for both targets.

They take what `torch.utils.cpp_extension.load` and `load_inline` take and return what they return, with two additions:
without a GPU the sources are translated for the simulator first, and a second load of an edited source in the same
process gives the new code, whatever names it registers. PyTorch does the building; the folder it builds in is chosen
here, one for each distinct build, so that a build is never repeated.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension

from helpers.build import arguments, flags, inline, sources
from helpers.build.compile_errors import explain
from helpers.machine import cache, toolchain
from helpers.machine.paths import KERNEL_INCLUDE
from helpers.machine.progress import Progress
from helpers.simt import faults, includes, libsimt, precompiled
from helpers.simt.errors import BuildError
from helpers.xrays.traced import Traced

# What PyTorch's build and nvcc read from the environment: architectures, host compiler, further flags.
TOLD_TO_NVCC = ("TORCH_CUDA_ARCH_LIST", "CC", "CXX", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


@dataclass
class Build:
    """One extension to build: everything that its result depends on."""

    name: str
    sources: list[Path]
    cflags: list[str] = field(default_factory=list)
    cuda_cflags: list[str] = field(default_factory=list)
    ldflags: list[str] = field(default_factory=list)
    include_paths: list[Path] = field(default_factory=list)
    with_cuda: bool | None = None
    is_python_module: bool = True
    verbose: bool = False
    target: str = "simulator"
    traced: bool = False

    def texts(self) -> dict[Path, str]:
        return includes.closure(self.sources, self.include_paths)

    def key(self, texts: dict[Path, str]) -> str:
        given = (self.cflags, self.cuda_cflags, self.ldflags, self.with_cuda, self.is_python_module, self.traced)
        here: tuple[object, ...] = (torch.__version__, sys.version_info[:3], platform.machine(), self.target)
        if self.target == "gpu":
            told = [os.environ.get(name) for name in TOLD_TO_NVCC]
            here += (torch.version.cuda, sorted(_architectures()), str(toolchain.find_nvcc()), told, flags.GPU)
        else:
            compiler = libsimt.compiler_identity(libsimt.compiler())
            mode = flags.traced() if self.traced else flags.SIMULATOR
            here += (libsimt.headers_digest(), compiler, mode, flags.NVCC_DEFINES)
        return cache.digest(self.name, [(str(p), t) for p, t in texts.items()], given, here)


# What this process has loaded: a result for each build, and how often a name was given to a different build.
_loaded: dict[str, Any] = {}
_uses: dict[str, int] = {}


def load(
    name: str,
    sources: str | Path | Sequence[str | Path],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: str | Path | Sequence[str | Path] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    traced: bool = False,
) -> Any:
    """Builds and loads a CUDA or C++ extension; see `torch.utils.cpp_extension.load` for the arguments.

    Returns the Python module; with `is_python_module=False` the namespace of `torch.ops` that the library registered
    (the path of the library if it registers none). `kernels/include` is always on the include path.

    traced=True builds for the simulator's traced mode, on any machine: its functions take CPU tensors, are what
    `helpers.xray` runs, and raise KernelFault at the first fault when they are called by themselves.

    Raises ValueError or TypeError for a bad argument, FileNotFoundError for a missing source, BuildError with the
    compiler's message, UnsupportedError for what the simulator refuses.
    """
    arguments.check_name(name)
    if extra_sycl_cflags or with_sycl or is_standalone:
        raise ValueError("SYCL sources and is_standalone=True are for torch.utils.cpp_extension.load itself")
    build = Build(
        name=name,
        sources=[arguments.source_path(s) for s in arguments.as_list("sources", sources)],
        cflags=arguments.strings("extra_cflags", extra_cflags),
        cuda_cflags=arguments.strings("extra_cuda_cflags", extra_cuda_cflags),
        ldflags=arguments.strings("extra_ldflags", extra_ldflags),
        include_paths=[Path(p).resolve() for p in arguments.as_list("extra_include_paths", extra_include_paths or [])],
        with_cuda=with_cuda,
        is_python_module=is_python_module,
        verbose=verbose,
        target="simulator" if traced else toolchain.target,
        traced=traced,
    )
    if not build.sources:
        raise ValueError("sources is empty; give the path of at least one .cu or .cpp file")
    return _load(build, build_directory)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: str | Path | Sequence[str | Path] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    with_sycl: bool | None = None,
    traced: bool = False,
) -> Any:
    """Builds and loads an extension from strings; see `torch.utils.cpp_extension.load_inline` for the arguments.

    `no_implicit_headers=True` together with a source that registers its operators through PyTorch's stable ABI is the
    quick way: about a second instead of half a minute. `use_pch` has no effect. Returns and raises as `load` does.
    """
    arguments.check_name(name)
    cpp = arguments.texts("cpp_sources", cpp_sources)
    cuda = arguments.texts("cuda_sources", cuda_sources or [])
    if sycl_sources or with_sycl or extra_sycl_cflags:
        raise ValueError("SYCL sources are for torch.utils.cpp_extension.load_inline itself")
    if not any(text.strip() for text in cpp + cuda):
        raise ValueError("cpp_sources and cuda_sources are empty; give the source of at least one function")
    if functions is not None:
        cpp.append(inline.bindings(functions, with_pytorch_error_handling))
        if no_implicit_headers:  # the bindings themselves need it
            cpp.insert(0, "#include <torch/extension.h>")
    folder = cache.root() / "inline" / cache.digest(name, cpp, cuda, no_implicit_headers)
    paths = inline.write_sources(folder, name, cpp, cuda, implicit_headers=not no_implicit_headers)
    if with_cuda and not cuda:
        raise ValueError("with_cuda=True needs cuda_sources")
    return load(
        name,
        paths,
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=build_directory,
        verbose=verbose,
        with_cuda=with_cuda,
        is_python_module=is_python_module,
        keep_intermediates=keep_intermediates,
        traced=traced,
    )


# -- building ----------------------------------------------------------------------------------------------------------


def _load(build: Build, build_directory: str | None) -> Any:
    if KERNEL_INCLUDE.is_dir() and KERNEL_INCLUDE not in build.include_paths:
        build.include_paths.append(KERNEL_INCLUDE)
    texts = build.texts()
    key = build.key(texts)
    if key in _loaded:
        return _loaded[key]

    # A name that this process has used for another build gets a number, as PyTorch does it. So do names that the
    # source itself fixes: a library cannot register a namespace twice.
    modules = sources.defined_names(texts, "PYBIND11_MODULE")
    namespaces = sources.defined_names(texts, "TORCH_LIBRARY")
    fixed = [n for n in modules + namespaces if n != sources.EXTENSION_NAME]
    version = max(_uses.get(n, 0) for n in [build.name, *fixed])
    suffix = f"_v{version}" if version else ""
    extension = build.name + suffix
    renamed = {n: n + suffix for n in fixed} if version else {}
    for name in {build.name, *fixed}:
        _uses[name] = version + 1

    folder = Path(build_directory) if build_directory else cache.root() / f"{extension}-{key}"
    with cache.locked(folder):
        library = _finished(folder, key)
        if library is None:
            library = _build(build, extension, texts, folder, renamed)
            (folder / "finished.json").write_text(json.dumps({"library": library.name, "key": key}))
    spaces = namespaces or sources.defined_names(texts, "TORCH_LIBRARY_FRAGMENT")
    result = _open(build, extension, library, modules, spaces, renamed)
    if build.traced:
        result = Traced(result)
    _loaded[key] = result
    return result


def _finished(folder: Path, key: str) -> Path | None:
    """The library in `folder`, if it is of the build `key`: in a build_directory it may be an older one."""
    try:
        finished = json.loads((folder / "finished.json").read_text())
        library = folder / finished["library"]
    except (OSError, ValueError, KeyError):
        return None
    return library if finished.get("key") == key and library.is_file() else None


def _build(build: Build, extension: str, texts: dict[Path, str], folder: Path, renamed: dict[str, str]) -> Path:
    cflags, ldflags, include_paths = list(build.cflags), list(build.ldflags), list(build.include_paths)
    with_cuda = build.with_cuda
    if build.target == "simulator":
        runtime = libsimt.runtime_library()
        places = sources.write_translated(texts, folder / "translated", build.include_paths, renamed)
        mode = flags.traced() if build.traced else flags.SIMULATOR
        whole = ["-DSIMT_WHOLE_TORCH"] if sources.uses_cpp_frontend(texts) else []
        ours = [*flags.NVCC_DEFINES, *mode, "-DUSE_CUDA"]
        theirs = [*whole, *cflags, *flags.host_flags(build.cuda_cflags)]
        cflags = ours + theirs
        ldflags += [f"-L{runtime}", "-lsimt", f"-Wl,-rpath,{runtime}", *(flags.TRACED_LINKING if build.traced else [])]
        include_paths.insert(0, libsimt.INCLUDE)
        if not theirs and sources.uses_stable_abi(texts) and (headers := precompiled.folder(ours)):
            include_paths.insert(0, headers)
        with_cuda = False
    else:
        cflags = flags.for_gpu(cflags)
        places = sources.write_renamed(texts, folder / "renamed", renamed) if renamed else {p: p for p in texts}
        include_paths += sorted({p.parent for p in places if places[p] != p})
    _forget(extension)
    try:
        with Progress(f"building {build.name} for the {build.target}"):
            cpp_extension.load(
                name=extension,
                sources=[str(places[s]) for s in build.sources],
                extra_cflags=cflags,
                extra_cuda_cflags=["-DUSE_CUDA", *flags.for_gpu(build.cuda_cflags)] if build.target == "gpu" else None,
                extra_ldflags=ldflags,
                extra_include_paths=[str(p) for p in include_paths],
                build_directory=str(folder),
                verbose=build.verbose,
                with_cuda=with_cuda,
                is_python_module=False,  # only built here: _open loads it
            )
    except RuntimeError as error:
        if "Error building extension" not in str(error):
            raise
        failure: BuildError = explain(build.name, str(error))
        raise failure from None
    except OSError as error:
        raise _unloadable(build, error) from error
    return _finished_library(folder, extension)


def _finished_library(folder: Path, extension: str) -> Path:
    built = sorted(folder.glob(f"{extension}*.so"))
    if not built:
        raise BuildError(f"the build of {extension} left no library in {folder}")
    return built[0]


def _forget(extension: str) -> None:
    """PyTorch numbers the names that it has seen in this process; the numbers here are ours."""
    versioner = getattr(cpp_extension, "JIT_EXTENSION_VERSIONER", None)
    entries = getattr(versioner, "entries", {})
    entries.pop(extension, None)


def _open(
    build: Build, extension: str, library: Path, modules: list[str], namespaces: list[str], renamed: dict[str, str]
) -> Any:
    if build.target == "simulator":
        faults.install()
    try:
        if build.is_python_module:
            fixed = [renamed.get(m, m) for m in modules if m != sources.EXTENSION_NAME]
            return _import_module(fixed[0] if fixed else extension, library)
        torch.ops.load_library(str(library))
    except (ImportError, OSError) as error:
        raise _unloadable(build, error) from error
    spaces = []
    for namespace in namespaces:
        actual = extension if namespace == sources.EXTENSION_NAME else renamed.get(namespace, namespace)
        spaces.append(getattr(torch.ops, actual))
        if actual != namespace and namespace != sources.EXTENSION_NAME:
            setattr(torch.ops, namespace, spaces[-1])  # torch.ops.<name in the source> now means the new code
    return spaces[0] if spaces else str(library)


def _unloadable(build: Build, error: Exception) -> BuildError:
    reason = error.__cause__ or error  # PyTorch puts "Could not load this library" before the linker's own words
    return BuildError(f"{build.name} was built but cannot be loaded: {reason}", str(reason))


def _import_module(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise ImportError(f"{library} is not an extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _architectures() -> list[str]:
    if not torch.cuda.is_available():
        return []
    return ["{}.{}".format(*torch.cuda.get_device_capability(i)) for i in range(torch.cuda.device_count())]
