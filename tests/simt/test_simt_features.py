"""Each feature of CUDA C++ that the course relies on, on whichever target this machine has.

The kernels are in `cases/*.cu`; `case.h` there makes each CASE an operator of tensors and numbers. A test passes
tensors in, runs the case and compares what the kernel wrote with values computed here.
"""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import product
from operator import xor
from pathlib import Path

import pytest
import torch

import helpers

CASES = Path(__file__).parent / "cases"
FILES = ["bindings", "warp", "memory", "atomics", "launch", "shared", "groups", "host_api", "output"]
CUDA_FLAGS = ["--extended-lambda", "--expt-relaxed-constexpr"]
# PyTorch switches the operators and conversions of the 16-bit types off for nvcc; these are the usual way back.
HALVES = [f"-U__CUDA_NO_{part}__" for part in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS")]
HALVES += ["-U__CUDA_NO_BFLOAT16_CONVERSIONS__"]


@pytest.fixture(scope="module")
def built():
    """A function from a file of FILES to its operators. All are built; a failure fails its own tests."""

    def build(name):
        flags = CUDA_FLAGS + (HALVES if name == "atomics" else [])
        return helpers.load(
            f"simt_case_{name}", [str(CASES / f"{name}.cu")], extra_cuda_cflags=flags, is_python_module=False
        )

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        futures = {name: pool.submit(build, name) for name in FILES}
        yield lambda name: futures[name].result()


def zeros(*shape, dtype=torch.int32):
    return torch.zeros(*shape, dtype=dtype, device=helpers.device)


def tensor(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=helpers.device)


def arange(n, dtype=torch.int32):
    return torch.arange(n, dtype=dtype, device=helpers.device)


# ----------------------------------------------------------------------------------------------------------------------
# launch.cu


@pytest.mark.parametrize(
    ("grid", "block"), [((1, 1, 1), (1, 1, 1)), ((5, 1, 1), (33, 1, 1)), ((2, 3, 1), (8, 4, 1)), ((2, 3, 4), (5, 3, 2))]
)
def test_indices(built, grid, block):
    expected = [
        (tx, ty, tz, bx, by, bz, *block, *grid)
        for bz, by, bx in product(*map(range, reversed(grid)))
        for tz, ty, tx in product(*map(range, reversed(block)))
    ]
    out = zeros(len(expected), 12)
    built("launch").indices([out], [*grid, *block])
    assert out.tolist() == [list(row) for row in expected]


def test_arguments_in_braces(built):
    out = zeros(10)
    built("launch").braces([out], [])
    assert out.tolist() == [3, 4, 4, 0, 9, 18, 8, 9, 3, 30]


def test_forms_of_a_launch(built):
    out = zeros(20)
    built("launch").forms([out], [])
    expected = [1, 6, 4 * 6, 4 * 2, 3 * 7, 6 * 4, 2 * 5, 6 * 7, 10, 6, 2 * 3, 4 * 2, 9, 0 + 1 + 2, 8 * 2, 2]
    assert out.tolist() == [*expected, ord('"'), 1_000_000, 1, 0]


def test_arguments_are_copied_for_each_thread(built):
    out = zeros(64)
    built("launch").by_value([out], [])
    assert out.tolist() == [0] + [10 + i for i in range(1, 64)]


def test_function_objects_and_lambdas_as_arguments(built):
    x = torch.linspace(-3, 3, 200, device=helpers.device)
    expected = (3 * x + 1.5).abs()
    built("launch").functors([x], [])
    torch.testing.assert_close(x, expected)


def test_stream_launch_bounds_unroll_and_grid_stride(built):
    x = torch.linspace(0, 1, 1000, device=helpers.device)
    out = torch.zeros_like(x)
    built("launch").stream_and_stride([x, out], [])
    torch.testing.assert_close(out, 4 * x + 24)


# ----------------------------------------------------------------------------------------------------------------------
# shared.cu


def test_static_shared_memory(built):
    data = arange(5 * 64)
    built("shared").reverse([data], [])
    assert torch.equal(data.view(5, 64), arange(5 * 64).view(5, 64).flip(1))


def test_shared_declarations(built):
    x = torch.arange(256.0, device=helpers.device)
    out = torch.zeros_like(x)
    built("shared").declarations([x, out], [])
    tile = x.view(16, 16)
    expected = tile.t() + tile.sum(1)[:, None] + tile.sum(0)[None, :] + 256 + 0.5 + 1
    assert torch.equal(out.view(16, 16), expected)


def test_shared_memory_of_templates(built):
    out = zeros(6, dtype=torch.float64)
    built("shared").template_sums([out], [])
    assert out.tolist() == [64 * 63 / 2, 64 * 63 / 8, 128, 256 * 255 / 2, 256 * 255 / 8, 512]


def test_blocks_have_their_own_shared_memory(built):
    values = (arange(1001) * 7) % 8
    counts = zeros(8)
    built("shared").histogram([values, counts], [])
    assert torch.equal(counts, torch.bincount(values, minlength=8).int())


@pytest.mark.parametrize("n", [1, 33, 1024])
def test_dynamic_shared_memory(built, n):
    x = torch.arange(float(n), device=helpers.device)
    out = torch.zeros_like(x)
    built("shared").dynamic([x, out], [])
    torch.testing.assert_close(out, x.flip(0) + x.roll(-1) ** 2)


def test_dynamic_shared_memory_of_templates(built):
    doubles, ints = arange(100, torch.float64) + 0.5, arange(100)
    out = [torch.zeros_like(doubles), torch.zeros_like(ints)]
    built("shared").dynamic_template([doubles, out[0], ints, out[1]], [])
    assert torch.equal(out[0], doubles.flip(0))
    assert torch.equal(out[1], ints.flip(0))


def test_more_than_48_kilobytes(built):
    out = zeros(14 * 1024)
    built("shared").large_dynamic([out], [])
    assert torch.equal(out, arange(14 * 1024).flip(0))


@pytest.mark.parametrize("threshold", [0, 1, 37, 100])
def test_barrier_votes(built, threshold):
    out = zeros(100, 3)
    built("shared").barrier_votes([out], [threshold])
    assert out.tolist() == [[threshold, threshold == 100, threshold > 0]] * 100


def test_returned_threads_leave_the_barrier(built):
    out = zeros(70)
    built("shared").early_exit([out], [])
    assert out.tolist() == [40] * 40 + [0] * 30


def test_barriers_in_loops_and_functions(built):
    x, out = arange(128) % 11, zeros(129)
    built("shared").scan([x, out], [])
    assert torch.equal(out[:128], x.cumsum(0).int())
    assert out[128] == x.sum()


# ----------------------------------------------------------------------------------------------------------------------
# warp.cu


def shuffle_rows():
    rows = []
    for i in range(64):
        lane, first = i % 32, i - i % 32
        from_lanes = [
            5,
            (lane + 1) % 32,
            lane - 3 if lane >= 3 else lane,
            lane + 3 if lane + 3 < 32 else lane,
            lane ^ 16,
            lane // 8 * 8 + 2,
            lane - 1 if lane % 4 >= 1 else lane,
            lane + 5 if lane % 16 + 5 < 16 else lane,
            lane ^ 1,
            37 % 32,
        ]
        rows.append([100 + first + source for source in from_lanes])
    return rows


@pytest.mark.parametrize(
    ("which", "dtype"),
    list(enumerate([torch.int32, torch.float32, torch.float64, torch.int64, torch.uint32, torch.uint64])),
)
def test_shuffles(built, which, dtype):
    out = zeros(64, 10, dtype=dtype)
    built("warp").shuffles([out], [which])
    assert out.tolist() == shuffle_rows()


def test_shuffles_of_some_lanes(built):
    some, short = zeros(32), zeros(20)
    built("warp").partial_masks([some, short], [])
    expected = [10 * (i ^ 2) if i % 2 else 10 * (i + 2) for i in range(32)]
    expected[30] = -1
    assert some.tolist() == expected
    assert short.tolist() == [19 + 7 + 20] * 20


def test_block_sum_by_shuffles(built):
    x = torch.arange(3 * 256.0, device=helpers.device)
    out = zeros(3, dtype=torch.float32)
    built("warp").block_sum([x, out], [])
    assert torch.equal(out, x.view(3, 256).sum(1))


def test_votes_and_ballots(built):
    out = zeros(64, 5, dtype=torch.uint32)
    built("warp").votes([out], [])
    thirds = sum(1 << lane for lane in range(0, 32, 3))
    odd = sum(1 << lane for lane in range(1, 12, 2))
    for i, row in enumerate(out.tolist()):
        assert row == [thirds, i >= 32, i < 32, 0xFFFFFFFF, odd if i % 32 < 12 else 0]


def test_active_mask_forgets_returned_lanes(built):
    out = zeros(32, dtype=torch.uint32)
    built("warp").active_mask([out], [])
    assert out.tolist() == [0x00FFFFFF] * 24 + [0] * 8


def test_syncwarp_orders_shared_memory(built):
    out = zeros(64)
    built("warp").sync_warp([out], [])
    assert out.tolist() == [i * i + 1 for i in range(64)]


def test_absent_lanes_are_not_waited_for(built):
    """A mask may name lanes that have returned, or that a block of 20 threads never had: as on hardware."""
    out = zeros(32, 2, dtype=torch.uint32)
    built("warp").absent_lanes([out], [])
    assert out[:31, 0].tolist() == [2**31 - 1] * 31
    assert out[:20, 1].tolist() == [2**20 - 1] * 20
    assert out[31].tolist() == [0, 0]


def test_match_and_reduce(built):
    out = zeros(64, 12, dtype=torch.uint32)
    built("warp").match_and_reduce([out], [])
    full, lanes = 0xFFFFFFFF, range(32)
    for i, row in enumerate(out.tolist()):
        lane = i % 32
        assert row == [
            sum(1 << k for k in lanes if k // 5 == lane // 5),
            full,
            1,
            0,
            0,
            sum(1 << k for k in lanes if k % 2 == lane % 2),
            sum(lanes),
            (-20) % 2**32,
            (-1) % 2**32,
            0x40,
            0b1111,
            reduce(xor, [3 * k for k in lanes]),
        ]


# ----------------------------------------------------------------------------------------------------------------------
# atomics.cu


@pytest.mark.parametrize(
    ("which", "dtype"),
    list(
        enumerate([torch.int32, torch.uint32, torch.uint64, torch.float32, torch.float64, torch.half, torch.bfloat16])
    ),
)
def test_atomic_add(built, which, dtype):
    cells = zeros(2, dtype=dtype)
    built("atomics").add([cells], [which])
    total = sum(t % 7 for t in range(200))
    if dtype == torch.bfloat16:  # 8 significant bits: the sum stalls at 512 on the way, whatever the order
        assert 256 <= cells[0].item() <= total + 4
    else:
        assert cells[0].item() == total
    assert cells[1].item() == 200


def test_atomic_add_of_pairs(built):
    halves, bfloats = zeros(2, dtype=torch.float16), zeros(2, dtype=torch.bfloat16)
    built("atomics").add_pairs([halves, bfloats], [])
    assert halves.tolist() == [40.0, 20.0]
    assert bfloats.tolist() == [80.0, 10.0]


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


def test_last_block_sums_up(built):
    x = torch.arange(20.0, device=helpers.device)
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


def test_vector_types(built):
    x, out = torch.arange(80.0, device=helpers.device), zeros(2 * 80, dtype=torch.float32)
    built("memory").vectors([x, out], [])
    x, y, z, w = x.view(20, 4).unbind(1)
    assert torch.equal(out[:80].view(20, 4), torch.stack([x + y, y, z, z + w], 1))
    assert torch.equal(out[80:].view(20, 4), torch.stack([w, torch.full_like(w, 16), y, x], 1))


def test_makers_of_vectors(built):
    out = zeros(20, dtype=torch.float64)
    built("memory").makers([out], [])
    expected = [
        1,
        -4,
        250,
        6,
        -7,
        10,
        60000,
        -14,
        15,
        4000000000,
        19,
        21,
        2**40,
        27,
        28.5,
        29.5,
        31.5,
        32.25,
        33.25,
        36,
    ]
    assert out.tolist() == expected


def test_packs_of_16_bytes(built):
    x, out = arange(128, torch.int16), zeros(128, dtype=torch.int16)
    built("memory").packs([x, out], [])
    assert torch.equal(out, 2 * x)


def test_loads_and_stores_with_hints(built):
    x, out = torch.arange(32.0, device=helpers.device), zeros(11, 32, dtype=torch.float32)
    wide, wide_out = arange(128), zeros(128)
    built("memory").hints([x, out, wide, wide_out], [])
    expected = torch.stack([x, *(x + k for k in range(1, 11))])
    assert torch.equal(out, expected)
    assert torch.equal(wide_out, wide + tensor([0, 1, 0, 0] * 32))


def test_memory_of_the_kernels_own(built):
    out = zeros(40)
    built("memory").allocate([out], [])
    assert out.tolist() == [i * (i + 1) // 2 + 100 * (1 + 2 + 3 + 4) for i in range(40)]


def test_clocks(built):
    out = zeros(2)
    built("memory").clocks([out], [])
    assert out.tolist() == [1, 1]


# ----------------------------------------------------------------------------------------------------------------------
# groups.cu


def test_groups_know_their_threads(built):
    out = zeros(48, 8)
    built("groups").identity([out], [])
    for i, row in enumerate(out.tolist()):
        y, x = divmod(i, 24)
        assert row == [48, 100 * y + x, 0, i % 32, i % 8, i // 8, 6, 8 + 48 + 24]


def test_groups_synchronise(built):
    x, out = torch.arange(128.0, device=helpers.device), zeros(9, dtype=torch.float32)
    built("groups").sums([x, out], [])
    assert out.tolist() == [x.sum().item(), *x.view(8, 16).sum(1).tolist()]


def test_collectives_of_a_tile(built):
    out = zeros(64, 9)
    built("groups").tile_collectives([out], [])
    for i, row in enumerate(out.tolist()):
        lane, first = i % 8, i - i % 8
        assert row == [
            first + 3,
            i - 1 if lane >= 1 else i,
            i + 2 if lane < 6 else i,
            i ^ 1,
            0b10101010,
            1,
            0b1111 if lane < 4 else 0b11110000,
            8 * first + 28,
            first + 7,
        ]


def test_coalesced_threads(built):
    counter, out = zeros(1), zeros(64)
    built("groups").coalesced([counter, out], [])
    took = out[::3].tolist()
    assert counter.item() == len(took) == 22
    assert sorted(took) == list(range(22))
    assert set(out[1::3].tolist()) | set(out[2::3].tolist()) == {-1}


# ----------------------------------------------------------------------------------------------------------------------
# host_api.cu


@pytest.mark.parametrize("case", ["round_trip", "async_and_pinned", "two_dimensions", "device_queries", "errors"])
def test_host_api(built, case):
    getattr(built("host_api"), case)([], [])  # the case raises at the first call with a wrong result


def test_host_api_occupancy(built):
    built("host_api").occupancy([], [])


def test_host_api_events(built):
    x = zeros(32)
    built("host_api").events([x], [])
    assert x.tolist() == [1] * 32


# cudaErrorInvalidValue and cudaErrorInvalidConfiguration. For a wrong configuration CUDA gave the second up to version
# 12 and gives the first in version 13 (measured on an H200); the simulator keeps the second, which is more precise.
INVALID_VALUE = [1]
INVALID_CONFIGURATION = [9] if helpers.target == "simulator" else [1, 9]
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


@pytest.mark.parametrize("name", BAD_LAUNCHES)
def test_a_launch_that_cannot_run(built, name):
    numbers, errors = BAD_LAUNCHES[name]
    out = zeros(2)
    built("host_api").bad_launch([out], [*numbers, *errors])
    assert out.tolist() == [0, 1]  # the bad launch wrote nothing, the good one after it ran


@pytest.mark.parametrize(
    "numbers", [[1, 1, 1, 1024, 1, 1, 0], [1, 65535, 1, 1, 1, 1, 0], [1, 1, 1, 4, 4, 64, 48 * 1024]]
)
def test_a_launch_at_the_limit(built, numbers):
    out = zeros(2)
    built("host_api").bad_launch([out], [*numbers, 0])
    assert out.tolist() == [1, 1]


# ----------------------------------------------------------------------------------------------------------------------
# bindings.cu


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operator_with_the_key_cuda(built, dtype):
    x = torch.linspace(-1, 1, 1000, dtype=dtype, device=helpers.device)
    assert torch.equal(built("bindings").scale(x, 2.5), 2.5 * x)
    assert built("bindings").scale(x[:0], 2.5).shape == (0,)


def test_checks_of_an_operator(built):
    scale = built("bindings").scale
    with pytest.raises(RuntimeError, match="x must be float32 or float64"):
        scale(zeros(4), 2.0)
    with pytest.raises(RuntimeError, match="x must be contiguous"):
        scale(zeros(4, 4, dtype=torch.float32).t(), 2.0)
    with pytest.raises(NotImplementedError, match=r"Meta|meta"):
        scale(torch.zeros(4, device="meta"), 2.0)


def test_current_stream_and_guard(built):
    x = torch.linspace(-1, 1, 100, device=helpers.device)
    out = torch.zeros_like(x)
    built("bindings").current_stream([x, out], [])
    assert torch.equal(out, 3 * x)


@pytest.mark.parametrize("check", ["c10_launch_check", "stable_launch_check"])
def test_launch_checks_raise(built, check):
    x = torch.ones(1024, device=helpers.device)
    out = torch.zeros_like(x)
    message = (
        "invalid configuration argument" if helpers.target == "simulator" else r"invalid (configuration )?argument"
    )
    for threads in (1025, 0):
        with pytest.raises(RuntimeError, match=message):
            getattr(built("bindings"), check)([x, out], [threads])
    assert torch.equal(out, torch.zeros_like(x))
    getattr(built("bindings"), check)([x, out], [1024])  # the error is not left behind
    assert torch.equal(out, 2 * x)


def test_checks_of_calls_raise(built):
    with pytest.raises(RuntimeError, match="out of memory"):
        built("bindings").c10_check([], [2**60])
    built("bindings").c10_check([], [2**10])


# ----------------------------------------------------------------------------------------------------------------------
# output.cu and standards.cu


def test_printf(built, capfd):
    built("output").print([], [])
    lines = capfd.readouterr().out.splitlines()
    for block in range(2):
        assert f"block {block} thread 2 of 4" in lines
    assert lines.count("float 1.500 and 1.5e+03, hex 0xff, char q, percent %, text words") == 2
    assert lines.count("long -1234567890123 unsigned 1234567890123") == 2
    assert len(lines) == 6


def test_assertions_that_hold(built):
    out = zeros(8)
    built("output").assert_holds([out], [])
    assert out.tolist() == [i + (i % 2 == 0) for i in range(8)]


@pytest.mark.parametrize("standard", [17, 20])
def test_language_standards(standard):
    name, flag = f"simt_case_standard_{standard}", f"-std=c++{standard}"
    source = str(CASES / "standards.cu")
    path = helpers.load(name, [source], extra_cflags=[flag], extra_cuda_cflags=[flag], is_python_module=False)
    out = (ctypes.c_int * 10)(*[-1] * 10)
    assert ctypes.CDLL(path).run_standards(out) == standard
    assert list(out) == [60, -4, 6, 81, 9] + ([4, 8, 6, 42, 1] if standard == 20 else [0] * 5)
