"""The course's extension of JupyterLab, as files. tests/browser/test_lab.py has what a lesson looks like with it."""

import json
import re

import pytest

from helpers.pages.notebooks.lab import EXTENSIONS
from helpers.practice import cells, registry

SCRIPT = EXTENSIONS / "kernel-ladder" / "static" / "remoteEntry.js"


@pytest.mark.parametrize("exercise", registry.exercises(), ids=lambda exercise: exercise.name)
def test_an_exercise_is_in_the_language_of_its_file(exercise):
    """By the patterns with which the extension decides; each is one that Python understands too."""
    literals = dict(re.findall(r"const (EXERCISE|PYTHON) = /(.+)/m?;", SCRIPT.read_text(encoding="utf-8")))
    cell = cells.cell_source(exercise.name)
    assert re.match(literals["EXERCISE"], cell)
    assert not re.match(literals["EXERCISE"], f"print(1)\n{cell}")
    assert bool(re.search(literals["PYTHON"], cell, re.MULTILINE)) == (exercise.starter.suffix == ".py")


def test_the_package_names_its_files():
    package = json.loads((SCRIPT.parent.parent / "package.json").read_text(encoding="utf-8"))
    assert (SCRIPT.parent.parent / package["jupyterlab"]["_build"]["load"]) == SCRIPT
    assert f'const NAME = "{package["name"]}"' in SCRIPT.read_text(encoding="utf-8")
    assert package["name"] == SCRIPT.parent.parent.name and (SCRIPT.parent / "lessons.css").exists()
