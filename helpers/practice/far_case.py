"""Is an answer right where indices need more than 32 bits? In the simulator, at both ends of tensors too large to run.

An answer may go over the elements in an order of its own, or leave all of them to a few blocks. Then the first and the
last blocks do not compute the ends, or never end. So they first do the same on tensors that 32 bits can index; only
what is right there and wrong on the long ones is the fault of an index.
"""

import resource
from collections.abc import Callable
from pathlib import Path

import torch

from helpers.checking.compare import CheckFailed
from helpers.practice.case_runner import Rejected, plain
from helpers.practice.cases import Case, Check
from helpers.simt.far import SUPPORTED, check_far
from helpers.simt.faults import KernelFault

SEEN = 2**26  # bytes of results: of fewer, a process that has touched half does not stand out
WHY = (
    "  smaller sizes are right, so the index overflows 32 bits, which end at 2,147,483,647 (unsigned: 4,294,967,295): "
    "compute it, and all that it is made of, as int64_t"
)


def run_far_case(function: Callable, what: Check, device: torch.device, announce: Callable[[str], None]) -> None:
    """Runs the far case of an exercise, if it has one and this machine can. Raises Rejected if the answer is wrong."""
    if what.far is None or device.type != "cpu" or not SUPPORTED:
        return
    case = what.far.case(what.far.long)
    announce(case.label)
    if not _computes_the_ends(function, what, what.far.case(what.far.short)):
        return
    try:
        _call(function, what, case)
    except CheckFailed as error:
        raise Rejected(f"{error}\n{WHY}") from None
    except KernelFault as error:
        if error.kind == "time-limit":
            return
        raise Rejected(f"{case.label}: {plain(error)}\n{WHY}") from None


def _computes_the_ends(function: Callable, what: Check, case: Case) -> bool:
    """Whether the first and the last blocks of a smaller call compute the ends, and little else."""
    before = _resident()
    try:
        results = _call(function, what, case)
    except (CheckFailed, KernelFault, ValueError):
        return False
    return 2 * (_resident() - before) < max(SEEN, sum(x.nbytes for x in results))


def _resident() -> int:
    """Bytes of memory that this process has touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _call(function: Callable, what: Check, case: Case) -> list[torch.Tensor]:
    return check_far(function, case.inputs, case.outputs, reference=what.reference, name=case.label, **case.tolerance)
