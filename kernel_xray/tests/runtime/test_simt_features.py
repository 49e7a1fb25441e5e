"""Each feature of CUDA C++ that the course relies on, on whichever target this machine has.

The kernels are in `cases/*.cu`; `case.h` there makes each CASE an operator of tensors and numbers. A test passes
tensors in, runs the case and compares what the kernel wrote with values computed here.
"""

import ctypes
from functools import reduce
from itertools import product
from operator import xor

import numpy as np
import pytest
import torch
from simt_programs import CASES, zeros

import kernel_xray

# The quick suite builds those alone; lessons and kernels/ bind, print, use groups and call the host's functions.
QUICK = ("warp", "memory", "atomics", "launch", "shared")
of_others = pytest.mark.slow


def by_name(cases):
    return [pytest.param(name, marks=() if cases[name][0].split(".")[0] in QUICK else of_others) for name in cases]


def tensor(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=kernel_xray.device)


def arange(n, dtype=torch.int32):
    return torch.arange(n, dtype=dtype, device=kernel_xray.device)


def run(built, operator, tensors, numbers=()):
    file, case = operator.split(".")
    getattr(built(file), case)(tensors, list(numbers))


# ----------------------------------------------------------------------------------------------------------------------
# Cases that fill one tensor


def indices(grid, block):
    """A row for each thread: threadIdx, blockIdx, blockDim, gridDim."""
    blocks, threads = (list(product(*map(range, reversed(size)))) for size in (grid, block))
    return [[*t[::-1], *b[::-1], *block, *grid] for b in blocks for t in threads]


def mask(lanes):
    return sum(1 << lane for lane in lanes)


def votes(i):
    lanes_below_12 = mask(range(1, 12, 2)) if i % 32 < 12 else 0
    return [mask(range(0, 32, 3)), i >= 32, i < 32, mask(LANES), lanes_below_12]


def shuffles(i):
    lane, first = i % 32, i - i % 32
    sources = [
        5, (lane + 1) % 32, lane - 3 if lane >= 3 else lane, lane + 3 if lane + 3 < 32 else lane, lane ^ 16,
        lane // 8 * 8 + 2, lane - 1 if lane % 4 >= 1 else lane, lane + 5 if lane % 16 + 5 < 16 else lane, lane ^ 1,
        37 % 32, 31,
    ]  # fmt: skip
    return [100 + first + source for source in sources]


def every_shuffle():
    """The lanes that shuffles read from, as the CUDA guide says: up and down keep their own value past the edge of a
    segment, xor reaches back to an earlier segment, never on to a later one."""
    rows = []
    for width, x in product((1, 2, 4, 8, 16, 32), LANES):
        ends = [(lane, lane - lane % width, lane - lane % width + width - 1) for lane in LANES]
        rows.append([first + x % width for _, first, _ in ends])
        rows.append([lane - x if lane - x >= first else lane for lane, first, _ in ends])
        rows.append([lane + x if lane + x <= last else lane for lane, _, last in ends])
        rows.append([lane ^ x if lane ^ x <= last else lane for lane, _, last in ends])
    return [*rows, [100 + 2 * (lane | 1) for lane in LANES]]


def matches_and_reductions(i):
    matches = [mask(k for k in LANES if k // 5 == i % 32 // 5), mask(LANES), 1, 0, 0, mask(range(i % 2, 32, 2))]
    return [*matches, sum(LANES), -20 % 2**32, -1 % 2**32, 0x40, 0b1111, reduce(xor, [3 * k for k in LANES])]


def tile_collectives(i):
    lane, first = i % 8, i - i % 8
    shuffled = [first + 3, i - 1 if lane >= 1 else i, i + 2 if lane < 6 else i, i ^ 1]
    return [*shuffled, 0b10101010, 1, 0b1111 if lane < 4 else 0b11110000, 8 * first + 28, first + 7]


LANES = range(32)
TYPES = [torch.int32, torch.float32, torch.float64, torch.int64, torch.uint32, torch.uint64]
TYPES += [torch.float16, torch.bfloat16]
SIZES = [((1, 1, 1), (1, 1, 1)), ((5, 1, 1), (33, 1, 1)), ((2, 3, 1), (8, 4, 1)), ((2, 3, 4), (5, 3, 2))]
FILLED = {  # the operator, its numbers, the tensor's type and values
    **{f"indices, {g}, {b}": ("launch.indices", [*g, *b], torch.int32, indices(g, b)) for g, b in SIZES},
    "arguments in braces": ("launch.braces", [], torch.int32, [3, 4, 4, 0, 9, 18, 8, 9, 3, 30]),
    "forms of a launch": ("launch.forms", [], torch.int32, [
        1, 6, 4 * 6, 4 * 2, 3 * 7, 6 * 4, 2 * 5, 6 * 7, 10, 6, 2 * 3, 4 * 2, 9, 0 + 1 + 2, 8 * 2, 2, ord('"'),
        1_000_000, 1, 0,
    ]),
    "arguments are copied for each thread": ("launch.by_value", [], torch.int32, [0, *range(11, 74)]),
    "shared memory of templates": ("shared.template_sums", [], torch.float64, [
        64 * 63 / 2, 64 * 63 / 8, 128, 256 * 255 / 2, 256 * 255 / 8, 512,
    ]),
    **{
        f"barrier votes, {n} of 100": ("shared.barrier_votes", [n], torch.int32, [[n, n == 100, n > 0]] * 100)
        for n in (0, 1, 37, 100)
    },
    "returned threads leave the barrier": ("shared.early_exit", [], torch.int32, [40] * 40 + [0] * 30),
    "more than 48 KB of shared memory": ("shared.large_dynamic", [], torch.int32, [*reversed(range(14 * 1024))]),
    **{
        f"shuffles of {dtype}": ("warp.shuffles", [number], dtype, [shuffles(i) for i in range(64)])
        for number, dtype in enumerate(TYPES)
    },
    "every shuffle": ("warp.every_shuffle", [], torch.int32, every_shuffle()),
    "votes and ballots": ("warp.votes", [], torch.uint32, [votes(i) for i in range(64)]),
    "the active mask forgets returned lanes": ("warp.active_mask", [], torch.uint32, [2**24 - 1] * 24 + [0] * 8),
    "__syncwarp orders shared memory": ("warp.sync_warp", [], torch.int32, [i * i + 1 for i in range(64)]),
    "match and reduce": ("warp.match_and_reduce", [], torch.uint32, [matches_and_reductions(i) for i in range(64)]),
    "makers of vectors": ("memory.makers", [], torch.float64, [
        1, -4, 250, 6, -7, 10, 60000, -14, 15, 4000000000, 19, 21, 2**40, 27, 28.5, 29.5, 31.5, 32.25, 33.25, 36,
    ]),
    "memory of the kernel's own": ("memory.allocate", [], torch.int32, [
        i * (i + 1) // 2 + 100 * (1 + 2 + 3 + 4) for i in range(40)
    ]),
    "clocks": ("memory.clocks", [], torch.int32, [1, 1]),
    "groups know their threads": ("groups.identity", [], torch.int32, [
        [48, 100 * (i // 24) + i % 24, 0, i % 32, i % 8, i // 8, 6, 8 + 48 + 24] for i in range(48)
    ]),
    "collectives of a tile": ("groups.tile_collectives", [], torch.int32, [tile_collectives(i) for i in range(64)]),
    "tiles of tiles, sizes at run time, scans": ("groups.more_of_tiles", [], torch.int32, [
        [i % 8 // 2, 4, i % 4, 4, i - i % 8, i % 8 + 1, 2 * (i % 8), i - i % 8 + 1] for i in range(32)
    ]),
    "collectives of coalesced threads": ("groups.odd_lanes", [], torch.int32, [
        [i // 2, 16, 11, max(i - 2, 1), min(i + 2, 31), 0x8002, 256] if i % 2 else [0] * 7 for i in range(32)
    ]),
    "groups of lanes with the same value": ("groups.partitions", [], torch.int32, [
        [i % 16 % 3, 3, i % 16 // 3, 6 - (i % 16 % 3 > 0), i % 16 < 4, 2, i // 16 * 16 + (i % 16 % 3 if i % 16 < 4 else
         i % 16 % 3 + (3 if i % 16 % 3 else 6)), 0, 16, i % 16 // 6, i // 16 * 16 + i % 16 // 6 * 6 + i % 16 % 3]
        for i in range(32)
    ]),
    "assertions that hold": ("output.assert_holds", [], torch.int32, [i + (i % 2 == 0) for i in range(8)]),
}  # fmt: skip


@pytest.mark.parametrize("name", by_name(FILLED))
def test_filled_tensor(built, name):
    operator, numbers, dtype, expected = FILLED[name]
    out = zeros(*np.shape(expected), dtype=dtype)
    run(built, operator, [out], numbers)
    assert out.tolist() == expected


# ----------------------------------------------------------------------------------------------------------------------
# Cases that compute one tensor from another


def floats(n):
    return torch.arange(float(n))


def declarations(x):
    tile = x.view(16, 16)
    return (tile.t() + tile.sum(1)[:, None] + tile.sum(0)[None, :] + 256 + 0.5 + 1).flatten()


def vectors(vector):
    x, y, z, w = vector.view(20, 4).unbind(1)
    rows = [torch.stack([x + y, y, z, z + w], 1), torch.stack([w, torch.full_like(w, 16), y, x], 1)]
    return torch.cat(rows).flatten()


COMPUTED = {  # the operator, its input, its result as a function of the input
    "shared declarations": ("shared.declarations", floats(256), declarations),
    "blocks have their own shared memory": (
        "shared.histogram", torch.arange(1001) * 7 % 8, lambda x: torch.bincount(x, minlength=8),
    ),
    **{
        f"dynamic shared memory of {n} threads": ("shared.dynamic", floats(n), lambda x: x.flip(0) + x.roll(-1) ** 2)
        for n in (1, 33, 1024)
    },
    "barriers in loops and functions": (
        "shared.scan", torch.arange(128) % 11, lambda x: torch.cat([x.cumsum(0), x.sum()[None]]),
    ),
    "block sum by shuffles": ("warp.block_sum", floats(3 * 256), lambda x: x.view(3, 256).sum(1)),
    "vector types": ("memory.vectors", floats(80), vectors),
    "packs of 16 bytes": ("memory.packs", torch.arange(128, dtype=torch.int16), lambda x: 2 * x),
    "groups synchronise": ("groups.sums", floats(128), lambda x: torch.cat([x.sum()[None], x.view(8, 16).sum(1)])),
    "current stream and guard": ("bindings.current_stream", torch.linspace(-1, 1, 100), lambda x: 3 * x),
}  # fmt: skip


@pytest.mark.parametrize("name", by_name(COMPUTED))
def test_computed_tensor(built, name):
    operator, x, result = COMPUTED[name]
    x, expected = (t.int() if t.dtype == torch.int64 else t for t in (x, result(x)))
    out = torch.zeros_like(expected, device=kernel_xray.device)
    run(built, operator, [x.to(kernel_xray.device), out])
    assert torch.equal(out.cpu(), expected)


# ----------------------------------------------------------------------------------------------------------------------
# Cases that leave one or several tensors with certain values

DOUBLES, INTS, BLOCKS = torch.arange(100).double() + 0.5, torch.arange(100).int(), torch.arange(5 * 64).int()
WAVE, HALVES = torch.linspace(-3, 3, 1000), [torch.zeros(2).half(), torch.zeros(2).bfloat16()]
SOME_LANES = torch.tensor([10 * (i ^ 2) if i % 2 else 10 * (i + 2) if i < 30 else -1 for i in range(32)])
LEFT = {  # the operator, what its tensors hold before and after
    "function objects and lambdas as arguments": ("launch.functors", [WAVE], [(3 * WAVE + 1.5).abs()]),
    "stream, launch bounds, unroll and grid stride": (
        "launch.stream_and_stride", [WAVE, torch.zeros(1000)], [WAVE, 4 * WAVE + 24],
    ),
    "static shared memory": ("shared.reverse", [BLOCKS], [BLOCKS.view(5, 64).flip(1).flatten()]),
    "dynamic shared memory of templates": (
        "shared.dynamic_template",
        [DOUBLES, 0 * DOUBLES, INTS, 0 * INTS], [DOUBLES, DOUBLES.flip(0), INTS, INTS.flip(0)],
    ),
    "shuffles of some lanes": (
        "warp.partial_masks", [0 * INTS[:32], 0 * INTS[:20]], [SOME_LANES, torch.full((20,), 19 + 7 + 20)],
    ),
    "atomic addition of pairs": ("atomics.add_pairs", HALVES, [torch.tensor([40, 20]), torch.tensor([80, 10])]),
    "events": ("host_api.events", [0 * INTS[:32]], [torch.ones(32)]),
}  # fmt: skip


@pytest.mark.parametrize("name", by_name(LEFT))
def test_what_tensors_are_left_with(built, name):
    operator, before, after = LEFT[name]
    tensors = [x.to(kernel_xray.device, copy=True) for x in before]
    run(built, operator, tensors)
    for got, expected in zip(tensors, after, strict=True):
        exact = {} if got.dtype == torch.float32 else {"rtol": 0, "atol": 0}
        torch.testing.assert_close(got.cpu(), expected.to(got.dtype), **exact)


# ----------------------------------------------------------------------------------------------------------------------
# warp.cu


def test_absent_lanes_are_not_waited_for(built):
    """A mask may name lanes that have returned, or that a block of 20 threads never had: as on hardware."""
    out = zeros(32, 2, dtype=torch.uint32)
    built("warp").absent_lanes([out], [])
    assert out[:31, 0].tolist() == [2**31 - 1] * 31
    assert out[:20, 1].tolist() == [2**20 - 1] * 20
    assert out[31].tolist() == [0, 0]


# ----------------------------------------------------------------------------------------------------------------------
# atomics.cu


ADDED = [torch.int32, torch.uint32, torch.uint64, torch.float32, torch.float64, torch.half, torch.bfloat16]


@pytest.mark.parametrize(("which", "dtype"), list(enumerate(ADDED)))
def test_atomic_add(built, which, dtype):
    cells = zeros(2, dtype=dtype)
    built("atomics").add([cells], [which])
    total = sum(t % 7 for t in range(200))
    if dtype == torch.bfloat16:  # 8 significant bits: the sum stalls at 512 on the way, whatever the order
        assert 256 <= cells[0].item() <= total + 4
    else:
        assert cells[0].item() == total
    assert cells[1].item() == 200


def test_atomic_addition_to_nan_ends(built):
    cells = tensor([torch.nan, 0], torch.float32)
    built("atomics").add([cells], [ADDED.index(torch.float32)])
    assert cells.isnan().tolist() == [True, False]


@pytest.mark.skipif(
    kernel_xray.target != "simulator" and torch.cuda.get_device_capability() < (9, 0),
    reason="needs compute capability 9.0",
)
def test_atomic_add_of_vectors(built):
    twos, fours = zeros(2, dtype=torch.float32), zeros(8, dtype=torch.float32)
    built("atomics").add_vectors([twos, fours], [])
    assert twos.tolist() == [40.0, 80.0]
    assert fours[4:].tolist() == [40.0, 80.0, 120.0, 160.0]
    assert fours.view(torch.int32)[0] == 156  # the last thread's old value


@pytest.mark.parametrize(("which", "dtype"), list(enumerate([torch.int32, torch.uint32, torch.int64, torch.uint64])))
def test_atomic_integer_functions(built, which, dtype):
    bits = 64 if dtype in (torch.int64, torch.uint64) else 32
    unsigned = dtype in (torch.uint32, torch.uint64)
    all_ones = 2**bits - 1 if unsigned else -1
    cells = tensor([5000, 3, all_ones, 0, 0], dtype)
    built("atomics").integers([cells], [which])
    # An unsigned t - 100 wraps around for the first hundred threads: -1 is the largest of them.
    largest = 2**bits - 1 if unsigned else 99
    assert cells.tolist() == [1000 - 199, largest, all_ones - (2**20 - 1), 2**20 - 1, reduce(xor, range(200))]


def test_atomics_return_what_was_there(built):
    out = zeros(6, 200)
    ints, unsigneds = tensor([10, 500]), tensor([0, 999, 0, 0], torch.uint32)
    longs, floats = zeros(1, dtype=torch.uint64), zeros(1, dtype=torch.float32)
    built("atomics").tickets([out, ints, unsigneds, longs, floats], [])
    tickets = out.sort(1).values.tolist()
    upwards = list(range(200))
    assert tickets[0] == [10 + t for t in upwards]
    assert tickets[1] == [301 + t for t in upwards]
    assert tickets[2] == upwards
    assert tickets[3] == [800 + t for t in upwards]
    assert tickets[4] == tickets[5] == upwards
    assert ints.tolist() == [210, 300]
    assert unsigneds.tolist() == [200, 799, 200 % 7, (-200) % 7]


def test_atomic_exchange(built):
    cells = [zeros(1, dtype=dtype) for dtype in (torch.int32, torch.uint64, torch.float32)]
    outs = [zeros(200, dtype=cell.dtype) for cell in cells]
    built("atomics").exchange([t for pair in zip(cells, outs, strict=True) for t in pair], [])
    for cell, out in zip(cells, outs, strict=True):
        assert sorted([*out.tolist(), cell.item()]) == list(range(201))


def test_compare_and_swap(built):
    product_, maximum = tensor([1.0], torch.float64), tensor([-5.0], torch.float32)
    small, failed = zeros(1, dtype=torch.uint16), zeros(2)
    built("atomics").swap([product_, maximum, small, failed], [])
    assert product_.item() == 2.0**10
    assert maximum.item() == max((t * 37) % 101 for t in range(40))
    assert 1 <= small.item() <= 40  # thread 0's swap succeeds; then 1's, if it comes later
    assert failed.tolist() == [0, 40]


@pytest.mark.skipif(
    kernel_xray.target != "simulator" and tuple(map(int, (torch.version.cuda or "0.0").split("."))) < (12, 8),
    reason="needs nvcc of CUDA 12.8",
)
def test_built_in_atomics_of_nvcc(built):
    cells, total = tensor([0, 0, 0, 1000, -1, 0, 0, 0]), zeros(1, dtype=torch.float32)
    bits, pairs = zeros(1, dtype=torch.uint64), tensor([5, 7, 0, 0, 0, 0])
    built("atomics").built_ins([cells, total, bits, pairs, zeros(1)], [])
    assert cells.tolist() == [200, -400, 199, 0, -8, reduce(xor, range(200)), 600, 200]
    assert (total.item(), bits.item(), pairs.tolist()) == (200, 2**64 - 1, [5, 7, 5, 7, 200, 400])


def test_last_block_sums_up(built):
    x = torch.arange(20.0, device=kernel_xray.device)
    partial, arrived, out, scoped = torch.zeros_like(x), zeros(1), zeros(1, dtype=torch.float32), zeros(2)
    built("atomics").last_block([x, partial, arrived, out, scoped], [])
    assert out.item() == (x * x).sum().item()
    assert arrived.item() == 0
    assert scoped.tolist()[1] == 7


# ----------------------------------------------------------------------------------------------------------------------
# memory.cu


def test_constant_memory_and_device_variables(built):
    out, table = zeros(16, dtype=torch.float32), zeros(4, dtype=torch.float32)
    built("memory").constants([out, table], [])
    coefficients = [0.0, 0.5, 1.0, 100.0, 200.0, 2.5, 3.0, 3.5]
    expected = [coefficients[i % 8] + 10 * (i % 4 + 1) + [2, 3, 5, 7, 11][i % 5] for i in range(16)]
    assert out.tolist() == expected
    assert table.tolist() == [2 * v for v in expected[:4]]


def test_halves_in_memory(built):
    x = torch.randn(256, generator=torch.Generator().manual_seed(0)).to(kernel_xray.device, torch.float16)
    y, copy = torch.ones_like(x), torch.zeros_like(x)
    built("memory").half_memory([x, y, copy], [])
    assert torch.equal(y, (0.5 * x.double() + 1).half())
    pairs = x.view(32, 4, 2)
    assert torch.equal(copy.view(32, 4, 2), torch.stack([pairs[..., 0], pairs.flip(0)[..., 1]], -1))


def test_loads_and_stores_with_hints(built):
    x, out = torch.arange(32.0, device=kernel_xray.device), zeros(11, 32, dtype=torch.float32)
    wide, wide_out = arange(128), zeros(128)
    built("memory").hints([x, out, wide, wide_out], [])
    expected = torch.stack([x, *(x + k for k in range(1, 11))])
    assert torch.equal(out, expected)
    assert torch.equal(wide_out, wide + tensor([0, 1, 0, 0] * 32))


# ----------------------------------------------------------------------------------------------------------------------
# groups.cu


@of_others
def test_coalesced_threads(built):
    counter, out = zeros(1), zeros(64)
    built("groups").coalesced([counter, out], [])
    took = out[::3].tolist()
    assert counter.item() == len(took) == 22
    assert sorted(took) == list(range(22))
    assert set(out[1::3].tolist()) | set(out[2::3].tolist()) == {-1}


# ----------------------------------------------------------------------------------------------------------------------
# host_api.cu


HOST_API = ["round_trip", "async_and_pinned", "two_dimensions", "device_queries", "occupancy", "errors"]


@of_others
@pytest.mark.parametrize("case", HOST_API)
def test_host_api(built, case):
    getattr(built("host_api"), case)([], [])  # the case raises at the first call with a wrong result


# cudaErrorInvalidValue and cudaErrorInvalidConfiguration. For a wrong configuration CUDA gave the second up to version
# 12 and gives the first in version 13 (measured on an H200); the simulator keeps the second, which is more precise.
INVALID_VALUE = [1]
INVALID_CONFIGURATION = [9] if kernel_xray.target == "simulator" else [1, 9]
BAD_LAUNCHES = {
    "1,025 threads": ([1, 1, 1, 1025, 1, 1, 0], INVALID_CONFIGURATION),
    "33 x 32 threads": ([1, 1, 1, 33, 32, 1, 0], INVALID_CONFIGURATION),
    "65 threads in z": ([1, 1, 1, 1, 1, 65, 0], INVALID_CONFIGURATION),
    "no thread": ([1, 1, 1, 0, 1, 1, 0], INVALID_CONFIGURATION),
    "no block": ([0, 1, 1, 32, 1, 1, 0], INVALID_CONFIGURATION),
    "no block in y": ([4, 0, 1, 32, 1, 1, 0], INVALID_CONFIGURATION),
    "65,536 blocks in y": ([1, 65536, 1, 1, 1, 1, 0], INVALID_CONFIGURATION),
    "65,536 blocks in z": ([1, 1, 65536, 1, 1, 1, 0], INVALID_CONFIGURATION),
    "2^31 blocks": ([2**31, 1, 1, 1, 1, 1, 0], INVALID_CONFIGURATION),
    "48 KB and a byte, not requested": ([1, 1, 1, 1, 1, 1, 48 * 1024 + 1], INVALID_VALUE),
    "a megabyte of shared memory": ([1, 1, 1, 1, 1, 1, 2**20], INVALID_VALUE),
}


@of_others
@pytest.mark.parametrize("name", BAD_LAUNCHES)
def test_a_launch_that_cannot_run(built, name):
    numbers, errors = BAD_LAUNCHES[name]
    out = zeros(2)
    built("host_api").bad_launch([out], [*numbers, *errors])
    assert out.tolist() == [0, 1]  # the bad launch wrote nothing, the good one after it ran


@of_others
@pytest.mark.parametrize(
    "numbers", [[1, 1, 1, 1024, 1, 1, 0], [1, 65535, 1, 1, 1, 1, 0], [1, 1, 1, 4, 4, 64, 48 * 1024]]
)
def test_a_launch_at_the_limit(built, numbers):
    out = zeros(2)
    built("host_api").bad_launch([out], [*numbers, 0])
    assert out.tolist() == [1, 1]


# ----------------------------------------------------------------------------------------------------------------------
# bindings.cu


@of_others
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operator_with_the_key_cuda(built, dtype):
    x = torch.linspace(-1, 1, 1000, dtype=dtype, device=kernel_xray.device)
    assert torch.equal(built("bindings").scale(x, 2.5), 2.5 * x)
    assert built("bindings").scale(x[:0], 2.5).shape == (0,)


@of_others
def test_checks_of_an_operator(built):
    scale = built("bindings").scale
    with pytest.raises(RuntimeError, match="x must be float32 or float64"):
        scale(zeros(4), 2.0)
    with pytest.raises(RuntimeError, match="x must be contiguous"):
        scale(zeros(4, 4, dtype=torch.float32).t(), 2.0)
    with pytest.raises(NotImplementedError, match=r"Meta|meta"):
        scale(torch.zeros(4, device="meta"), 2.0)


@of_others
@pytest.mark.parametrize("check", ["c10_launch_check", "stable_launch_check"])
def test_launch_checks_raise(built, check):
    x = torch.ones(1024, device=kernel_xray.device)
    out = torch.zeros_like(x)
    message = (
        "invalid configuration argument" if kernel_xray.target == "simulator" else r"invalid (configuration )?argument"
    )
    for threads in (1025, 0):
        with pytest.raises(RuntimeError, match=message):
            getattr(built("bindings"), check)([x, out], [threads])
    assert torch.equal(out, torch.zeros_like(x))
    getattr(built("bindings"), check)([x, out], [1024])  # the error is not left behind
    assert torch.equal(out, 2 * x)


@of_others
def test_checks_of_calls_raise(built):
    with pytest.raises(RuntimeError, match="out of memory"):
        built("bindings").c10_check([], [2**60])
    built("bindings").c10_check([], [2**10])


@of_others
def test_random_numbers_of_pytorchs_generator(built):
    def drawn():
        out = zeros(512, dtype=torch.float32)
        built("bindings").uniform([out], [])
        return out.cpu()

    torch.manual_seed(1)
    first, second = drawn(), drawn()
    torch.manual_seed(1)
    assert torch.equal(drawn(), first) and not torch.equal(first, second)
    assert abs(first.mean() - 0.5) < 0.05 and len(first.unique()) > 500


# ----------------------------------------------------------------------------------------------------------------------
# output.cu and standards.cu


@of_others
def test_printf(built, capfd):
    built("output").print([], [])
    lines = capfd.readouterr().out.splitlines()
    for block in range(2):
        assert f"block {block} thread 2 of 4" in lines
    assert lines.count("float 1.500 and 1.5e+03, hex 0xff, char q, percent %, text words") == 2
    assert lines.count("long -1234567890123 unsigned 1234567890123") == 2
    assert len(lines) == 6


@of_others
@pytest.mark.parametrize("standard", [17, 20])
def test_language_standards(standard):
    name, flag = f"simt_case_standard_{standard}", f"-std=c++{standard}"
    source = str(CASES / "standards.cu")
    path = kernel_xray.load(name, [source], extra_cflags=[flag], extra_cuda_cflags=[flag], is_python_module=False)
    out = (ctypes.c_int * 10)(*[-1] * 10)
    assert ctypes.CDLL(path).run_standards(out) == standard
    assert list(out) == [60, -4, 6, 81, 9] + ([4, 8, 6, 42, 1] if standard == 20 else [0] * 5)
