"""The report of an X-ray: its facts as text, HTML and pictures, and the kernels' occupancy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_xray.report import films
from kernel_xray.report.facts import Facts, FaultRecord, Launch, Line
from kernel_xray.report.html import as_html
from kernel_xray.report.kernel_names import shown_names
from kernel_xray.report.limits import limits
from kernel_xray.report.limits_table import Limits
from kernel_xray.report.resident_warps import Occupancy
from kernel_xray.report.text import as_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FaultRecord", "Launch", "Line", "Report"]


class Report(Facts):
    """The result of `kernel_xray.xray`: the function's result, costs by line, faults, remarks, launches, the seed."""

    def __repr__(self) -> str:  # without the seed: the same in every run
        kernels = shown_names(launch.kernel for launch in self.launches) or "no traced kernel"
        faults = ", ".join(f.kind for f in self.faults) or "no faults"
        cut = "; incomplete" if self.cut or not self.whole else ""
        return f"<X-ray of {kernels}: {faults}; {len(self.lines)} kinds of access{cut}>"

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def plot(self, line: int | None = None) -> Figure:
        """Draws which sectors (global) or banks (shared) the lanes of one warp touch.

        line   of the source; by default the most wasteful one. All kinds of access on it are drawn.

        Raises ValueError if no access was recorded there.
        """
        from kernel_xray.report.picture import draw  # needs matplotlib, which takes a while to import

        return draw(self, line)

    def film(self, warps: int = films.MOST_WARPS, frames: int = films.MOST_FRAMES) -> films.Film:
        """A film of the warps of the first block, which a notebook plays; needs `xray(..., film=True)`.

        It opens at the first fault, if one of the filmed warps had it. `warps`: the most that it shows; `frames`: the
        most of each warp; the film names what it leaves out. Raises ValueError if nothing was filmed.
        """
        return films.film(self, warps=warps, frames=frames)

    def save(self, path: str | Path) -> None:
        """Writes the film as one HTML file. Raises ValueError if nothing was filmed."""
        self.film().save(path)

    def limits(self, gpu: str, flops: Mapping[str, float] | None = None) -> Limits:
        """The least time that each launch can take on a GPU, resource by resource; nothing is measured.

        gpu     such as "h200"; ValueError for an unknown one, with those that are known
        flops   operations that the work needs, by the type of its factors: {"bfloat16": 2 * m * n * k}. Only for a
                report of one launch

        From then on the report shows them too.
        """
        self.limited = limits(self, gpu, flops)
        return self.limited

    def occupancy(self, *capabilities: str) -> list[Occupancy]:
        """Theoretical occupancy of each launched kernel, from the registers that nvcc gives it.

        capabilities   of the GPUs to compile for; by default "8.0" (A100) and "9.0" (H100, H200)

        Compiles the kernels' files (seconds the first time); from then on the report shows the occupancy too. Raises
        RuntimeError if nvcc is missing or fails, ValueError for an unknown capability.
        """
        from kernel_xray.report.registers import occupancy_of_launches  # imports PyTorch's extension builder

        wanted = capabilities or ("8.0", "9.0")
        self.occupancies = [found for each in wanted for found in occupancy_of_launches(self.launches, each)]
        return self.occupancies
