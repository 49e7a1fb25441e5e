"""The calls that results/h200.json has times of, and an X-ray of a few blocks of each, for its limits.

Large tensors are zeros, whose pages cost memory only where a kernel touches them: what these kernels read does not
decide what they do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from helpers.ladder.catalogue import ALL
from helpers.ladder.catalogue.entry import Kernel, Operator, Shape
from helpers.paths import RESULTS
from kernel_xray.report.run import xray

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

_RANDOM = 2**26  # elements of an argument, at most
BLOCKS = (2, 8)  # of each launch; more where the first ones differ
SAMPLED = "scaled from a sample of blocks"  # why a limit of such an X-ray is an estimate; others are left out


@dataclass(frozen=True)
class Call:
    """A call of a kernel's variant, and the seconds that it took on an H200."""

    operator: Operator
    kernel: Kernel
    variant: str
    dtype: str
    shape: Shape
    seconds: float = 0.0

    @property
    def key(self) -> tuple:
        return self.operator.name, self.variant, self.dtype, self.shape

    def tensors(self) -> Sequence[torch.Tensor]:
        """Its arguments on this machine: random ones, or zeros where they are large."""
        shapes = self.operator.argument_shapes(self.shape)
        if max(map(math.prod, shapes)) <= _RANDOM:
            return self.operator.inputs(self.shape, getattr(torch, self.dtype), "cpu")
        return [torch.zeros(shape, dtype=getattr(torch, self.dtype)) for shape in shapes]

    def report(self, gpu: str, seconds: float, sass: bool = True, blocks: Sequence[int] = BLOCKS) -> Report:
        """The X-ray of a few blocks of each launch, in `seconds` of processor time for each attempt."""
        built = self.kernel.extension(traced=True)
        # xray traces; tiles are arguments of an overload
        untraced = built if self.kernel.python_module else built.untraced
        function, tensors = self.kernel.function_of(self.variant, untraced), self.tensors()
        for number in blocks:
            found = xray(function, *tensors, seed=0, blocks=number, gpu=gpu, sass=sass, seconds=seconds)
            if all(launch.even for launch in found.launches):
                break
        return found


def recorded(least: float = 0.0) -> list[Call]:
    """The calls of kernels of this course that took `least` seconds or more, in the order of the file."""
    known = {(o.name, variant): (o, kernel) for o in ALL for kernel in o.kernels for variant in kernel.variants}
    return [
        Call(*known[each["op"], each["variant"]], each["variant"], each["dtype"], tuple(each["shape"]), seconds)
        for each in json.loads((RESULTS / "h200.json").read_text(encoding="utf-8"))["records"]
        if (each["op"], each["variant"]) in known and (seconds := each["median_ms"] / 1e3) >= least
    ]


def by_resource(launch: Any) -> dict[str, float]:
    """The seconds of the limits of a launch of `report.limits`, the largest first."""
    return {limit.resource: limit.seconds for limit in launch.limits if limit.estimate in ("", SAMPLED)}
