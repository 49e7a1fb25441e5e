"""kernel_xray: CUDA kernels on a CPU, and an X-ray that says which of their lines waste memory traffic or break rules.

`load` and `load_inline` build extensions for PyTorch, on a GPU or in the simulator; `program` builds and runs a source
with a main(), in a process of its own. `xray` runs a function whose kernels were loaded with traced=True and returns a
`Report`; `film` plays one report, or two side by side. `device` is where tensors for the kernels live; `target` says
"gpu" or "simulator". `include_paths` is a list of folders of headers that every build finds.

docs/architecture.md lists the modules besides this one that others may rely on. Each name is imported when it is first
used; `program` and `Report` need no PyTorch.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

_PLACES = {
    "build.loader": ("load", "load_inline"),
    "build.programs": ("ProgramResult", "program"),
    "machine.paths": ("include_paths",),
    "machine.toolchain": ("device", "target"),
    "report.films": ("film",),
    "report.report": ("Report",),
    "report.resident_warps": ("occupancy",),
    "report.run": ("xray",),
    "runtime.kernel_fault": ("KernelFault",),
    "translate.errors": ("BuildError", "UnsupportedError"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        try:
            return version("kernel-xray")
        except PackageNotFoundError:  # a checkout that is not installed
            return "0+unknown"
    if name not in _MODULES:
        raise AttributeError(f"module 'kernel_xray' has no attribute {name!r}; it has {', '.join(__all__)}")
    return globals().setdefault(name, getattr(import_module(f"kernel_xray.{_MODULES[name]}"), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
