"""X-rays of clusters, mbarriers, TMA and wgmma: small kernels, then the rungs of matmul with planted mistakes."""

import functools
import re
from pathlib import Path
from random import Random

import pytest
import torch
from inputs import load, mistaken
from simt_programs import line_marked, load_cases, operators
from test_hopper import BARRIERS_NOT_THERE_YET, CLUSTER_MISTAKES, SPLIT_MISTAKES, WGMMA_MISTAKES

from helpers import xray
from helpers.ladder.catalogue.matmul import RUNGS
from helpers.paths import KERNELS
from kernel_xray.build import flags
from kernel_xray.machine import toolchain
from kernel_xray.runtime.libsimt import is_clang

HERE = Path(__file__).resolve().parent
UNITS = HERE / "units.cu"


def marked(name):
    return line_marked(UNITS, name)


units = operators(load_cases, UNITS, "xray_units", flags.SM_90A, traced=True)


# -- Small kernels: kind, a part of the message ------------------------------------------------------------------------

CASES = {
    "pair": ("race", r"a read of tensors\[1\] .* races with the write by thread .* of block .1, 0, 0.: nothing orders"),
    "hand_over": ("race", "a read of a shared array of 128 bytes races with the write by thread"),
    "reuse": ("race", "a read of a shared array of 128 bytes races with the write by thread"),
    "no_init": ("uninitialised-read", "8 bytes of a shared array of 8 bytes"),
    "too_many": ("divergent-barrier", "more threads arrive at an mbarrier than it was initialised for"),
    "stuck": ("deadlock", "32 of 32 wait at an mbarrier: for thread 0, 1 of 32 arrivals and 0 bytes have not come"),
    "outside": ("out-of-bounds", "a shared address outside the block's shared memory"),
    "number": ("divergent-barrier", "a wait names a phase by its parity, which is 0 or 1: the number of the phase"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_found_and_its_fixed_twin_is_silent(units, name):
    (kind, message), case = CASES[name], getattr(units, name)
    for seed in range(10):
        (fault,) = xray(case, [torch.arange(256.0), torch.zeros(256)], [False], seed=seed).faults
        assert (fault.kind, fault.line) == (kind, marked(name))
        assert re.search(message, fault.message)
        assert not xray(case, [torch.arange(256.0), torch.zeros(256)], [True], seed=seed).faults


# What is wrong with a tile's way through shared memory, as tile_kernel numbers it: kind, line, a part of the message
TILES = {
    1: ("race", "add", "a read of the dynamic shared memory races with the load of a tile"),
    2: ("deadlock", "bytes", "64 of 64 wait at an mbarrier"),
    3: ("race", "store", "a store of a tile from .* the write by .*: no fence makes what threads write known"),
    4: ("race", "store", "a store of a tile from .* the write by thread .* of the same block: nothing orders"),
    5: ("race", "store", "may still read shared memory: it has to commit the store and wait for it"),
    6: ("race", "matrix", r"a write to tensors\[1\] .* with the store of a tile by thread .0, 0, 0. of the same block"),
    7: ("misaligned", "load", "a tile in shared memory begins at a multiple of 128 bytes"),
    8: ("race", "load", "a load of a tile into .* the write by .*: no fence makes what threads write known"),
    9: ("out-of-bounds", "load", "writes 16 bytes just past the end of the dynamic shared memory"),
}


def tiles():
    return torch.arange(16 * 64, dtype=torch.int16).view(16, 64), torch.zeros(16, 64, dtype=torch.int16)


@pytest.mark.parametrize("wrong", TILES)
def test_what_can_go_wrong_with_a_tile(units, wrong):
    kind, line, message = TILES[wrong]
    for seed in range(10):
        faults = xray(units.tile, [*tiles()], [16, 8, wrong], seed=seed).faults
        found = [fault.message for fault in faults if (fault.kind, fault.line) == (kind, marked(line))]
        assert any(re.search(message, text) for text in found), faults


@pytest.mark.parametrize(("rows", "row", "stored"), [(16, 0, 32), (16, 8, 32), (12, 8, 16), (8, 8, 0)])
def test_a_tile_is_loaded_whole_and_stored_as_far_as_the_matrix_goes(units, rows, row, stored):
    source, target = tiles()
    report = xray(units.tile, [source, target], [rows, row, 0])
    assert not report.faults
    inside = slice(row, min(row + 8, rows))
    assert torch.equal(target[inside], source[inside] + 1)
    assert target.count_nonzero() == target[inside].count_nonzero()
    moved = [r for r in report.lines if r.kind.startswith("tile")]
    counted = {(r.kind, r.line): (r.requests, r.sectors, r.received, r.ideal_sectors) for r in moved}
    assert counted == {
        ("tile load", marked("load")): (1, 32, 32, stored),  # zeros come too
        ("tile store", marked("store")): (1, stored, 0, stored),
    }


def test_rows_that_begin_within_a_sector_cost_more(units):
    source, target = torch.zeros(16, 72, dtype=torch.int16), torch.zeros(16, 72, dtype=torch.int16)
    report = xray(units.tile, [source, target], [16, 0, 0])
    (load,) = [r for r in report.lines if r.kind == "tile load"]
    assert (load.size, load.sectors, load.ideal_sectors) == (1024, 4 * 4 + 4 * 5, 32)  # every other row begins at 16


def test_a_tile_map_that_promises_more_rows_than_there_are(units):
    source, target = tiles()
    (fault,) = xray(units.tile, [source[:12], target], [16, 8, 0]).faults
    assert (fault.kind, fault.line) == ("out-of-bounds", marked("load"))
    assert "just past the end of tensors[0] (12x64 int16)" in fault.message


def test_the_report_shows_tiles_and_draws_lanes(units):
    report = xray(units.tile, [*tiles()], [16, 0, 0], seed=0)
    assert "tile load, 1024 bytes     1.0         1     32        32 sectors" in str(report)
    assert "tile store, 1024 bytes" in report._repr_html_()
    assert "shared load" in report.plot().description
    with pytest.raises(ValueError, match="no access was recorded on line"):
        report.plot(line=marked("load"))


# -- Random programs of four warps, each judged by what must have happened before what ---------------------------------

END, READ, WRITE, ARRIVE, WAIT, FENCE, LOAD, STORE, STORE_WAIT = range(9)
WARPS, STEPS, PLACES, BARRIERS = 4, 16, 3, 4


def random_program(random):
    """Steps (warp, what, which) in an order in which they can happen: who waits comes after those who arrive."""
    steps, waits = [], []
    for _ in range(random.randint(4, 20)):
        what = random.choice([READ, WRITE, WRITE, ARRIVE, ARRIVE, WAIT, WAIT, FENCE, LOAD, STORE, STORE_WAIT])
        which = random.randrange(PLACES) if what in (READ, WRITE, STORE) else random.randrange(BARRIERS)
        if what == LOAD:
            which += BARRIERS * random.randrange(PLACES)
        steps.append((random.randrange(WARPS), what, which))
    for barrier in range(BARRIERS):
        last = max((i for i, step in enumerate(steps) if arrives_at(step) == barrier), default=-1)
        waits += [i for i, step in enumerate(steps) if step[1:] == (WAIT, barrier) and (i < last or last < 0)]
    steps = [s for i, s in enumerate(steps) if i not in waits]
    for warp in range(WARPS):  # within what a warp can hold, and no store outlives the block
        own = [s for s in steps if s[0] == warp]
        if len(own) >= STEPS:
            return random_program(random)
        if any(s[1] == STORE for s in own):
            steps.append((warp, STORE_WAIT, 0))
    return steps


def arrives_at(step):
    return step[2] if step[1] == ARRIVE else step[2] % BARRIERS if step[1] == LOAD else None


def has_race(steps):
    """Whether two accesses of a tile, one of them a write, are not ordered, or lack a fence that a unit needs."""
    after = [set() for _ in range(4 * len(steps))]  # of each step, and of the unit that does it, what comes later
    for i, (warp, what, which) in enumerate(steps):
        unit = len(steps) + i
        for j in range(i + 1, len(steps)):
            other, later, where = steps[j]
            if other == warp or (later == WAIT and arrives_at(steps[i]) == where):
                after[i].add(j)
            if (what == LOAD and later == WAIT and which % BARRIERS == where) or (
                what == STORE and later == STORE_WAIT and other == warp
            ):
                after[unit].add(j)
        if what in (LOAD, STORE):
            after[i].add(unit)
    for i in reversed(range(len(steps))):  # a step's later ones come later in the list: theirs are complete
        for node in (len(steps) + i, i):
            for j in list(after[node]):
                after[node] |= after[j]
    accesses = []  # node, tile, writes, unit
    for i, (warp, what, which) in enumerate(steps):
        if what in (READ, WRITE):
            accesses.append((i, which, what == WRITE, False))
        elif what in (LOAD, STORE):
            tile = which // BARRIERS if what == LOAD else which
            accesses.append((len(steps) + i, tile, what == LOAD, True))
            if what == STORE:  # to where all of this warp's go; no wait tells when it is done
                accesses.append((3 * len(steps) + i, -1 - warp, True, True))
    fences = [i for i, (_, what, _) in enumerate(steps) if what == FENCE]
    for first, tile, writes, unit in accesses:
        for second, other, also_writes, other_unit in accesses:
            if first == second or tile != other or not (writes or also_writes):
                continue
            if second not in after[first] and first not in after[second]:
                return True
            if second in after[first] and writes and not unit and other_unit:
                if not any(f in after[first] and second in after[f] for f in fences):
                    return True
    return False


# One half finds every kind of wrong verdict that both find; the other is for kinds that nobody has thought of.
@pytest.mark.slow  # 600 launches; test_pipeline.py has a mistake of each kind
@pytest.mark.parametrize("half", [0, 1])
def test_random_programs_are_judged_by_what_they_order(units, half):
    verdicts = {True: 0, False: 0}
    for seed in range(half, 600, 2):
        random = Random(seed)
        steps = random_program(random)
        program = torch.zeros(WARPS, STEPS, 2, dtype=torch.int32)
        for warp in range(WARPS):
            for i, (_, what, which) in enumerate(s for s in steps if s[0] == warp):
                program[warp, i] = torch.tensor([what, which])
        arrivals = [max(1, sum(arrives_at(s) == barrier for s in steps)) for barrier in range(BARRIERS)]
        tile, stored = torch.zeros(8, 64, dtype=torch.int16), torch.zeros(8 * WARPS, 64, dtype=torch.int16)
        report = xray(units.program, [tile, stored, torch.tensor(arrivals, dtype=torch.int32), program], [], seed=seed)
        assert {fault.kind for fault in report.faults} == ({"race"} if has_race(steps) else set()), (seed, steps)
        verdicts[has_race(steps)] += 1
    assert min(verdicts.values()) >= 40, verdicts


# -- The rungs ---------------------------------------------------------------------------------------------------------


def operands(m, n, k):
    torch.manual_seed(0)
    return torch.randn(m, k).bfloat16(), torch.randn(k, n).bfloat16()


@functools.cache
def traced(name):
    return getattr(load(f"{name}_traced", KERNELS / RUNGS[name], traced=True), name)


@pytest.fixture(scope="module", params=["matmul_wgmma", "matmul_cluster"])
def rung(request):
    return request.param, traced(request.param)


# The largest builds of the course. The quick suite has their units one by one, above and in lesson 11, and together in
# test_pipeline.py.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul_cluster", "matmul_wgmma", "matmul_split"])
@pytest.mark.parametrize("shape", [(256, 256, 640), (129, 264, 72), (1, 8, 8)])
def test_a_rung_has_no_fault_and_is_right(name, shape):
    a, b = operands(*shape)
    for seed in range(3):
        report = xray(traced(name), a, b, seed=seed)
        assert not report.faults
        torch.testing.assert_close(report.result.float(), a.float() @ b.float(), rtol=2**-7, atol=1e-3)


@pytest.mark.slow
def test_a_cluster_loads_half_as_much_of_b(rung):
    name, matmul = rung
    report = xray(matmul, *operands(256, 256, 640))
    assert not report.faults
    sectors, blocks = {}, 2
    for line in report.lines:
        if line.kind == "tile load":
            sectors["stage.b" in line.source] = line.sectors
            receivers = blocks if "load_tile_for" in line.source else 1
            assert line.received == receivers * line.sectors
    assert sectors[False] == blocks * 128 * 640 * 2 / 32
    assert sectors[True] == (1 if name == "matmul_cluster" else 2) * 640 * 256 * 2 / 32


@pytest.mark.slow
@pytest.mark.skipif(toolchain.find_nvcc() is None, reason="nvcc, which tells the registers, is not installed")
def test_occupancy_is_of_the_code_for_9_0a(rung):
    (found,) = xray(rung[1], *operands(128, 256, 64)).occupancy("9.0")
    assert (found.registers, found.blocks, found.warps) == (168, 1, 12)
    assert "(1 block, 12 of 64 warps" in str(found)


# What the simulator's fast mode and the result do not show: kind, a part of the line that is named (of a race, either
# end may be), good, bad
WGMMA, LOAD_A, LOAD_B = "hopper::wgmma", "hopper::load_tile(stage.a", "hopper::load_tile_for"
PANEL, SENT, ADDED = "hopper::store_tile", "hopper::send_bytes", "shared.received["
EITHER = ("hopper::init(full[stage]", "hopper::wait(shared.full", LOAD_B)
NO_FENCE = ("  hopper::fence_before_store();\n", "")
NOT_WRITTEN = ("before_store();\n  __syncwarp();", "before_store();")
NOT_TOGETHER = ("or arrive at its barriers.\n  hopper::cluster_sync();", "or arrive at its barriers.")
RELEASED = ("hopper::wgmma_wait<1>", "hopper::wgmma_wait<2>")
MISTAKES = {
    "matmul_wgmma": {
        "init seen by chance": ("race", EITHER, "__syncthreads();  // no thread waits at a b", "//"),
        "a stage released too soon": ("race", WGMMA, *RELEASED),
        "a stage read too soon": ("race", WGMMA, "hopper::wait(shared.full[pipe.stage], pipe.parity);", ""),
        "a stage filled too soon": ("race", LOAD_A, *WGMMA_MISTAKES["stage filled too soon"]),
    },
    "matmul_cluster": {
        "no fence after init": ("race", EITHER if is_clang() else LOAD_B, "    hopper::fence_init();\n", ""),
        "barriers not there yet": ("race", EITHER, *BARRIERS_NOT_THERE_YET),
        "a stage released too soon": ("race", WGMMA, *RELEASED),
        "no fence before a store": ("race", PANEL, *NO_FENCE),
        "a warp's panel not written yet": ("race", PANEL, *NOT_WRITTEN),
        "a panel overwritten too soon": ("race", PANEL, "store_wait<kBuffers - 1>()", "store_wait<kBuffers>()"),
        "one lane alone has waited": ("race", PANEL, "kBuffers - 1>();\n    __syncwarp();", "kBuffers - 1>();"),
        "a store outlives its block": ("race", PANEL, "  hopper::store_wait<0>();", ""),
        "both blocks write one tile": ("race", PANEL, *CLUSTER_MISTAKES["one tile for both"]),
        "half of b never comes": ("uninitialised-read", WGMMA, *CLUSTER_MISTAKES["one half by both"]),
        "a stage never released": ("deadlock", "hopper::wait(shared.empty", *CLUSTER_MISTAKES["stage never released"]),
        "a block ends before the other": ("race", ("hopper::arrive_at", LOAD_B), *NOT_TOGETHER),
        "a block too many": ("cluster", LOAD_B, *CLUSTER_MISTAKES["for a block too many"]),
    },
    "matmul_split": {
        "no fence before sums are sent": ("race", SENT, *NO_FENCE),
        "sums sent before the warp has written them": ("race", SENT, *NOT_WRITTEN),
        "sums added too soon": ("race", ADDED, *SPLIT_MISTAKES["added too soon"]),
        "barriers not there yet": ("race", EITHER, *BARRIERS_NOT_THERE_YET),
        # Its producer is ahead by a whole round of the ring before another thread runs.
        "a stage filled too soon": ("divergent-barrier", "arrive", *WGMMA_MISTAKES["stage filled too soon"]),
        "a stage released too soon": ("race", "hopper::wgmma_shared", *RELEASED),
    },
}


@pytest.mark.slow  # a build each; quick: the tracer's part, in CASES and TILES, and test_pipeline.py's mistakes
@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        pytest.param(name, mistake, id=f"{name}, {mistake}")
        for name, mistakes in MISTAKES.items()
        for mistake in mistakes
    ],
)
def test_a_mistake_in_a_rung_is_named_with_its_line(name, mistake, tmp_path):
    kind, named, good, bad = MISTAKES[name][mistake]
    matmul = getattr(load("mistaken", mistaken(KERNELS / RUNGS[name], good, bad, tmp_path), traced=True), name)
    for seed in range(3):
        k = 1152 if name == "matmul_split" else 640  # more than once around the ring
        faults = xray(matmul, *operands(256, 256, k), seed=seed).faults
        either = (named,) if isinstance(named, str) else named
        assert any(fault.kind == kind and any(n in str(fault) for n in either) for fault in faults), faults
