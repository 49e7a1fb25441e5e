"""The Triton kernels in kernels/*_triton.py, as peers. Triton comes with PyTorch's CUDA builds for Linux alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from helpers.machine.paths import KERNELS


def triton_function(module: str, name: str) -> Callable:
    """A function of kernels/MODULE.py. Raises ImportError where there is no Triton."""
    if str(KERNELS) not in sys.path:
        sys.path.append(str(KERNELS))
    return getattr(importlib.import_module(module), name)
