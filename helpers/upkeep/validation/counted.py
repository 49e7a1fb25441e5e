"""The launches that ncu counts on a GPU and the simulator on a CPU.

They are those of micro-kernels, of kernels that nvcc rearranges, and of the catalogue.

A case is one launch. Both sides make the launches of CASES in this order.
"""

import math
from collections.abc import Callable

import torch

from helpers.ladder.catalogue import ALL, Kernel, Launch, Operator
from helpers.ladder.catalogue.entry import Shape
from helpers.upkeep.validation.case import Case, library
from helpers.upkeep.validation.micro import MICRO, TILES
from helpers.upkeep.validation.rearranged import REARRANGED


def case(operator: Operator, kernel: Kernel, launch: Launch) -> Case:
    """The case of a launch in the catalogue. The second kernel of a backward is not counted."""
    dtype = getattr(torch, launch.dtype or kernel.dtypes[0])

    def tensor(shape: Shape, generator: torch.Generator, device: torch.device) -> torch.Tensor:
        skipped = launch.first if len(shape) == len(launch.shape) else 0  # a bias begins where its storage does
        stored = shape[::-1] if launch.transposed else shape
        count = math.prod(shape) + skipped
        flat = torch.randn(count, generator=generator) if dtype.is_floating_point else torch.zeros(count)
        flat = flat.to(device, dtype)
        view = flat[skipped:].view(stored)
        return view.t() if launch.transposed else view

    def run(device: torch.device, traced: bool) -> Callable[[], object]:
        name = f"validation_{kernel.library_name}"
        function = getattr(library(name, kernel.files, traced, kernel.nvcc_flags), kernel.name)
        generator = torch.Generator().manual_seed(0)
        if operator.reference and not (launch.first or launch.transposed):
            inputs = list(operator.inputs(launch.shape, dtype, device))
        else:
            inputs = [tensor(shape, generator, device) for shape in operator.argument_shapes(launch.shape)]
        return lambda: function(*inputs, *launch.scalars)

    name = f"{kernel.name}, {launch.label}"
    return Case(name, "course", launch.kernel or kernel.cuda_name, kernel.files[0], run)


LAUNCHES = [(operator, kernel, launch) for operator in ALL for kernel in operator.kernels for launch in kernel.launches]
COURSE = [case(operator, kernel, launch) for operator, kernel, launch in LAUNCHES if kernel.runs_here]
# Kernels of the course without a row in the table of counts: __global__ function -> why
NOT_COUNTED = {k.cuda_name: k.not_counted for operator in ALL for k in operator.kernels if k.not_counted}
_HAS_TILES = not torch.cuda.is_available() or torch.cuda.get_device_capability() == (9, 0)
CASES = MICRO + (TILES if _HAS_TILES else []) + REARRANGED + COURSE
