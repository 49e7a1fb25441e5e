"""The checks of lesson 14: packages that live longer than one version."""

import math
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from helpers.practice.calls import Calls
from helpers.practice.case_inputs import KEEP, SIZES, normal
from helpers.practice.case_runner import plain
from helpers.practice.cases import Case, Check
from kernel_xray.machine.toolchain import device

VERSION_1 = Calls("x[n], factor", factor=2.5, label="n = {n:,}, called as version 1")
GIVEN = {"far": "the kernel is given"}


def keeps_version_1(function: Any) -> str:
    """What is wrong with the schema of second_version, or ""."""
    schema = function.default._schema
    said = f"the schema is\n  {schema}\n"
    arguments = {argument.name: argument for argument in schema.arguments}
    if list(arguments) != ["x", "factor", "shift"] or [str(one.type) for one in schema.returns] != ["Tensor"]:
        return f"{said}But the operator takes x, factor and shift, and returns a tensor."
    for name in ("x", "factor"):
        if arguments[name].kwarg_only or arguments[name].has_default_value():
            return f"{said}In version 1, {name} is positional and has no default. Keep it as it was."
    shift = arguments["shift"]
    if not shift.has_default_value():
        return f"{said}shift has no default: a model that was saved with version 1 cannot be loaded."
    if shift.default_value != 0:
        return f"{said}shift is {shift.default_value} by default: version 1 added nothing."
    if not shift.kwarg_only:
        return f"{said}shift can be given by its position, which version 3 could then no longer change."
    x = torch.arange(4.0, device=device)
    if not torch.equal(function(x, 2.0, shift=1.0), 2 * x + 1):
        return f"{said}But second_version(x, 2.0, shift=1.0) is not 2 * x + 1."
    return ""


def numpy_face_cases() -> Iterator[Case]:
    shapes = (
        ((0,), (0,)), ((1,), (1,)), ((257,), (257,)), ((3, 5), (5,)), ((3, 1), (1, 4)), ((2, 3, 4), (1,)), ((), ()),
    )  # fmt: skip
    for of_a, of_b in shapes:
        a, b = (normal(math.prod(shape), seed=seed).view(shape) for seed, shape in enumerate((of_a, of_b)))
        yield Case(f"shapes {list(of_a)} and {list(of_b)}", (a, b))


def takes_any_array(function: Any) -> str:
    """What is wrong with how numpy_face treats strides and dtypes, or ""."""
    if not hasattr(function, "island_add"):
        return KEEP.format("numpy_face.island_add")
    table: np.ndarray = np.arange(12, dtype=np.float32).reshape(3, 4)
    views = {"transposed": table.T, "every other column": table[:, ::2], "reversed": table[::-1]}
    for label, view in views.items():
        if problem := _adds(function, label, view, np.ones_like(view)):
            return problem
    for dtype in ("int16", "uint8", "float16", "bool"):
        if problem := _adds(function, f"x is {dtype}", np.ones((2, 3), dtype), table[:2, :3]):
            return problem
    for dtype in ("float64", "int32", "int64", "complex64"):
        for name, arrays in (("x", (table.astype(dtype), table)), ("y", (table, table.astype(dtype)))):
            label, words = f"{name} is {dtype}", (name, dtype)
            try:
                function.add(*arrays)
            except TypeError as error:
                missing = [word for word in words if word not in re.findall(r"\w+", str(error))]
                if missing:
                    return f"{label}: the message does not name {' and '.join(missing)}:\n  {error}"
            except Exception as error:
                return f"{label}: it raised {type(error).__name__}, not TypeError:\n  {error}"
            else:
                return f"{label}: accepted, although float32 cannot hold all its values"
    return ""


def _adds(function: Any, label: str, a: np.ndarray, b: np.ndarray) -> str:
    called: list[object] = []
    sys.setprofile(lambda frame, event, what: called.append(what if event == "c_call" else frame.f_code))
    try:
        got = function.add(a, b)
    except Exception as error:
        return f"{label}: it raised {type(error).__name__}:\n  {plain(error)}"
    finally:
        sys.setprofile(None)
    wanted = a.astype(np.float32) + b.astype(np.float32)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{label}: the result has shape {got.shape} and {got.dtype}, but should have {wanted.shape} and float32"
    if not np.array_equal(got, wanted):
        return f"{label}: the result is\n{got}\nbut should be\n{wanted}"
    kernel = getattr(function.island_add, "__code__", function.island_add)
    return "" if any(one is kernel for one in called) else f"{label}: the sum is right, but island.add was not called"


CHECKS = {
    "second_version": Check(
        lambda x, factor: factor * x,
        lambda: VERSION_1.at(*SIZES),
        registered=keeps_version_1,
        why_not=GIVEN | {"attested": "it is asked for a schema"},
    ),
    "numpy_face": Check(
        lambda a, b: a + b,
        numpy_face_cases,
        registered=takes_any_array,
        further=False,  # the island launches on the default stream, and waits for it
        waits=5,
        why_not=GIVEN | {"attested": "it is asked whether calls raise, and what they say"},
    ),
}
