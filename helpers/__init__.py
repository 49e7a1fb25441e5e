"""Kernel Ladder's helpers: what the notebooks import.

`load` and `load_inline` build `.cu` files for the GPU or, where there is none, for the simulator; `device` is where
tensors for the kernels live; `target` says which of the two it is.
"""

from helpers.compile_errors import BuildError, UnsupportedError
from helpers.loader import load, load_inline
from helpers.simt.faults import KernelFault
from helpers.toolchain import device, target

__all__ = ["BuildError", "KernelFault", "UnsupportedError", "device", "load", "load_inline", "target"]
