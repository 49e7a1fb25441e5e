"""Kernel Ladder's helpers: what the notebooks import.

`load` and `load_inline` build `.cu` files for the GPU or, where there is none, for the simulator; `device` is where
tensors for the kernels live; `target` says which of the two it is. `program` builds and runs a source with a main(),
in a process of its own. `check` compares a kernel with its reference,
`bench` times it on a GPU, `xray` says which line of it wastes memory traffic or breaks the rules. `show_kernel` shows
its source; `thread_map` and its relatives draw which thread touches what; `load_cost` and `where_bytes_go` are figures
that a reader moves.

The rooms, from the ground up; each imports only from those above it in this list:

    machine      where things lie: paths, the build cache, compilers, progress
    checking     is a tensor right? tolerances, comparison, hints
    pictures     kernels as text, threads as drawings
    simt         the simulator: translates CUDA C++ and runs it on a CPU
    xrays        X-rays: the report of a traced run
    build        load, load_inline, program: from sources to a loaded extension, or to a program that is run
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

import sys
from importlib import import_module

_PLACES = {
    "helpers.benchmarks.live": ("bench",),
    "helpers.build.loader": ("load", "load_inline"),
    "helpers.build.programs": ("program",),
    "helpers.checking.checker": ("check",),
    "helpers.checking.compare": ("CheckFailed", "assert_close"),
    "helpers.figures.climb": ("where_bytes_go",),
    "helpers.figures.loads": ("load_cost",),
    "helpers.machine.toolchain": ("device", "target"),
    "helpers.pictures.exchange": ("exchange_map",),
    "helpers.pictures.plot": ("grid_and_blocks", "recorded_map", "thread_map"),
    "helpers.pictures.show": ("show_error", "show_kernel"),
    "helpers.practice.magic": ("hint", "solution"),
    "helpers.practice.registry": ("exercises",),
    "helpers.practice.standing": ("my_progress",),
    "helpers.results.plots": ("bars", "roofline", "share_of_copy"),
    "helpers.simt.errors": ("BuildError", "UnsupportedError"),
    "helpers.simt.faults": ("KernelFault",),
    "helpers.xrays.resident_warps": ("occupancy",),
    "helpers.xrays.run": ("xray",),
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
