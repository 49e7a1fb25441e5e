"""`python -m helpers check NAME [FILE]`: is this file an answer to the exercise?"""

import argparse
import gc
import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

from helpers.practice import learner, registry, starters
from helpers.practice.verdict import Verdict
from kernel_xray.machine import turns
from kernel_xray.machine.paths import of_torch
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime import libsimt


def main(arguments: list[str]) -> int:
    """Prints the verdict. Returns 0 if the answer is accepted, 1 if not, 2 if there is no such exercise or file."""
    listed = "\n".join(f"  {e.lesson}  {e.name:22}{e.title}" for e in registry.exercises())
    parser = argparse.ArgumentParser(
        prog="python -m helpers check",
        description="Check an answer to an exercise: build it, run it on many cases, and report the first that fails.",
        epilog=f"exercises (lesson, name, title):\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the name of the exercise")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="the answer; by default yours in my_lessons/exercises/"
    )
    options = parser.parse_args(arguments)
    try:
        path = options.file or starters.mine(options.name)
        verdict = starters.unsolved(options.name, path) or _judged(options.name, path)
    except (registry.UnknownExercise, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    print(verdict, flush=True)
    if verdict.accepted:
        print(verdict.beside())
    elif verdict.kind not in ("unsolved", "unchecked"):
        print(f"python -m helpers hint {options.name} shows a hint")
    return 0 if verdict.accepted else 1


def _judged(name: str, path: Path) -> Verdict:
    with turns.turn("check"):  # those that wait for it need little memory
        with ThreadPoolExecutor(1) as pool:
            if of_torch():  # else the import below says at once what is missing
                pool.submit(libsimt.runtime_library)  # what it raises, the judge meets again
            with Progress("loading PyTorch", after=1.0):
                judge = load_judge()
            judge.prepare()
        verdict: Verdict = learner.noted(judge.check_file(name, path))
        return verdict


def load_judge() -> ModuleType:
    """The module `judge`, imported without a search for garbage, then or at the end of this process.

    PyTorch's modules make more than a hundred thousand objects. None is garbage before the process ends, and then it
    does not matter; but searching them takes 0.4 s. See https://docs.python.org/3/library/gc.html#gc.freeze
    """
    if "helpers.practice.judge" not in sys.modules:
        gc.disable()
        try:
            importlib.import_module("helpers.practice.judge")
        finally:
            gc.freeze()
            gc.enable()
    return sys.modules["helpers.practice.judge"]
