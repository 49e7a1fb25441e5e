"""Is the grader itself right? Before it grades, it judges the course's own solution and starter of each exercise.

The same workers judge them, confined as the answers are. An exercise whose solution is not accepted, or whose starter
is not refused, is not graded: a grader that is wrong about these two is wrong about others. Verdicts that are as they
should be stay in the build cache, under a key of all that they depend on, so a second grading costs nothing.
"""

import platform
import sys
from collections.abc import Iterable

import torch

from helpers.paths import HELPERS, KERNELS
from helpers.practice import registry
from helpers.practice.verdict import HEADS
from helpers.teaching.classroom.grading import Command, Unfit, check
from helpers.teaching.classroom.submissions import Answer
from helpers.teaching.classroom.verdicts import Checked, Store, key_of, solution_of
from kernel_xray.machine import cache
from kernel_xray.machine.paths import PACKAGE
from kernel_xray.runtime import libsimt

_SOURCES = {".py", ".cu", ".h", ".cpp", ".toml"}
_REFUSED = ("rejected", "fault")  # a starter builds: "not built" says that what it builds upon is missing


def not_graded(names: Iterable[str], store: Store, jobs: int, command: Command) -> dict[str, str]:
    """The exercises that this machine cannot grade, and why.

    store: of the class; it gets the verdicts on the solutions, which answers are compared with
    jobs, command: as for grading.grade

    Raises Unfit. A copy of the course without solutions is judged on its starters alone.
    """
    kept = _kept(command)
    solutions = {name: solution_of(name) for name in names} if registry.with_solutions() else {}
    starters = {name: _starter_of(name) for name in names}
    _judge([*solutions.values(), *starters.values()], kept, jobs, command)
    found = {name: _why(name, solutions, starters, kept) for name in starters}
    for solution in solutions.values():
        if checked := kept.get(key_of(solution)):
            store.put(key_of(solution), checked)
    for name in filter(found.get, found):  # the machine may be better tomorrow
        kept.forget(key_of(starters[name]))
        if name in solutions:
            kept.forget(key_of(solutions[name]))
    return {name: why for name, why in found.items() if why}


def _judge(answers: list[Answer], kept: Store, jobs: int, command: Command) -> None:
    """Judges what has no verdict yet. The tasks of a job array begin at once: one of them judges, the others wait."""
    if any(kept.get(key_of(answer)) is None for answer in answers):
        try:
            with cache.locked(kept.folder):
                check(answers, kept, jobs, command, "checking the grader")
        except cache.CacheError as error:
            raise Unfit(str(error)) from None


def _why(name: str, solutions: dict[str, Answer], starters: dict[str, Answer], kept: Store) -> str:
    """Why an exercise cannot be graded, or ""."""
    if name in solutions and not (checked := _verdict(solutions[name], kept)).accepted:
        return f"the course's own solution gets '{HEADS[checked.kind]}' here: {checked.message}"
    checked = _verdict(starters[name], kept)
    if checked.kind not in _REFUSED:
        return f"the starter, which solves nothing, gets '{HEADS[checked.kind]}' here: {checked.message}"
    return ""


def _verdict(answer: Answer, kept: Store) -> Checked:
    checked = kept.get(key_of(answer))
    if checked is None:
        raise LookupError(f"{answer.exercise} has no verdict")
    return checked


def _starter_of(name: str) -> Answer:
    """The starter as an answer, with a comment at its end: an untouched one would be refused unseen."""
    path = registry.find(name).starter
    sign = "#" if path.suffix == ".py" else "//"
    return Answer(name, f"{registry.read(name).starter}\n{sign} The starter: it must be refused.\n", path.name)


def _kept(command: Command) -> Store:
    """Verdicts of this grader: of these sources, this compiler, this machine's kind and these workers."""
    files = [path for folder in (HELPERS, KERNELS, PACKAGE) for path in sorted(folder.rglob("*"))]
    texts = [(path.name, path.read_bytes()) for path in files if path.suffix in _SOURCES]
    try:
        versions = torch.__version__, sys.version, platform.release(), libsimt.runtime_key()
        return Store(cache.root() / "graders" / cache.digest(texts, versions, list(command)), shared=True)
    except RuntimeError as error:  # there is no compiler
        raise Unfit(str(error)) from None
    except OSError as error:
        raise Unfit(f"{error.filename} cannot be written ({error.strerror}); {cache.ADVICE}") from None
