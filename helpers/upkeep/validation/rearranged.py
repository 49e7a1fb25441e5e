"""Kernels whose accesses nvcc merges, drops or moves (rearranged.cu), for comparing corrected counts with ncu's."""

import re
from collections.abc import Callable

import torch

from helpers.upkeep.validation.case import HERE, Case, library

SOURCE = HERE / "rearranged.cu"
KERNELS = tuple(re.findall(r"^__global__ void (\w+)_kernel", SOURCE.read_text(encoding="utf-8"), re.MULTILINE))


def case(number: int) -> Case:
    """The case of one kernel, by its number in rearranged.cu."""

    def run(device: torch.device, traced: bool) -> Callable[[], object]:
        ops = library("validation_rearranged", (str(SOURCE),), traced)
        x, y = torch.ones(1024, device=device), torch.ones(1024, device=device)
        return lambda: ops.rearranged(x, y, number, 5)

    name = KERNELS[number]
    return Case(f"{name.replace('_', ' ')}, 2 x 64", "rearranged", f"{name}_kernel", SOURCE.name, run)


REARRANGED = [case(number) for number in range(len(KERNELS))]
