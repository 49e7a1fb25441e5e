"""`load` and `load_inline`: PyTorch's extension loader for both targets.

Both take the arguments of `torch.utils.cpp_extension.load` and `load_inline` and return the same, with two additions:
without a GPU, the sources are first translated for the simulator; and loading an edited source again in the same
process gives the new code, whatever names it registers. This module checks the arguments; extension.py builds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_xray.build import arguments, inline
from kernel_xray.build.extension import get
from kernel_xray.build.request import Build
from kernel_xray.machine import cache, toolchain


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

    Returns the Python module or, with `is_python_module=False`, the namespace of `torch.ops` that the library registers
    (the path of the library if it registers none). The folders in
    `kernel_xray.include_paths` are always on the include path.

    traced=True builds for the simulator's traced mode, on any machine. The functions take CPU tensors. `xray` runs
    them; called directly, they raise KernelFault at the first fault.

    Raises ValueError or TypeError for a bad argument, FileNotFoundError for a missing source, BuildError with the
    compiler's message, UnsupportedError for code that the simulator refuses.
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
    return get(build, build_directory)


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

    `no_implicit_headers=True` and a source that registers its operators through PyTorch's stable ABI build in about a
    second instead of half a minute. `use_pch` has no effect. Returns and raises as `load` does.
    """
    arguments.check_name(name)
    cpp = arguments.texts("cpp_sources", cpp_sources)
    cuda = arguments.texts("cuda_sources", cuda_sources or [])
    if sycl_sources or with_sycl or extra_sycl_cflags:
        raise ValueError("SYCL sources are for torch.utils.cpp_extension.load_inline itself")
    if not any(text.strip() for text in cpp + cuda):
        raise ValueError("cpp_sources and cuda_sources are empty; give the source of at least one function")
    if functions is not None:
        cpp.append(inline.bindings(functions, wrapped=with_pytorch_error_handling))
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
