"""For tests of platforms that run the notebook which was handed in: is its answer to an exercise accepted?

The answer is read from the saved file and checked by `grade` in processes of its own; what the notebook's own process
has become by then does not matter.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.paths import ROOT

PYTHON = "KERNEL_LADDER_PYTHON"  # names the Python of the course's environment, if it is not this one


def require(name: str, folder: str = ".", trust: bool = False) -> str:
    """The verdict on exercise `name` in the notebooks of `folder`, as a text.

    Raises AssertionError with the verdict if the answer is not accepted, RuntimeError if it was not graded. `trust` is
    that of `grade`.
    """
    with tempfile.TemporaryDirectory() as temporary:
        given, points = (Path(temporary, part) for part in ("submission", "points.yml"))
        given.mkdir()
        for path in Path(folder).glob("*.ipynb"):
            shutil.copy(path, given)
        points.write_text(f"exercises: {{{name}: 1}}\n")
        python = os.environ.get(PYTHON, sys.executable)
        (result,) = graded(given, points, python, *(["--trust"] if trust else []), what=f"{name} was")
    text = f"{name}: {result['verdict']}: {result['message']}"
    assert result["points"] == result["maximum"], text
    return text


def graded(submission: Path, points: Path, python: str, *arguments: str, what: str = "the answers were") -> list[dict]:
    """The results of one submission in the form of `grade --format json`, from a process of the course's Python.

    Raises RuntimeError, which says that `what` not graded, and why.
    """
    with tempfile.TemporaryDirectory() as out:
        command = [python, "-m", "helpers", "grade", str(submission), "--single", "--points", str(points.absolute())]
        command += ["--format", "json", "--out", out, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{what} not graded: {done.stderr.strip()}")
        (found,) = json.loads(Path(out, "grades.json").read_text(encoding="utf-8"))["submissions"]
    return found["results"]
