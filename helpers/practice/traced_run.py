"""Runs an answer in the simulator's traced mode on the small cases of its exercise, on any machine.

The traced mode explains a mistake: what went wrong, in which line, block and thread. It also shows wasted memory
traffic, which the result does not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from helpers.practice.case_runner import Rejected, must_be_equal
from helpers.practice.cases import Case, Check
from helpers.practice.fences import arguments_of, fenced_tensors
from helpers.practice.remote import Remote
from helpers.xrays.html import as_html
from helpers.xrays.report import Line, Report

SMALL = 9000  # elements in all tensors of a case
CASES = 24
SEEDS = 5  # orders of blocks and warps in which a repeatable case runs
WASTEFUL = 0.5  # a line below this efficiency is reported,
NOTICEABLE = 64  # if it wastes at least this many sectors or wavefronts


class Explained(Exception):
    """The traced mode found a fault. The message begins with the case, and names the line and the thread.

    `endless`: outside the traced mode, the answer would not end either.
    """

    def __init__(self, message: str, endless: bool = False):
        super().__init__(message)
        self.endless = endless


@dataclass(frozen=True)
class Seen:
    """What X-rays showed beside faults, or "": `wasted` traffic in words; a `demand` that was not met, and its case.

    `table` is the report that shows it, as HTML.
    """

    wasted: str = ""
    demand: str = ""
    table: str = ""


def run_small_cases(function: Remote, what: Check, announce: Callable[[str], None]) -> Seen:
    """X-rays calls of `function` on the small cases.

    Does not look at the results: see case_runner.py. Raises Explained at the first fault. Exceptions that `function`
    raises pass through.
    """
    worst: Line | None = None
    demand = table = ""
    cases = [case for case in what.cases() if _elements(case) <= SMALL][:CASES]
    for case in cases:
        announce(case.label)
        report, _ = _traced(function, case)
        # Several threads that write one element do the work twice, even if they write the same value.
        if wrong := report.faults + [remark for remark in report.remarks if remark.kind == "race"]:
            fault = min(wrong, key=lambda one: (one.file, one.line, one.kind))
            raise Explained(f"{case.label}: {fault}", fault.kind in ("deadlock", "time-limit"))
        if case.demand and not demand and (problem := case.demand(report)):
            demand, table = f"{case.label}: {problem}", as_html(report)
        found = report.worst
        if found and found.efficiency < WASTEFUL and _waste(found) >= max(NOTICEABLE, _waste(worst) if worst else 0):
            worst, table = found, table if demand else as_html(report)
    if what.repeatable and not demand and (demand := _differs(function, cases[-1])):
        table = ""
    return Seen(in_words(worst) if worst else "", demand, table)


def _differs(function: Remote, case: Case) -> str:
    """What is wrong if the result depends on the order in which blocks and warps run, or ""."""
    try:
        must_be_equal(case, [_traced(function, case, seed)[1] for seed in range(SEEDS)])
    except Rejected as error:
        return str(error)
    return ""


def _elements(case: Case) -> int:
    return sum(x.numel() for x in (*case.inputs, *case.outputs.values()) if isinstance(x, torch.Tensor))


def _traced(function: Remote, case: Case, seed: int = 0) -> tuple[Report, list[torch.Tensor]]:
    """The X-ray of a case and the outputs of the call."""
    inputs, outputs = fenced_tensors(case, torch.device("cpu"))
    report = function.xray(*arguments_of(inputs, outputs), seed=seed)
    return report, [x.view for x in outputs.values()]


def _waste(line: Line) -> int:
    return line.cost - line.ideal


def in_words(line: Line, head: str = "It is right, but wasteful") -> str:
    """A sentence that begins with `head`: what an answer wastes, and in which line."""
    why = "bank conflicts" if line.space == "shared" else "uncoalesced access"
    return (
        f"{head}: {why} in line {line.line}, `{line.source}`: this {line.space} {line.kind} takes "
        f"{line.cost / line.requests:.3g} {line.unit} per request, where "
        f"{line.ideal / line.requests:.3g} would do."
    )
