"""Programmatic dependent launch: an X-ray finds what a kernel does too early, before griddepcontrol.wait."""

import re

import pytest
import torch
from simt_programs import CASES, line_marked, load_case, operators

from kernel_xray import xray

SOURCE = CASES / "early_launch.cu"
# In the order of the source's enumeration
RIGHT = ["all wait", "one waits", "reads its own", "runtime functions", "no attribute", "the host waits"]
WRONG = {
    "no wait": ("read", "a read of .* which a kernel before writes, comes before that kernel's end"),
    "a wait too late": ("late", "a read of .* which a kernel before writes"),
    "no barrier after one thread's wait": ("read", "a read of .* which a kernel before writes"),
    "an input is overwritten": ("overwrite", "a write to .* which a kernel before reads"),
}
traced = operators(load_case, "early_launch", traced=True)


def run(traced, how, seed=0, middle=0):
    given = torch.arange(256.0)
    return xray(traced.early_launch, [given, *torch.zeros(3, 256)], [how, middle], seed=seed)


SEEDS = [range(3), pytest.param(range(3, 100), marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("how", range(len(RIGHT)), ids=RIGHT)
def test_a_kernel_that_waits_is_silent(traced, how, seeds):
    for seed in seeds:
        assert run(traced, how, seed).faults == []


@pytest.mark.parametrize("mistake", WRONG)
def test_a_missing_wait_is_found_with_both_lines(traced, mistake):
    line, message = WRONG[mistake]
    for seed in range(3):
        faults = run(traced, len(RIGHT) + list(WRONG).index(mistake), seed).faults
        assert {fault.line for fault in faults} == {line_marked(SOURCE, line)}
        assert all(fault.kind == "race" and re.search(message, fault.message) for fault in faults)
        assert {line for fault in faults for _, line in fault.others} == {line_marked(SOURCE, "first")}


@pytest.mark.parametrize(("middle", "lines"), [(1, ["read"]), (2, [])], ids=["before its wait", "after its wait"])
def test_a_kernel_that_lets_the_next_begin_leaves_it_beside_the_one_before(traced, middle, lines):
    no_wait = len(RIGHT)
    assert [fault.line for fault in run(traced, no_wait, middle=middle).faults] == [
        line_marked(SOURCE, x) for x in lines
    ]
    assert run(traced, RIGHT.index("all wait"), middle=middle).faults == []
