"""Kernel Ladder's helpers: what the notebooks import.

`load` and `load_inline` build `.cu` files for the GPU or, where there is none, for the simulator; `device` is where
tensors for the kernels live; `target` says which of the two it is. `check` compares a kernel with its reference,
`bench` times it on a GPU, `xray` says which line of it wastes memory traffic or breaks the rules. `show_kernel` shows
its source; `thread_map` and its relatives draw which thread touches what.
"""

import sys
from importlib import import_module

# `python -m helpers doctor` has to run where the rest cannot be imported: it is to say why.
_DIAGNOSING = sys.argv[:2] == ["-m", "doctor"]

if not _DIAGNOSING:
    from helpers.bench import bench
    from helpers.check import CheckFailed, assert_close, check
    from helpers.compile_errors import BuildError, UnsupportedError
    from helpers.exercises import exercises, hint, register, solution
    from helpers.loader import load, load_inline
    from helpers.show import show_error, show_kernel
    from helpers.simt.faults import KernelFault
    from helpers.toolchain import device, target
    from helpers.xray import occupancy, xray

    register()  # in a notebook: the %%exercise cells

# Imported on first use: the pictures need matplotlib, which takes a while.
_LATER = {
    "bars": "helpers.plot_results",
    "grid_and_blocks": "helpers.plot",
    "recorded_map": "helpers.plot",
    "roofline": "helpers.plot_results",
    "share_of_copy": "helpers.plot_results",
    "thread_map": "helpers.plot",
}

__all__ = [
    "BuildError",
    "CheckFailed",
    "KernelFault",
    "UnsupportedError",
    "assert_close",
    "bars",
    "bench",
    "check",
    "device",
    "exercises",
    "grid_and_blocks",
    "hint",
    "load",
    "load_inline",
    "occupancy",
    "recorded_map",
    "roofline",
    "share_of_copy",
    "show_error",
    "show_kernel",
    "solution",
    "target",
    "thread_map",
    "xray",
]


def __getattr__(name: str):
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'helpers' has no attribute {name!r}")
