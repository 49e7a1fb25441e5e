"""Films in a verdict, from another run in the same order: of the warp with a fault, or of the first wrong element."""

import torch

from helpers.practice.cases import Case
from helpers.practice.fences import fenced_arguments
from helpers.practice.remote import Remote
from helpers.practice.writers import writer_of
from kernel_xray.report import films
from kernel_xray.report.facts import FaultRecord, Writer
from kernel_xray.report.report import Report


def film_of_fault(function: Remote, case: Case, report: Report, fault: FaultRecord) -> str:
    """The film of the warp in which `report` has a fault, folded, as HTML; "" if the second run has none."""
    launch = next((launch for launch in report.launches if launch.kernel == fault.kernel), None)
    if launch is None:
        return ""
    (columns, rows, _), (x, y, z) = launch.grid, fault.block
    return _film(function, case, report, x + columns * (y + rows * z), None, "at the fault")


def film_of_wrong_element(function: Remote, case: Case, report: Report, output: str, index: tuple[int, ...]) -> str:
    """The film of the warp that wrote an element of an output, folded, as HTML; "" if no thread wrote it.

    report   of a run that asked who wrote what
    """
    wrote = writer_of(report, output, case.outputs[output], index)
    if wrote is None:
        return ""
    return _film(function, case, report, wrote.block, wrote, "where it wrote the first wrong element")


def _film(function: Remote, case: Case, report: Report, block: int, wrote: Writer | None, where: str) -> str:
    arguments, _ = fenced_arguments(case, torch.device("cpu"))
    again = function.xray(*arguments, seed=report.seed, film=[block], wrote=wrote)
    if not again.recorded or not again.recorded.frames:
        return ""
    frame = films.film(again, wrote=wrote).as_small_frame()
    return f"<details><summary>The film of this warp, opened {where}</summary>{frame}</details>"
