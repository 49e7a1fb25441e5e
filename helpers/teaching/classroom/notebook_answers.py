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
        given, points, out = (Path(temporary, part) for part in ("submission", "points.yml", "grades"))
        given.mkdir()
        for path in Path(folder).glob("*.ipynb"):
            shutil.copy(path, given)
        points.write_text(f"exercises: {{{name}: 1}}\n")
        command = [os.environ.get(PYTHON, sys.executable), "-m", "helpers", "grade", str(given), "--single"]
        command += ["--points", str(points), "--format", "json", "--out", str(out), *(["--trust"] if trust else [])]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name} was not graded: {done.stderr.strip()}")
        (submission,) = json.loads((out / "grades.json").read_text(encoding="utf-8"))["submissions"]
    (result,) = submission["results"]
    text = f"{name}: {result['verdict']}: {result['message']}"
    assert result["points"] == result["maximum"], text
    return text
