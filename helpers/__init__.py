"""Kernel Ladder's helpers: what the notebooks import.

`load` and `load_inline` build `.cu` files for the GPU or, where there is none, for the simulator; `device` is where
tensors for the kernels live; `target` says which of the two it is. `check` compares a kernel with its reference,
`show_kernel` shows its source, `thread_map` and its relatives draw which thread touches what, and `xray` says which
line of a kernel wastes memory traffic or breaks the rules.
"""

from importlib import import_module

from helpers.check import CheckFailed, assert_close, check
from helpers.compile_errors import BuildError, UnsupportedError
from helpers.loader import load, load_inline
from helpers.show import show_error, show_kernel
from helpers.simt.faults import KernelFault
from helpers.toolchain import device, target
from helpers.xray import xray

_PICTURES = ("grid_and_blocks", "recorded_map", "thread_map")  # they import matplotlib: only on first use

__all__ = [
    "BuildError",
    "CheckFailed",
    "KernelFault",
    "UnsupportedError",
    "assert_close",
    "check",
    "device",
    "grid_and_blocks",
    "load",
    "load_inline",
    "recorded_map",
    "show_error",
    "show_kernel",
    "target",
    "thread_map",
    "xray",
]


def __getattr__(name: str):
    if name in _PICTURES:
        return getattr(import_module("helpers.plot"), name)
    raise AttributeError(f"module 'helpers' has no attribute {name!r}")
