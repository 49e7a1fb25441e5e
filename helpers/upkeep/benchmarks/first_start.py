"""`python -m helpers bench --first-start`: what a newcomer's machine downloads, waits for and needs.

An environment with the lessons' packages alone, as Binder has it, is made in a temporary folder, with empty caches of
packages and of kernels. Lessons then run there one after another.
"""

import datetime
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.paths import NOTEBOOKS, ROOT
from helpers.upkeep.benchmarks import crowd
from helpers.upkeep.benchmarks.conditions import commit_name
from helpers.upkeep.benchmarks.tools import Benchmark, processor

LESSONS = ("00", "01", "02", "08")  # the first ones; 02 and 08 compile PyTorch's largest headers and the most kernels
LIST = "kernel-ladder.txt"  # where set-up lists the packages, with their hashes
STEP = 0.2  # seconds between two looks at the memory
MB = 1_000_000


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
    """Runs a command; returns its seconds and the peak memory of all its processes in MB."""
    watched = crowd.run("", [command], environment, folder, every=STEP)
    if watched.wrong:
        raise RuntimeError(f"{' '.join(command)} failed: {watched.wrong[0]}")
    return round(watched.wall, 1), round(1000 * watched.gigabytes)


def _megabytes(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return round(sum(path.stat().st_size for path in files) / MB)


def machine() -> dict[str, Any]:
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),  # of others, before the start: times of a busy machine say little
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": commit_name(),
    }


BENCHMARK = Benchmark(
    "--first-start",
    __doc__,
    lambda options: {"machine": machine(), **measure(options.lessons)},
    lambda found: json.dumps(found, indent=1),
    {"--lessons": {"nargs": "+", "metavar": "NN", "default": LESSONS, "help": f"by default {', '.join(LESSONS)}"}},
    file="first_start.json",
)
