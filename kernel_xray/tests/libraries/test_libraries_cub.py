"""CUB in the simulator, or NVIDIA's on a GPU: collectives of warps and blocks, and functions for whole arrays."""

import itertools
from functools import reduce

import pytest
import torch
from cuda_libraries import ON_SIMULATOR, empty, integers, load, there
from simt_programs import operators

import kernel_xray

pytestmark = pytest.mark.slow
THREADS, ITEMS = 96, 3
N = THREADS * ITEMS

cub = operators(load, "cub")


# ----------------------------------------------------------------------------------------------------------------------
# Warps and blocks


def exclusive(x, initial, op):
    return list(itertools.accumulate(x[:-1], op, initial=initial))


@pytest.mark.parametrize("width", [32, 8])
def test_warps(cub, width):
    x = integers(64)
    out = empty(64, 7)
    cub.warps([*there(x), out], [width])
    for first in range(0, 64, width):
        group = x[first : first + width].tolist()
        rows = out[first : first + width].tolist()
        assert rows[0][:3] == [sum(group), max(group), sum(group[:-1])]
        assert [row[3] for row in rows] == list(itertools.accumulate(group))
        assert [row[4] for row in rows] == [sum(group)] * width
        assert [row[5] for row in rows] == exclusive(group, 0, int.__add__)
        assert [row[6] for row in rows] == exclusive(group, -100, max)


def test_raking(cub):
    x, out = integers(128), empty(2, 32)
    cub.raking([*there(x), out], [])
    assert out.tolist() == [x[:64].view(32, 2).sum(1).tolist(), x.view(32, 4).sum(1).tolist()]


def compose(f, g):
    return (f[0] * g[0] % 2**32, (f[1] * g[0] + g[1]) % 2**32)


def lines():
    x = integers(2 * THREADS, 1, 1000, seed=3).view(THREADS, 2)
    return x, [tuple(row) for row in x.tolist()]


@pytest.mark.parametrize("valid", [1, 31, 32, 33, 95, 96])
def test_block_reduce(cub, valid):
    x, (packed, functions) = integers(N), lines()
    out, composed = empty(3), empty(2)
    cub.block_reduce([*there(x, packed), out, composed], [valid])
    first = x[::ITEMS].tolist()
    assert out.tolist() == [sum(first), x.sum().item(), max(first[:valid])]
    assert tuple(v % 2**32 for v in composed.tolist()) == reduce(compose, functions)


def test_block_scan(cub):
    x, (packed, functions) = integers(N), lines()
    out, composed = empty(7, N), empty(THREADS, 4)
    cub.block_scan([*there(x, packed), out, composed], [])
    values, total = x.tolist(), x.sum().item()
    sums = list(itertools.accumulate(values))
    before = exclusive(values, 0, int.__add__)
    assert out[0].tolist() == sums
    assert out[1].tolist() == before
    assert out[2].tolist() == exclusive(values, -100, max)
    assert out[3].tolist() == [1000 + b for b in before]
    assert out[4].tolist() == [1000 + total + s for s in sums]
    assert out[5].tolist() == list(itertools.accumulate(values, max))
    firsts = values[::ITEMS]
    expected = [[sum(firsts), s, total] for s in itertools.accumulate(firsts)]
    assert out[6].view(THREADS, 3).tolist() == expected
    rows = [[v % 2**32 for v in row] for row in composed.tolist()]
    assert [tuple(row[:2]) for row in rows] == exclusive(functions, (1, 0), compose)
    assert [tuple(row[2:]) for row in rows] == list(itertools.accumulate(functions, compose))


@pytest.mark.parametrize("algorithm", range(4), ids=["direct", "striped", "transpose", "warp transpose"])
@pytest.mark.parametrize("n", [N, 2 * N, 2 * N - 100, 1])
def test_block_load_and_store(cub, algorithm, n):
    x = torch.randn(n)
    padded = -(-n // N) * N
    arranged, out = empty(padded, dtype=torch.float32), empty(n + 8, dtype=torch.float32)
    cub.block_copy([*there(x), arranged, out], [algorithm])
    tile = torch.cat([x, torch.full((padded - n,), -1.0)]).view(-1, N)
    if algorithm == 1:
        tile = tile.view(-1, ITEMS, THREADS).transpose(1, 2).reshape(-1, N)
    assert torch.equal(arranged.cpu(), tile.flatten())
    assert torch.equal(out[:n].cpu(), x)
    assert (out[n:] == -77).all()


TYPES = [torch.int32, torch.uint32, torch.float32, torch.float64, torch.uint8, torch.int64]


def keys_of(number, n):
    dtype = TYPES[number]
    if dtype.is_floating_point:
        keys = torch.randn(n, generator=torch.Generator().manual_seed(number), dtype=dtype).round(decimals=1)
        keys[:4] = torch.tensor([float("inf"), -float("inf"), -0.0, 0.0])
        return keys
    return integers(n, 0 if dtype in (torch.uint32, torch.uint8) else -40, 40, seed=number).to(dtype)


@pytest.mark.parametrize("number", range(len(TYPES)), ids=str)
@pytest.mark.parametrize(("descending", "striped"), [(0, 0), (1, 0), (0, 1)])
def test_block_sort(cub, number, descending, striped):
    keys = keys_of(number, N)
    got, values = there(keys, torch.arange(N, dtype=torch.int32))
    cub.block_sort([got, values], [number, 0, 8 * keys.element_size(), descending, striped])
    wide = keys.to(torch.int64) if keys.dtype == torch.uint32 else keys
    order = torch.sort(wide, stable=True, descending=bool(descending)).indices
    assert torch.equal(got.cpu(), keys[order])
    assert torch.equal(values.cpu(), order.int())


def test_block_sort_by_some_bits(cub):
    keys = integers(N, 0, 4096)
    got, values = there(keys, torch.arange(N, dtype=torch.int32))
    cub.block_sort([got, values], [1, 4, 9, 0, 0])
    order = torch.sort(keys >> 4 & 31, stable=True).indices
    assert torch.equal(got.cpu(), keys[order])
    assert torch.equal(values.cpu(), order.int())


def test_other_collectives_of_blocks(cub):
    x = integers(N, 0, 8).sort().values
    heads, tails, counts, exchanged = empty(N), empty(N), empty(8), empty(N)
    cub.block_others([*there(x), heads, tails, counts, exchanged], [])
    differs = x[1:] != x[:-1]
    assert heads.tolist() == [1, *differs.int().tolist()]
    assert tails.tolist() == [*differs.int().tolist(), 1]
    assert counts.tolist() == torch.bincount(x, minlength=8).tolist()
    assert torch.equal(exchanged.cpu().view(THREADS, ITEMS).t().flatten(), x)


# ----------------------------------------------------------------------------------------------------------------------
# Whole arrays

SIZES = [1, 33, 1000]


@pytest.mark.parametrize("n", SIZES)
def test_device_reduce(cub, n):
    x = torch.randn(n)
    out = empty(4, dtype=torch.float32)
    cub.device_reduce([*there(x), out], [])
    expected = torch.tensor([x.double().sum(), x.max(), x.min(), x.double().sum() + 10])
    torch.testing.assert_close(out.cpu(), expected.float(), rtol=1e-5, atol=1e-5)


def test_a_long_sum_keeps_its_digits(cub):
    x = torch.full((3_000_000,), 0.1)
    out = empty(4, dtype=torch.float32)
    cub.device_reduce([*there(x), out], [])
    assert out[0].item() == pytest.approx(
        300_000, rel=1e-6
    )  # in order, float would be off by about a tenth of a percent


@pytest.mark.parametrize("n", SIZES)
def test_device_reduce_by_key(cub, n):
    keys, values = integers(n, 0, 3).sort().values, integers(n, seed=1)
    unique, sums, runs = empty(n), empty(n), empty(1)
    cub.device_reduce_by_key([*there(keys, values), unique, sums, runs], [])
    pairs = zip(keys.tolist(), values.tolist(), strict=True)
    expected = [(k, sum(v for _, v in g)) for k, g in itertools.groupby(pairs, lambda pair: pair[0])]
    assert runs.item() == len(expected)
    assert list(zip(unique.tolist(), sums.tolist(), strict=True))[: len(expected)] == expected


def test_device_segmented_reduce(cub):
    x, offsets = integers(100), torch.tensor([0, 10, 10, 33, 100], dtype=torch.int32)
    sums, most = empty(4), empty(4)
    cub.device_segmented_reduce([*there(x, offsets), sums, most], [])
    segments = [x[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]
    assert sums.tolist() == [sum(s) for s in segments]
    assert most.tolist() == [max([*s, -1000]) for s in segments]


@pytest.mark.parametrize("n", SIZES)
def test_device_scan(cub, n):
    x, keys = integers(n), integers(n, 0, 4, seed=5).sort().values
    out = empty(7, n)
    cub.device_scan([*there(x, keys), out], [])
    values = x.tolist()
    groups = [[v for _, v in g] for _, g in itertools.groupby(zip(keys.tolist(), values, strict=True), lambda p: p[0])]
    expected = [
        list(itertools.accumulate(values)),
        exclusive(values, 0, int.__add__),
        list(itertools.accumulate(values, max)),
        exclusive(values, -1000, max),
        [v for g in groups for v in itertools.accumulate(g)],
        [v for g in groups for v in exclusive(g, 0, int.__add__)],
        exclusive(values, 0, int.__add__),
    ]
    assert out.tolist() == expected


@pytest.mark.parametrize("number", range(len(TYPES)), ids=str)
@pytest.mark.parametrize("descending", [0, 1])
def test_device_sort(cub, number, descending):
    for n in SIZES:
        keys = keys_of(number, max(n, 4))
        values = torch.arange(len(keys), dtype=torch.int32)
        got, moved = empty(len(keys), dtype=torch.float64).to(keys.dtype), empty(len(keys))
        cub.device_sort([*there(keys, values), got, moved], [number, 0, 8 * keys.element_size(), descending])
        wide = keys.to(torch.int64) if keys.dtype == torch.uint32 else keys
        order = torch.sort(wide, stable=True, descending=bool(descending)).indices
        assert torch.equal(moved.cpu(), order.int())


def test_device_sort_by_some_bits(cub):
    keys = integers(500, 0, 4096)
    moved = empty(500)
    cub.device_sort([*there(keys, torch.arange(500, dtype=torch.int32)), empty(500), moved], [0, 4, 9, 0])
    assert torch.equal(moved.cpu(), torch.sort(keys >> 4 & 31, stable=True).indices.int())


def test_device_merge_sort(cub):
    keys = integers(700, 0, 1000)
    got, values = there(keys, torch.arange(700, dtype=torch.int32))
    cub.device_merge_sort([got, values], [])
    order = torch.sort(keys % 10, stable=True).indices
    assert torch.equal(got.cpu(), keys[order])
    assert torch.equal(values.cpu(), order.int())


def test_device_segmented_sort(cub):
    x, offsets = integers(100), torch.tensor([0, 10, 10, 33, 100], dtype=torch.int32)
    out = empty(100)
    cub.device_segmented_sort([*there(x, offsets), out], [])
    assert out.tolist() == [v for a, b in itertools.pairwise(offsets.tolist()) for v in sorted(x[a:b].tolist())]


@pytest.mark.parametrize("n", SIZES)
def test_device_select(cub, n):
    x, flags = integers(n, 0, 4), integers(n, 0, 2, seed=2)
    out, counts = empty(6, n), empty(5)
    cub.device_select([*there(x, flags), out, counts], [])
    values = x.tolist()
    odd = [v for v in values if v % 2]
    runs = [(k, len(list(g))) for k, g in itertools.groupby(values)]
    kept = [x[flags != 0].tolist(), odd, [k for k, _ in runs]]
    assert counts.tolist() == [*map(len, kept), len(odd), len(runs)]
    for row, expected in enumerate(kept):
        assert out[row, : len(expected)].tolist() == expected
    assert out[3].tolist() == odd + [v for v in values if v % 2 == 0][::-1]
    assert list(zip(out[4].tolist(), out[5].tolist(), strict=True))[: len(runs)] == runs


def test_device_histogram(cub):
    x = torch.cat([torch.rand(500) * 14 - 2, torch.tensor([0.0, 2.0, 10.0, 9.999, -0.1])])
    boundaries = torch.tensor([-1.0, 0.0, 0.5, 7.0])
    even, ranges = empty(5), empty(3)
    cub.device_histogram([*there(x, boundaries), even, ranges], [])
    inside = x[(x >= 0) & (x < 10)]
    assert even.tolist() == torch.bincount((inside / 2).long(), minlength=5).tolist()
    expected = [((x >= a) & (x < b)).sum().item() for a, b in itertools.pairwise(boundaries.tolist())]
    assert ranges.tolist() == expected


# ----------------------------------------------------------------------------------------------------------------------
# Of the simulator


@ON_SIMULATOR
def test_mistakes_are_named(cub):
    with pytest.raises(RuntimeError, match="cub::DeviceReduce::Reduce: d_in, 44 bytes, ends 4 bytes past the end"):
        cub.mistakes([], [])


@ON_SIMULATOR
def test_older_names(cub):
    x = integers(20)
    out = empty(4)
    cub.older_names([x, out], [])
    best = x.argmax().item()
    assert out.tolist() == [sum(range(5, 25)), (x**2).max().item(), best, x[best].item()]


def test_reuse_of_storage_needs_a_barrier():
    traced = load("cub", traced=True)
    x = integers(2 * THREADS)
    for with_barrier in (1, 0):
        out = torch.zeros(2, dtype=torch.int32)
        report = kernel_xray.xray(traced.reuse, [x, out], [with_barrier])
        assert {fault.kind for fault in report.faults} == (set() if with_barrier else {"race"})
    report = kernel_xray.xray(traced.block_scan, [integers(N), lines()[0], torch.zeros(7, N, dtype=torch.int32),
                                              torch.zeros(THREADS, 4, dtype=torch.int32)], [])  # fmt: skip
    assert not report.faults
    keys = keys_of(0, N)
    order = torch.sort(keys, stable=True).indices
    report = kernel_xray.xray(traced.block_sort, [keys, torch.arange(N, dtype=torch.int32)], [0, 0, 32, 0, 0])
    assert not report.faults
    assert torch.equal(keys, keys_of(0, N)[order])
