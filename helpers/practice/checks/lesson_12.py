"""The checks of lesson 12: registrations that PyTorch can trace, differentiate and trust."""

from collections.abc import Iterator
from typing import Any

import torch

from helpers.practice import attested
from helpers.practice.asked import each, each_element
from helpers.practice.calls import Calls
from helpers.practice.case_inputs import BY, SIZES, normal, short
from helpers.practice.case_runner import plain
from helpers.practice.cases import Case, Check
from helpers.practice.checks.lesson_07 import compact_cases
from kernel_xray.machine.toolchain import device

GIVEN = {"far": "the kernel is given"}
UPDATED = Calls("x[n], y[n], factor", factor=0.75, tolerance={"mutates": [0]}, sums="2")


def declares_what_is_written(function: Any) -> str:
    """What is wrong with the schema of register_mutation, or ""."""
    schema = function.default._schema
    arguments = {argument.name: argument.alias_info for argument in schema.arguments}
    said = f"the schema is\n  {schema}\n"
    if list(arguments) != ["x", "y", "factor"] or schema.returns:
        return f"{said}But the operator takes x, y and factor, and returns nothing."
    if arguments["x"] is None:
        return f"{said}It declares that x is only read. But the operator writes to x: a compiler may drop the call."
    if not arguments["x"].is_write:
        return f"{said}It declares that a result may alias x, but not that x is written to."
    if arguments["y"] is not None:
        return f"{said}It declares more than a read for y, which the operator only reads."
    return ""


def outer_meta_cases() -> Iterator[Case]:
    for dtype in (torch.float32, torch.float64):
        yield from Calls("a[rows], b[columns]", label=BY, dtype=dtype).at((0, 3), (3, 0), (1, 1), (5, 3), (257, 33))


def agrees_without_numbers(function: Any) -> str:
    """What is wrong with the result of outer_meta for meta tensors, or ""."""
    for case in outer_meta_cases():
        a, b = (x.to("meta") for x in case.inputs)
        try:
            got = function(a, b)
        except RuntimeError as error:
            return f"{case.label}, on the device meta: it raised\n  {plain(error)}"
        found = (got.device.type, short(got.dtype), list(got.shape))
        wanted = ("meta", short(a.dtype), [len(a), len(b)])
        for what, one, other in zip(("device", "dtype", "shape"), found, wanted, strict=True):
            if one != other:
                return f"{case.label}, on the device meta: the result has {what} {one}, but should have {other}"
    shapes = (((2, 3), (3,)), ((3,), (2, 3)), ((3,), (3, 1)), ((1, 3), (1, 3)), ((3,), ()), ((), (3,)))
    dtypes = [(torch.float32, torch.float64), (torch.float64, torch.float32), (torch.float32, torch.int32)]
    dtypes += [(dtype, dtype) for dtype in (torch.int32, torch.int64, torch.float16, torch.bool)]
    of_shapes = [(*pair, torch.float32, torch.float32) for pair in shapes]
    for of_a, of_b, a_dtype, b_dtype in of_shapes + [((3,), (3,), *pair) for pair in dtypes]:
        try:
            function(torch.empty(of_a, dtype=a_dtype, device="meta"), torch.empty(of_b, dtype=b_dtype, device="meta"))
        except RuntimeError:
            continue
        return (
            f"on the device meta, a with shape {list(of_a)} and {short(a_dtype)}, b with {list(of_b)} and "
            f"{short(b_dtype)}: accepted, although the operator itself refuses them"
        )
    return ""


def compact_is_registered(function: Any) -> str:
    """What is wrong with the fake or the gradient of compact_registered, or ""."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    for dtype in (torch.float32, torch.float64):
        with FakeTensorMode(shape_env=ShapeEnv()) as mode:
            x = mode.from_tensor(torch.ones(9, dtype=dtype, device=device))
            got = function(x)
        if got.dim() != 1 or got.dtype != dtype or got.device != x.device:
            return (
                f"the fake result for 9 elements of {short(dtype)} on {x.device} is a {got.dim()}-dimensional tensor "
                f"of {short(got.dtype)} on {got.device}"
            )
        if not isinstance(got.shape[0], torch.SymInt):
            return f"the fake result for 9 elements always has {got.shape[0]}; its size depends on their values"
        node = got.shape[0].node
        sizes = node.shape_env.var_to_range.get(node.expr)
        if sizes is not None and (sizes.lower > 0 or sizes.upper < 2**62):
            return (
                f"the fake result is said to have {sizes.lower} to {sizes.upper} elements; x may keep none of its "
                "elements, or all, however many it has"
            )
    for case in compact_cases():
        given = case.inputs[0].to(device)
        x = given.clone().requires_grad_()
        kept = function(x)
        grad = normal(len(kept), seed=2).to(device)
        (grad_x,) = torch.autograd.grad(kept, x, grad, allow_unused=True)
        wanted = torch.zeros_like(given).masked_scatter(given > 0, grad)
        if not torch.equal(x.detach().view(torch.int32), given.view(torch.int32)):
            return f"{case.label}: backward has changed x, which belongs to the caller"
        if wrong := attested.wrong_gradient(case.label, grad_x, wanted):
            return wrong
    return ""


CHECKS = {
    "register_mutation": Check(
        lambda x, y, factor: x + factor * y,
        lambda: UPDATED.at(*SIZES),
        asked=each_element,
        registered=declares_what_is_written,
        why_not=GIVEN | {"attested": "it is asked for a schema"},
    ),
    "outer_meta": Check(
        torch.outer,
        outer_meta_cases,
        asked=lambda a, b: each(len(a) * len(b)),
        registered=agrees_without_numbers,
        attested=attested.without_numbers,
        why_not=GIVEN,
    ),
    "compact_registered": Check(
        lambda x: x[x > 0],
        compact_cases,
        waits=1,
        registered=compact_is_registered,
        attested=attested.gradient((5,), (300,)),
        why_not=GIVEN,
    ),
}
