"""Is an answer right where indices need more than 32 bits? In the simulator, at both ends of tensors too large to run.

An answer may go over the elements in an order of its own, or leave all of them to a few blocks. Then the first and the
last blocks do not compute the ends, or never end. So they first do the same on tensors that 32 bits can index; only
what is right there and wrong on the long ones is the fault of an index.
"""

from collections.abc import Callable

import torch

from helpers.checking.compare import CheckFailed
from helpers.practice.case_runner import Rejected, plain
from helpers.practice.cases import Check
from helpers.simt.far import SUPPORTED, check_far
from helpers.simt.faults import KernelFault

WHY = "  an index, or a number on the way to it, has lost its upper bits: 32 bits hold {}; compute it as int64_t"
LIMIT = "-2,147,483,648 to 2,147,483,647, unsigned 0 to 4,294,967,295"


def run_far_case(function: Callable, what: Check, device: torch.device, announce: Callable[[str], None]) -> None:
    """Runs the far case of an exercise, if it has one and this machine can. Raises Rejected if the answer is wrong."""
    if what.far is None or device.type != "cpu" or not SUPPORTED:
        return
    case = what.far.case(what.far.long)
    announce(case.label)
    if not _computes_the_ends(function, what):
        return
    try:
        _call(function, what, what.far.long)
    except CheckFailed as error:
        raise Rejected(f"{error}\n{WHY.format(LIMIT)}") from None
    except KernelFault as error:
        if error.kind == "time-limit":
            return
        raise Rejected(f"{case.label}: {plain(error)}\n{WHY.format(LIMIT)}") from None


def _computes_the_ends(function: Callable, what: Check) -> bool:
    """Whether the first and the last blocks of a smaller call compute the ends, and little else."""
    try:
        results = _call(function, what, what.far.short)
    except (CheckFailed, KernelFault, ValueError):
        return False
    return all(4 * x.count_nonzero() < x.numel() for x in results if x.numel() < 2**24)


def _call(function: Callable, what: Check, length: int) -> list[torch.Tensor]:
    case = what.far.case(length)
    return check_far(function, case.inputs, case.outputs, reference=what.reference, name=case.label, **case.tolerance)
