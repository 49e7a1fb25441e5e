"""The checks of lesson 15: an operator from another tool, registered."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from helpers.practice import attested
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import KEEP, ROWS_AND_COLUMNS, normal, short
from helpers.practice.cases import Check
from kernel_xray.machine.toolchain import device

_LIKE = re.compile(r"^new_|_like$")
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
    return fake_computes_nothing(function.fake) if hasattr(function, "fake") else KEEP.format("softmax_op.fake")


def fake_computes_nothing(fake: Callable) -> str:
    """What a fake does beside making a tensor like its argument, or ""."""
    x = torch.ones(3, 5, device=device)
    with _Reading(x) as seen:
        got = fake(x)
    if got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        return (
            "the fake returns x itself: the result of the operator is a tensor of its own, such as torch.empty_like(x)"
        )
    if seen.names:
        what = "it must only say what the result looks like, as torch.empty_like(x) does"
        return f"the fake computes {seen.names[0]}: {what}"
    return ""


class _Reading(TorchDispatchMode):
    """Notes the operators that take `x`, but for those that make a tensor like it."""

    def __init__(self, x: torch.Tensor):
        super().__init__()
        self._place, self.names = x.untyped_storage().data_ptr(), list[str]()

    def __torch_dispatch__(self, operator: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = operator.overloadpacket.__name__.strip("_")
        tensors = (one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor))
        if not _LIKE.search(name) and any(one.untyped_storage().data_ptr() == self._place for one in tensors):
            self.names.append(name)
        return operator(*args, **(kwargs or {}))


CHECKS = {
    "softmax_op": Check(
        lambda x: x.softmax(-1),
        lambda: ROWS.at((0, 3), (1, 1), (3, 31), (5, 33), (2, 1000)),
        registered=softmax_op_is_registered,
        attested=attested.gradient((2, 7), (3, 100)),
        why_not={"far": "the kernel is given"},
    )
}
