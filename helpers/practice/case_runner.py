"""Runs an answer on the cases of its exercise and reports the first one that fails."""

import re
from collections.abc import Callable
from dataclasses import replace

import torch

from helpers.checking.checker import CheckFailed, check
from helpers.machine.toolchain import target
from helpers.pictures.show import BOILERPLATE
from helpers.practice.cases import Case, Check, Refusal
from helpers.practice.fences import Fenced, arguments_of, fenced_tensors
from helpers.simt.streams import side_stream


class Rejected(Exception):
    """The answer is wrong. The message begins with the case, such as 'n = 257: '."""


def run_cases(
    function: Callable, what: Check, device: torch.device, announce: Callable[[str], None] = lambda label: None
) -> list[str]:
    """Runs `function` on every case and returns their labels. Passes each label to `announce` before the case runs.

    Raises Rejected, with the label, at the first case that fails. Exceptions that `function` raises pass through.
    """
    labels: list[str] = []

    def begin(label: str) -> None:
        labels.append(label)
        announce(label)

    cases = list(what.cases())
    for case in cases:
        begin(case.label)
        _run(function, what.reference, case, device)
    if what.repeatable:
        again = replace(cases[-1], label=f"{cases[-1].label}, again and again")
        begin(again.label)
        _must_repeat(function, again, device)
    for refusal in what.refusals(device):
        begin(refusal.label)
        _must_refuse(function, refusal)
    if what.launches:
        busy = replace(cases[-1], label=f"{cases[-1].label}, on a busy stream")
        begin(busy.label)
        on_busy_stream = getattr(function, "behind_other_work", None) or behind_other_work(function)
        _run(on_busy_stream, what.reference, busy, device)
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
            start = "  " if problems else f"{case.label}: "
            problems.append(f"{start}it wrote outside {name}: {name}[{at:,}] changed; {name} has {_extent(fenced)}")
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
    """Raises Rejected unless all calls gave the same outputs. `seen` holds the outputs of each call, in case order."""
    for i, name in enumerate(case.outputs):
        differs = sum(not torch.equal(call[i], seen[0][i]) for call in seen)
        if differs:
            raise Rejected(
                f"{case.label}: {name} had different bits in {differs} of {len(seen)} calls with the same inputs: "
                "the order of the additions must not depend on which thread comes first"
            )


def _with_names(message: str, case: Case) -> str:
    """`helpers.check` numbers several outputs; here they have names."""
    for i, name in enumerate(case.outputs):
        message = message.replace(f"{case.label}, output {i}:", f"{case.label}, {name}:")
    return message


def _extent(fenced: Fenced) -> str:
    if fenced.size == 0:
        return "no elements"
    return "only element 0" if fenced.size == 1 else f"elements 0 to {fenced.size - 1:,}"


def _must_refuse(function: Callable, refusal: Refusal) -> None:
    try:
        function(*refusal.inputs)
    except RuntimeError as error:
        message = plain(error)
        if type(error) is not RuntimeError or "CUDA error" in message:
            raise type(error)(f"{refusal.label}: not refused; the kernel ran: {message}") from None
    else:
        raise Rejected(f"{refusal.label}: accepted, and misread by the kernel; the operator must refuse it")
    missing = [said for said, pattern in refusal.words.items() if not re.search(pattern, message, re.IGNORECASE)]
    if missing:
        raise Rejected(f"{refusal.label}: refused, but the message does not {' and '.join(missing)}:\n  {message}")


def plain(error: BaseException) -> str:
    """An error's message without what PyTorch appends for its developers."""
    return BOILERPLATE.split(str(error))[0].strip()


def behind_other_work(function: Callable) -> Callable:
    """`function` on a CUDA stream of its own, where its inputs get their values only after about 10 ms.

    A kernel launched on any other stream does not wait for them, and reads zeros. In the simulator, where all work is
    done at once, such a launch raises RuntimeError.
    """

    def watched(*arguments):
        with side_stream() as watch:
            result = function(*arguments)
        if watch.problem:
            raise RuntimeError(watch.problem)
        return result

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

    return call if target == "gpu" else watched
