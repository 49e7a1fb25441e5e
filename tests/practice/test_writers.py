"""Who wrote what, in words."""

import pytest
import torch

from helpers.practice.writers import in_plain_words, map_of_writers
from kernel_xray.report.facts import FaultRecord, Launch, Writer
from kernel_xray.report.report import Report

LAUNCH = Launch("k", "", 1, (3, 2, 1), (4, 2, 1), 6, 6, 32.0, 0, 0)
OUT = "out (3x4 float32)"


def report(*writers, launches=(LAUNCH,)):
    return Report(None, launches=list(launches), writers=list(writers))


def test_the_map_names_the_writers_around_an_element():
    found = report(Writer(OUT, 12, 4, "k", 4, 5), Writer(OUT, 16, 8, "k", 0, 1), Writer("other", 20, 4, "k", 1, 1))
    assert map_of_writers(found, "out", torch.empty(3, 4), (1, 1)).splitlines() == [
        "  written by [0, 3]: block (1, 1), thread (1, 1)",
        "             [1, 0]: block 0, thread 1",
        "             [1, 1]: block 0, thread 1  <- the first wrong one",
        "             [1, 2]: no thread",
        "             [1, 3]: no thread",
    ]
    assert map_of_writers(found, "grad", torch.empty(3, 4), (1, 1)) == ""


def test_of_several_kernels_the_writer_is_named():
    other = Launch("l", "", 1, (1, 1, 1), (4, 1, 1), 1, 1, 32.0, 0, 0)
    found = report(Writer(OUT, 0, 4, "l", 0, 3), launches=(LAUNCH, other))
    assert "[0]: block 0, thread 3 of l" in map_of_writers(found, "out", torch.empty(1), (0,))


def race(thread, other, block="the same block", verb="write"):
    message = f"a {verb} to {OUT} races with the write by thread {other} of {block}: nothing orders the two"
    return FaultRecord("race", "", 1, "k", (0, 0, 0), thread, message)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            race((1, 0, 0), (1, 0, 0), "block (1, 0, 0)"),
            "thread 1 of blocks 0 and 1 both write out[2]: does the index count the blocks before? (a write to",
        ),
        (race((1, 0, 0), (3, 0, 0)), "threads 1 and 3 of one block both write out[2]: which of them should own it?"),
        (
            race((1, 0, 0), (3, 1, 0), "block (2, 1, 0)"),
            "thread 1 of block 0 and thread (3, 1) of block (2, 1) both write out[2]: which of them should own it?",
        ),
    ],
)
def test_a_race_of_writes_begins_with_what_happened(fault, words):
    told = in_plain_words(fault, report(Writer(OUT, 8, 4, "k", 0, 1)))
    assert told.message.startswith(words)
    assert "races with the write by" in told.message


def test_other_faults_keep_their_words():
    deadlock = FaultRecord("deadlock", "", 1, "k", (0,) * 3, (0,) * 3, "x")
    for fault in (race((1, 0, 0), (3, 0, 0), verb="read"), deadlock):
        assert in_plain_words(fault, report()) is fault
