"""Runs an answer on the cases of its exercise and reports the first one that fails."""

import re
from collections.abc import Callable
from dataclasses import replace

import torch

from helpers.ladder.checking.checker import CheckFailed, CheckResult, check
from helpers.ladder.checking.compare import shown
from helpers.pages.pictures.show import BOILERPLATE
from helpers.practice.cases import Case, Check, Refusal
from helpers.practice.drawn import drawn_cases
from helpers.practice.fences import Fenced, fenced_arguments
from kernel_xray.machine.toolchain import target
from kernel_xray.runtime.streams import side_stream


class Rejected(Exception):
    """The answer is wrong. The message begins with the case, such as 'n = 257: '.

    If values are wrong: `case`, the name of the `output` ("" if the function returns it), the `index` of the first one,
    and which elements are `right`, in the output's shape.
    """

    case: Case | None = None
    output: str = ""
    index: tuple[int, ...] = ()
    right: torch.Tensor | None = None


def run_cases(
    function: Callable,
    what: Check,
    device: torch.device,
    announce: Callable[[str], None] = lambda label: None,
    last: str = "",
    seed: int = 0,
    found: list[CheckResult] | None = None,
) -> list[str]:
    """Runs `function` on every case and returns their labels. Passes each label to `announce` before the case runs.

    last   the label of the case after which to stop, of those that the exercise lists
    seed   of the cases whose sizes and values differ from answer to answer
    found  gets what the comparison of each case in float32 found

    Raises Rejected, with the label, at the first case that fails. Exceptions that `function` raises pass through.
    """
    labels: list[str] = []

    def begin(label: str) -> None:
        labels.append(label)
        announce(label)

    cases = [replace(case, names=getattr(function, "names", ())) for case in what.cases()]
    for case in cases:
        begin(case.label)
        result = run_case(function, what.reference, case, device)
        if found is not None and any(x.dtype == torch.float32 for x in case.outputs.values()):
            found.append(result)
        if case.label == last:
            return labels
    for case in drawn_cases(what, cases[-1], seed) if cases and what.further else ():
        begin(case.label)
        run_case(function, what.reference, case, device)
    if what.repeatable:
        again = replace(cases[-1], label=f"{cases[-1].label}, again and again")
        begin(again.label)
        _must_repeat(function, again, device)
    for refusal in what.refusals(device):
        begin(refusal.label)
        _must_refuse(function, refusal)
    if cases and what.further:
        busy = replace(cases[-1], label=f"{cases[-1].label}, on a busy stream")
        begin(busy.label)
        on_busy_stream = getattr(function, "behind_other_work", None) or behind_other_work(function, what.waits)
        run_case(on_busy_stream, what.reference, busy, device)
    if not labels:
        raise RuntimeError("the check has no cases")
    return labels


def run_case(function: Callable, reference: Callable, case: Case, device: torch.device) -> CheckResult:
    """Calls `function` with a case's tensors between fences, and compares. Raises Rejected."""
    arguments, outputs = fenced_arguments(case, device)
    written = range(len(case.inputs), len(arguments))
    problems, first = [], CheckFailed()
    try:
        result = check(function, *arguments, reference=reference, out=written, name=case.label, **case.tolerance)
    except CheckFailed as error:
        first = error
        wrong = list(case.outputs)[error.output] if case.outputs else ""
        remark = case.remarks.get(wrong, "")
        told = _with_inputs(_with_names(str(error), case), case, error)
        problems.append(told + (f"\n  {'hint':<10} {remark}" if remark else ""))
    except RuntimeError as error:
        raise type(error)(f"{case.label}: {plain(error)}") from None
    for name, fenced in outputs.items():
        at = fenced.damage()
        if at is not None:
            start = "  " if problems else f"{case.label}: "
            problems.append(f"{start}it wrote outside {name}: {name}[{at:,}] changed; {name} has {_extent(fenced)}")
    if problems:
        rejected = Rejected("\n".join(problems))
        if first.index is not None and first.right is not None:
            rejected.case, rejected.index, rejected.right = case, first.index, first.right.reshape(first.shape)
            rejected.output = list(case.outputs)[first.output] if case.outputs else ""
        raise rejected
    return result


def _must_repeat(function: Callable, case: Case, device: torch.device) -> None:
    arguments, outputs = fenced_arguments(case, device)
    seen = []
    for _ in range(5):
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
    for i, name in enumerate(case.results or case.outputs):
        message = message.replace(f"{case.label}, output {i}:", f"{case.label}, {name}:")
    return message


def _with_inputs(message: str, case: Case, wrong: CheckFailed) -> str:
    """The message, and after its line on the first wrong element the values there of inputs of the result's shape."""
    index = wrong.index
    if index is None:
        return message
    where = ", ".join(map(str, index))
    values = []
    for name, value in zip(case.names, case.inputs, strict=False):
        if not isinstance(value, torch.Tensor):
            values.append(f"{name} = {value}")
        elif value.dim() <= len(index) and value.shape == wrong.shape[: value.dim()] and value.dim():
            here = index[: value.dim()]
            values.append(f"{name}[{', '.join(map(str, here))}] = {shown(value[here].item())}")
    lines = message.split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith(f"  {'first':<10} [{where}]")), None)
    if values and at is not None:
        lines.insert(at + 1, f"  {'inputs':<10} {', '.join(values)}")
    return "\n".join(lines)


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
    said = re.sub(r"\S*[/\\]\S*", "", message)  # without paths, in which any word may be
    missing = [what for what, pattern in refusal.words.items() if not re.search(pattern, said, re.IGNORECASE)]
    if missing:
        raise Rejected(f"{refusal.label}: refused, but the message does not {' and '.join(missing)}:\n  {message}")


def plain(error: BaseException) -> str:
    """An error's message without what PyTorch appends for its developers."""
    return BOILERPLATE.split(str(error))[0].strip()


def behind_other_work(function: Callable, waits: int = 0) -> Callable:
    """`function` on a CUDA stream of its own, where its inputs get their values only after about 10 ms.

    A kernel launched on any other stream does not wait for them, and reads zeros. In the simulator, where all work is
    done at once, such a launch raises RuntimeError, and so does a call in which the host waits more often than `waits`.
    """

    def watched(*arguments):
        with side_stream() as watch:
            result = function(*arguments)
        if watch.problem:
            raise RuntimeError(watch.problem)
        if len(watch.waits) > waits:
            raise RuntimeError(
                f"the host waits for the GPU, in {watch.waits[-1]}: the call must only start its work. Work that comes "
                "later in the stream waits by itself"
            )
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
