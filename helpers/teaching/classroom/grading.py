"""Has all answers of a class checked in parallel, and keeps each verdict as soon as it is there."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from helpers.paths import environment
from helpers.practice import registry
from helpers.teaching.classroom import sandbox, speed
from helpers.teaching.classroom.points import Scheme
from helpers.teaching.classroom.removal import remove
from helpers.teaching.classroom.submissions import Answer, Submission
from helpers.teaching.classroom.verdicts import Checked, Store, key_of, solution_of
from helpers.teaching.classroom.watch import MEMORY
from kernel_xray.machine import guard
from kernel_xray.machine.progress import ProgressBar

SECONDS = 300.0  # for the build of one answer, and for its check; both take seconds, on a busy machine minutes
_GRACE = 60.0  # beyond both limits, after which the worker itself is taken to be stuck
_START_SECONDS = 3600.0  # on a machine where the simulator has to be built first
_ENVIRONMENT = ("CUDA", "NV", "HOME", "XDG_CACHE_HOME", "USER")  # that a worker has, beside what an answer has
_TRIES = 2  # a worker that ends is replaced; an answer that ends two is at fault
_ENDED = "the process that checks it ended, or did not answer: does it use too much memory or time?"

Command = Sequence[str]


class Unfit(RuntimeError):
    """This machine cannot check answers."""


@dataclass(frozen=True)
class Part:
    """The part `number` of `of`, counted from 0, of a class's distinct answers."""

    number: int
    of: int

    def choose(self, answers: Sequence[Answer]) -> list[Answer]:
        """The answers of this part: the same text of two students is in one."""
        keys = [key_of(answer) for answer in answers]
        chosen = set(sorted(set(keys))[self.number :: self.of])
        return [answer for key, answer in zip(keys, answers, strict=True) if key in chosen]


WHOLE = Part(0, 1)


def worker(confined: bool, seconds: float = SECONDS, memory: float = MEMORY) -> Command:
    """The command that starts a worker with the course's judge, and its limits for one answer; memory in GB."""
    how = "confined" if confined else "trusted"
    return [sys.executable, "-m", "helpers.teaching.classroom.answer_worker", str(seconds), str(memory), how]


def grade(
    submissions: Sequence[Submission],
    scheme: Scheme,
    store: Store,
    jobs: int,
    command: Command,
    measure: Callable[[Answer], str] = speed.measure,
    part: Part = WHOLE,
) -> None:
    """Puts a verdict into the store for each answer that has none there, and for the solutions it is compared with.

    part: the answers to check
    jobs: worker processes at a time
    command: starts a worker, as `worker` does
    measure: the speed of an accepted answer, for exercises with points for it; one at a time, beside no other work

    Raises Unfit.
    """
    alone = part.choose([found[0] for one in submissions for found in one.answers.values() if len(found) == 1])
    solutions = [solution_of(name) for name, worth in scheme.exercises.items() if worth.efficiency]
    if solutions and not registry.with_solutions():
        raise Unfit(
            "efficiency is judged beside the course's solutions, which this copy lacks; leave it out of the points"
        )
    check(solutions, store, jobs, command)
    check(alone, store, jobs, command)
    timed = {name for name, worth in scheme.exercises.items() if worth.speed}
    _time([answer for answer in alone if answer.exercise in timed], store, measure)


def _time(answers: Sequence[Answer], store: Store, measure: Callable[[Answer], str]) -> None:
    """Adds the speed to the verdicts of accepted answers that lack it."""
    for key, answer in {key_of(answer): answer for answer in answers}.items():
        checked = store.get(key)
        if checked is not None and checked.accepted and not checked.speed and (found := measure(answer)):
            store.put(key, replace(checked, speed=found))


def check(answers: Sequence[Answer], store: Store, jobs: int, command: Command, what: str = "grading") -> None:
    """Puts a verdict into the store for each answer that has none there; a bar calls this `what`. Raises Unfit.

    An answer whose process or workers were killed is checked once more when no other is, and by a later run again: the
    machine may have done it, for want of memory.
    """
    keyed = {key_of(answer): answer for answer in answers}
    for workers in (jobs, 1):
        found = {key: store.get(key) for key in keyed}
        waiting = {key: answer for key, answer in keyed.items() if (kept := found[key]) is None or kept.passing}
        if not waiting:
            return
        with ProgressBar(what, len(waiting)) as bar:

            def done(key: str, checked: Checked, bar: ProgressBar = bar) -> None:
                store.put(key, checked)
                bar.step(note=f"{checked.exercise} {checked.kind}")

            _all(waiting, min(workers, len(waiting)), command, done)


def _all(waiting: Mapping[str, Answer], jobs: int, command: Command, done: Callable[[str, Checked], None]) -> None:
    """Calls `done` in this thread with each key and its verdict, in the order in which they come."""
    tasks: queue.SimpleQueue[tuple[str, Answer]] = queue.SimpleQueue()
    finished: queue.SimpleQueue[tuple[str, Checked] | BaseException] = queue.SimpleQueue()
    for task in waiting.items():
        tasks.put(task)
    stopped = threading.Event()

    def drain() -> None:
        try:
            with _Worker(command) as worker:
                while not stopped.is_set():
                    key, answer = tasks.get_nowait()
                    finished.put((key, worker.check(answer, stopped)))
        except queue.Empty:
            pass
        except BaseException as error:
            finished.put(error)

    threads = [threading.Thread(target=drain, daemon=True) for _ in range(jobs)]
    try:
        with _interrupted_by_sigterm():
            for thread in threads:
                thread.start()
            for _ in waiting:
                result = finished.get()
                if isinstance(result, BaseException):
                    raise result
                done(*result)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM, by which a batch system ends a job, raises KeyboardInterrupt: so the workers' folders go with them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Stuck(Exception):
    """A worker gave no verdict."""


def _line(process: subprocess.Popen, seconds: float, stopped: threading.Event) -> bytes:
    """The next line that a worker writes. Raises Stuck if there is none within about `seconds`."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], 0.5)
        part = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        seconds -= 0 if ready else 0.5
        if (ready and not part) or seconds <= 0 or stopped.is_set():
            raise Stuck
        line += part
    return line


class _Worker:
    """A worker process, replaced when it ends."""

    def __init__(self, command: Command):
        self._command = command
        self._process: subprocess.Popen | None = None
        self._resources = ExitStack()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def check(self, answer: Answer, stopped: threading.Event) -> Checked:
        """The verdict on an answer."""
        for _ in range(_TRIES):
            if not stopped.is_set() and (checked := self._try(answer, stopped)):
                return checked
        return Checked(answer.exercise, "fault", _ENDED, passing=True)

    def _try(self, answer: Answer, stopped: threading.Event) -> Checked | None:
        try:
            return self._ask(answer, stopped)
        except Stuck:
            self._end()
            return None

    def _ask(self, answer: Answer, stopped: threading.Event) -> Checked:
        process = self._process or self._start(stopped)
        assert process.stdin is not None
        request = {name: value for name, value in asdict(answer).items() if name != "where"}
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise Stuck from error
        try:
            checked = Checked(**json.loads(_line(process, 2 * SECONDS + _GRACE, stopped)))
        except (ValueError, TypeError) as error:
            raise Stuck from error
        if checked.exercise != answer.exercise:
            raise Stuck
        return checked

    def _start(self, stopped: threading.Event) -> subprocess.Popen:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        folder = tempfile.mkdtemp(prefix="answer_worker_")
        self._resources.callback(remove, Path(folder))  # after its processes have ended
        own = {**sandbox.needed(environment(), _ENVIRONMENT), "TMPDIR": folder}
        started = guard.started(list(self._command), self._command[0], env=own, **options)
        self._process = process = self._resources.enter_context(started)
        try:
            _line(process, _START_SECONDS, stopped)
        except Stuck:
            raise Unfit("the process that checks answers did not start; its error is above") from None
        return process

    def _end(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
        self._process = None
        self._resources.close()
