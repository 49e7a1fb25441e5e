"""What is done with an answer, inside the process that isolated.py has made for it: build it, run it, judge it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from helpers.build.loader import load
from helpers.machine.toolchain import device, target
from helpers.practice import python_answer
from helpers.practice.cases import Rejected, plain, run_cases
from helpers.practice.checks import CHECKS
from helpers.practice.traced_run import Explained, Seen, run_small_cases
from helpers.simt.errors import BuildError


@dataclass(frozen=True)
class Outcome:
    """What became of an answer."""

    kind: str  # "accepted", "rejected", "not built" or "fault"
    message: str  # why
    printed: str = ""
    table: str = ""  # the X-ray that shows what is wasted, as HTML


class Explanation(str):
    """What the traced mode says of a fault."""


def build_and_run(tell: Callable[[str], None], name: str, source: str, log: str) -> Outcome:
    """Builds `source` and checks it as an answer to exercise `name`; what it prints goes to the file `log`.

    tell   is called with the label of each case before it is run, and with the Explanation of a fault
    """
    try:
        namespace, traced = _load_both(name, source)
    except BuildError as error:
        return Outcome("not built", str(error).partition("; the exception's `output`")[0])
    except python_answer.Failed as error:
        return Outcome("not built", str(error))
    except Exception as error:  # no fault of the answer: no compiler, no space left, ...
        return Outcome("not built", f"the build itself failed: {type(error).__name__}: {plain(error)}")
    function = getattr(namespace, name, None)
    if function is None:
        return Outcome("not built", f"it registers no function {name}: keep the lines with STABLE_TORCH_LIBRARY")
    what = CHECKS[name]
    tell("its registration")
    try:
        if problem := what.registered(function):
            return Outcome("rejected", problem)
    except Exception as error:
        return Outcome("fault", python_answer.located(error, source))
    explained, seen = "", Seen()
    if traced is not None:
        try:
            seen = run_small_cases(getattr(traced, name), what, tell)
        except Explained as error:
            explained = str(error)
            if error.endless:
                return Outcome("fault", explained)
            tell(Explanation(explained))  # known, should the run below end this process
        except Exception:  # a refusal, say: the run below meets it again, and says which case it was
            seen = Seen()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    try:
        labels = run_cases(function, what, device, tell)
        if explained:
            return Outcome("fault", explained)
        if seen.demand:
            return Outcome("rejected", seen.demand, table=seen.table)
        message = _paragraphs(f"{len(labels)} cases, the last: {labels[-1]}", seen.wasted)
        return Outcome("accepted", message, table=seen.table)
    except Rejected as error:
        return Outcome("rejected", _paragraphs(explained, str(error)))
    except Exception as error:  # whatever an answer raises is for the learner to read
        return Outcome("fault", explained or plain(error))
    finally:
        flush_c_output()


def _paragraphs(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _load_both(name: str, source: str):
    """The answer's functions for this machine, and in the traced mode. Raises BuildError.

    In the simulator one build is both: outside of an X-ray its functions run as ever. On a GPU there are two builds, at
    the same time, and the second may be None: what the simulator does not know can still be right there. Python code is
    not traced. Raises python_answer.Failed for it.
    """
    if source.endswith(".py"):
        return python_answer.run(source), None
    if target == "simulator":
        traced = load(name, [source], is_python_module=False, traced=True)
        return traced.untraced, traced
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(load, f"{name}_traced", [source], is_python_module=False, traced=True)
        namespace = load(name, [source], is_python_module=False)
        try:
            return namespace, waiting.result()
        except BuildError:
            return namespace, None


def flush_c_output() -> None:
    """Writes out what printf has buffered."""
    ctypes.CDLL(None).fflush(None)
