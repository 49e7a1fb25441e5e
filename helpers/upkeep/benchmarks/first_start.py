"""`python -m helpers bench --first-start`: what a newcomer's machine downloads, waits for and needs.

An environment with the lessons' packages alone, as Binder has it, is made in a temporary folder, with empty caches of
packages and of kernels. Lessons then run there one after another. Linux only: memory is read from /proc.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.paths import NOTEBOOKS, ROOT
from helpers.upkeep.benchmarks.conditions import commit_name

LESSONS = ("00", "01", "02", "08")  # the first ones; 02 and 08 compile PyTorch's largest headers and the most kernels
LIST = "kernel-ladder.txt"  # where set-up lists the packages, with their hashes
STEP = 0.2  # seconds between two looks at the memory
MB = 1_000_000


class Peak:
    """The most memory that a process and its descendants held at a time, in bytes, from start to end of `with`.

    Shared pages are counted once, as parts of the processes that share them (PSS).
    """

    def __init__(self, pid: int):
        self.bytes, self._pid, self._done = 0, pid, threading.Event()

    def __enter__(self) -> "Peak":
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(STEP):
            self.bytes = max(self.bytes, sum(map(proportional, [self._pid, *descendants(self._pid)])))


def descendants(pid: int) -> list[int]:
    """The processes that come from `pid`, by their parents in /proc."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = children.get(pid, [])
    for each in found:
        found += children.get(each, [])
    return found


def proportional(pid: int) -> int:
    """The memory of a process in bytes, shared pages in equal parts; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measure(lessons: Sequence[str] = LESSONS) -> dict[str, Any]:
    """Sizes in MB of 10^6 bytes, times in seconds. Raises RuntimeError if a step fails."""
    with tempfile.TemporaryDirectory() as folder:
        venv, caches = Path(folder) / "venv", Path(folder) / "caches"
        environment = {**os.environ, "UV_CACHE_DIR": str(caches), "PIP_NO_CACHE_DIR": "1"}
        environment |= {"KERNEL_XRAY_CACHE": str(caches / "kernels"), "JUPYTER_PREFER_ENV_PATH": "1"}
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        base = str(Path(getattr(sys, "_base_executable", sys.executable)))
        seconds = _run([base, "-I", "helpers/set_up.py", "--venv", str(venv), "--lessons-only"], ROOT, environment)[0]
        python = str(venv / "bin" / "python")
        wheels = Path(folder) / "wheels"
        listed = ["--no-deps", "--require-hashes", "-r", str(venv / LIST)]
        _run([python, "-m", "pip", "download", "--quiet", "-d", str(wheels), *listed], ROOT, environment)
        found: dict[str, Any] = {
            "environment": {
                "packages": len(list(wheels.iterdir())),
                "download_mb": _megabytes(wheels),
                "installed_mb": _megabytes(venv),
                "seconds": seconds,
            },
            "lessons": [],
        }
        execute = [python, "-m", "nbconvert", "--execute", "--to", "notebook", "--output-dir", folder]
        for number in lessons:
            (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
            seconds, peak = _run([*execute, str(path)], NOTEBOOKS, environment)
            found["lessons"].append({"lesson": number, "seconds": seconds, "peak_mb": peak})
        return found


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, int]:
    """Runs a command; returns its seconds and its peak memory in MB."""
    start = time.perf_counter()
    with (
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
        Peak(process.pid) as peak,
    ):
        said = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said[-2000:]}")
    return round(time.perf_counter() - start, 1), round(peak.bytes / MB)


def _megabytes(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return round(sum(path.stat().st_size for path in files) / MB)


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": (models or [platform.machine()])[0],
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),  # of others, before the start: times of a busy machine say little
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": commit_name(),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers bench --first-start", description=__doc__)
    parser.add_argument("--first-start", action="store_true", required=True)
    parser.add_argument("--record", type=Path, metavar="FILE", help="such as results/first_start.json")
    parser.add_argument("--lessons", nargs="+", metavar="NN", default=LESSONS, help=f"by default {', '.join(LESSONS)}")
    options = parser.parse_args(arguments)
    try:
        found = {"machine": machine(), **measure(options.lessons)}
    except RuntimeError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    text = json.dumps(found, indent=1) + "\n"
    print(text, end="")
    if options.record:
        options.record.write_text(text, encoding="utf-8")
    return 0
