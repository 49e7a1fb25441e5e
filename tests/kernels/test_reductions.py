"""reductions.cu on this machine's target, and under the X-ray; the wrong kernels must be caught."""

import pytest
import torch
from inputs import needs_far_memory, randn
from simt_programs import operators

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.checking.both_ends import check_far
from helpers.ladder.checking.checker import check

SUMS = ("row_sum_one", "row_sum_tree", "row_sum_warp", "row_sum_block", "row_sum_slices", "row_sum_cluster")
SHAPES = [(0, 5), (2, 0), (1, 1), (3, 31), (4, 32), (257, 33), (7, 255), (2, 257), (9, 1025), (1, 40_003)]
SIZES = (0, 1, 31, 32, 33, 255, 256, 257, 1001)
traced = operators(extension, "reductions_traced", ("reductions.cu",), traced=True)
wrong_traced = operators(extension, "reductions_wrong_traced", ("wrong/reductions.cu",), traced=True)


def row_sum(x):
    return x.sum(1)


def softmax(x):
    return torch.softmax(x, 1)


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_rows(ops, name):
    function = getattr(ops, name)
    for rows, columns in SHAPES:
        check(function, randn(rows, columns), reference=row_sum, accumulation=max(1, columns))
    x = randn(3, 5000)
    assert all(torch.equal(function(x), function(x)) for _ in range(3))
    x[0, 4999], x[1, 17] = torch.inf, torch.nan
    assert function(x)[0].isposinf() and function(x)[1].isnan() and function(x)[2].isfinite()


MANY = [(name, (2**23 + 5, 1000)) for name in SUMS]
MANY += [("row_sum_one", (2**33 + 5, 3)), ("row_sum_warp", (2**33 + 5, 3))]


@needs_far_memory
@pytest.mark.parametrize(("name", "shape"), MANY)
def test_elements_that_32_bits_do_not_count(ops, name, shape):
    x = torch.empty(shape, device="meta")
    options = {"width": 8, "edge": 64, "sure": (2,), "accumulation": shape[1]}  # 8 blocks: two clusters
    check_far(getattr(ops, name), [x], reference=row_sum, name=name, **options)


def places(x):
    """In groups of 32: how many positive elements come before each positive one; -1 for all others."""
    padded = torch.nn.functional.pad(x, (0, -len(x) % 32)).view(-1, 32)
    keep = padded > 0
    return torch.where(keep, keep.cumsum(1) - 1, -1).flatten()[: len(x)].int()


def running_max(x):
    groups = torch.nn.functional.pad(x, (0, -len(x) % 32), value=-torch.inf).view(-1, 32)
    return groups.cummax(1).values.flatten()[: len(x)]


@needs_far_memory
@pytest.mark.parametrize(("name", "reference"), [("places", places), ("running_max", running_max)])
def test_a_ballot_and_a_scan_of_more_elements_than_32_bits_count(ops, name, reference):
    x = torch.empty(2**33 + 256, device="meta")
    check_far(getattr(ops, name), [x], reference=reference, name=name, edge=256, sure=(256,), accumulation=1)


def test_a_ballot_and_a_scan(ops):
    for n in SIZES:
        x = randn(n)
        x[3::70], x[5::64], x[7::9] = torch.nan, -torch.inf, 0
        assert torch.equal(ops.places(x).cpu(), places(x.cpu()))
        torch.testing.assert_close(ops.running_max(x).cpu(), running_max(x.cpu()), rtol=0, atol=0, equal_nan=True)


def test_what_is_refused(ops):
    for name in (*SUMS, "places", "running_max"):
        with pytest.raises(RuntimeError, match="x must be float32, got float64"):
            getattr(ops, name)(randn(2, 3, dtype=torch.float64))
    for name in SUMS:
        with pytest.raises(RuntimeError, match=r"x must be a matrix, got shape \[3\]"):
            getattr(ops, name)(randn(3))


# Of one row of 1,024: global load requests, shared requests, barriers of a block, shuffles of a warp.
COSTS = {
    "row_sum_one": (1024, 0, 0, 0),
    "row_sum_tree": (32, 45, 8, 0),
    "row_sum_warp": (32, 0, 0, 5),
    "row_sum_block": (32, 16, 2, 10),
    "row_sum_cluster": (32, 71, 2, 10),
}


@pytest.mark.parametrize("name", COSTS)
def test_what_each_way_costs(traced, name):
    report = helpers.xray(getattr(traced, name), torch.ones(1, 1024), film=True)
    loads = sum(r.requests for r in report.lines if (r.space, r.kind) == ("global", "load"))
    shared = [r for r in report.lines if r.space == "shared"]
    first = [frame.what for frame in report.recorded.frames if frame.block == frame.warp == 0]
    counted = first.count("block barrier"), first.count("warp operation")
    assert (loads, sum(r.requests for r in shared), *counted) == COSTS[name]
    assert all(r.wavefronts == r.requests for r in shared)
    assert report.result.tolist() == [1024] and not report.faults


@pytest.mark.parametrize("name", [*SUMS, "places", "running_max"])
def test_no_seed_finds_a_fault(traced, name):
    for seed in range(4):  # test_schedules.py has more
        assert helpers.xray(getattr(traced, name), torch.ones(3, 301), seed=seed).faults == []


@pytest.mark.parametrize(
    ("name", "columns", "good", "message"),
    [
        ("softmax_partial", 20, 32, "a shuffle reads from lane 20, which takes no part in it"),
        ("softmax_one_barrier", 200, None, "a read of a shared array of 32 bytes races with the write"),
    ],
)
def test_the_x_ray_finds_the_fault(wrong_traced, name, columns, good, message):
    function = getattr(wrong_traced, name)
    assert message in helpers.xray(function, torch.randn(2, columns), seed=0).faults[0].message
    if good:
        report = helpers.xray(function, x := torch.randn(2, good), seed=0)
        assert report.faults == []
        torch.testing.assert_close(report.result, softmax(x))


def test_a_masked_row_shows_the_missing_guard(wrong):
    x = randn(2, 200)
    check(wrong.softmax_online, x, reference=softmax, accumulation=32)
    x[0, :33] = -torch.inf
    assert wrong.softmax_online(x)[0].isnan().all() and wrong.softmax_online(x)[1].isfinite().all()
