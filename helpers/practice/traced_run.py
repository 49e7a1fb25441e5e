"""Runs an answer in the simulator's traced mode on the small cases of its exercise, on any machine.

The traced mode explains a mistake: what went wrong, in which line, block and thread. It also shows wasted memory
traffic, which the result does not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from helpers.practice.asked import complete, missing
from helpers.practice.case_runner import Rejected, must_be_equal, run_case
from helpers.practice.cases import Case, Check
from helpers.practice.fences import fenced_arguments
from helpers.practice.filmed import film_of_fault, film_of_wrong_element
from helpers.practice.remote import Remote
from helpers.practice.writers import in_plain_words, map_of_writers
from kernel_xray.report.html import as_html
from kernel_xray.report.report import FaultRecord, Line, Report

SMALL = 9000  # elements in all tensors of a case
CASES = 24
SEEDS = 5  # orders of blocks and warps in which a repeatable case runs
STRAYS = ("out-of-bounds", "illegal-access", "stack-overflow")  # kinds of faults that reach memory of others
WASTEFUL = 0.5  # a line below this efficiency is reported,
NOTICEABLE = 64  # if it wastes at least this many sectors or wavefronts
ORDER = (
    f"  {'order':<10} in this run blocks, warps and lanes took turns in a random order, as they may on a GPU; "
    "in the order of their numbers, the result is right"
)


class Explained(Exception):
    """The traced mode found a fault. The message begins with the case, and names the line and the thread.

    `endless`: outside the traced mode, the answer would not end either. `strays`: it would access memory that is not
    its own. `label`: the case's. `film`: of the fault, as HTML, or "".
    """

    def __init__(self, message: str, endless: bool, strays: bool, label: str, film: str = ""):
        super().__init__(message)
        self.endless, self.strays, self.label, self.film = endless, strays, label, film


@dataclass(frozen=True)
class Counts:
    """What a call costs, as an X-ray counts it; accesses to global memory, and then to shared memory."""

    launches: int
    requests: int
    sectors: int
    shared: int
    wavefronts: int

    @staticmethod
    def of(report: Report) -> Counts:
        ours = {space: [line for line in report.lines if line.space == space] for space in ("global", "shared")}
        requests, shared = (sum(line.requests for line in ours[space]) for space in ("global", "shared"))
        cost, wavefronts = (sum(line.cost for line in ours[space]) for space in ("global", "shared"))
        return Counts(len(report.launches), requests, cost, shared, wavefronts)


@dataclass(frozen=True)
class Seen:
    """What X-rays showed beside faults, or "".

    wasted   traffic in words, and remarks that are not faults
    demand   what the text asks for and the answer lacks, and its case
    order    a result that is wrong when blocks, warps and lanes take turns in another order than that of their numbers,
             and its X-ray
    table    the report that shows `wasted` or `demand`, as HTML
    """

    wasted: str = ""
    demand: str = ""
    order: tuple[Rejected, Report] | None = None
    table: str = ""
    case: str = ""  # the label of the largest case,
    counts: Counts | None = None  # and what it costs


def run_small_cases(function: Remote, what: Check, announce: Callable[[str], None]) -> Seen:
    """X-rays calls of `function` on the small cases, each with its threads in another order, and compares the results.

    Raises Explained at the first fault. Exceptions that `function` raises pass through.
    """
    worst: Line | None = None
    order: tuple[Rejected, Report] | None = None
    demand = table = remark = ""
    counts, largest = None, -1
    cases = [replace(case, names=function.names) for case in what.cases() if _elements(case) <= SMALL][:CASES]
    for seed, case in enumerate(cases):
        announce(case.label)
        report, wrong = _traced(function, what.reference, case, seed)
        order = order or ((wrong, report) if wrong else None)
        whole = complete(report)
        if whole and _elements(case) > largest:
            counts, largest, label = Counts.of(report), _elements(case), case.label
        asked = _unwatched(report) or (missing(report, what.asked(*case.inputs)) if what.asked else "")
        if not demand and (problem := asked or (case.demand(report) if case.demand and whole else "")):
            demand, table = f"{case.label}: {_right_but(problem)}", as_html(report)
        remark = remark or next((_left_early(one) for one in report.remarks if one.kind == "divergent-barrier"), "")
        found = report.worst if whole and what.waste else None
        if found and found.efficiency < WASTEFUL and _waste(found) >= max(NOTICEABLE, _waste(worst) if worst else 0):
            worst, table = found, table if demand else as_html(report)
    if what.repeatable and (differs := _differs(function, cases[-1])):
        demand, table = differs, ""
    wasted = "\n".join(text for text in (in_words(worst) if worst else "", remark) if text)
    return Seen(wasted, demand, order, table, label if counts else "", counts)


def cost_of(function: Remote, case: Case) -> Counts:
    """What a case costs."""
    arguments, _ = fenced_arguments(case, torch.device("cpu"))
    return Counts.of(function.xray(*arguments, seed=0))


def _right_but(problem: str) -> str:
    return problem if problem.startswith("the result is right") else f"the result is right, but {problem}"


def _unwatched(report: Report) -> str:
    """Why a part of the work was not watched, where a small case leaves no reason for it, or ""."""
    long = next((remark for remark in report.remarks if remark.kind == "budget"), None)
    return f"it takes so many steps that an X-ray cannot follow: {long.message.split(':')[0]}" if long else ""


def _left_early(remark: FaultRecord) -> str:
    return (
        f"A remark: some threads have ended before the barrier in line {remark.line}. GPUs since Volta wait only for "
        "the others, but older GPUs would wait forever. Let threads without work skip the work, not the barrier."
    )


def _traced(function: Remote, reference: Callable, case: Case, seed: int) -> tuple[Report, Rejected | None]:
    """The X-ray of a case, and what is wrong with its result, if anything. Raises Explained if there is a fault."""
    reports: list[Report] = []

    def call(*arguments: torch.Tensor) -> object:
        reports.append(report := function.xray(*arguments, seed=seed, who_wrote=True))
        # Several threads that write one element do the work twice, even if they write the same value.
        if wrong := report.faults + [remark for remark in report.remarks if remark.kind == "race"]:
            fault = min(wrong, key=lambda one: (one.file, one.line, one.kind))
            fault = in_plain_words(fault, report)
            endless = fault.kind in ("deadlock", "time-limit")
            strays = any(one.kind in STRAYS for one in wrong)
            film = ""
            if fault.kind != "time-limit":  # which would take as long again
                with suppress(Exception):  # the film only adds to the message
                    film = film_of_fault(function, case, report, fault)
            raise Explained(f"{case.label}: {fault}", endless, strays, case.label, film)
        return report.result

    try:
        run_case(call, reference, case, torch.device("cpu"))
    except Rejected as error:
        return reports[0], error
    return reports[0], None


def _differs(function: Remote, case: Case) -> str:
    """What is wrong if the result depends on the order in which blocks and warps run, or ""."""
    seen = []
    for seed in range(SEEDS):
        arguments, outputs = fenced_arguments(case, torch.device("cpu"))
        function.xray(*arguments, seed=seed)
        seen.append([x.view for x in outputs.values()])
    try:
        must_be_equal(case, seen)
    except Rejected as error:
        return str(error)
    return ""


def who_wrote(function: Remote, rejected: Rejected, report: Report | None = None) -> tuple[str, str]:
    """Which threads wrote the elements around the first wrong one, as lines of a message, and the film of its warp.

    report   of the rejected run, with its writers; by default a run in the order of seed 0 makes it

    What is not known is "".
    """
    case, output = rejected.case, rejected.output
    if case is None or output not in case.outputs or _elements(case) > SMALL:
        return "", ""
    if report is None:
        arguments, _ = fenced_arguments(case, torch.device("cpu"))
        report = function.xray(*arguments, seed=0, who_wrote=True)
    film = ""
    with suppress(Exception):  # the film only adds to the message
        film = film_of_wrong_element(function, case, report, output, rejected.index)
    return map_of_writers(report, output, case.outputs[output], rejected.index), film


def _elements(case: Case) -> int:
    return sum(x.numel() for x in (*case.inputs, *case.outputs.values()) if isinstance(x, torch.Tensor))


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
