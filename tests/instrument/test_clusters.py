"""Clusters of blocks: indices, their barrier, arrivals at another block's barrier, refused launches."""

from itertools import product
from pathlib import Path

import pytest
import torch
from simt_programs import load_cases, operators, zeros
from test_hopper import for_hopper, in_the_simulator

import helpers
from kernel_xray.build import flags

pytestmark = [pytest.mark.slow, for_hopper]


def build(**options):
    name = "clusters_traced" if options else "clusters"
    return load_cases(Path(__file__).with_name("clusters.cu"), name, flags.SM_90A, **options)


cases = operators(build)


@pytest.mark.parametrize("grid", [(2, 1, 2), (6, 1, 2), (4, 3, 6)])
def test_indices_and_ranks(cases, grid):
    x, y, z = grid
    out = zeros(x * y * z, 3)
    cases.ranks([out], [*grid, 32])
    rows = [(k * x * y + j * x + i, k % 2 * 2 + i % 2, 32) for k, j, i in product(range(z), range(y), range(x))]
    assert out.tolist() == [list(row) for row in rows]


@in_the_simulator
def test_more_threads_than_run_together_are_refused(cases):
    out = zeros(4, 3)
    cases.ranks([out], [2, 1, 2, 512])
    assert out[:, 2].tolist() == [512] * 4
    with pytest.raises(RuntimeError, match=r"4 blocks of 544 threads; it runs clusters .* with 2048 threads"):
        cases.ranks([out], [2, 1, 2, 544])


@pytest.mark.parametrize("blocks", [2, 200])
def test_the_barrier_orders_what_blocks_do(cases, blocks):
    out = zeros(blocks)
    cases.exchange([out], [])
    assert (out == 22).all()


def test_each_block_has_its_shared_memory_and_its_barrier(cases):
    out = zeros(8, 2)
    cases.own([out], [])
    assert out.tolist() == [[32 * (rank + 1), 32 * (rank + 1) * rank] for rank in (0, 1, 2, 3)] * 2


def test_arrivals_at_the_barriers_of_both_blocks(cases):
    out = zeros(2)
    cases.arrivals([out], [5, True])
    assert out.tolist() == [5, 5]


@in_the_simulator
def test_arrivals_that_never_come_end_at_the_time_limit(cases, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    with pytest.raises(helpers.KernelFault, match="time limit"):
        cases.arrivals([zeros(2)], [1, False])


CROSSED = "31 of 32 wait at __syncthreads and 33 of 64 wait at the cluster's barrier"
NO_ROOM = "not supported by the simulator: .* 4 blocks of {} threads"
FAULTS = {  # the case, its tensors' shapes, its numbers, the error
    "an arrival at a block that has ended": ("gone", [], [0], "block 0 of the cluster has ended"),
    "an arrival at a block that is not there": ("gone", [], [2], "block 2 of a cluster of 2 blocks"),
    "a deadlock at both barriers": ("crossed", [], [], CROSSED),
    "no room for 33 threads": ("ranks", [(4, 3)], [2, 1, 2, 33], NO_ROOM.format(33)),
    "no room for 544 threads": ("ranks", [(4, 3)], [2, 1, 2, 544], NO_ROOM.format(544)),
}


@in_the_simulator
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_cause(cases, name):
    case, shapes, numbers, message = FAULTS[name]
    with pytest.raises(helpers.KernelFault, match=message):
        getattr(cases, case)([zeros(*shape) for shape in shapes], numbers)


@pytest.mark.parametrize("grid", [(3, 1, 2), (2, 1, 1)])
def test_a_grid_must_be_of_whole_clusters(cases, grid):
    with pytest.raises(RuntimeError, match="luster"):
        cases.ranks([zeros(6, 3)], [*grid, 32])


@in_the_simulator
def test_a_cluster_of_nine_blocks_is_too_large(cases):
    with pytest.raises(RuntimeError, match="cudaErrorInvalidClusterSize"):
        cases.nine([zeros(9)], [])


# Where tiles of 8 x 64 begin in a matrix of 20 x 72: inside, over its edges, outside
PLACES = [(0, 0), (3, 8), (-3, 0), (17, 16), (2, -8), (-5, -56), (15, 64), (2, -64), (20, 0), (0, 72), (-8, -8)]


def matrix():
    return torch.arange(1, 20 * 72 + 1, dtype=torch.int16).view(20, 72).to(helpers.device)


@pytest.mark.parametrize("place", PLACES)
def test_a_tile_has_zeros_for_what_is_outside_its_matrix(cases, place):
    row, column = place
    around = torch.nn.functional.pad(matrix(), (64, 64, 8, 8))
    out = torch.full((2, 8, 64), -1, dtype=torch.int16, device=helpers.device)
    cases.window([matrix(), out], [row, column])
    assert (out == around[8 + row : 16 + row, 64 + column : 128 + column]).all()


@pytest.mark.parametrize("place", [(row, column) for row, column in PLACES if min(row, column) >= 0])
def test_a_tile_is_stored_as_far_as_its_matrix_goes(cases, place):
    row, column = place
    around, changed = torch.nn.functional.pad(matrix(), (0, 64, 0, 8)), matrix()
    around[row : row + 8, column : column + 64] = torch.arange(512, dtype=torch.int16).view(8, 64)
    cases.paste([changed], [row, column])
    assert torch.equal(changed, around[:20, :72])


@in_the_simulator
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("case", "place", "message"),
    [
        ("window", (0, 1), "a tile begins at a column that is a multiple of 16 bytes"),
        ("paste", (0, 4), "a tile begins at a column that is a multiple of 16 bytes"),
        ("paste", (-1, 0), "a tile is stored from a negative row or column"),
        ("paste", (0, -8), "a tile is stored from a negative row or column"),
    ],
)
def test_where_tiles_cannot_begin(cases, traced, case, place, message):
    ops = build(traced=True) if traced else cases
    with pytest.raises(helpers.KernelFault, match=message):
        getattr(ops, case)([matrix(), *[torch.zeros(2, 8, 64, dtype=torch.int16)] * (case == "window")], [*place])


@in_the_simulator
def test_xrays_find_no_fault():
    traced = build(traced=True)
    test_indices_and_ranks(traced, (4, 3, 6))
    test_the_barrier_orders_what_blocks_do(traced, 10)
    test_arrivals_at_the_barriers_of_both_blocks(traced)
    test_a_tile_has_zeros_for_what_is_outside_its_matrix(traced, (-5, -56))


@in_the_simulator
def test_an_xray_names_what_is_wrong():
    traced = build(traced=True)
    with pytest.raises(helpers.KernelFault, match="requests block 2 of a cluster of 2 blocks"):
        traced.gone([], [2])
    with pytest.raises(helpers.KernelFault, match=CROSSED):
        traced.crossed([], [])
    with pytest.raises(helpers.KernelFault, match="2 of 64 wait at an mbarrier: for thread 0, 1 of 2 arrivals"):
        traced.arrivals([zeros(2)], [1, False])
