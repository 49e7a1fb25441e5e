"""`python -m helpers bench --overhead`: its arithmetic, with a scripted clock."""

import pytest
import torch
from made_up import MACHINE

import helpers
from helpers.upkeep.benchmarks import overhead as overhead_bench

pytestmark = pytest.mark.slow


class Clock:
    """A clock that only work moves forward."""

    def __init__(self):
        self.now, self.waits = 0.0, 0

    def __call__(self):
        return self.now

    def work(self, seconds):
        def call():
            self.now += seconds

        return call

    def wait(self):
        self.waits += 1
        self.now += 1.0  # waiting must not count


@pytest.fixture
def found():
    clock = Clock()
    ways = {overhead_bench.BASE: clock.work(5e-6), "operator": clock.work(6e-6)}
    records = overhead_bench.measure(ways, clock.wait, calls=10, rounds=3, clock=clock)
    assert clock.waits == 2 * len(ways) * (3 + 2)
    return {"machine": MACHINE, "records": records}


def test_a_call_costs_what_the_clock_says(found):
    assert [(r["form"], r["median_us"], r["of_add"]) for r in found["records"]] == [
        ("torch.add", pytest.approx(5), 1.0),
        ("operator", pytest.approx(6), pytest.approx(1.2)),
    ]


def test_the_table_names_machine_and_ratio(found):
    shown = overhead_bench.table(found)
    assert "NVIDIA H200, PyTorch 2.11.0, 2026-11-21" in shown
    assert "1.20x" in shown


def test_every_way_to_call_gives_the_product():
    """With a GPU this captures a CUDA graph too."""
    ways = overhead_bench.forms(helpers.device.type)
    results = {name: call() for name, call in ways.items() if "torch.add" not in name and "graph" not in name}
    assert len(results) == 8
    first = results["C++ operator"]
    assert all(torch.equal(result, first) for result in results.values())
