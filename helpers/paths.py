"""Paths of the course's parts. Every path to a file of this repository starts from one of these."""

import os
from pathlib import Path

HELPERS = Path(__file__).resolve().parent
ROOT = HELPERS.parent
KERNELS = ROOT / "kernels"
KERNEL_INCLUDE = KERNELS / "include"  # on the include path of every build
NOTEBOOKS = ROOT / "notebooks"
MY_LESSONS = ROOT / "my_lessons"  # a learner's copies of the notebooks; not committed
RESULTS = ROOT / "results"
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
BUILD = ROOT / "build"  # written by `make`, removed by `make clean`
INSTRUMENT = ROOT / "kernel_xray" / "src"  # the package kernel_xray


def environment() -> dict[str, str]:
    """This process's environment, in which processes find the course."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}
