"""Submissions and stand-in workers for the tests of grading."""

import json
import sys
from pathlib import Path

import pytest

from helpers.teaching.classroom import grading, results, submissions
from helpers.teaching.classroom.verdicts import Store

STAND_IN = Path(__file__).parent / "stand_in.py"


@pytest.fixture
def folder(tmp_path):
    """A function that makes a folder from {path: text} and returns it; a list becomes a notebook's code cells."""

    def make(files, name="class"):
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        for path, content in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content if isinstance(content, str) else notebook(content), encoding="utf-8")
        return root

    return make


def notebook(sources):
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def graded(tmp_path):
    """A function that grades a folder with stand-in workers. Returns the class and the requests that they got."""
    log = tmp_path / "requests"

    def run(root, scheme, jobs=2, single=False, store=None, **options):
        found = submissions.find(root, single)
        store = store or Store(tmp_path / "verdicts")
        grading.grade(found, scheme, store, jobs, [sys.executable, "-I", "-S", str(STAND_IN), str(log)], **options)
        requests = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return results.collect(found, scheme, store, single), requests

    return run
