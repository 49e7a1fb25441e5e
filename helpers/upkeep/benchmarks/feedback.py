"""`python -m helpers bench --feedback`: how long a learner waits for the verdict on an answer, and for what.

Four waits on one right answer to an exercise: in a new shell and in an open notebook, each for a kernel that was just
edited and for one that is unchanged. The simulator has been built before. It needs no GPU.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from helpers.paths import environment
from helpers.practice import registry
from helpers.upkeep.benchmarks import tools
from helpers.upkeep.benchmarks.tools import Benchmark

_CHILD = (
    "import time; begin = time.perf_counter(); from helpers.upkeep.benchmarks import feedback; feedback.child(begin)"
)
_JOBS = {"build": "build", "registration": "registration", "xray": "traced run", "far": "far cases"}
STAGES = ("start and imports", "build", "registration", "traced run", "plain run", "far cases", "comparison, the rest")


@dataclass
class Wait:
    """One wait, in seconds: in all, of processor time, and by stage of STAGES."""

    what: str
    seconds: float
    cpu_seconds: float
    stages: dict[str, float]


def measure(name: str) -> list[Wait]:
    """The waits for verdicts on the solution of exercise `name`. Raises RuntimeError if it is not accepted."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / registry.find(name).solution.name
        _edit(answer, name)
        first, edited, again = _in_a_new_shell(name, answer, "new shell, edited kernel", "edit", "keep")
        (unchanged,) = _in_a_new_shell(name, answer, "new shell, unchanged kernel")
        edited.what, again.what = "open notebook, edited kernel", "open notebook, unchanged kernel"
        return [first, unchanged, edited, again]


def _in_a_new_shell(name: str, answer: Path, what: str, *further: str) -> list[Wait]:
    command = [sys.executable, "-c", _CHILD, name, str(answer), what, *further]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment())
    if done.returncode:
        raise RuntimeError(f"the check ended with status {done.returncode}: {done.stdout.strip()[-300:]}")
    first, *others = (Wait(**given) for given in json.loads(done.stdout))
    left = time.perf_counter() - start - first.seconds - sum(one.seconds for one in others)
    first.seconds += left  # the start of Python, and its end
    first.stages[STAGES[0]] += left
    return [first, *others]


def child(begin: float) -> None:
    """Runs in the new process: checks once, then once for each further word, after an edit or not; prints the waits."""
    name, file, what, *further = sys.argv[1:]
    from helpers.practice import command

    judge = command.load_judge()
    imported = time.perf_counter() - begin
    waits = [_check(judge, name, Path(file), what)]
    waits[0].stages[STAGES[0]], waits[0].seconds = imported, waits[0].seconds + imported
    waits[0].cpu_seconds = tools.cpu_seconds(own=True)
    for word in further:
        if word == "edit":
            _edit(Path(file), name)
        waits.append(_check(judge, name, Path(file), word))
    print(json.dumps([asdict(wait) for wait in waits]))


def _check(judge: Any, name: str, file: Path, what: str) -> Wait:
    """A check, with the time of each message to the answer's process. Exits if it is not accepted."""
    from helpers.practice.isolated import Process

    stages, ask = dict.fromkeys(STAGES, 0.0), Process.ask

    def timed(process: Process, header: dict, parts: Sequence[bytes] = ()) -> tuple[dict, memoryview]:
        start = time.perf_counter()
        try:
            return ask(process, header, parts)
        finally:
            stages[_JOBS.get(header["do"], "plain run")] += time.perf_counter() - start

    start, cpu = time.perf_counter(), tools.cpu_seconds(own=True)
    with mock.patch.object(Process, "ask", timed):
        verdict = judge.check_file(name, file)
    seconds = time.perf_counter() - start
    if not verdict.accepted:
        print(verdict)
        sys.exit(1)
    stages[STAGES[-1]] = seconds - sum(stages.values())
    return Wait(what, seconds, tools.cpu_seconds(own=True) - cpu, stages)


def _edit(answer: Path, name: str) -> None:
    """Writes the solution with a comment that no earlier run has built."""
    text = registry.find(name).solution.read_text(encoding="utf-8")
    answer.write_text(f"{text}\n// edited at {time.time()}\n", encoding="utf-8")


def table(name: str, waits: list[Wait]) -> str:
    """The waits side by side, in seconds."""
    width = max(len(stage) for stage in STAGES) + 2
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    lines = [f"seconds to a verdict on {name}, cores: {os.cpu_count()}{load}"]
    lines += [f"  {chr(ord('A') + i)}  {wait.what}" for i, wait in enumerate(waits)]
    lines.append(f"  {'':{width}}" + "".join(f"{chr(ord('A') + i):>7}" for i in range(len(waits))))
    for stage in STAGES:
        lines.append(f"  {stage:{width}}" + "".join(f"{wait.stages[stage]:7.2f}" for wait in waits))
    lines.append(f"  {'in all':{width}}" + "".join(f"{wait.seconds:7.2f}" for wait in waits))
    lines.append(f"  {'processor time':{width}}" + "".join(f"{wait.cpu_seconds:7.2f}" for wait in waits))
    return "\n".join(lines)


def _exercise(name: str) -> str:
    try:
        return registry.find(name).name
    except registry.UnknownExercise as error:
        raise ArgumentTypeError(str(error)) from None


def _measured(options: Namespace) -> tuple[str, list[Wait]]:
    measure(options.exercise)  # builds what all kernels share, and warms the file cache
    return options.exercise, measure(options.exercise)


BENCHMARK = Benchmark(
    "--feedback",
    __doc__,
    _measured,
    lambda found: table(*found),
    {"--exercise": {"default": "roll", "type": _exercise, "metavar": "NAME"}},
)
