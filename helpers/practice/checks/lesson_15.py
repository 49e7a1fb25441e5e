"""The checks of lesson 15: an operator from another tool, registered."""

from typing import Any

import torch

from helpers.practice import attested
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import ROWS_AND_COLUMNS, normal, short
from helpers.practice.cases import Check
from kernel_xray.machine.toolchain import device

ROWS = Calls("x[rows, columns]", label=ROWS_AND_COLUMNS, sums="32")


def softmax_op_is_registered(function: Any) -> str:
    """What is wrong with the fake or the gradient of softmax_op, or ""."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    for dtype, shape in ((torch.float32, (3, 5)), (torch.float64, (7,)), (torch.float16, (2, 3, 4))):
        with FakeTensorMode() as mode:
            x = mode.from_tensor(torch.ones(shape, dtype=dtype, device=device))
            got = function(x)
        found = (short(got.dtype), list(got.shape), str(got.device))
        wanted = (short(dtype), list(shape), str(x.device))
        for what, one, other in zip(("dtype", "shape", "device"), found, wanted, strict=True):
            if one != other:
                return f"the fake result for {short(dtype)} and {list(shape)} has {what} {one}, but should have {other}"
    for shape in ((1, 1), (3, 31), (2, 3, 40)):
        x = normal(*shape).double().to(device).requires_grad_()
        grad = normal(*shape, seed=2).double().to(device)
        (got,) = torch.autograd.grad(function(x), x, grad, allow_unused=True)
        (wanted,) = torch.autograd.grad(x.softmax(-1), x, grad)
        if wrong := attested.wrong_gradient(f"shape {list(shape)}", got, wanted, rtol=1e-9, atol=1e-12):
            return wrong
    return ""


CHECKS = {
    "softmax_op": Check(
        lambda x: x.softmax(-1),
        lambda: ROWS.at((0, 3), (1, 1), (3, 31), (5, 33), (2, 1000)),
        registered=softmax_op_is_registered,
        attested=attested.gradient((2, 7), (3, 100)),
        why_not={"far": "the kernel is given"},
    )
}
