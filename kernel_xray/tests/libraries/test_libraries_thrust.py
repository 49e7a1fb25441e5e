"""Thrust on the simulator's memory, or on a GPU's: vectors, algorithms, and kernels on the same data."""

import itertools
from pathlib import Path

import pytest
import torch
from cuda_libraries import empty, integers, load
from simt_programs import operators

import kernel_xray
from kernel_xray.build import libraries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        kernel_xray.target == "simulator" and libraries.cccl() is None,
        reason="needs NVIDIA's headers: pip install nvidia-cuda-cccl",
    ),
]

thrust = operators(load, "thrust")


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_sort(thrust, n):
    x = integers(n).to(kernel_xray.device)
    up, down, places = empty(n), empty(n), empty(n)
    thrust.sort([x, up, down, places], [])
    order = torch.sort(x, stable=True)
    assert torch.equal(up, order.values)
    assert torch.equal(down, order.values.flip(0))
    assert torch.equal(places, order.indices.int())


def test_reductions(thrust):
    x = integers(777).to(kernel_xray.device)
    out = empty(7)
    thrust.reductions([x, out], [])
    weighted = (x * torch.arange(1, 778, device=x.device)).sum()
    squares = (x * x).sum().item()
    odd = (x % 2 != 0).sum().item()
    first_least = x.tolist().index(x.min().item())
    assert out.tolist() == [x.sum(), x.max(), squares, weighted, odd, first_least, squares]


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="the case writes its result from the host")
def test_a_long_sum_keeps_its_digits(thrust):
    out = torch.zeros(1)
    thrust.long_sum([out], [])
    assert out.item() == pytest.approx(300_000, rel=1e-6)


@pytest.mark.parametrize("n", [1, 500])
def test_scans(thrust, n):
    x = integers(n).to(kernel_xray.device)
    out = empty(3, n)
    thrust.scans([x, out], [])
    values = x.tolist()
    assert out[0].tolist() == list(itertools.accumulate(values))
    assert out[1].tolist() == list(itertools.accumulate(values[:-1], initial=5))
    assert out[2].tolist() == list(itertools.accumulate(values, max))


def test_transforms(thrust):
    x, y = torch.randn(2, 300, device=kernel_xray.device)
    out = empty(3, 300, dtype=torch.float32)
    thrust.transforms([x, y, out], [])
    torch.testing.assert_close(out[0], 2.5 * x + y)
    torch.testing.assert_close(out[1], x + y)
    assert torch.equal(out[2], x.flip(0))


def test_by_key(thrust):
    keys, values = (
        integers(200, 0, 9).sort().values.to(kernel_xray.device),
        integers(200, seed=1).to(kernel_xray.device),
    )
    unique, sums, count = empty(200), empty(200), empty(1)
    thrust.by_key([keys, values, unique, sums, count], [])
    expected = torch.zeros(9, dtype=torch.int32, device=keys.device).index_add(0, keys, values)
    assert count.item() == 9
    assert unique[:9].tolist() == list(range(9))
    assert torch.equal(sums[:9], expected)


def test_memory(thrust):
    thrust.memory([], [])  # the case raises at the first wrong answer


def test_vectors_and_kernels(thrust):
    x = torch.randn(1000, device=kernel_xray.device)
    sorted_, halved = torch.empty_like(x), torch.empty_like(x)
    thrust.vectors_and_kernels([x, sorted_, halved], [0])
    expected = 2 * x
    expected[0] += 1
    torch.testing.assert_close(sorted_, expected.sort().values)
    torch.testing.assert_close(halved, sorted_ / 2)


def test_in_a_kernel(thrust):
    rows = integers(33 * 17).view(33, 17).to(kernel_xray.device)
    expected = rows.sort(1).values
    thrust.in_kernel([rows], [33, 17])
    assert torch.equal(rows, expected)


def test_random_numbers(thrust):
    """The engine is minstd_rand: x becomes 48271 x modulo 2^31 - 1."""
    out = empty(100, dtype=torch.float32)
    thrust.random([out], [])
    x, expected = 7, []
    for _ in range(100):
        x = 48271 * x % (2**31 - 1)
        expected.append((x - 1) / (2**31 - 2))
    assert out.tolist() == pytest.approx(expected, abs=1e-6)


def test_traced():
    traced = load("thrust", traced=True)
    x = torch.randn(1000)
    sorted_, halved = torch.empty_like(x), torch.empty_like(x)
    report = kernel_xray.xray(traced.vectors_and_kernels, [x, sorted_, halved], [0])
    assert not report.faults
    torch.testing.assert_close(halved, sorted_ / 2)
    report = kernel_xray.xray(traced.vectors_and_kernels, [x, sorted_, halved], [1])
    assert {fault.kind for fault in report.faults} == {"out-of-bounds"}


# ----------------------------------------------------------------------------------------------------------------------
# What an include becomes


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="of the simulator")
def test_without_the_headers(monkeypatch):
    assert libraries.directive("thrust/sort.h") is None
    monkeypatch.setattr(libraries, "cccl", lambda: None)
    for header in ("thrust/sort.h", "thrust/execution_policy.h", "cuda/std/array", "nv/target"):
        assert "pip install nvidia-cuda-cccl" in libraries.directive(header)
    for header in ("cuda/atomic", "cub/cub.cuh", "vector", "cuda_runtime.h", "thrust.h"):
        assert libraries.directive(header) is None
    assert libraries.compile_flags({Path("k.cu"): "#include <thrust/sort.h>"}) == []
