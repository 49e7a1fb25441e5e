"""The runs that README.md's pictures show: two rungs of the matmul ladder, and a kernel of the museum with a race."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from helpers.ladder.catalogue.matmul import RUNGS
from helpers.pages.museum.exhibit import EXHIBITS
from helpers.paths import KERNELS
from helpers.upkeep.validation.counted import LAUNCHES, case
from kernel_xray.report.facts import Facts
from kernel_xray.report.film_data import Frame, for_viewing
from kernel_xray.report.run import xray

SIDE = 64  # rows and columns of each matrix
TURNS = 3  # of the kernel's loop that the film shows, before the last request, which stores


@dataclass(frozen=True)
class Run:
    """A traced run of the kernel in `file`: its report, and the global requests of its first warp."""

    file: Path
    report: Facts
    requests: list[Frame]

    def source(self, first: int, last: int) -> list[str]:
        """Lines of the file, numbered from 1, both ends included."""
        return self.file.read_text(encoding="utf-8").splitlines()[first - 1 : last]

    def body(self) -> tuple[int, int]:
        """First and last line of the kernel: from its __global__ to the closing brace."""
        lines = self.file.read_text(encoding="utf-8").splitlines()
        name = self.report.launches[0].kernel.partition("<")[0]
        first = next(i for i, line in enumerate(lines, 1) if "__global__" in line and name in line)
        return first, next(i for i, line in enumerate(lines[first:], first + 1) if line == "}")


def rung(number: int) -> Run:
    """A rung of the ladder on SIDE x SIDE float32 matrices, with the film of its first block. number: of its file."""
    name, file = next((name, file) for name, file in RUNGS.items() if Path(file).name.startswith(f"{number:02}_"))
    operator, kernel, launch = next(each for each in LAUNCHES if each[1].name == name)
    shape = replace(launch, shape=(SIDE, SIDE, SIDE))
    report = xray(case(operator, kernel, shape).prepared(torch.device("cpu"), True), film=True)
    assert report.recorded is not None
    first = next(iter(report.recorded.warps().values()))
    launched = report.launches[0].file, report.launches[0].line
    requests = [frame for frame in for_viewing(first, launched) if frame.kind]
    return Run(KERNELS / file, report, [*requests[: 2 * TURNS], requests[-1]])


def race() -> Run:
    """The exhibit tile_overwritten: a barrier is missing, so that a tile is overwritten while it is still read."""
    exhibit = next(each for each in EXHIBITS if each.name == "tile_overwritten")
    report = xray(exhibit.function(False), *exhibit.prepare("cpu"), seed=0, **exhibit.options)
    return Run(KERNELS / "museum" / "synchronisation.cu", report, [])
