"""`report.limits` against what was measured: no recorded time of the catalogue's kernels is below its bound."""

import json
import math

import pytest
import torch

import helpers
from helpers.ladder import catalogue
from helpers.paths import KERNELS, RESULTS

SMALL = 2**20  # elements: as many as a test can trace
MOST = 1.02  # the bound over the measured time
LEAST = 0.1  # the same for the largest launch: a bound that is much too low says nothing
TIMES = {
    (record["op"], record["variant"], record["dtype"], tuple(record["shape"])): record["median_ms"] / 1e3
    for record in json.loads((RESULTS / "h200.json").read_text())["records"]
}
CASES = [
    (operator, kernel)
    for operator in catalogue.ALL
    for kernel in operator.kernels
    if operator.limit == "copy" and not kernel.flags and not callable(kernel.function)
    if any(key[:2] == (operator.name, kernel.name) and math.prod(key[3]) <= SMALL for key in TIMES)
]


def bound(operator, kernel, ops, dtype, shape):
    """The least seconds of all launches of a call. Blocks may be sampled: these kernels' do the same work."""
    inputs = operator.inputs(shape, getattr(torch, dtype), "cpu")
    report = helpers.xray(getattr(ops, kernel.function or kernel.name), *inputs, seed=0, max_blocks=16)
    launches = report.limits("h200").launches
    return sum(limit.seconds for each in launches for limit in each.limits if limit.resource == "DRAM")


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "kernel"), CASES, ids=lambda part: part.name)
def test_no_launch_is_faster_than_its_bound(operator, kernel):
    sources = [KERNELS / file for file in kernel.files]
    ops = helpers.load(f"{kernel.name}_bound", sources, is_python_module=False, traced=True)
    shares = []
    for (name, variant, dtype, shape), seconds in TIMES.items():
        if (name, variant) == (operator.name, kernel.name) and math.prod(shape) <= SMALL and dtype in kernel.dtypes:
            least = bound(operator, kernel, ops, dtype, shape)
            assert least <= MOST * seconds, (dtype, shape)
            shares.append(least / seconds)
    assert max(shares) > LEAST
