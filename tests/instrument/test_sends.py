"""Values that the blocks of a cluster send each other (cluster.h): sums of them, and what can go wrong with them."""

import re
from pathlib import Path

import pytest
import torch
from simt_programs import load_cases, operators
from test_hopper import SIMULATOR, in_the_simulator

import helpers

SOURCE = Path(__file__).with_name("sends.cu")
CLUSTERS = SIMULATOR or torch.cuda.get_device_capability() >= (9, 0)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CLUSTERS, reason="clusters need compute capability 9.0"),
]  # two builds; the contract and lesson 07 have kernels that send
TYPES, WARPS = (torch.float32, torch.float64), 2
cases = operators(load_cases, SOURCE, "sends")
traced = operators(load_cases, SOURCE, "sends_traced", traced=True)


def sums(ops, dtype, blocks, clusters=1, turns=7, wrong=0):
    out = torch.zeros(turns, blocks * clusters, dtype=dtype, device=helpers.device)
    ops.sums([out], [TYPES.index(dtype), blocks, clusters, turns, wrong])
    return out


def expected(out, blocks):
    values = blocks * WARPS
    each = torch.arange(len(out), dtype=out.dtype, device=out.device) * values + values * (values - 1) / 2
    return each[:, None].expand_as(out)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_every_block_gets_what_all_have_sent(cases, dtype, blocks):
    out = sums(cases, dtype, blocks, clusters=3)
    assert torch.equal(out, expected(out, blocks))


def watched(traced, dtype, blocks, seed, wrong=0):
    out = torch.zeros(7, blocks, dtype=dtype)
    return helpers.xray(traced.sums, [out], [TYPES.index(dtype), blocks, 1, 7, wrong], seed=seed).faults, out


@in_the_simulator
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_an_xray_finds_no_fault(traced, dtype, blocks):
    for seed in range(5):
        faults, out = watched(traced, dtype, blocks, seed)
        assert faults == []
        assert torch.equal(out, expected(out, blocks))


@in_the_simulator
def test_a_warp_goes_on_as_one_where_some_of_its_lanes_sent_or_told_the_mailbox(traced):
    """As on a GPU, where one instruction asks for all lanes: else the reads after a wait would be several requests."""
    for seed in range(5):
        out = torch.zeros(7, 4)
        report = helpers.xray(traced.sums, [out], [0, 4, 1, 7, 0], seed=seed)
        reads = [line for line in report.lines if line.space == "shared" and line.kind == "load"]
        assert {line.active_lanes for line in reads} == {8.0}  # those that have a value
        assert sum(line.requests for line in reads) == 2 * 7 * 4 * WARPS  # two loads of each warp


SENT, ENDED = "the send of a value by thread", "block 0 of the cluster has ended"
MAY_HAVE_ENDED = "the shared memory of block .* may come when that block has ended"
MISTAKES = {  # as sends.cu numbers them: kind, a part of the message
    "no wait": (1, "race", f"a read of a shared array of 80 bytes races with {SENT}"),
    "too few bytes": (2, "race", f"a read of a shared array of 80 bytes races with {SENT}"),
    "too many bytes": (3, "deadlock", "128 of 128 wait at an mbarrier: .* 0 of 1 arrivals and 8 bytes have not come"),
    "one array": (4, "race", f"a send of a value into a shared array of 80 bytes races with {SENT} .* block .1, 0, 0."),
    "one mailbox": (5, "divergent-barrier", "more threads arrive at an mbarrier than it was initialised for"),
    "not initialised": (6, "deadlock", "128 of 128 wait at an mbarrier: .* arrivals and .* bytes have not come"),
    "initialised by chance": (7, "race", "a shared array of 16 bytes races with the write by thread .0, 0, 0."),
    "an odd slot": (8, "misaligned", "a value is sent to a multiple of its size"),
    "no such block": (9, "cluster", "the kernel requests block 2 of a cluster of 2 blocks"),
    "a block ends at once": (10, "race", MAY_HAVE_ENDED),
    "a block does not wait for the last row": (11, "race", MAY_HAVE_ENDED),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(traced, mistake):
    wrong, kind, message = MISTAKES[mistake]
    reports = [watched(traced, torch.float32, 2, seed, wrong)[0] for seed in range(8)]
    found = [fault for faults in reports for fault in faults]
    assert any(fault.kind == kind and re.search(message, fault.message) for fault in found), found
    assert sum(map(bool, reports)) >= (1 if kind == "cluster" else len(reports))


@in_the_simulator
@pytest.mark.parametrize(("wrong", "message"), [(8, "sent to a multiple of its size"), (10, ENDED)])
def test_a_fault_outside_an_xray(cases, wrong, message):
    with pytest.raises(helpers.KernelFault, match=message):
        sums(cases, torch.float32, 2, wrong=wrong)
