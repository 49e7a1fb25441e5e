"""`python -m helpers bench --schedules`: its copies of the kernels, and its arithmetic with a scripted clock."""

import dataclasses

import pytest
import torch
from made_up import MACHINE

import helpers
from helpers.ladder.catalogue.attention import ATTENTION_HOPPER
from helpers.upkeep.benchmarks import schedules


@pytest.mark.parametrize("part", schedules.PARTS, ids=lambda part: f"{part.source} {part.name}")
def test_each_part_can_be_left_out(part, tmp_path):
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    for folder in (whole, copy):
        folder.mkdir()
    schedules.without(dataclasses.replace(part, exchanges=()), whole)
    assert schedules.without(part, copy) == copy / part.source
    changed = {file.name for file in whole.iterdir() if file.read_text() != (copy / file.name).read_text()}
    assert changed == {name for name, _, _ in part.exchanges}
    for name, _, other in part.exchanges:
        assert other in (copy / name).read_text()


def test_a_text_that_is_not_there_is_named(tmp_path):
    part = schedules.Part(schedules.FORWARD, "no such part", (("attention.h", "struct Ribbon {", ""),))
    with pytest.raises(RuntimeError, match=r"no such part: attention\.h must have 'struct Ribbon \{' once, got 0"):
        schedules.without(part, tmp_path)


def test_shares_are_of_the_whole_kernel():
    now = 0.0

    def work(seconds):
        def call():
            nonlocal now
            now += seconds

        return call

    ways = {schedules.WHOLE: work(2e-3), "turns": work(2.5e-3)}
    found = schedules.measure(ways, lambda: None, rounds=3, clock=lambda: now)
    assert [(r["without"], r["ms"], r["speed"]) for r in found] == [(schedules.WHOLE, 2.0, 1.0), ("turns", 2.5, 0.8)]
    found = [{"kernel": schedules.FORWARD, "shape": [16, 16384, 128], **r} for r in found]
    shown = schedules.table({"machine": MACHINE, "records": found})
    assert "attention_hopper.cu, d = 128, without" in shown and "turns                2.500   80%" in shown
    assert "NVIDIA H200, PyTorch 2.11.0, 2026-11-21; 16 heads of 16,384 tokens" in shown


def test_another_result_is_no_contender():
    x = torch.randn(8, 8)
    with pytest.raises(RuntimeError, match="without turns: the results differ"):
        schedules.check({schedules.WHOLE: lambda: (x,), "turns": lambda: (x + 1,)})


@pytest.mark.slow
@pytest.mark.skipif(not ATTENTION_HOPPER.runs_here, reason="wgmma and TMA need compute capability 9.0")
def test_all_copies_compute_the_same():
    found = schedules.records((2, 200), helpers.device, wait=lambda: None, rounds=1)
    assert len(found) == len(schedules.PARTS) + 4
    assert all(r["ms"] > 0 for r in found)
