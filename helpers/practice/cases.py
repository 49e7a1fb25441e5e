"""Runs an answer on the cases of its exercise and says what is wrong first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from helpers.checking.checker import CheckFailed, check
from helpers.pictures.show import BOILERPLATE
from helpers.practice.fences import Fenced, arguments_of, fenced_tensors

if TYPE_CHECKING:
    from helpers.xrays.report import Report


class Rejected(Exception):
    """The answer is wrong. The message begins with the case, such as 'n = 257: '."""


@dataclass(frozen=True)
class Case:
    """Arguments for one call: `inputs`, then tensors like `outputs`, which the function writes.

    Tensors are on the CPU. With no outputs, the function returns its result. `tolerance` goes to `helpers.check`.
    Tensor i begins `offsets[i]` elements after a multiple of 64 bytes. `demand` looks at an X-ray of the call, and says
    what it asks more of an answer than its result, or "".
    """

    label: str
    inputs: tuple
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    tolerance: dict = field(default_factory=dict)
    offsets: tuple[int, ...] = ()
    demand: Callable[[Report], str] | None = None


@dataclass(frozen=True)
class Refusal:
    """A call that must raise a RuntimeError whose message matches all of `words`. `inputs` are where they belong."""

    label: str
    inputs: tuple
    words: dict[str, str]  # what must be said -> pattern


@dataclass(frozen=True)
class Check:
    """What an answer must do. `reference` takes a case's inputs, floating-point ones as float64."""

    reference: Callable
    cases: Callable[[], Iterable[Case]]
    refusals: Callable[[torch.device], Iterable[Refusal]] = lambda device: ()
    launches: bool = False  # the learner writes the launch: on a GPU, also run it on a stream that is busy
    repeatable: bool = False  # the last case gives the same bits, whatever order the threads run in
    registered: Callable[[Any], str] = lambda function: ""  # what is wrong with the operator's registration, or ""


def run_cases(
    function: Callable, what: Check, device: torch.device, announce: Callable[[str], None] = lambda label: None
) -> list[str]:
    """Runs every case on `function`; returns their labels, each of which it announces before it runs the case.

    Raises Rejected at the first case that fails, with its label, and lets through what `function` raises.
    """
    labels: list[str] = []

    def begin(label: str) -> None:
        labels.append(label)
        announce(label)

    for case in what.cases():
        begin(case.label)
        _run(function, what.reference, case, device)
    if what.repeatable:
        again = replace(case, label=f"{case.label}, again and again")
        begin(again.label)
        _must_repeat(function, again, device)
    for refusal in what.refusals(device):
        begin(refusal.label)
        _must_refuse(function, refusal)
    if what.launches and device.type == "cuda":
        *_, last = what.cases()
        busy = replace(last, label=f"{last.label}, on a stream that is busy")
        begin(busy.label)
        _run(behind_other_work(function), what.reference, busy, device)
    if not labels:
        raise RuntimeError("the check has no cases")
    return labels


def _run(function: Callable, reference: Callable, case: Case, device: torch.device) -> None:
    inputs, outputs = fenced_tensors(case, device)
    arguments = arguments_of(inputs, outputs)
    written = list(range(len(inputs), len(arguments)))
    problems = []
    try:
        check(function, *arguments, reference=reference, out=written, name=case.label, **case.tolerance)
    except CheckFailed as error:
        problems.append(_with_names(str(error), case))
    except RuntimeError as error:
        raise type(error)(f"{case.label}: {plain(error)}") from None
    for name, fenced in outputs.items():
        at = fenced.damage()
        if at is not None:
            also = f"{case.label}: " if not problems else "  "
            problems.append(f"{also}it wrote outside of {name}: {name}[{at:,}] was changed, {_ends(fenced)}")
    if problems:
        raise Rejected("\n".join(problems))


def _must_repeat(function: Callable, case: Case, device: torch.device, times: int = 5) -> None:
    inputs, outputs = fenced_tensors(case, device)
    arguments, seen = arguments_of(inputs, outputs), []
    for _ in range(times):
        function(*arguments)
        seen.append([x.view.clone() for x in outputs.values()])
    must_be_equal(case, seen)


def must_be_equal(case: Case, seen: list[list[torch.Tensor]]) -> None:
    """Raises Rejected unless the outputs of all calls, in the order of the case's, are the same."""
    for i, name in enumerate(case.outputs):
        differs = sum(not torch.equal(call[i], seen[0][i]) for call in seen)
        if differs:
            raise Rejected(
                f"{case.label}: {name} had other bits in {differs} of {len(seen)} calls with the same inputs: "
                "the order in which numbers are added may not depend on which thread comes first"
            )


def _with_names(message: str, case: Case) -> str:
    """`helpers.check` numbers several outputs; here they have names."""
    for i, name in enumerate(case.outputs):
        message = message.replace(f"{case.label}, output {i}:", f"{case.label}, {name}:")
    return message


def _ends(fenced: Fenced) -> str:
    return f"and its elements are 0 to {fenced.size - 1:,}" if fenced.size else "and it has no elements"


def _must_refuse(function: Callable, refusal: Refusal) -> None:
    try:
        function(*refusal.inputs)
    except RuntimeError as error:
        message = plain(error)
        if type(error) is not RuntimeError or "CUDA error" in message:
            raise type(error)(f"{refusal.label}: not refused; the kernel ran: {message}") from None
    else:
        raise Rejected(f"{refusal.label}: accepted, and misread by the kernel; it must be refused")
    missing = [said for said, pattern in refusal.words.items() if not re.search(pattern, message, re.IGNORECASE)]
    if missing:
        raise Rejected(f"{refusal.label}: refused, but the message does not {' and '.join(missing)}:\n  {message}")


def plain(error: BaseException) -> str:
    """An error's message without what PyTorch appends for its developers."""
    return BOILERPLATE.split(str(error))[0].strip()


def behind_other_work(function: Callable) -> Callable:
    """`function` on a CUDA stream of its own, where its inputs get their values only after some 10 ms of waiting.

    A kernel that is launched on any other stream does not wait, and reads zeros.
    """

    def call(*arguments):
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        values = [x.clone() for x in tensors]
        for x in tensors:
            x.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(20_000_000)  # clock cycles
            for x, value in zip(tensors, values, strict=True):
                x.copy_(value)
            result = function(*arguments)
        torch.cuda.synchronize()
        return result

    return call
