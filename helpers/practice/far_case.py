"""Is an answer right where indices need more than 32 bits? In the simulator, at both ends of tensors too large to run.

An answer may go over the elements in an order of its own, or leave all of them to a few blocks. Then the first and the
last blocks do not compute the ends, or never end. So they first do the same on tensors that 32 bits can index; only
what is right there and wrong on the long ones is the fault of an index. So is what only shorter ones have right, unless
a grid of at most 65,535 blocks, whose threads go on in strides, is right as a whole. The answer's process computes the
ends, and the judge compares them.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from helpers.ladder.checking import both_ends
from helpers.ladder.checking.compare import CheckFailed
from helpers.practice.case_runner import Rejected, plain
from helpers.practice.cases import Case, Check
from kernel_xray.runtime import far
from kernel_xray.runtime.far import SUPPORTED, Computed
from kernel_xray.runtime.kernel_fault import KernelFault

SEEN = 2**26  # bytes of results: of fewer, a process that has touched half does not stand out
NOISE = 2**24  # bytes of results: of fewer, it never does (fibres and threads alone touch a few MiB)
WHY = (
    "  smaller sizes are right, so the index overflows {bits} bits, which end at {limits}: "
    "compute it, and all that it is made of, as int64_t"
)
WHY_32 = WHY.format(bits=32, limits="2,147,483,647 (unsigned: 4,294,967,295)")
WHY_16 = WHY.format(bits=16, limits="32,767 (unsigned: 65,535)")


Compute = Callable[..., Computed]  # a length, and the width of the window if it is not the case's -> what it computes
ALL = 2**15  # a window in which all blocks of a grid of up to 65,536 run


def run_far_case(compute: Compute, what: Check, device: torch.device, announce: Callable[[str], None]) -> bool:
    """Runs the far cases of an exercise, if it has one and this machine and the answer's grid permit it.

    Returns whether they told something. Raises Rejected if the answer is wrong.
    """
    if what.far is None or device.type != "cpu" or not SUPPORTED:
        return False
    announce(what.far.case(what.far.long).label)
    wrong = _wrong_ends(compute, what, what.far.short, SEEN)
    if wrong:
        if what.far.least and not _wrong_ends(compute, what, what.far.least) and not _strides(compute, what):
            raise Rejected(f"{wrong}\n{WHY_16}")
        return False
    told = True
    for length in (what.far.long, *what.far.more):
        case = what.far.case(length)
        if length != what.far.long:
            announce(case.label)
        try:
            found = compute(length)
            try:
                _compare(found, what, case)
            except CheckFailed as error:
                if not _is_limited(found, case, compute(what.far.short), what.far.case(what.far.short)):
                    raise Rejected(f"{error}\n{WHY_32}") from None
                told = False
        except KernelFault as error:
            if error.kind != "time-limit":
                raise Rejected(f"{case.label}: {plain(error)}\n{WHY_32}") from None
            told = False
    return told


def _is_limited(found: Computed, case: Case, at_short: Computed, short: Case) -> bool:
    """Whether a grid has more blocks than that of the short case, but far fewer than its tensors ask for.

    Its threads go on in strides, so that other blocks compute the ends. A grid whose size has overflowed is smaller.
    """
    wanted = at_short.left_out * _largest(case) / _largest(short)
    return at_short.left_out <= found.left_out < wanted / 4


def _largest(case: Case) -> int:
    """Elements of the largest tensor."""
    return max(x.numel() for x in (*case.inputs, *case.outputs.values()) if isinstance(x, torch.Tensor))


def _strides(compute: Compute, what: Check) -> bool:
    """Whether all blocks together are right where the first and the last are not: a grid of at most 65,535 blocks."""
    assert what.far is not None
    try:
        found = compute(what.far.short, ALL)
        if found.left_out:
            return False
        _compare(replace(found, left_out=1), what, what.far.case(what.far.short))
    except (CheckFailed, KernelFault):
        return False
    return True


def computed(function: Callable, case: Case, width: int = 0) -> Computed:
    """What a function computes in a far case; `width` of the window, if it is not the case's."""
    options = {key: case.tolerance[key] for key in ("edge", "width") if key in case.tolerance}
    options |= {"width": width} if width else {}
    return far.compute(function, case.inputs, case.outputs, **options)


def _wrong_ends(compute: Compute, what: Check, length: int, seen: int = 0) -> str:
    """Why the first and the last blocks of a call do not compute the ends, and little else; "" if they do.

    seen  bytes of results: of fewer, how much the process has touched says nothing
    """
    assert what.far is not None
    case = what.far.case(length)
    try:
        found = compute(length)
        _compare(found, what, case)
    except (CheckFailed, KernelFault, ValueError) as error:
        return plain(error) if isinstance(error, CheckFailed) else f"{case.label}: {plain(error)}"
    of_results = sum(math.prod(shape) * x.itemsize for shape, x in zip(found.shapes, found.ends, strict=True))
    apart = of_results < NOISE or 2 * found.touched < max(seen, of_results)
    return "" if apart else f"{case.label}: few blocks compute everything"


def _compare(found: Computed, what: Check, case: Case) -> None:
    assert what.far is not None
    reference = what.far.reference or what.reference
    both_ends.compare(found, case.inputs, case.outputs, reference=reference, name=case.label, **case.tolerance)
