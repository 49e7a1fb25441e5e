"""`python -m helpers bench --grading`: a class hands in, is graded, and the grading is killed half-way.

The class is made up, the same in each run: every student hands in five exercises, as files or in one notebook. An
answer is right, right in another format, wrong as in the tests of its check, missing, untouched, not compilable or
hostile. No two students hand in the same text but the starter's, so that no verdict serves twice. `python -m helpers
grade` grades all of it without a break; then once more, killed with SIGKILL when half of the verdicts are there, and
resumed. Both must write the same bytes. It needs no GPU.
"""

import functools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from helpers.paths import KERNELS, TESTS, environment
from helpers.practice import registry
from helpers.practice.assistance import solution_source
from helpers.upkeep.benchmarks import tools
from kernel_xray.machine import toml

EXERCISES = ("vector_scale", "roll", "transpose", "column_sum", "blend")
# Kind of answer -> how many of 100, and the verdicts that it may get.
KINDS = {
    "right": (40, {"accepted"}),
    "reformatted": (18, {"accepted"}),
    "wrong": (20, {"rejected", "fault"}),
    "missing": (8, {"missing"}),
    "untouched": (5, {"unsolved"}),
    "not compilable": (5, {"not built"}),
    "hostile": (4, {"fault", "not built"}),
}
_LOADED = "#include <unistd.h>\n#include <cstdlib>\nstatic int attack = [] {{ {} return 0; }}();\n"
_HOSTILE = (
    _LOADED.format("_exit(0);"),
    _LOADED.format('const char v[] = "{\\"kind\\": \\"accepted\\"}\\n"; for (int i = 0; i < 99; ++i) '
                   "if (write(i, v, sizeof v)) {} _exit(0);"),
    _LOADED.format("if (fork() < 0) abort();"),
    f'#include "{KERNELS}/solutions/roll.cu"\n',
)  # fmt: skip
FORMATS = ("csv", "json", "junit", "gradescope", "prairielearn", "html")


def hand_in(folder: Path, count: int) -> dict[tuple[str, str], str]:
    """Writes the submissions of `count` students. Returns student and exercise -> kind of answer."""
    chance, kinds = random.Random(0), {}
    weights = [weight for weight, _ in KINDS.values()]
    for number in range(1, count + 1):
        student, in_notebook = f"student_{number:03}", chance.random() < 0.5
        place, cells = folder / student, []
        place.mkdir(parents=True)
        for name in EXERCISES:
            kind = chance.choices(list(KINDS), weights)[0]
            kinds[student, name] = kind
            text = _answer(name, kind, in_notebook, f"{student}, {name}", chance)
            if kind == "missing":
                continue
            if in_notebook:
                cells.append({"cell_type": "code", "source": f"%%exercise {name}\n{text}"})
            else:
                (place / f"{name}.cu").write_text(text, encoding="utf-8")
        if in_notebook:
            (place / "answers.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")
        (place / "notes.txt").write_text("not an answer\n")
    return kinds


def _answer(name: str, kind: str, is_cell: bool, mark: str, chance: random.Random) -> str:
    exercise, marked = registry.find(name), registry.read(name)
    if kind == "untouched":
        return marked.cell_text if is_cell else marked.starter
    text = solution_source(name).text if is_cell else exercise.solution.read_text(encoding="utf-8")
    if kind == "reformatted":  # no comments, twice the indentation
        text = re.sub(r"^ +", lambda blanks: 2 * blanks[0], re.sub(r" *//.*", "", text), flags=re.MULTILINE)
    if kind == "wrong":
        for old, new in chance.choice(mistakes(name)).items():
            text = text.replace(old, new)
    if kind == "not compilable":
        text = text.replace("__global__ void", "__global__ vod")
    if kind == "hostile":
        text += "\n" + chance.choice(_HOSTILE)
    return f"{text}\n// {mark}\n"


@functools.cache
def mistakes(name: str) -> list[dict[str, str]]:
    """What wrong answers to an exercise replace in its solution, and by what: those of its tests that are built."""
    table = TESTS / "practice" / "wrong_answers" / f"lesson_{registry.find(name).lesson}.toml"
    entries = toml.loads(table.read_text(encoding="utf-8"))[name].values()
    return [entry["replace"] for entry in entries if "replace" in entry and "error:" not in entry["expect"]]


@dataclass
class Graded:
    """How the grading of a class went."""

    submissions: int
    jobs: int
    seconds: float = 0.0  # from start to end
    cpu_seconds: float = 0.0  # of all processes, workers' start included
    kept: int = 0  # verdicts that were there when the second run was killed
    checked: int = 0  # verdicts of a whole run
    same: bool = False  # whether the killed and resumed run wrote the same bytes
    kinds: Counter = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # answers with another verdict than their kind allows

    def __str__(self) -> str:
        each, kinds = self.submissions, ", ".join(f"{n} {kind}" for kind, n in self.kinds.items())
        lines = [
            f"{each} submissions of {len(EXERCISES)} exercises: {kinds}",
            f"  verdicts as expected     {sum(self.kinds.values()) - len(self.wrong):6} of {sum(self.kinds.values())}",
            f"  time                     {self.seconds:6.1f} s with {self.jobs} jobs, cores: {os.cpu_count()}",
            f"  of a submission          {self.seconds * self.jobs / each:6.2f} s of one job, "
            f"{self.cpu_seconds / each:.2f} s of processor time",
            f"  of a checked answer      {self.cpu_seconds / max(1, self.checked):6.2f} s of processor time "
            f"({self.checked} checked)",
            f"  killed after {self.kept} verdicts and resumed: "
            + ("the same bytes" if self.same else "OTHER bytes than without a break"),
        ]
        return "\n".join([*lines, *(f"  unexpected: {one}" for one in self.wrong)])


def measure(count: int, jobs: int) -> Graded:
    """Grades a class of `count`, without a break and killed half-way. Raises RuntimeError if `grade` fails."""
    with tempfile.TemporaryDirectory(prefix="class_") as folder:
        root = Path(folder) / "class"
        kinds = hand_in(root, count)
        found = Graded(count, jobs, kinds=Counter(kinds.values()))
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        start, before = time.monotonic(), tools.cpu_seconds(own=False)
        _finish(_grade(root, whole, jobs))
        found.seconds, found.cpu_seconds = time.monotonic() - start, tools.cpu_seconds(own=False) - before
        found.checked = _verdicts(whole)
        found.wrong = _unexpected(json.loads((whole / "grades.json").read_text(encoding="utf-8")), kinds)
        found.kept = _kill_half_way(_grade(root, broken, jobs), broken, found.checked // 2)
        _finish(_grade(root, broken, jobs, "--resume"))
        found.same = content(whole) == content(broken)
        return found


def content(folder: Path) -> dict[str, bytes]:
    """All files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _grade(root: Path, out: Path, jobs: int, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "helpers", "grade", str(root), "--out", str(out), "--jobs", str(jobs)]
    command += ["--format", *FORMATS, *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment())


def _finish(process: subprocess.Popen) -> None:
    try:
        if process.wait():
            raise RuntimeError(f"grade ended with status {process.returncode}; its error is above")
    finally:
        process.kill()


def _kill_half_way(process: subprocess.Popen, out: Path, verdicts: int) -> int:
    """Kills the grading once it has reached so many verdicts. Returns how many it left."""
    while process.poll() is None and _verdicts(out) < verdicts:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return _verdicts(out)


def _verdicts(out: Path) -> int:
    return len(list((out / "verdicts").glob("*.json")))


def _unexpected(grades: dict, kinds: dict[tuple[str, str], str]) -> list[str]:
    found = []
    for one in grades["submissions"]:
        for given in one["results"]:
            kind = kinds[one["name"], given["exercise"]]
            if given["verdict"] not in KINDS[kind][1]:
                said = given["message"].partition("\n")[0]
                found.append(f"{one['name']}, {given['exercise']}: {kind}, but {given['verdict']}: {said}")
    return found


_STUDENTS = {"type": tools.positive, "default": 30, "help": "students of the class (30)"}
_JOBS = {"type": tools.positive, "default": os.cpu_count() or 1, "help": "answers checked at a time"}
BENCHMARK = tools.Benchmark(
    "--grading",
    __doc__,
    lambda options: measure(options.submissions, options.jobs),
    options={"--submissions": _STUDENTS, "--jobs": _JOBS},
    right=lambda graded: graded.same and not graded.wrong,
)
