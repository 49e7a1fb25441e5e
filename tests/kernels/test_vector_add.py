"""vector_add.cu and hello_grid.cu on this machine's target; the wrong kernels must be caught."""

import contextlib

import pytest
import torch

import helpers
from helpers.checking.checker import CheckFailed, check
from helpers.machine.paths import KERNELS

VERSIONS = ["vector_add_simple", "vector_add_grid_stride", "vector_add"]
SIZES = [0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4096 * 128 + 3]


def load(name, path):
    return helpers.load(name=name, sources=[KERNELS / path], is_python_module=False)


@pytest.fixture(scope="module")
def ops():
    return load("vector_add", "vector_add.cu")


@pytest.fixture(scope="module")
def wrong():
    return load("vector_add_wrong", "wrong/vector_add.cu")


@pytest.fixture(scope="module")
def pair():
    torch.manual_seed(0)
    return tuple(torch.randn(2, max(SIZES) + 8).to(helpers.device).unbind(0))


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
    add = getattr(ops, version)
    a, b = (t[:100] for t in pair)
    with pytest.raises(RuntimeError, match=r"b must be float32, got float64; convert it with b.to\(torch.float32\)"):
        add(a, b.double())
    with pytest.raises(RuntimeError, match=r"a must be float32, got float16"):
        add(a.half(), b)
    with pytest.raises(RuntimeError, match=r"a must be contiguous, but is a strided view of shape \[50\]"):
        add(a[::2], b[:50])
    with pytest.raises(RuntimeError, match=r"b must be contiguous"):
        add(a[:1].clone().expand(100).contiguous(), b[:1].expand(100))
    with pytest.raises(RuntimeError, match=r"the same shape, got \[100\] and \[99\]"):
        add(a, b[:99])
    with pytest.raises(RuntimeError, match=r"the same shape, got \[100\] and \[10, 10\]"):
        add(a, b.view(10, 10))


def on_a_busy_side_stream(add, ones):
    """1 + 1 by `add(x, y, out)` on a side stream (GPU) that fills x only after some work; its first element."""
    side = torch.cuda.stream(torch.cuda.Stream()) if helpers.target == "gpu" else contextlib.nullcontext()
    size = 4096 if helpers.target == "gpu" else 64
    late, out = torch.zeros_like(ones), torch.zeros_like(ones)
    busy = torch.rand(size, size, device=helpers.device)
    synchronise()
    with side:
        for _ in range(20):
            busy = busy @ busy
        late.fill_(1)
        add(late, ones, out)
    synchronise()
    return out[0].item()


def synchronise():
    if helpers.target == "gpu":
        torch.cuda.synchronize()


@pytest.mark.parametrize("version", VERSIONS)
def test_launches_follow_the_current_stream(ops, wrong, version):
    ones = torch.ones(1000, device=helpers.device)
    assert on_a_busy_side_stream(lambda x, y, out: out.copy_(getattr(ops, version)(x, y)), ones) == 2
    # On a GPU the wrong launcher overtakes the fill, unless it is delayed too; the simulator has one queue.
    attempts = [on_a_busy_side_stream(wrong.add_default_stream, ones) for _ in range(5)]
    assert (1 in attempts) == (helpers.target == "gpu")


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
def test_who_is_where(size, threads):
    hello = load("hello_grid", "hello_grid.cu")
    index = torch.arange(size, dtype=torch.int32, device=helpers.device)
    block, thread = torch.empty_like(index), torch.empty_like(index)
    check(hello.who_is_where, block, thread, threads, reference=lambda t: (index // t, index % t), out=[0, 1])


def test_who_is_where_refuses_what_cannot_be_launched():
    hello = load("hello_grid", "hello_grid.cu")
    block = torch.zeros(40, dtype=torch.int32, device=helpers.device)
    with pytest.raises(RuntimeError, match=r"invalid (configuration )?argument"):
        hello.who_is_where(block, block.clone(), 1025)
    with pytest.raises(RuntimeError, match="threads must be 1 or more, got 0"):
        hello.who_is_where(block, block.clone(), 0)
    with pytest.raises(RuntimeError, match="thread must be int32, got int64"):
        hello.who_is_where(block, block.long(), 16)
    hello.who_is_where(block, block.clone(), 1024)  # a refused launch leaves no error behind


def test_hello_prints_a_line_for_each_thread(capfd):
    hello = load("hello_grid", "hello_grid.cu")
    hello.hello(torch.empty(0, device=helpers.device), 2, 3)
    lines = [line for line in capfd.readouterr().out.splitlines() if line]
    assert sorted(lines) == [f"block {b} of 2, thread {t} of 3" for b in range(2) for t in range(3)]
