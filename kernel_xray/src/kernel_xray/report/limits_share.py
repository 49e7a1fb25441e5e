"""A launch's share of what was counted in the traced blocks of its kernel, and the SMs that it can use."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from kernel_xray.report.facts import Facts, Issued, Launch, Line
from kernel_xray.report.gpu_models import GPU
from kernel_xray.report.text import count_text

Counted = TypeVar("Counted", Line, Issued)
# Why a limit is not a bound.
_SAMPLE, SHAPES = "scaled from a sample of blocks", "shared out evenly among launches of several shapes"


def scale(launch: Launch) -> float:
    """How much work all blocks have for that of the traced ones: as their costs say, else as their numbers."""
    return launch.scale or (launch.blocks / launch.traced_blocks if launch.traced_blocks else 0.0)


def of_sample(launch: Launch) -> str:
    """Counts of a trace that ended early are lower bounds too; those of a sample are scaled, and may be too high."""
    return "" if launch.traced_blocks == launch.blocks else _SAMPLE


def has_its_grid(launch: Launch, gpu: GPU) -> bool:
    """Whether the launch has as many blocks on this GPU: not if it may be sized by another number of SMs."""
    return launch.sms_told in (0, gpu.sms)


def used(launch: Launch, gpu: GPU) -> int:
    """How many SMs the launch can use."""
    return min(gpu.sms, launch.blocks) if has_its_grid(launch, gpu) else gpu.sms


def busy(launch: Launch, gpu: GPU) -> float:
    """How many SMs the work is divided by.

    Of blocks that are even, some SM has the most, and takes as long for its own as if every SM had as many.
    """
    even = launch.even and has_its_grid(launch, gpu)
    return launch.blocks / most_blocks(launch, gpu) if even else used(launch, gpu)


def most_blocks(launch: Launch, gpu: GPU) -> int:
    """How many blocks some SM runs at least."""
    return -(-launch.blocks // gpu.sms)


def tail(launch: Launch, gpu: GPU) -> str:
    """Words on the SM that has the most blocks, if it takes longer than the mean."""
    uneven = busy(launch, gpu) < used(launch, gpu)
    return f", {count_text(most_blocks(launch, gpu), 'block')} on some SM" if uneven else ""


def _same(launch: Launch, report: Facts) -> list[Launch]:
    """The launches whose lines are counted together."""
    return [each for each in report.launches if each.kernel == launch.kernel]


def alike(launch: Launch, report: Facts) -> bool:
    """Whether they are of one shape, so that each is taken to have the same share."""
    return len({(each.grid, each.block) for each in _same(launch, report)}) == 1


def share(launch: Launch, report: Facts, records: Iterable[Counted], amount: Callable[[Counted], float]) -> float:
    """The launch's share of an amount of each of its kernel's records."""
    traced = sum(each.traced_blocks for each in _same(launch, report))
    total = sum(amount(record) for record in records if record.kernel == launch.kernel)
    return total * launch.traced_blocks * scale(launch) / traced if traced else 0.0
