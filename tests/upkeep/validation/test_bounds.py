"""`report.limits` against what was measured: no recorded time of the catalogue's kernels is below its bound."""

import functools
import math

import pytest

from helpers.upkeep.validation.recorded_calls import by_resource, recorded
from kernel_xray.report import machine_code

MOST = 1.02  # the bound over the measured time
LARGEST = 2**26  # elements of an argument: as many as a small machine holds
LONGEST = 2**38  # operations of a call, of which the blocks that are traced have a share
SECONDS = 4.0  # of processor time of an X-ray
FAR = 20  # the measured time over the bound, where bytes are the limit: a bound that is much too low says nothing
try:
    machine_code.tools()
    READS_CODE = True  # of nvcc: bounds by the issue of instructions, too
except RuntimeError:
    READS_CODE = False


def fits(call):
    largest = max(math.prod(shape) for shape in call.operator.argument_shapes(call.shape))
    return largest <= LARGEST and call.operator.flops(call.shape) <= LONGEST


# Without the lesson on torch/extension.h, whose headers want more of CUDA than its compiler.
CALLS = [call for call in recorded() if fits(call) and not call.kernel.python_module]
VARIANTS = list(dict.fromkeys(call.key[:3] for call in CALLS))


def least(report):
    """The least seconds of all launches of a call."""
    return sum(max(by_resource(launch).values()) for launch in report.limits("h200").launches)


@functools.cache
def ratios(variant):
    """shape -> the recorded time over the bound."""
    calls = [call for call in CALLS if call.key[:3] == variant]
    reports = [(call, call.report("h200", SECONDS, sass=READS_CODE)) for call in calls]
    assert not [fault for _, report in reports for fault in report.faults]
    return {call.shape: call.seconds / least(report) for call, report in reports}


@pytest.mark.slow
@pytest.mark.timeout(900)  # a first one of a file builds it and has nvcc compile it
@pytest.mark.parametrize("variant", VARIANTS, ids=" ".join)
def test_no_launch_is_faster_than_its_bound(variant):
    assert not {shape: ratio for shape, ratio in ratios(variant).items() if ratio < 1 / MOST}
    if next(call.operator.limit for call in CALLS if call.key[:3] == variant) == "copy":
        assert min(ratios(variant).values()) < FAR
