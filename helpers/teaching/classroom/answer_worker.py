"""A process that has answers checked, one after the other, as the grading process asks.

    python -m helpers.teaching.classroom.answer_worker SECONDS GB confined|trusted

It writes a line once it is ready. Then it reads one JSON object a line from its standard input: `exercise`, `text`,
`is_cell`; and writes one with the fields of a verdict to its standard output. The judge runs here; each answer runs in
a fork of its own (practice/isolated.py), which cannot reach these two streams. Both are confined (sandbox.py), the
answer's process more than this one, unless the answers are trusted.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import torch

from helpers.paths import KERNEL_INCLUDE, KERNELS
from helpers.practice import isolated, judge, registry, remote
from helpers.teaching.classroom import sandbox
from helpers.teaching.classroom.removal import remove
from helpers.teaching.classroom.submissions import Answer, is_starter
from helpers.teaching.classroom.watch import MEMORY, Watch
from kernel_xray.build.loader import load
from kernel_xray.machine import guard
from kernel_xray.runtime import faults

_KERNEL = re.compile(r'"([\w./]+\.cu)"')
_ALL_BLOCKS = 10_000  # more than a small case has elements


def check(answer: Answer, confined: bool, memory: float = MEMORY) -> dict[str, str | bool]:
    """The fields of a verdict on an answer. `memory`: the limit in GB."""
    name = answer.exercise
    if is_starter(answer):
        return {"exercise": name, "kind": "unsolved", "message": "it is the starter, without a solution"}
    isolated.TRUSTED, remote.BLOCKS = not confined, _ALL_BLOCKS if confined else remote.BLOCKS
    with _folder() as folder:
        if confined:
            isolated.prepare = lambda files: sandbox.enter(Path(folder), files, _given(name))
        if answer.is_cell:
            source, shown_as = judge.assemble(name, answer.text, Path(folder)), "cell"
        else:
            source = Path(folder) / registry.find(name).starter.name
            source.write_text(answer.text, encoding="utf-8")
            shown_as = source.name
        with Watch(Path(folder), memory) as watch:
            verdict = judge.run(name, source, shown_as=shown_as)
    if watch.reason:
        return {"exercise": name, "kind": "fault", "message": watch.reason}
    found = {"exercise": name, "kind": verdict.kind, "message": verdict.message, "printed": verdict.printed}
    shows = {"table": verdict.table, "film": verdict.film, "picture": verdict.picture}
    return {**{key: text.replace(folder, "...") for key, text in found.items()}, **shows, "passing": verdict.killed}


@contextmanager
def _folder() -> Iterator[str]:
    """A folder for one answer, which is deleted with whatever the answer has left in it."""
    folder = tempfile.mkdtemp(prefix="answer_")
    try:
        yield folder
    finally:
        remove(Path(folder))


def serve(seconds: float, memory: float, confined: bool, requests: IO[str], replies: IO[str]) -> None:
    """Answers requests until their end. `seconds` limits the build and the run of one answer, `memory` (GB) both."""
    isolated.BUILD_SECONDS = isolated.CHECK_SECONDS = seconds
    torch.set_num_threads(1)  # there is a worker for each core: waiting threads would take it from the others
    if confined:
        sandbox.enter_worker(Path(tempfile.gettempdir()))
    _build_what_all_kernels_share()
    replies.write("ready\n")
    replies.flush()
    for line in requests:
        replies.write(json.dumps(check(Answer(where="", **json.loads(line)), confined, memory)) + "\n")
        replies.flush()


def _given(name: str) -> list[Path]:
    """The kernels that the starter of an exercise names, but not its own solution: they are what it builds upon."""
    named = _KERNEL.findall(registry.read(name).starter)
    places = (KERNELS, KERNEL_INCLUDE, registry.find(name).solution.parent)
    found = {(place / path).resolve() for path in named for place in places if (place / path).is_file()}
    return sorted(path for path in found if path.stem != name)


def _build_what_all_kernels_share() -> None:
    """The time that this takes must not count as an answer's; and a confined process cannot keep it for the next."""
    first = next(exercise for exercise in registry.exercises() if exercise.solution.suffix == ".cu")
    with tempfile.TemporaryDirectory(prefix="starter_") as folder:
        source = Path(folder) / first.solution.name
        source.write_text(registry.read(first.name).starter, encoding="utf-8")
        with guard.forked(lambda: load(first.name, [source], is_python_module=False, traced=True)) as process:
            process.wait()
    faults.install()  # each answer's process, which is a fork, then has it


def main(seconds: str, memory: str, confined: str) -> None:
    """Keeps standard input and output for itself: what it starts gets /dev/null in their place."""
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    serve(float(seconds), float(memory), confined == "confined", requests, replies)


if __name__ == "__main__":
    main(*sys.argv[1:])
