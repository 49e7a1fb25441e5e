"""Kernel Ladder's helpers: what the notebooks import.

`load` and `load_inline` build `.cu` files for the GPU or, where there is none, for the simulator; `device` is where
tensors for the kernels live; `target` says which of the two it is. `program` builds and runs a source with a main(),
in a process of its own. `check` compares a kernel with its reference, `bench` times it on a GPU, `xray` says which
line of it wastes memory traffic or breaks the rules. `show_kernel` shows its source, `show_change` the lines in which
two differ; `thread_map` and its relatives draw which thread touches what; `load_cost` and `where_bytes_go` are
figures that a reader moves.

Kernels are built, run and X-rayed by `kernel_xray`, a package of its own in the folder of that name: this one hands out
its names, and knows the course. docs/architecture.md has the map:

    ladder      the operators of the course: what each is, computes and reaches
    practice    exercises: starters, cases, verdicts
    teaching    grading and hand-outs, for classes
    pages       lessons as files, the book, figures, pictures, the museum of bugs
    upkeep      benchmarks, validation, mutants, the doctor

`set_up.py` makes the virtual environment before anything is installed. Each name below is imported when it is first
used, so `import helpers` costs nothing; `python -m helpers` is the command line.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
if (_own := _ROOT / "kernel_xray" / "src").is_dir():  # a clone's course runs on its own instrument, installed or not
    sys.path.insert(0, str(_own))
# The instrument's variables have the course's names too.
for _name in ("TARGET", "CACHE", "CACHE_LIMIT", "BLOCK_SECONDS", "BUILD_MEMORY", "BUILD_SECONDS", "DEVICES", "THREADS"):
    if (_given := os.environ.get(f"KERNEL_LADDER_{_name}")) is not None:
        os.environ[f"KERNEL_XRAY_{_name}"] = _given
        if _name != "TARGET":  # which a package from the template asks for; a process started here may be given others
            del os.environ[f"KERNEL_LADDER_{_name}"]

from kernel_xray.machine.paths import include_paths  # noqa: E402

include_paths.append(_ROOT / "kernels" / "include")

_PLACES = {
    "kernel_xray": (
        *("BuildError", "KernelFault", "UnsupportedError", "device", "load", "load_inline", "occupancy", "program"),
        *("target", "xray"),
    ),
    "helpers.upkeep.benchmarks.live": ("bench",),
    "helpers.ladder.checking.checker": ("check",),
    "helpers.ladder.checking.compare": ("CheckFailed", "assert_close"),
    "helpers.pages.figures.climb": ("where_bytes_go",),
    "helpers.pages.figures.loads": ("load_cost",),
    "helpers.pages.pictures.change": ("show_change",),
    "helpers.pages.pictures.exchange": ("exchange_map",),
    "helpers.pages.pictures.plot": ("grid_and_blocks", "recorded_map", "thread_map"),
    "helpers.pages.pictures.show": ("show_error", "show_kernel"),
    "helpers.practice.magic": ("hint", "solution"),
    "helpers.practice.standing": ("my_progress",),
    "helpers.practice.starters": ("exercises",),
    "helpers.ladder.results.plots": ("bars", "roofline", "share_of_copy"),
}
# Rooms that lessons import by their short name: `from helpers import results`.
_ROOMS = {
    "doctor": "helpers.upkeep.doctor",
    "museum": "helpers.pages.museum",
    "results": "helpers.ladder.results",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    if name not in _MODULES:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}; it has {', '.join(__all__)}")
    return globals().setdefault(name, getattr(import_module(_MODULES[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "IPython" in sys.modules:  # in a notebook: the %%exercise cells
    import_module("helpers.practice.magic").register()
