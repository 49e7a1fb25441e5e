"""Hopper's units alone: where a tile lies, which waits return, a product, and the log of the ring."""

import pytest
import torch
from inputs import load
from simt_programs import operators
from test_hopper import for_hopper

import helpers
from helpers.paths import KERNELS

pytestmark = [pytest.mark.slow, for_hopper]
SOURCE = KERNELS / "hopper_units.cu"
units = operators(load, "hopper_units", SOURCE)
traced = operators(load, "hopper_units_traced", SOURCE, traced=True)


def matrix(rows, columns):
    torch.manual_seed(0)
    return torch.randn(rows, columns).to(helpers.device, torch.bfloat16)


def box(x, row, column):
    """The 8 x 64 elements of x at (row, column), with zeros outside."""
    return torch.nn.functional.pad(x.cpu(), (64, 64, 16, 16))[16 + row :, 64 + column :][:8, :64]


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 8), (-2, 16), (15, 64), (-9, 0), (0, -64), (5, -16)])
def test_a_tile_is_swizzled_and_zero_outside(units, row, column):
    x = matrix(20, 72)
    raw, to = units.copy_tile(x, row, column, 2, 8)
    groups = [[raw.cpu()[r, 8 * (g ^ r) : 8 * (g ^ r) + 8] for g in range(8)] for r in range(8)]
    assert torch.equal(torch.stack([torch.cat(each) for each in groups]), box(x, row, column))
    wanted = torch.zeros(20, 72, dtype=x.dtype)
    wanted[2:10, 8:72] = box(x, row, column)
    assert torch.equal(to.cpu(), wanted)


def test_a_store_past_the_edges_leaves_them_out(units):
    x = matrix(20, 72)
    _, to = units.copy_tile(x, 0, 0, 15, 64)
    wanted = torch.zeros(20, 72, dtype=x.dtype)
    wanted[15:, 64:] = x[:5, :8].cpu()
    assert torch.equal(to.cpu(), wanted)


@pytest.mark.parametrize("where", [(0, 4, 0, 0), (0, 0, 0, 4), (0, 0, -1, 0), (0, 0, 0, -8)])
def test_a_place_that_tma_refuses_is_refused(units, where):
    with pytest.raises(RuntimeError, match="column and to_column must be multiples of 8"):
        units.copy_tile(matrix(20, 72), *where)


def test_a_phase_needs_its_arrivals_and_its_bytes(units):
    returns = units.barrier_alone(matrix(8, 64)).tolist()  # a wait for parity 0, and for 1
    assert returns == [[0, 1], [0, 1], [1, 0], [1, 0], [1, 0], [0, 1]]


def test_a_product_and_what_its_descriptors_say(units):
    a, b = matrix(64, 16), matrix(16, 256)
    c, descriptors = units.product(a, b)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-5, atol=1e-5)
    fields = [[16 * (bits >> first & 0x3FFF) for first in (16, 32)] for bits in descriptors.tolist()]
    assert fields == [[16, 1024], [2048, 1024]]
    assert all(bits >> 62 & 3 == 1 for bits in descriptors.tolist())


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_the_ring_copies_and_logs_parities(units, steps):
    x = matrix(8 * steps, 64)
    out, log = units.ring(x, 0)
    assert torch.equal(out, x)
    rounds = [(step, step % 2, step // 2 % 2) for step in range(steps)]
    assert log.tolist() == [[step, stage, 1 - p, p, p, 1 - p] for step, stage, p in rounds]


def test_every_kernel_is_without_fault(traced):
    x = matrix(48, 64).cpu()
    calls = [(traced.copy_tile, x, -2, 16, 3, 8), (traced.barrier_alone, x), (traced.ring, x, 0)]
    calls.append((traced.product, matrix(64, 16).cpu(), matrix(16, 256).cpu()))
    for function, *arguments in calls:
        for seed in range(5):
            assert helpers.xray(function, *arguments, seed=seed).faults == []


def test_the_wrong_parity_is_a_fault_under_every_seed(traced):
    for seed in range(10):
        faults = helpers.xray(traced.ring, matrix(48, 64).cpu(), 1, seed=seed).faults
        assert faults and {fault.kind for fault in faults} <= {"deadlock", "race", "uninitialised-read"}
