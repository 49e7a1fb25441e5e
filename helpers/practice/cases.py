"""The cases of an exercise: calls of its function, and what each must result in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from helpers.practice.asked import Asked

if TYPE_CHECKING:
    from kernel_xray.report.report import Report


@dataclass(frozen=True)
class Case:
    """Arguments for one call: `inputs`, then tensors like `outputs`, which the function writes.

    Tensors are on the CPU. Without outputs, the function returns its result. `tolerance` goes to `helpers.check`.
    Tensor i begins `offsets[i]` elements after a multiple of 64 bytes. `demand` takes an X-ray of the call and returns
    what the answer lacks although its result is right, or "". `results` names what the function returns, if that is
    more than one tensor. `remarks` says what a learner should know of an output that is wrong.
    """

    label: str
    inputs: tuple
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    tolerance: dict = field(default_factory=dict)
    offsets: tuple[int, ...] = ()
    demand: Callable[[Report], str] | None = None
    results: tuple[str, ...] = ()
    remarks: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()  # of the arguments; known once the answer is built


@dataclass(frozen=True)
class Far:
    """A call on tensors so long that their indices need more than 32 bits; only both ends are computed (far_case.py).

    `case` takes the length of their long dimension. Its tensors are meta tensors, and its tolerance goes to
    `check_far`. `short` is a length at which an index of 32 bits is right. `least` is one at which the index of a block
    fits 16 bits, if at `short` it does not; else 0. `more` are further lengths like `long`. `reference` takes the ends
    of the inputs and returns those of the results, where that of the check does not.
    """

    case: Callable[[int], Case]
    long: int = 2**36 + 1031
    short: int = 2**24 + 1031
    least: int = 0
    more: tuple[int, ...] = ()
    reference: Callable | None = None


@dataclass(frozen=True)
class Refusal:
    """A call that must raise a RuntimeError whose message matches every pattern. `inputs` are on the device to use."""

    label: str
    inputs: tuple
    words: dict[str, str]  # what the message must do, such as 'name b' -> pattern


@dataclass(frozen=True)
class Check:
    """What an answer must do. `reference` takes the inputs of a case, floating-point ones as float64."""

    reference: Callable
    cases: Callable[[], Iterable[Case]]
    refusals: Callable[[torch.device], Iterable[Refusal]] = lambda device: ()
    further: bool = True  # also cases whose values are drawn, and the last case on a busy stream
    asked: Asked | None = None  # what the launches of a case must be
    waits: int = 0  # how often the host may wait in a call
    repeatable: bool = False  # the last case must give the same bits in whatever order the threads run
    rounds: bool = False  # whether arithmetic in float32 rounds some of many results twice or more
    waste: bool = True  # whether a line that wastes traffic gets a remark: not where the text asks for its accesses
    second_device: str = ""  # what only a machine with two devices can check
    far: Far | None = None
    why_not: dict[str, str] = field(default_factory=dict)  # "far" or "attested" -> why the check has none
    drawn: Callable[[int], Case] | None = None  # a case like those of `far`, of this many elements or so
    capability: tuple[int, int] | None = None  # of the only GPUs that run it; the simulator runs every kernel
    registered: Callable[[Any], str] | None = None  # what is wrong with the operator's registration, or ""
    attested: Callable[[Any, Callable], str] | None = None  # the same, on values that only the judge knows: attested.py
