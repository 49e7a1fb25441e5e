"""A case of what is counted twice: one launch, which the same function makes on a GPU and in the simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from helpers.build import flags, loader

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """One launch: `run(device, traced)` gives it as a function; `kernel` is its kernel's name, `source` the file."""

    name: str
    group: str  # "global", "shared", "tile" or "course"
    kernel: str
    source: str
    run: Callable[[torch.device, bool], Callable[[], object]]

    @property
    def repeats(self) -> int:
        """How often ncu counts it: some counters of shared memory come out higher in some runs than in others."""
        return 5 if self.group == "course" else 1

    def prepared(self, device: torch.device, traced: bool) -> Callable[[], object]:
        """The launch as a function without arguments, whose inputs are made already."""
        return self.run(device, traced)


_FOR_HOPPER = {"11_wgmma.cu", "12_cluster.cu", "tiles.cu"}


@functools.cache
def library(name: str, files: tuple[Path, ...], traced: bool):
    """The operators that the files register, for the simulator's traced mode or for this machine's target."""
    return loader.load(
        name=name + "_traced" * traced,
        sources=list(files),
        extra_cuda_cflags=["-lineinfo", *(flags.SM_90A if any(f.name in _FOR_HOPPER for f in files) else [])],
        is_python_module=False,
        traced=traced,
    )
