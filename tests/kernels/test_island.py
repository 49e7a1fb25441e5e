"""Lesson 14's binding to NumPy, and how its wrong versions fail."""

import re

import numpy as np
import pytest
from simt_programs import operators

import helpers
from helpers.pages.museum.exhibit import LAUNCH_FAILED
from helpers.paths import KERNELS

pytestmark = pytest.mark.slow
island = operators(helpers.load, "island", [KERNELS / "island.cu"])
wrong = operators(helpers.load, "island_wrong", [KERNELS / "wrong" / "island.cu"])


def arrays(*shape):
    return np.random.default_rng(0).standard_normal((2, *shape), dtype=np.float32)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (255,), (257,), (3, 5), (100_003,)])
def test_it_adds(island, shape):
    a, b = arrays(*shape)
    out = island.add(np.asarray(a), np.asarray(b))
    assert out.shape == shape
    assert np.array_equal(out, a + b)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda a, b: (a.T, b), "a must be contiguous"),
        (lambda a, b: (a, b[:, ::2]), "b must be contiguous"),
        (lambda a, b: (a, b.astype(np.float64)), "b must be float32, got float64"),
        (lambda a, b: (a.astype(np.int32), b), "a must be float32, got int32"),
        (lambda a, b: (a, b[:1]), "the same shape"),
        (lambda a, b: (a, b.reshape(-1)), "the same shape"),
    ],
)
def test_what_it_cannot_add_it_refuses(island, spoil, message):
    with pytest.raises(ValueError, match=message):
        island.add(*spoil(*arrays(4, 6)))


def test_an_unchecked_launch_gives_zeros_and_leaves_its_error(wrong):
    ones = np.ones(1000, np.float32)
    assert not wrong.add_unchecked(ones, ones).any()
    assert re.fullmatch(LAUNCH_FAILED, wrong.last_error())
    assert wrong.last_error() == "no error"


def test_a_host_pointer_is_found():
    traced = helpers.load("island_wrong_traced", [KERNELS / "wrong" / "island.cu"], traced=True)
    ones = np.ones(1000, np.float32)
    with pytest.raises(helpers.KernelFault, match="out-of-bounds: reads 4 bytes"):
        traced.add_host_pointers(ones, ones, ones.copy())
