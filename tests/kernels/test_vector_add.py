"""vector_add.cu and hello_grid.cu on this machine's target; the wrong kernels must be caught."""

import pytest
import torch
from inputs import randn
from simt_programs import operators

import helpers
from helpers.ladder.checking.checker import CheckFailed, check
from helpers.ladder.pytorch.operators import library

VERSIONS = ["vector_add_simple", "vector_add_grid_stride", "vector_add"]
SIZES = [0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4096 * 128 + 3]
hello = operators(library, "hello_grid", "hello_grid.cu")


@pytest.fixture(scope="module")
def pair():
    return randn(2, max(SIZES) + 8).unbind(0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", SIZES)
def test_every_size(ops, pair, version, size):
    a, b = (t[:size] for t in pair)
    check(getattr(ops, version), a, b, reference=torch.add)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("first", "second"), [(1, 0), (0, 2), (1, 1), (3, 1), (4, 4)])
def test_slices_that_start_inside_16_bytes(ops, pair, version, first, second):
    a, b = pair
    check(getattr(ops, version), a[first : first + 1001], b[second : second + 1001], reference=torch.add)


@pytest.mark.parametrize("version", VERSIONS)
def test_shapes_nan_and_infinities_are_kept(ops, pair, version):
    a, b = (t[: 3 * 5 * 7].clone().view(3, 5, 7) for t in pair)
    a[0, 0, 0], a[1, 2, 3], b[2, 4, 6] = float("nan"), float("inf"), float("-inf")
    check(getattr(ops, version), a, b, reference=torch.add)


@pytest.mark.parametrize("version", VERSIONS)
def test_bad_input_is_refused_by_name(ops, pair, version):
    a, b = (t[:100] for t in pair)
    for x, y, message in (
        (a, b.double(), r"b must be float32, got float64; convert it with b.to\(torch.float32\)"),
        (a.half(), b, r"a must be float32, got float16"),
        (a[::2], b[:50], r"a must be contiguous, but is a strided view of shape \[50\]"),
        (a[:1].clone().expand(100).contiguous(), b[:1].expand(100), r"b must be contiguous"),
        (a, b[:99], r"the same shape, got \[100\] and \[99\]"),
        (a, b.view(10, 10), r"the same shape, got \[100\] and \[10, 10\]"),
    ):
        with pytest.raises(RuntimeError, match=message):
            getattr(ops, version)(x, y)


def test_the_off_by_one_guard_writes_one_element_too_far(wrong):
    for size, behind in ((1000, 2.0), (1024, 7.0)):
        ones = torch.ones(size + 1, device=helpers.device)
        out = torch.full((size + 1,), 7.0, device=helpers.device)
        wrong.add_guard_off_by_one(ones[:size], ones[:size], out[:size])
        assert bool((out[:size] == 2).all())
        assert out[size].item() == behind


def test_the_capped_grid_leaves_elements_unwritten(wrong, pair):
    a, b = pair
    with pytest.raises(CheckFailed, match=r"first +\[524288\]: .* got nan"):
        check(wrong.add_capped, a, b, torch.empty_like(a), reference=torch.add, out=[2])
    small = torch.empty_like(a[: 4096 * 128])
    check(wrong.add_capped, a[: 4096 * 128], b[: 4096 * 128], small, reference=torch.add, out=[2])


@pytest.mark.parametrize("threads", [1, 16, 256, 1024])
@pytest.mark.parametrize("size", [0, 1, 40, 1025])
def test_who_is_where(hello, size, threads):
    index = torch.arange(size, dtype=torch.int32, device=helpers.device)
    block, thread = torch.empty_like(index), torch.empty_like(index)
    check(hello.who_is_where, block, thread, threads, reference=lambda t: (index // t, index % t), out=[0, 1])


def test_who_is_where_refuses_what_cannot_be_launched(hello):
    block = torch.zeros(40, dtype=torch.int32, device=helpers.device)
    for thread, threads, message in (
        (block.clone(), 1025, r"invalid (configuration )?argument"),
        (block.clone(), 0, "threads must be 1 or more, got 0"),
        (block.long(), 16, "thread must be int32, got int64"),
    ):
        with pytest.raises(RuntimeError, match=message):
            hello.who_is_where(block, thread, threads)
    hello.who_is_where(block, block.clone(), 1024)  # a refused launch leaves no error behind


def test_hello_prints_a_line_for_each_thread(hello, capfd):
    hello.hello(torch.empty(0, device=helpers.device), 2, 3)
    lines = [line for line in capfd.readouterr().out.splitlines() if line]
    assert sorted(lines) == [f"block {b} of 2, thread {t} of 3" for b in range(2) for t in range(3)]
