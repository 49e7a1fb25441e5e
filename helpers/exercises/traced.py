"""Runs an answer in the simulator's traced mode on the small cases of its exercise, on any machine.

There a mistake is explained: what went wrong, in which line, block and thread. And what is right but wastes memory
traffic is seen, which no result shows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.xray import Line, Report, xray

from .cases import PATTERN, Case, Check, Fenced

SMALL = 4000  # elements in all tensors of a case
CASES = 8
WASTEFUL = 0.5  # efficiency of a line below which it is worth a word
NOTICEABLE = 64  # sectors or wavefronts that it wastes


class Explained(Exception):
    """The answer broke a rule of the machine. The message begins with the case, and names the line and the thread.

    `endless`: it would not come to an end outside of the traced mode either.
    """

    def __init__(self, message: str, endless: bool = False):
        super().__init__(message)
        self.endless = endless


def run_small_cases(function: Callable, what: Check, announce: Callable[[str], None]) -> str:
    """Runs the small cases on `function`, which was loaded traced. Returns what is wasted, in words, or "".

    Raises Explained at the first fault. Whether results are right is not looked at: see cases.py. Lets through what
    `function` raises.
    """
    worst: Line | None = None
    for case in [case for case in what.cases() if _elements(case) <= SMALL][:CASES]:
        announce(case.label)
        report = _traced(function, case)
        if report.faults:
            fault = report.faults[0]
            raise Explained(f"{case.label}: {fault}", fault.kind == "deadlock")
        found = report.worst
        if found and _waste(found) >= max(NOTICEABLE, _waste(worst) if worst else 0):
            worst = found
    return _in_words(worst) if worst and worst.efficiency < WASTEFUL else ""


def _elements(case: Case) -> int:
    return sum(x.numel() for x in (*case.inputs, *case.outputs.values()) if isinstance(x, torch.Tensor))


def _traced(function: Callable, case: Case) -> Report:
    cpu = torch.device("cpu")
    inputs = [Fenced(x, float("nan"), cpu).view if isinstance(x, torch.Tensor) else x for x in case.inputs]
    outputs = [Fenced(x, PATTERN, cpu).view for x in case.outputs.values()]
    return xray(function, *inputs, *outputs, seed=0)


def _waste(line: Line) -> int:
    return line.cost - line.ideal


def _in_words(line: Line) -> str:
    why = "bank conflicts" if line.space == "shared" else "a warp's lanes lie apart"
    return (
        f"It is right, but wasteful: {why} in line {line.line}, `{line.source}`: this {line.space} {line.kind} takes "
        f"{line.cost / line.requests:.3g} {line.unit} for each request of a warp, where "
        f"{line.ideal / line.requests:.3g} would do."
    )
