"""Judges an answer: has its process build it and call it (answering.py), and compares the results here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from helpers.machine.toolchain import device
from helpers.practice import attested
from helpers.practice.case_inputs import counted
from helpers.practice.case_runner import Rejected, plain, run_cases
from helpers.practice.checks import CHECKS
from helpers.practice.far_case import run_far_case
from helpers.practice.messages import Malformed
from helpers.practice.remote import Ask, Remote, text_of
from helpers.practice.traced_run import Explained, Seen, run_small_cases


@dataclass(frozen=True)
class Outcome:
    """The result of a trial."""

    kind: str  # "accepted", "rejected", "not built" or "fault"
    message: str  # why
    printed: str = ""
    table: str = ""  # the X-ray that shows the waste, as HTML


class Stopped(Exception):
    """The answer's process ended, or was too slow. `kind` is an Outcome's, and the message is for the learner."""

    def __init__(self, message: str, kind: str = "fault"):
        super().__init__(message)
        self.kind = kind


def try_answer(ask: Ask, tell: Callable[[str], None], name: str, source: Path) -> Outcome:
    """Builds `source` and checks it as an answer to exercise `name`.

    ask    sends a message to the answer's process and returns its reply; raises Stopped and Malformed
    tell   receives the label of each case before the case runs
    """
    explained = ""
    try:
        built, _ = ask({"do": "build", "name": name, "source": str(source)}, ())
        if problem := text_of(built, "problem"):
            return Outcome("not built", problem)
        what, function = CHECKS[name], Remote(ask)
        tell("registration")
        registration, _ = ask({"do": "registration"}, ())
        if "error" in registration:
            return Outcome("fault", text_of(registration, "error"))
        if problem := text_of(registration, "problem") or attested.problem(name, function):
            return Outcome("rejected", problem)
        seen = Seen()
        if built.get("traced"):
            try:
                seen = run_small_cases(function, what, tell)
            except Explained as error:
                explained = str(error)
                if error.endless:
                    return Outcome("fault", explained)
            except (Stopped, Malformed):
                raise
            except Exception:  # such as a refusal: the run below meets it again, and names the case
                seen = Seen()
        labels = run_cases(function, what, device, tell)
        run_far_case(function.far, what, device, tell)
        if explained:
            return Outcome("fault", explained)
        if seen.demand:
            return Outcome("rejected", seen.demand, table=seen.table)
        message = _paragraphs(f"{counted(len(labels), 'case')}, the last: {labels[-1]}", seen.wasted)
        return Outcome("accepted", message, table=seen.table)
    except Rejected as error:
        return Outcome("rejected", _paragraphs(explained, str(error)))
    except Malformed as error:
        return Outcome("fault", f"the answer's process sent a message that the check does not accept: {error}")
    except Stopped as error:
        return Outcome(error.kind, explained or str(error))
    except Exception as error:  # any exception of the answer goes to the learner
        return Outcome("fault", explained or plain(error))


def _paragraphs(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
