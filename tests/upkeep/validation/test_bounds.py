"""`report.limits` against what was measured: no recorded time of the catalogue's kernels is below its bound."""

import functools
import json
import math

import pytest
import torch

import helpers
from helpers.ladder import catalogue
from helpers.paths import KERNELS, RESULTS
from kernel_xray.report import machine_code

MOST = 1.02  # the bound over the measured time
LARGEST = 2**26  # elements of an argument: as many as a small machine holds
LONGEST = 2**38  # operations of a call, of which the blocks that are traced have a share
BLOCKS, SECONDS = 2, 4.0  # traced of each launch: these kernels' blocks do the same work
FAR = 20  # the measured time over the bound, where bytes are the limit: a bound that is much too low says nothing
SAMPLED = "scaled from a sample of blocks"
try:
    machine_code.tools()
    READS_CODE = True  # of nvcc: bounds by the issue of instructions, too
except RuntimeError:
    READS_CODE = False
TIMES = {
    (record["op"], record["variant"], record["dtype"], tuple(record["shape"])): record["median_ms"] / 1e3
    for record in json.loads((RESULTS / "h200.json").read_text())["records"]
}


def fits(operator, shape):
    largest = max(math.prod(size(shape)) for size in operator.arguments.values())
    return largest <= LARGEST and operator.flops(shape) <= LONGEST


def recorded(operator, kernel):
    """variant, dtype, shape and time of each recording of a kernel that can be traced here."""
    return [
        (variant, dtype, shape, seconds)
        for (name, variant, dtype, shape), seconds in TIMES.items()
        if name == operator.name and variant in kernel.variants and fits(operator, shape)
    ]


CASES = [
    (operator, kernel)
    for operator in catalogue.ALL
    for kernel in operator.kernels
    if not kernel.python_module and recorded(operator, kernel)
]


@functools.cache
def traced(kernel):
    sources = [KERNELS / file for file in kernel.files]
    name, flags = f"{kernel.library_name}_bound", list(kernel.nvcc_flags)
    return helpers.load(name, sources, extra_cuda_cflags=flags, is_python_module=False, traced=True).untraced


def limits(operator, kernel, variant, dtype, shape, **options):
    function = kernel.variants[variant]
    function = function(traced(kernel)) if callable(function) else getattr(traced(kernel), function)
    inputs = operator.inputs(shape, getattr(torch, dtype), "cpu")
    return helpers.xray(function, *inputs, seed=0, gpu="h200", seconds=SECONDS, sass=READS_CODE, **options).limits(
        "h200"
    )


def least(found):
    """The least seconds of all launches of a call, and what takes most of them."""
    largest = [
        max((limit for limit in each.limits if limit.estimate in ("", SAMPLED)), key=lambda limit: limit.seconds)
        for each in found.launches
    ]
    longest = max(largest, key=lambda limit: limit.seconds)
    return sum(limit.seconds for limit in largest), longest.resource


@functools.cache
def bounds(operator_name, kernel_name):
    """(variant, dtype, shape) -> the recorded time over the bound, and the limiting resource."""
    operator, kernel = next(c for c in CASES if (c[0].name, c[1].name) == (operator_name, kernel_name))
    found = {}
    for variant, dtype, shape, seconds in recorded(operator, kernel):
        bound, resource = least(limits(operator, kernel, variant, dtype, shape, blocks=BLOCKS))
        found[variant, dtype, shape] = seconds / bound, resource, seconds
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600)  # a kernel with several tiles has up to 40 recordings
@pytest.mark.parametrize(("operator", "kernel"), CASES, ids=lambda part: part.name)
def test_no_launch_is_faster_than_its_bound(operator, kernel):
    too_high = {case: ratio for case, (ratio, _, _) in bounds(operator.name, kernel.name).items() if ratio < 1 / MOST}
    assert not too_high
    if operator.limit == "copy":
        assert min(ratio for ratio, _, _ in bounds(operator.name, kernel.name).values()) < FAR
