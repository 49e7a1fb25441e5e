"""Runs the cases of a suite in several processes, with a progress bar. A run that was stopped goes on from there."""

import datetime
import json
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from helpers.upkeep.benchmarks.conditions import commit_name
from kernel_xray.machine.progress import ProgressBar

Record = dict[str, Any]


def run(what: str, examine: Callable[[Any], Record], cases: Sequence[Any], workers: int, log: Path) -> list[Record]:
    """The record of every case, in the order of `cases`, each of which has a `name`.

    examine   a module's function: case -> record. Its exception becomes the record's `error`.
    log       finished records, one per line; those that it already has are not made again. Name it after all that a
              record depends on. Its folder must exist.
    """
    done = {record["name"]: record for record in _logged(log)}
    waiting = [case for case in cases if case.name not in done]
    context = multiprocessing.get_context("spawn")  # a fork of a process that has loaded PyTorch may hang
    with ProgressBar(what, len(cases)) as bar, log.open("a", encoding="utf-8") as file:
        if len(waiting) < len(cases):
            bar.step(len(cases) - len(waiting), "(done before)")
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_quietly) as pool:
            futures = [pool.submit(_recorded, examine, case) for case in waiting]
            try:
                for future in as_completed(futures):
                    record = future.result()
                    done[record["name"]] = record
                    print(json.dumps(record), file=file, flush=True)
                    bar.step(note=record["name"])
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    return [done[case.name] for case in cases]


def _start_quietly() -> None:
    """In a worker: the parent handles interrupts, and the bar is the only line of progress."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _recorded(examine: Callable[[Any], Record], case: Any) -> Record:
    try:
        return {"name": case.name, **examine(case)}
    except Exception as error:
        return {"name": case.name, "error": f"{type(error).__name__}: {error}"[:2000]}


def _logged(log: Path) -> list[Record]:
    """The records of an earlier run; a line that was being written when it stopped is left out."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]


def machine(suite: str, folder: Path) -> Record:
    """The `machine` part of a yardstick's results: what was tried, with what, when."""
    return {
        "suite": suite,
        "suite_commit": suite_commit(folder),
        "commit": commit_name(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
    }


def suite_commit(folder: Path) -> str:
    """The commit of the user's copy; "unknown" if it is not the root of a git checkout."""
    call = ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    top, _, head = done.stdout.strip().partition("\n")
    return head if done.returncode == 0 and Path(top).resolve() == folder.resolve() else "unknown"
