"""Every operator is right at both ends of tensors whose indices need more than 32 bits."""

from types import SimpleNamespace

import far_cases
import pytest
from inputs import needs_far_memory

pytestmark = needs_far_memory


def as_parameter(operator, kernel, case):
    shape = "x".join(map(str, case.shape)) + ", transposed" * case.transposed
    quick = [each for each in operator.kernels if not each.slow_to_build][-1:]  # the last of them, as of the contract
    long = (kernel.name, case.shape[-1]) == ("bias_gelu_backward", 1)  # its other shapes are as far
    marks = () if kernel in quick and not long else pytest.mark.slow
    return pytest.param(operator, kernel, case, id=f"{kernel.name}-{shape}", marks=marks)


@pytest.mark.parametrize(("operator", "kernel", "case"), [as_parameter(*case) for case in far_cases.cases()])
def test_an_operator_is_right_at_both_ends(operator, kernel, case, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "60")  # a product of long sums, on a busy machine
    for dtype in far_cases.dtypes(kernel, case):
        far_cases.check(operator, kernel, dtype, case)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", far_cases.COUNT_WITH_INT, ids=lambda kernel: kernel.name)
def test_sizes_that_an_int_cannot_count_are_refused(kernel):
    far_cases.must_refuse(kernel)


def test_a_kernel_that_takes_them_is_found(monkeypatch):
    kernel = far_cases.COUNT_WITH_INT[0]
    functions = SimpleNamespace(**{kernel.name: lambda a, b: a})
    monkeypatch.setattr(type(kernel), "extension", lambda self: functions)
    with pytest.raises(AssertionError, match="takes m, n, k = 2147483648, 8, 8"):
        far_cases.must_refuse(kernel)
