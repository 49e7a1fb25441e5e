"""Launches through a kernel's address, and cooperative grids: their barrier, their limits, their mistakes."""

import pytest
import torch
from simt_programs import CASES, load_cases, operators, zeros

import kernel_xray
from kernel_xray.runtime import far

SIMULATOR = kernel_xray.target == "simulator"
pytestmark = pytest.mark.slow
in_the_simulator = pytest.mark.skipif(not SIMULATOR, reason="a GPU hangs, traps, or has other limits")

cases = operators(load_cases, CASES / "cooperative.cu", "cooperative")
traced = operators(load_cases, CASES / "cooperative.cu", "cooperative_traced", traced=True)


def test_every_form_of_a_launch_through_a_pointer(cases):
    out, count = zeros(200, dtype=torch.float32), zeros(1)
    cases.pointers([out, count], [])
    assert torch.equal(out.cpu(), 1.5 * torch.arange(200) + 5)
    assert count.item() == 6 + 10 + 7 + 11 + 13 + 13


def test_wrong_launches_return_errors(cases):
    count = zeros(1)
    cases.wrong_pointers([count], [])
    assert count.item() == 0


def test_dynamic_shared_memory(cases):
    out = zeros(64)
    cases.dynamic_shared([out], [])
    assert out.tolist() == list(reversed(range(64)))


@in_the_simulator
def test_a_cooperative_grid_and_an_xray_are_never_cut(cases, traced):
    arguments = [zeros(100), zeros(100)], [64, 5]
    with far.window(), pytest.raises(kernel_xray.KernelFault, match="first and the last blocks of a cooperative grid"):
        cases.ring(*arguments)
    with far.window():
        report = kernel_xray.xray(traced.ring, [zeros(2), zeros(2)], [32, 1])
    assert [fault.kind for fault in report.faults] == ["unsupported"]
    assert "first and the last blocks of an X-ray" in report.faults[0].message


def ring(blocks, threads, rounds):
    """What `ring_kernel` computes: a row of values and a row of sums."""
    mine, sums = list(range(blocks)), [threads * b for b in range(blocks)]
    for _ in range(rounds):
        values = list(mine)
        sums = [s + threads * values[b - 1] for b, s in enumerate(sums)]
        mine = [m + values[(b + 1) % blocks] % 7 for b, m in enumerate(mine)]
    return values, sums


@pytest.mark.parametrize(("blocks", "threads", "rounds"), [(1, 1, 1), (2, 33, 4), (100, 64, 5), (37, 1024, 2)])
def test_the_grids_barrier_orders_what_blocks_do(cases, blocks, threads, rounds):
    values, sums = zeros(blocks), zeros(blocks)
    cases.ring([values, sums], [threads, rounds])
    assert (values.tolist(), sums.tolist()) == ring(blocks, threads, rounds)


@pytest.mark.parametrize("threads", [256, 1024])
def test_a_grid_may_fill_the_device_and_no_more(cases, threads):
    values, total = torch.arange(1_000_000, dtype=torch.int32, device=kernel_xray.device), zeros(1, dtype=torch.int64)
    cases.full_device([values, total], [threads])
    assert total.item() == 999_999 * 1_000_000 // 2


@pytest.mark.parametrize("case", ["leaving", "attribute"])
def test_threads_that_have_returned_are_not_waited_for(cases, case):
    out = zeros(10)
    getattr(cases, case)([out], [])
    assert out.tolist() == [1, 2, 3, 4, 5, 2, 3, 4, 5, 1]


def test_a_grid_knows_whether_its_blocks_can_wait(cases):
    out = zeros(2)
    cases.validity([out], [])
    # With CUDA 13.0 on an H100, a plain grid says that it is valid, too.
    assert out.tolist() in ([0, 1], *([[1, 1]] if kernel_xray.target == "gpu" else []))


MISTAKES = {  # the case, its tensors, its numbers, the message
    "a plain launch": ("not_cooperative", [4], [], "only cudaLaunchCooperativeKernel"),
    "a block that ends": ("missing", [], [1, 0], "(?s)1 of 3 blocks wait at grid.sync.*launched at .*cooperative.cu"),
    "two barriers": ("missing", [], [3, 1], "32 of 64 wait at __syncthreads and 32 of 64 wait at grid.sync"),
    "a fault after the barrier": ("outside", [], [], r"outside_kernel', block \(1, 0, 0\), thread \(3, 0, 0\)"),
}


@in_the_simulator
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(cases, name):
    case, sizes, numbers, message = MISTAKES[name]
    with pytest.raises(kernel_xray.KernelFault, match=message):
        getattr(cases, case)([zeros(n) for n in sizes], numbers)
    test_the_grids_barrier_orders_what_blocks_do(cases, 3, 32, 2)  # the next launch is not affected


@in_the_simulator
def test_a_fault_that_was_raised_is_no_longer_the_last_error(cases):
    with pytest.raises(kernel_xray.KernelFault):
        cases.outside([], [])
    cases.no_error([], [])


@in_the_simulator
def test_an_endless_grid_meets_the_time_limit(cases, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    with pytest.raises(kernel_xray.KernelFault, match="time limit"):
        cases.endless([zeros(1) + 1], [])
    cases.endless([zeros(1)], [])


@in_the_simulator
def test_an_xray_sees_a_cooperative_grid(traced):
    values, out = zeros(4), zeros(4)
    report = kernel_xray.xray(traced.race, [values, out], [1, 32])
    assert report.faults == []
    assert out.tolist() == [1, 2, 3, 0]
    assert {line.kernel for line in report.lines} == {"race_kernel"}
    report = kernel_xray.xray(traced.race, [values, out], [0, 32])
    assert {fault.kind for fault in report.faults} == {"race"}


@in_the_simulator
def test_an_xray_refuses_a_grid_that_is_too_large(traced):
    with pytest.raises(kernel_xray.KernelFault, match="an X-ray of a cooperative grid of 9 blocks of 32 threads"):
        traced.race([zeros(9), zeros(9)], [1, 32])
    with pytest.raises(kernel_xray.KernelFault, match="8 blocks of 288 threads"):
        traced.race([zeros(8), zeros(8)], [1, 288])
