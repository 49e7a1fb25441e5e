"""What an X-ray sees of inline PTX, beside the course's headers that do the same."""

from pathlib import Path

import pytest
import torch
from simt_programs import line_marked, load_cases, operators

from helpers import xray

pytestmark = pytest.mark.slow  # a build to compare two forms of a load, which lesson 10 counts

SOURCE = Path(__file__).with_name("ptx_traced.cu")
traced = operators(load_cases, SOURCE, "ptx_traced", traced=True)


def marked(name):
    return line_marked(SOURCE, name)


def cost(report, name):
    """By space and kind: the bytes per lane, requests, sectors and wavefronts of a marked line."""
    records = [r for r in report.lines if r.line == marked(name)]
    return {(r.space, r.kind): (r.size, r.requests, r.sectors, r.wavefronts) for r in records}


def floats(n):
    return torch.arange(float(n))


@pytest.mark.parametrize(("pitch", "wavefronts"), [(16, 4), (128, 32)])
def test_ldmatrix_costs_what_the_headers_function_costs(traced, pitch, wavefronts):
    out = torch.zeros(128, dtype=torch.int32)
    report = xray(traced.ldmatrix, [out], [pitch])
    assert report.faults == [] and out.all()
    assert cost(report, "ptx") == cost(report, "header")
    assert cost(report, "ptx")["shared", "load"][-1] == wavefronts


def test_vectors_are_one_access(traced):
    out = torch.zeros(256)
    report = xray(traced.vectors, [floats(256), out], [])
    assert report.faults == [] and out[:128].equal(out[128:]) and out[5] == 9
    for kind in ("load", "store"):
        assert cost(report, f"ptx {kind}") == cost(report, f"plain {kind}")
        assert cost(report, f"ptx {kind}")["global", kind][:2] == (16, 1)


def test_copies_and_a_race_between_them(traced):
    out = torch.zeros(128)
    report = xray(traced.copies, [floats(128), out], [1])
    assert report.faults == [] and out.view(32, 4).equal(floats(128).view(32, 4).flip(0))
    assert cost(report, "copy") == {("global", "load"): (16, 1, 16, 0), ("shared", "store"): (16, 1, 0, 4)}
    faults = xray(traced.copies, [floats(128), out], [0]).faults
    assert {(f.kind, f.line) for f in faults} == {("race", marked("read"))}


def test_a_named_barrier_orders_what_was_before_the_arrival(traced):
    for seed in range(10):
        out = torch.zeros(32)
        assert not xray(traced.named, [out], [True], seed=seed).faults
        assert out.equal(floats(32).flip(0))
        faults = xray(traced.named, [out], [False], seed=seed).faults
        assert {f.kind for f in faults} == {"race"} and marked("handed over") in {f.line for f in faults}


def test_an_access_past_the_end_is_found_at_the_line_of_the_statement(traced):
    assert not xray(traced.past, [floats(32), torch.zeros(32)], []).faults
    (fault,) = xray(traced.past, [floats(31), torch.zeros(32)], []).faults
    assert (fault.kind, fault.line, fault.thread) == ("out-of-bounds", marked("past"), (31, 0, 0))
    assert Path(fault.file) == SOURCE


def test_each_thread_has_its_carry(traced):
    words = 40
    a, b = (torch.randint(-(2**31), 2**31, (words, 32)).to(torch.int32) for _ in range(2))
    total = torch.zeros_like(a)
    assert not xray(traced.carries, [a, b, total], []).faults
    big = [sum(x[k, 7].item() % 2**32 << 32 * k for k in range(words)) for x in (a, b, total)]
    assert big[2] == (big[0] + big[1]) % 2 ** (32 * words)


def test_mma_gives_the_headers_sums(traced):
    out = torch.ones(256)
    halves = torch.randn(80, dtype=torch.float16)
    assert not xray(traced.mma, [halves.view(torch.int32), out], []).faults
    assert (out[:128] == 0).all() and (out[128:] != 0).all()


def test_exit_ends_a_thread_alone(traced):
    out = torch.zeros(64)
    assert not xray(traced.exits, [out], []).faults
    assert out.tolist() == [1, 0] * 32
