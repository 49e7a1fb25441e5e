"""From a checked request to a loaded extension: a folder for each distinct build, PyTorch's build, the loading.

PyTorch does the building. The folder is chosen here, one for each distinct build, so that no build is repeated.
"""

import importlib.util
import time
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension

from kernel_xray.build import dependencies, flags, libraries, linking, sources, torch_headers
from kernel_xray.build.compile_errors import explain, names_change_meaning
from kernel_xray.build.request import Build
from kernel_xray.build.units import Units
from kernel_xray.machine import artifacts, cache, guard, turns
from kernel_xray.machine.paths import also_include
from kernel_xray.machine.progress import Progress
from kernel_xray.report import machine_code
from kernel_xray.report.traced import Traced
from kernel_xray.runtime import faults, libsimt, precompiled
from kernel_xray.translate import origins
from kernel_xray.translate.errors import BuildError

# What this process has loaded: the result of each build, and how many different builds had a name.
_loaded: dict[str, Any] = {}
_uses: dict[str, int] = {}


def get(build: Build, build_directory: str | None = None) -> Any:
    """The loaded extension: from this process, from its folder in the build cache, or newly built."""
    build.include_paths = also_include(build.include_paths)
    texts = build.texts()
    key = dependencies.current(build.key(texts))
    if build.traced:
        machine_code.remember(build.sources, build.cuda_cflags, build.include_paths)
    if build.target == "simulator":
        origins.learn(known_as := build.names(texts))
        bridge = faults.install()
        for path, name in known_as.items():
            bridge.name_source(name, str(path))
    if (known := key + dependencies.state(key)) in _loaded:
        return _loaded[known]

    # A name that an earlier build of this process used gets a number, as in PyTorch. So do the names that the source
    # itself fixes: no two libraries can register the same namespace.
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

    def make() -> Path:
        began = time.time()
        places = _places(build, texts, folder, renamed)
        units = Units(build, extension, texts, places, folder)
        made = _compile(build, extension, texts, folder, places, units)
        if not dependencies.record(key, dependencies.of_ninja(folder), texts, began):
            units.keep()
        return made

    library = artifacts.built(folder, key, make, lambda: dependencies.state(key))
    if build.target == "simulator":  # the library loads these: they are intact, or are built again
        libsimt.runtime_library()
        libraries.linking(texts, build.ldflags)
    spaces = namespaces or sources.defined_names(texts, "TORCH_LIBRARY_FRAGMENT")
    result = _open(build, extension, library, modules, spaces, renamed)
    if build.traced:
        result = Traced(result)
    _loaded[key + dependencies.state(key)] = result
    return result


def _places(build: Build, texts: dict[Path, str], folder: Path, renamed: dict[str, str]) -> dict[Path, Path]:
    """Where the text that is compiled lies, of each text: translated or renamed in `folder`, or where it was."""
    if build.target != "simulator":
        return sources.write_renamed(texts, folder / "renamed", renamed)
    return sources.write_translated(texts, folder / "translated", build.include_paths, renamed, build.names(texts))


def _compile(
    build: Build, extension: str, texts: dict[Path, str], folder: Path, places: dict[Path, Path], units: Units
) -> Path:
    """Builds the library in `folder` and returns its path. Raises BuildError."""
    if build.target != "simulator":
        return _run(build, extension, folder, units.reused(_gpu_options(build, places)))
    options = units.reused(_simulator_options(build, texts, places))
    if sources.uses_stable_abi(texts) or not sources.torch_headers(texts) or sources.uses_cpp_frontend(texts):
        return _run(build, extension, folder, options)
    options["extra_cflags"] += flags.in_more_memory()
    some = torch_headers.chosen(texts, folder / "translated")
    try:
        flags_of_all = options["extra_cflags"]
        return _run(build, extension, folder, {**options, "extra_cflags": [*flags_of_all, *map(quote, some)]})
    except BuildError as error:
        if not some or not torch_headers.lacking(error.output):
            raise
    return _run(build, extension, folder, options)


def _run(build: Build, extension: str, folder: Path, options: dict[str, Any]) -> Path:
    # PyTorch numbers the names that it has seen in this process; the numbers here are ours.
    entries = getattr(getattr(cpp_extension, "JIT_EXTENSION_VERSIONER", None), "entries", {})
    entries.pop(extension, None)
    try:
        limited = guard.build(folder, BuildError, build.target)
        with Progress(f"building {build.name} for the {build.target}"), turns.turn("build"), limited:
            cpp_extension.load(
                name=extension,
                build_directory=str(folder),
                verbose=build.verbose,
                is_python_module=False,  # builds it; _open loads it
                **options,
            )
    except RuntimeError as error:
        if "Error building extension" not in str(error):
            raise
        given = options["extra_cflags"]
        if names_change_meaning(str(error)) and "-fpermissive" not in given:
            return _run(build, extension, folder, {**options, "extra_cflags": [*given, "-fpermissive"]})
        failure: BuildError = explain(build.name, origins.restored(str(error)))
        raise failure from None
    except OSError as error:
        raise _unloadable(build, error) from error
    built = sorted(folder.glob(f"{extension}*.so"))
    if not built:
        raise BuildError(f"the build of {extension} left no library in {folder}")
    return built[0]


def _simulator_options(build: Build, texts: dict[Path, str], places: dict[Path, Path]) -> dict[str, Any]:
    """PyTorch's arguments to build the translated sources with the host's compiler."""
    whole = ["-DSIMT_WHOLE_TORCH"] if sources.uses_cpp_frontend(texts) else []
    ours = flags.of_kernels(build.traced)
    own = libraries.headers(texts)
    debug_folders = flags.debug_folders() if build.traced else []
    given = flags.given([*build.cflags, *flags.host_flags(build.cuda_cflags)], build.traced)
    theirs = [*whole, *flags.standard(given, bool(sources.torch_headers(texts))), *given]
    # Flags that change no header; g++ itself refuses a macro that one names.
    same = all(f.startswith("-D") or f in (*flags.filled_locals(), *flags.loads_where_written()) for f in theirs)
    compiled = precompiled.with_library(ours) if same and sources.uses_stable_abi(texts) else None
    runtime = libsimt.runtime_library()
    # A shell reads the flags, and folders may have blanks; those that were given are passed on as PyTorch does.
    linked = [*libraries.linking(texts, []), *libsimt.linked(runtime, "simt")]
    options = [*libraries.linking({}, build.ldflags), *map(quote, linked)]
    options += flags.TRACED_LINKING if build.traced else []
    if sources.uses_stable_abi(texts):
        options = [*linking.flags(), *options]
    include_paths = [*([compiled] if compiled else []), libsimt.INCLUDE, *build.include_paths]
    beside = [f"-iquote {quote(str(path))}" for path in dict.fromkeys(p.parent for p in texts)]
    return {
        "sources": [str(places[s]) for s in build.sources],
        "extra_cflags": [*ours, *map(quote, [*debug_folders, *libraries.compile_flags(texts), *own]), *theirs, *beside],
        "extra_ldflags": options,
        "extra_include_paths": [str(p) for p in include_paths],
        "with_cuda": False,
    }


def _gpu_options(build: Build, places: dict[Path, Path]) -> dict[str, Any]:
    """PyTorch's arguments for a GPU build."""
    beside = sorted({p.parent for p in places if places[p] != p})  # a copy includes the headers beside its original
    return {
        "sources": [str(places[s]) for s in build.sources],
        "extra_cflags": flags.for_gpu(build.cflags),
        "extra_cuda_cflags": ["-DUSE_CUDA", *flags.for_gpu(build.cuda_cflags)],
        "extra_ldflags": list(build.ldflags),  # PyTorch appends to it
        "extra_include_paths": [str(p) for p in [*build.include_paths, *beside]],
        "with_cuda": build.with_cuda,
    }


def _open(
    build: Build, extension: str, library: Path, modules: list[str], namespaces: list[str], renamed: dict[str, str]
) -> Any:
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
    reason = error.__cause__ or error  # PyTorch wraps the linker's message in "Could not load this library"
    return BuildError(f"{build.name} was built but cannot be loaded: {reason}", str(reason))


def _import_module(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise ImportError(f"{library} is not an extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
