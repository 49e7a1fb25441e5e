"""Judges one mutant in a process of its own: a crash, a loop without end and too much time are verdicts, too.

The mutant is in a copy of the folder kernels/. Neither the copy nor what was built of it is left behind.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from helpers.paths import KERNELS
from helpers.upkeep.mutants.judges import Killed, NotBuilt
from helpers.upkeep.mutants.targets import Target
from kernel_xray.machine import artifacts, guard

SECONDS = 900.0  # for a mutant: a right kernel takes up to five minutes, with its builds and its module of tests
BLOCK_SECONDS = "20"  # the simulator ends a block after this processor time: a right one takes less than 5 s
UNCHANGED = ("museum", "solutions", "template")  # folders that no target includes from
Judge = Callable[[Target, Path], None]


@dataclass(frozen=True)
class Result:
    """A verdict: "killed", "survived" or "not built", why, and the seconds that it took."""

    verdict: str
    why: str
    seconds: float


def judged(judge: Judge, target: Target, text: str, seconds: float = SECONDS) -> Result:
    """Calls `judge` on `text` in place of the target's: a mutant, or the original. It ends after `seconds`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant_") as name:
        folder = Path(name)
        kernels, answer = _copied(folder / "kernels", target, text), folder / "answer.json"
        builds = folder / "builds"

        def run() -> None:
            _limit(seconds)
            with _noted(builds):
                found = _verdict(judge, target, kernels)
            answer.write_text(json.dumps(asdict(found)), encoding="utf-8")

        sys.stdout.flush()
        try:
            with guard.forked(run) as process:
                code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return Result("killed", f"it did not end within {seconds:.0f} s", time.monotonic() - began)
        finally:
            _remove(builds)
        spent = time.monotonic() - began
        if answer.is_file():
            found = json.loads(answer.read_text(encoding="utf-8"))
            return Result(found["verdict"], found["why"], spent)
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return Result("killed", f"it ended the process ({how})", spent)


def _copied(kernels: Path, target: Target, text: str) -> Path:
    """A copy of kernels/ with the mutant in it. Links would not do: an include first looks beside the real file."""
    if not target.is_answer:
        shutil.copytree(KERNELS, kernels, ignore=shutil.ignore_patterns(*UNCHANGED))
    place = kernels / target.file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return kernels


@contextmanager
def _noted(builds: Path) -> Iterator[None]:
    """Writes the folders of kernels that are built or loaded in the context to a file."""
    make = artifacts.built

    def built(folder: Path, *arguments: Any) -> Path:
        if not folder.name.startswith(("simt-", "headers-")):  # parts of the simulator
            with open(builds, "a", encoding="utf-8") as file:
                file.write(f"{folder}\n")
        return make(folder, *arguments)

    with patch.object(artifacts, "built", built):
        yield


def _remove(builds: Path) -> None:
    for line in builds.read_text(encoding="utf-8").splitlines() if builds.is_file() else ():
        shutil.rmtree(line, ignore_errors=True)


def _limit(seconds: float) -> None:
    """In the fork: no output, a limit of processor time; PyTorch's threads are not in a fork."""
    os.environ["KERNEL_XRAY_BLOCK_SECONDS"] = BLOCK_SECONDS
    faulthandler.disable()  # inherited from pytest: here a crash is a verdict
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(1)


def _verdict(judge: Judge, target: Target, kernels: Path) -> Result:
    try:
        judge(target, kernels)
    except Killed as reason:
        return Result("killed", str(reason), 0)
    except NotBuilt as reason:
        return Result("not built", str(reason), 0)
    return Result("survived", "", 0)
