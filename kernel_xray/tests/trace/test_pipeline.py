"""Mistakes with Hopper's asynchronous units, planted in a pipeline of inline PTX: each is found, with line and kind."""

import re

import pytest
import torch
from simt_programs import CASES, assert_matches, line_marked, load_case, operators

from kernel_xray import xray

SOURCE = CASES / "ptx_pipeline.cu"
STEPS, ROWS, DEPTH, CONSUMERS = 5, 64, 16, 128  # more than once around the ring
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 100))]
REMARKED = "mbarrier.init is not fenced"  # which CuTe's tutorials for TMA leave out, too
# In the order of the source's enumeration: kind, the lines of which one is named, a part of the message
MISTAKES = {
    REMARKED: ("race", ["a"], "counts on an mbarrier that no fence has made known to units"),
    "expect_tx of too few bytes": ("deadlock", ["launch"], "0 of 1 arrivals and -32 bytes have not come"),
    "expect_tx of too many bytes": ("deadlock", ["launch"], "0 of 1 arrivals and 32 bytes have not come"),
    "no wait for a full stage": ("race", ["product", "a", "b"], "load of a tile"),
    "a wait for the wrong phase": ("race", ["product", "a", "b"], "load of a tile"),
    "too many arrivals are expected": ("deadlock", ["launch"], "wait at an mbarrier: for thread 0, 1 of 1 arrivals"),
    "released before wgmma.wait_group": ("race", ["product", "a", "b"], "wgmma's read .* load of a tile"),
    "no wgmma.wait_group": ("race", ["product"], "wgmma.commit_group, wgmma.wait_group"),
    "no wgmma.commit_group": ("race", ["product"], "wgmma.commit_group, wgmma.wait_group"),
    "no wgmma.fence": ("race", ["product"], "without a wgmma.fence before it"),
    "no fence.proxy.async": ("race", ["store"], r"no fence makes what threads write known to units .fence.proxy.async"),
    "no barrier before a store": ("race", ["store"], "a store of a tile from .* the write by .*: nothing orders"),
    "a buffer is written before its store has read it": ("race", ["write", "store"], "store of a tile"),
    "a block ends before its store has read": (
        "race",
        ["store"],
        "cp.async.bulk.commit_group, cp.async.bulk.wait_group",
    ),
    "no cluster barrier before a peer is read": ("race", ["peer", "write"], "a read of .* of block"),
    "a block ends before its peer has read": (
        "race",
        ["peer"],
        r"a read of the shared memory of block .* may come when that block has ended: .*barrier\.cluster",
    ),
    "one thread releases a stage that others read": ("race", ["corner"], "a read of .* load of a tile"),
}
traced = operators(load_case, "ptx_pipeline", traced=True)


def run(traced, wrong, seed, **options):
    """The report; the sums of each block and what it read of the other; and the exact sums."""
    torch.manual_seed(0)
    a, b = (torch.randint(-4, 5, (STEPS, ROWS, DEPTH)) for _ in range(2))
    pieces = [x.view(STEPS, 8, 8, 2, 8).transpose(2, 3).transpose(1, 2).bfloat16().contiguous() for x in (a, b)]
    c, of_peer = torch.zeros(2, 2, ROWS, ROWS), torch.zeros(2, CONSUMERS)
    report = xray(traced.pipeline, [*pieces, c, of_peer], [STEPS, wrong], seed=seed, **options)
    return report, c, of_peer, sum(x @ y.mT for x, y in zip(a, b, strict=True)).float()


ONE_RELEASES_AFTER_A_BARRIER = 1 + len(MISTAKES)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", [0, ONE_RELEASES_AFTER_A_BARRIER])
def test_the_right_pipeline_is_silent(traced, form, seed):
    report, c, of_peer, exact = run(traced, form, seed)
    assert report.faults == []
    for block in range(2):
        assert torch.equal(c[block, 0], exact) and torch.equal(c[block, 1], 2 * exact)
        assert torch.equal(of_peer[block], 2 * exact.flatten()[:CONSUMERS])


def test_a_sample_counts_the_same_and_looks_for_no_races(traced):
    whole, sample = run(traced, 0, 0)[0], run(traced, 0, 0, blocks=2)[0]
    assert [line for line in sample.lines if line.kind.startswith("tile")] == [
        line for line in whole.lines if line.kind.startswith("tile")
    ]
    races = [1 + list(MISTAKES).index(mistake) for mistake in ("no wait for a full stage", "no fence.proxy.async")]
    assert not any(run(traced, wrong, 0, blocks=2)[0].faults for wrong in races)


# Each mistake has one of three seeds in the quick suite, and each seed a third of the mistakes.
SEEDED = [
    pytest.param(mistake, seed, id=f"{mistake}-{seed}", marks=() if seed == i % 3 else pytest.mark.slow)
    for i, mistake in enumerate(MISTAKES)
    for seed in range(3)
]


@pytest.mark.parametrize(("mistake", "seed"), SEEDED)
def test_a_mistake_is_found_with_its_line(traced, mistake, seed):
    kind, lines, message = MISTAKES[mistake]
    places = [line_marked(SOURCE, line) for line in lines]
    report = run(traced, 1 + list(MISTAKES).index(mistake), seed)[0]
    told, other = (report.remarks, report.faults) if mistake == REMARKED else (report.faults, [])
    found = [each.message for each in told if each.kind == kind and each.line in places]
    assert any(re.search(message, text) for text in found) and not other, told


# How tiles come to a product (the source's enumeration): the faults with their lines, and the remarks. A cp.async whose
# proxy fence alone is missing is right on Hopper, so a remark.
NO_FENCE = "no fence makes what threads write known to units"
NOT_FENCED = "no fence.proxy.async lies between cp.async and wgmma"
COPIES = {
    "fenced": ([], []),
    "not fenced": ([], [("product of copies", NOT_FENCED)]),
    "plain stores, not fenced": ([("product of copies", NO_FENCE)], []),
    "not ordered": ([("product of copies", "nothing orders the two")], []),
    "stored by a unit, not fenced": ([("store of copies", NO_FENCE)], [("product of copies", NOT_FENCED)]),
    "two into one place": (
        [("again", "nothing orders the two"), ("wait for copies", "nothing orders the two")],
        [("product of copies", NOT_FENCED)],
    ),
    "waited for after the barrier": ([("product of copies", "nothing orders the two")], []),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_of_threads_reach_a_product(traced, way):
    a, b = (torch.randint(-4, 5, (ROWS, DEPTH)) for _ in range(2))
    pieces = [x.view(8, 8, 2, 8).transpose(1, 2).transpose(0, 1).bfloat16().contiguous() for x in (a, b)]
    c, stored = torch.zeros(CONSUMERS, 32), torch.zeros(ROWS * DEPTH, dtype=torch.bfloat16)
    number = list(COPIES).index(way)
    for seed in range(3):
        report = xray(traced.copied, [*pieces, c, stored], [number], seed=seed)
        for found, expected in zip((report.faults, report.remarks), COPIES[way], strict=True):
            assert [one.line for one in found] == [line_marked(SOURCE, line) for line, _ in expected], found
            for one, (_, message) in zip(found, expected, strict=True):
                assert_matches(message, one.message)
        if number < 3:
            assert c.sum() == (a @ b.mT).sum()


def test_the_init_of_an_mbarrier_and_a_tile_for_both_blocks(traced):
    for seed in range(3):
        for number, (faults, remarks) in enumerate([(0, 0), (0, 1), (1, 0)]):
            tile, copies = torch.randint(256, (ROWS * DEPTH * 2,), dtype=torch.uint8), torch.empty(2, ROWS * DEPTH * 2)
            report = xray(traced.multicast, [tile, copies.byte()], [number], seed=seed)
            assert (len(report.faults), len(report.remarks)) == (faults, remarks), report
            for found in (*report.faults, *report.remarks):
                assert found.line == line_marked(SOURCE, "to both")


SHARES = ["fits", "in two steps", "one group asks", "too many"]  # in the order of the source's enumeration


# Timed on an H200: the kernels that wait for ever there.
@pytest.mark.parametrize(
    ("bounds", "each", "never"),
    [
        ("threads and blocks", 168, ["too many"]),
        ("threads", 0, []),
        ("none", 0, []),
        ("registers", 168, ["too many"]),
        ("more threads than there are", 128, ["fits", "too many"]),  # a warp that asks twice is not judged
    ],
)
def test_registers_that_a_block_cannot_have_are_waited_for_for_ever(traced, bounds, each, never):
    number = ["threads and blocks", "threads", "none", "registers", "more threads than there are"].index(bounds)
    for share in SHARES:
        out = torch.zeros(384)
        report = xray(traced.registers, [out], [SHARES.index(share), number], seed=0)
        assert out.sum() == 384 and not report.remarks
        assert [(fault.kind, fault.line) for fault in report.faults] == (
            [("deadlock", line_marked(SOURCE, "more"))] if share in never else []
        )
        if report.faults:
            asked = 65536 if share == "too many" else 64512
            message = report.faults[0].message
            assert_matches(f"of 384 threads ask for {asked} .* has {each * 384}, {each} a thread", message)
