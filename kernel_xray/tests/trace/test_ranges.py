"""Threads in one loop, and the same threads as fibres: equal results, in the same order."""

import pytest
import torch
from simt_programs import CASES, assert_matches, load_case, load_cases

import kernel_xray

pytestmark = pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU runs all threads at once")


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["fast", "traced outside an X-ray"]
)
def cases(request):
    if request.param:  # the operators themselves: no X-ray around a call
        return load_cases(CASES / "ranges.cu", "ranges_traced", traced=True).untraced
    return load_case("ranges")


def both(case, *tensors, numbers=()):
    """The tensors after a run in a loop, which are bitwise those after a run of fibres."""
    results = []
    for fibres in (0, 1):
        results.append([tensor.clone() for tensor in tensors])
        case(results[-1], [fibres, *numbers])
    for loop, fibres in zip(*results, strict=True):
        assert torch.equal(loop.view(torch.int32), fibres.view(torch.int32))
    return results[0]


def test_branches_loops_and_early_exits(cases):
    (out,) = both(cases.mixed, torch.full((360,), -1.0))
    assert (out == -1).tolist() == [i % 7 == 3 for i in range(360)]


def test_a_thread_reads_what_the_next_overwrites(cases):
    x = torch.arange(1025, dtype=torch.int32)
    (shifted,) = both(cases.shift, x)
    assert torch.equal(shifted[:-1], x[1:])


def test_atomics_output_and_exit_in_order(cases, capfd):
    stay = [i for i in range(80) if i % 3 != 1]
    listed, count = both(cases.list, torch.zeros(80, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))
    assert count == len(stay) and listed[: len(stay)].tolist() == stay
    lines = [f"{word} {i}" for i in range(0, 80, 16) for word in ("first", "second") if word == "first" or i % 3 != 1]
    assert capfd.readouterr().out.splitlines() == 2 * lines


@pytest.mark.parametrize("first", [0, 1, 37, 64, 99])
def test_a_barrier_after_threads_have_exited(cases, first):
    (out,) = both(cases.late, torch.zeros(100, dtype=torch.int32), numbers=[first])
    arrived = 100 - first
    for i, value in enumerate(out.tolist()):
        third_warp = 500 if i // 32 == 2 and first <= 67 else 0
        stays = i >= first and i % 5 != 0
        assert not stays or value - third_warp == arrived * 1001000 + i or (i // 32 == 2 and first > 67)
        assert stays or value == 0


def test_children_run_after_all_threads(cases):
    (out,) = both(cases.parent, torch.zeros(64, dtype=torch.int32))
    assert out.tolist() == [1000 + (i if i % 8 == 5 else 0) for i in range(64)]


@pytest.mark.parametrize("fibres", [0, 1])
def test_a_fault_names_its_thread(cases, fibres):
    with pytest.raises(RuntimeError) as error:
        cases.fault([torch.zeros(32, dtype=torch.int32)], [fibres])
    assert_matches(r"block \(1, 0, 0\), thread \(13, 2, 0\)", str(error.value))
