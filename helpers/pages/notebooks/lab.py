"""`python -m helpers lab` (`make lab`): JupyterLab, opened at the first of the learner's copies of the lessons."""

import argparse
import os
import sys
from pathlib import Path

from helpers.pages.notebooks import copies
from helpers.paths import KERNELS, MY_LESSONS, NOTEBOOKS, ROOT

EXTENSIONS = Path(__file__).parent / "labextensions"


def opened() -> Path:
    """The folder whose lessons are opened; says which one, and which lessons have a newer version.

    Students hand in notebooks/, in a copy of the course without solutions: there the lessons are opened in place.
    """
    if not (KERNELS / "solutions").is_dir():
        return NOTEBOOKS
    newer = copies.refresh()
    print(f"lab: you work on copies, in {MY_LESSONS.name}/, so that a later git pull never conflicts with your changes")
    if newer:
        print(
            f"lab: there is a newer version of {', '.join(newer)}; to get it, rename your copy and run make lab again"
        )
    return MY_LESSONS


def main(arguments: list[str]) -> int:
    """Replaces this process by JupyterLab, which gets the arguments; --help is answered here."""
    parser = argparse.ArgumentParser(
        prog="python -m helpers lab",
        usage="%(prog)s [-h] [JUPYTERLAB'S OPTION ...]",
        description="Open your copies of the lessons in JupyterLab.",
        epilog="python -m jupyterlab --help lists JupyterLab's options.",
        allow_abbrev=False,
    )
    arguments = parser.parse_known_args(arguments)[1]
    first = f"--LabApp.default_url=/lab/tree/{opened().name}/00_start_here.ipynb"
    options = [f"--LabApp.extra_labextensions_path={EXTENSIONS}", first]
    if os.geteuid() == 0:
        print("lab: you are root, so JupyterLab gets --allow-root: what its cells do, they do as root", file=sys.stderr)
        options.append("--allow-root")
    os.chdir(ROOT)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options, *arguments])
