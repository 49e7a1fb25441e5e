"""Tries an answer: has its process build it and call it, and compares the results here."""

import contextlib
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from helpers.ladder.checking.compare import CheckResult
from helpers.practice import attested, isolated, pattern, quoted
from helpers.practice.case_inputs import counted
from helpers.practice.case_runner import Rejected, plain, run_cases
from helpers.practice.cases import Check
from helpers.practice.checks import CHECKS
from helpers.practice.far_case import run_far_case
from helpers.practice.isolated import OUTPUT_LINES, Process, Stopped
from helpers.practice.messages import Malformed
from helpers.practice.remote import Remote, text_of
from helpers.practice.traced_run import ORDER, Counts, Explained, Seen, cost_of, run_small_cases, who_wrote
from kernel_xray.machine.toolchain import device
from kernel_xray.report.facts import sources_given
from kernel_xray.report.report import Report

MANY = 10_000  # results, of which float32 arithmetic rounds some more than once


@dataclass(frozen=True)
class Outcome:
    """The result of a trial."""

    kind: str  # "accepted", "rejected", "not built", "fault", or "unchecked" if this GPU cannot run it
    message: str  # why
    printed: str = ""
    table: str = ""  # the X-ray that shows the waste, as HTML
    film: str = ""  # of the warp with the fault, or that wrote the first wrong element, as HTML that is folded
    picture: str = ""  # of the wrong elements, as SVG
    case: str = ""  # the label of the case that `counts` are of
    counts: Counts | None = None
    killed: bool = False  # by something else than the answer: see Stopped


def run(name: str, source: Path) -> Outcome:
    """Builds `source` and checks it as an answer to exercise `name`, in a process of its own.

    KeyboardInterrupt ends the check and passes on.
    """
    wanted = CHECKS[name].capability
    if device.type == "cuda" and wanted not in (None, has := torch.cuda.get_device_capability()):
        return Outcome("unchecked", _not_here(name, wanted, has))
    try:
        text = quoted.contents(source.resolve())  # before the answer can replace its file
    except quoted.Unreadable as error:
        return Outcome("not built", f"{source.name} {error}")
    quotable = quoted.texts(name, source, text.decode(errors="replace"))
    with isolated.process() as process, sources_given(quotable):
        outcome = _tried(process, name, source, zlib.crc32(text))
        # Operators that a Python answer registers with PyTorch cannot be registered again in that process.
        process.unharmed = outcome.kind in ("accepted", "rejected", "not built") and source.suffix != ".py"
    return replace(outcome, printed=process.printed.text(OUTPUT_LINES))


def count(name: str, source: Path, label: str) -> Counts | None:
    """What the case `label` of an exercise costs with this answer, in a process of its own; None if that fails."""
    with isolated.process() as process:
        try:
            built = _built(process, name, source)
            cases = [case for case in CHECKS[name].cases() if case.label == label]
            if text_of(built, "problem") or not _is_traced(built, source) or not cases:
                return None
            process.tell(label)
            return cost_of(Remote(process.ask, _names(built)), cases[0])
        except (Stopped, Malformed):
            return None


def _tried(process: Process, name: str, source: Path, seed: int) -> Outcome:
    explained, film, function, traced, seen = "", "", None, False, Seen()
    what = CHECKS[name]
    try:
        built = _built(process, name, source)
        if problem := text_of(built, "problem"):
            return Outcome("not built", problem)
        function, traced = Remote(process.ask, _names(built), what.waits), _is_traced(built, source)
        last = unseen = ""  # the case after which nothing new would be learnt; why there are no X-rays
        if traced:  # before anything runs that the tracer does not watch
            try:
                seen = run_small_cases(function, what, process.tell)
            except Explained as error:
                explained, film, last = str(error), error.film, error.label
                if error.endless or (error.strays and not isolated.TRUSTED):
                    return Outcome("fault", explained, film=film)
            except (Stopped, Malformed):
                raise
            except Exception as error:  # such as a refusal: the run below meets it again, and names the case
                seen, unseen = Seen(), plain(error)
        process.tell("registration")
        registration, _ = process.ask({"do": "registration"})
        if "error" in registration:
            return Outcome("fault", text_of(registration, "error"))
        if problem := text_of(registration, "problem") or attested.problem(what, function):
            return Outcome("rejected", problem)
        found: list[CheckResult] = []
        labels = run_cases(function, what, device, process.tell, last, seed, found)
        if explained:
            return Outcome("fault", explained, film=film)
        if unseen and device.type != "cuda":
            return Outcome("fault", f"an X-ray of it failed, but not the same call without one: {unseen}")
        if seen.order:
            written, film = _who_wrote(function, *seen.order)
            message, shown = _paragraphs(str(seen.order[0]), ORDER, written), pattern.picture(seen.order[0])
            return Outcome("rejected", message, film=film, picture=shown)
        if seen.demand:
            return Outcome("rejected", seen.demand, table=seen.table)
        far = run_far_case(function.far, what, device, process.tell)
        message = _paragraphs(
            _right(labels, seen.counts is not None, far),
            seen.wasted,
            _in_double(what, found),
            _not_checked(what),
        )
        return Outcome("accepted", message, table=seen.table, case=seen.case, counts=seen.counts)
    except Rejected as error:
        written = ""
        if function is not None and traced and not explained:
            written, film = _who_wrote(function, error)
        message = _paragraphs(explained, str(error), written)
        return Outcome("rejected", message, film=film, picture=pattern.picture(error))
    except Malformed as error:
        return Outcome("fault", f"the answer's process sent a message that the check does not accept: {error}")
    except Stopped as error:
        return Outcome(error.kind, explained or str(error), film=film, killed=error.killed and not explained)
    except Exception as error:  # any exception of the answer goes to the learner
        return Outcome("fault", explained or plain(error), film=film)


def _who_wrote(function: Remote, error: Rejected, report: Report | None = None) -> tuple[str, str]:
    with contextlib.suppress(Exception):  # it only adds to the message
        return who_wrote(function, error, report)
    return "", ""


def _built(process: Process, name: str, source: Path) -> dict:
    """What the process says of the build. Raises Stopped and Malformed."""
    return process.ask({"do": "build", "name": name, "source": str(source)})[0]


def _is_traced(built: dict, source: Path) -> bool:
    """Whether the answer can be X-rayed. In the simulator every kernel can, whatever its process says."""
    return source.suffix != ".py" and (device.type != "cuda" or built.get("traced") is True)


def _names(built: dict) -> list[str]:
    """The names of the operator's arguments, as its process says. Raises Malformed."""
    names = built.get("names", [])
    if not isinstance(names, list) or not all(isinstance(name, str) and name.isidentifier() for name in names[:32]):
        raise Malformed("the names of its arguments are not a list of names")
    return names[:32]


def _right(labels: list[str], traced: bool, far: bool) -> str:
    """How many cases are right, and under which circumstances beside the usual ones."""
    cases = len(labels)
    also = {
        "with the threads in random orders": traced,
        "behind other work in the stream": labels[-1].endswith("on a busy stream"),
        "with indices of more than 32 bits": far,
    }
    *first, last = [text for text, done in also.items() if done] or [""]
    under = f", also {', '.join(first)}{' and ' if first else ''}{last}" if last else ""
    return f"{counted(cases, 'case')} {'is' if cases == 1 else 'are'} right{under}"


def _in_double(what: Check, found: list[CheckResult]) -> str:
    """A remark on float32 results of which each is rounded only once, or ""."""
    elements = sum(result.elements for result in found)
    if not what.rounds or elements < MANY or not all(result.rounded for result in found):
        return ""
    return (
        f"A remark: each of {elements:,} float32 results is rounded only once, as if it was computed in double. "
        "Most GPUs compute double 32 or 64 times slower: write constants as 0.5f, and convert with float(...)."
    )


def _not_here(name: str, wanted: tuple[int, int], has: tuple[int, int]) -> str:
    """Why this GPU cannot run an answer, and what can check it."""
    needs, is_of = (f"compute capability {major}.{minor}" for major, minor in (wanted, has))
    return (
        f"it cannot be checked on this GPU: its kernel needs {needs}, and this GPU has {is_of}. The simulator checks "
        f"it on any machine: KERNEL_LADDER_TARGET=simulator python -m helpers check {name}"
    )


def _not_checked(what: Check) -> str:
    """What this machine cannot check, as a sentence, or ""."""
    unchecked = [what.second_device] if what.second_device and torch.cuda.device_count() < 2 else []
    if device.type == "cuda":
        unchecked += ["indices that need more than 32 bits"] if what.far else []
        unchecked.append("whether the host waits")
    return f"Not checked on this machine: {', '.join(unchecked)}." if unchecked else ""


def _paragraphs(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
