"""Kernel Ladder's helpers: what the notebooks import.

`load` and `load_inline` build `.cu` files for the GPU or, where there is none, for the simulator; `device` is where
tensors for the kernels live; `target` says which of the two it is. `program` builds and runs a source with a main(),
in a process of its own. `check` compares a kernel with its reference,
`bench` times it on a GPU, `xray` says which line of it wastes memory traffic or breaks the rules. `show_kernel` shows
its source; `thread_map` and its relatives draw which thread touches what; `load_cost` and `where_bytes_go` are figures
that a reader moves.

Kernels are built, run and X-rayed by `kernel_xray`, a package of its own in the folder of that name; this one hands out
its names, and knows the course. The rooms, from the ground up; each imports only from those above it in this list:

    checking     is a tensor right? tolerances, comparison, hints
    pictures     kernels as text, threads as drawings
    catalogue    every operator of the course: files, reference, dtypes, shapes, bytes
    results      recorded measurements: files, tables, plots
    figures      figures that a reader moves: what a load costs, where the bytes go
    pytorch      the operators as PyTorch's own; several devices
    museum       published bugs, and the tools that find them
    notebooks    their canonical form, the course as pages, a package from the template
    practice     exercises: starters, cases, verdicts
    benchmarks   the timer, campaigns, and the benchmarks of our own tools
    classroom    grading: submissions, points, verdicts, the formats of platforms
    handout      what students get, files for platforms, similarity of submissions
    doctor       what this machine has, what is missing, how to fix it
    validation   the X-ray beside ncu and compute-sanitizer (needs a GPU)
    mutants      kernels with one small mistake, and whether the checks find it
    book         the course as a book: pages from notebooks, kernels, results and docs
    front        what a newcomer meets first: README.md's measured parts, the lessons as Colab opens them

`set_up.py` makes the virtual environment before anything is installed. Each name below is imported when it is first
used, so `import helpers` costs nothing; `python -m helpers` is the command line.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
if (_own := _ROOT / "kernel_xray" / "src").is_dir():  # a clone's course runs on its own instrument, installed or not
    sys.path.insert(0, str(_own))
# The instrument's variables have the course's names too.
for _name in ("TARGET", "CACHE", "CACHE_LIMIT", "BLOCK_SECONDS", "BUILD_MEMORY", "BUILD_SECONDS", "DEVICES", "THREADS"):
    if (_given := os.environ.pop(f"KERNEL_LADDER_{_name}", None)) is not None:
        os.environ[f"KERNEL_XRAY_{_name}"] = _given

from kernel_xray.machine.paths import include_paths  # noqa: E402

include_paths.append(_ROOT / "kernels" / "include")

_PLACES = {
    "kernel_xray": (
        *("BuildError", "KernelFault", "UnsupportedError", "device", "load", "load_inline", "occupancy", "program"),
        *("target", "xray"),
    ),
    "helpers.benchmarks.live": ("bench",),
    "helpers.checking.checker": ("check",),
    "helpers.checking.compare": ("CheckFailed", "assert_close"),
    "helpers.figures.climb": ("where_bytes_go",),
    "helpers.figures.loads": ("load_cost",),
    "helpers.pictures.exchange": ("exchange_map",),
    "helpers.pictures.plot": ("grid_and_blocks", "recorded_map", "thread_map"),
    "helpers.pictures.show": ("show_error", "show_kernel"),
    "helpers.practice.magic": ("hint", "solution"),
    "helpers.practice.registry": ("exercises",),
    "helpers.practice.standing": ("my_progress",),
    "helpers.results.plots": ("bars", "roofline", "share_of_copy"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}; it has {', '.join(__all__)}")
    return globals().setdefault(name, getattr(import_module(_MODULES[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "IPython" in sys.modules:  # in a notebook: the %%exercise cells
    import_module("helpers.practice.magic").register()
