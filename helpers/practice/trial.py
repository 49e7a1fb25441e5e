"""Builds, runs and judges an answer, inside the process that isolated.py starts for it."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from helpers.build.loader import load
from helpers.machine.toolchain import device, target
from helpers.practice import python_answer
from helpers.practice.case_inputs import counted
from helpers.practice.case_runner import Rejected, plain, run_cases
from helpers.practice.checks import CHECKS
from helpers.practice.far_case import run_far_case
from helpers.practice.traced_run import Explained, Seen, run_small_cases
from helpers.simt.errors import BuildError


@dataclass(frozen=True)
class Outcome:
    """The result of a trial."""

    kind: str  # "accepted", "rejected", "not built" or "fault"
    message: str  # why
    printed: str = ""
    table: str = ""  # the X-ray that shows the waste, as HTML


class Explanation(str):
    """The traced mode's explanation of a fault."""


def build_and_run(tell: Callable[[str], None], name: str, source: str, log: str) -> Outcome:
    """Builds `source` and checks it as an answer to exercise `name`; its output goes to the file `log`.

    tell   receives the label of each case before the case runs, and the Explanation of a fault
    """
    try:
        namespace, traced = _load_both(name, source)
    except BuildError as error:
        return Outcome("not built", str(error).partition("; the exception's `output`")[0])
    except python_answer.Failed as error:
        return Outcome("not built", str(error))
    except Exception as error:  # not the answer's fault: no compiler, no disk space, ...
        return Outcome("not built", f"the build itself failed: {type(error).__name__}: {plain(error)}")
    function = getattr(namespace, name, None)
    if function is None:
        return Outcome("not built", f"it registers no function {name}: keep the lines with STABLE_TORCH_LIBRARY")
    what = CHECKS[name]
    tell("registration")
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
            tell(Explanation(explained))  # the run below may kill this process
        except Exception:  # such as a refusal: the run below meets it again, and names the case
            seen = Seen()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    try:
        labels = run_cases(function, what, device, tell)
        run_far_case(function, what, device, tell)
        if explained:
            return Outcome("fault", explained)
        if seen.demand:
            return Outcome("rejected", seen.demand, table=seen.table)
        message = _paragraphs(f"{counted(len(labels), 'case')}, the last: {labels[-1]}", seen.wasted)
        return Outcome("accepted", message, table=seen.table)
    except Rejected as error:
        return Outcome("rejected", _paragraphs(explained, str(error)))
    except Exception as error:  # any exception of the answer goes to the learner
        return Outcome("fault", explained or plain(error))
    finally:
        flush_c_output()


def _paragraphs(*texts: str) -> str:
    return "\n".join(text for text in texts if text)


def _load_both(name: str, source: str):
    """The answer's functions for this machine, and those for the traced mode or None.

    With the simulator one build serves both: outside an X-ray its functions run untraced. On a GPU two builds run at
    the same time; the traced one is None if the simulator refuses the source, which may still be right on the GPU.
    Python code is not traced. Raises BuildError, and python_answer.Failed for Python code.
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
    """Flushes the buffer of C's printf."""
    ctypes.CDLL(None).fflush(None)
