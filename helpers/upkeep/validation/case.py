"""A case: one launch, which ncu counts on a GPU and the X-ray in the simulator."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from helpers.ladder.catalogue.extensions import extension

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """One launch: `prepared(device, traced)` returns it as a function without arguments, whose inputs exist already.

    `kernel` is its __global__ function, in `source`.
    """

    name: str
    group: str  # "global", "shared", "tile", "rearranged" or "course"
    kernel: str
    source: str
    prepared: Callable[[torch.device, bool], Callable[[], object]]

    @property
    def repeats(self) -> int:
        """How often ncu counts it: some counters of shared memory are higher in some runs than in others."""
        return 5 if self.group == "course" else 1


def library(name: str, files: tuple[str, ...], traced: bool, flags: tuple[str, ...] = ()) -> Any:
    """The operators that the files register, for the simulator's traced mode or for this machine's target."""
    mode = "_traced" if traced else ""
    return extension(name + mode, files, flags=("-lineinfo", *flags), traced=traced)
