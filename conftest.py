"""Runs the longest files first, so that parallel workers finish at about the same time.

`make test ARGS=--record-longest` measures them anew. Tests and notebooks that check exercises do not touch the progress
of the person who runs them.
"""

import gc
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import helpers  # noqa: F401  gives the course's names of variables to the instrument, for the tests of both

os.environ["KERNEL_LADDER_PROGRESS"] = os.devnull

LONGEST = Path(__file__).parent / "tests" / "longest.txt"  # seconds of each file that takes some, the longest first
LEAST = 2.0  # seconds
SLOW = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)  # all tests of a file, alone or in a list


def pytest_addoption(parser):
    parser.addoption("--record-longest", action="store_true", help=f"write {LONGEST.name}, from this run")


def pytest_configure(config):
    if config.getoption("record_longest") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


def pytest_ignore_collect(collection_path, config):
    """True for a file of slow tests alone, if slow ones are left out: its imports would take each worker seconds."""
    if collection_path.suffix != ".py" or "not slow" not in config.option.markexpr:
        return None
    return bool(SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """What collecting makes stays to the end: the garbage collector need not look at it, then or at any later time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config, items):
    order = {line.split()[1]: i for i, line in enumerate(LONGEST.read_text().splitlines())}
    items.sort(key=lambda item: order.get(Path(os.path.relpath(item.path, config.rootpath)).as_posix(), len(order)))


class Recorder:
    """Adds up what the tests of each file took, in all workers."""

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self):
        rows = [f"{seconds:5.0f} {file}\n" for file, seconds in self.seconds.most_common() if seconds >= LEAST]
        LONGEST.write_text("".join(rows))
