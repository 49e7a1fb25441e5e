"""`python -m helpers bench --first-result`: each tool in a process of its own, with caches that are empty."""

import pytest
from made_up import MACHINE

import helpers
from helpers.upkeep.benchmarks import first_result

DOCUMENT = {"machine": MACHINE, "records": [{"tool": "Triton", "seconds": 0.27}]}


@pytest.mark.slow
def test_a_tool_starts_with_empty_caches_and_its_result_is_checked(monkeypatch):
    (record,) = first_result.measure(["CUDA C++"], helpers.device.type)
    assert record["tool"] == "CUDA C++" and record["seconds"] > 1  # the simulator was built anew, or nvcc ran
    monkeypatch.setitem(first_result.MAKE, "wrong", lambda: lambda x: x)
    with pytest.raises(AssertionError, match="not close"):
        first_result.first("wrong", "cpu")


@pytest.mark.slow  # a benchmark of our own tools
def test_a_tool_that_fails_is_told_with_its_output():
    with pytest.raises(RuntimeError, match=r"no such tool: (?s:.*)KeyError"):
        first_result.measure(["no such tool"], "cpu")


def test_the_table_names_the_machine_and_the_compiler():
    lines = first_result.table(DOCUMENT).split("\n")
    assert lines[0].split() == ["Triton:", "0.27", "s", "to", "the", "first", "result"]
    assert lines[1] == "recorded on NVIDIA H200, CUDA 13.0, PyTorch 2.11.0, 2026-11-21; empty caches, nvcc"
