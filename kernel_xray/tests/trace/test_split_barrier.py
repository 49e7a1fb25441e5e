"""A cluster's barrier in two parts: it orders what comes before the arrival with what follows the wait, no more."""

import pytest
import torch
from simt_programs import CASES, line_marked, load_case, operators

from kernel_xray import xray

SOURCE = CASES / "split_barrier.cu"
ROUNDS, THREADS = 3, 64
# In the order of the source's enumeration
RIGHT = ["inline PTX", "cooperative groups", "built-in functions", "some whole", "a flag between", "threads end"]
WRONG = {"a read before the wait": ["early"], "a write after the arrival": ["late", "read"]}
NEVER_ARRIVES = len(RIGHT) + len(WRONG)
plain, traced = operators(load_case, "split_barrier"), operators(load_case, "split_barrier", traced=True)


def expected(how):
    t = torch.arange(THREADS, dtype=torch.int32)
    sums = [sum(100 * other + t + k for k in range(ROUNDS)) for other in (1, 0)]
    return [torch.cat([torch.zeros(32), x[32:]]) for x in reversed(sums)] if RIGHT[how] == "threads end" else sums


@pytest.mark.parametrize("how", range(len(RIGHT)), ids=RIGHT)
def test_a_right_kernel_ends_and_is_silent(plain, traced, how):
    for seed in (None, 0, 1, 2):
        out, flag = torch.zeros(2, THREADS, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        if seed is None:
            plain.split([out, flag], [ROUNDS, how])
        else:
            assert xray(traced.split, [out, flag], [ROUNDS, how], seed=seed).faults == []
        assert torch.equal(out, torch.stack(expected(how)).int())


@pytest.mark.parametrize("mistake", WRONG)
def test_what_lies_between_the_two_races(traced, mistake):
    how = len(RIGHT) + list(WRONG).index(mistake)
    for seed in range(3):
        out, flag = torch.zeros(2, THREADS, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        faults = [each for each in xray(traced.split, [out, flag], [1, how], seed=seed).faults if each.kind == "race"]
        assert faults and {fault.line for fault in faults} <= {line_marked(SOURCE, line) for line in WRONG[mistake]}


def test_a_wait_without_an_arrival_is_the_whole_barrier(plain, traced):
    for ran in (plain.split, lambda *given: xray(traced.split, *given)):
        out, flag = torch.zeros(2, THREADS, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        report = ran([out, flag], [ROUNDS, NEVER_ARRIVES])
        assert not (report and report.faults) and torch.equal(out, torch.stack(expected(0)).int())


def test_a_cluster_waits_behind_the_barrier_of_the_grid(plain):
    out, begun = torch.zeros(8, 3, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    plain.around_grid([out, begun], [])
    assert out.tolist() == [[800 * (k + 1) + 10 * (block ^ 1) + k for k in range(3)] for block in range(8)]
