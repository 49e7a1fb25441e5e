"""The checks of lessons 13 and 14: see checks.py."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from helpers.practice.case_inputs import LEAST, SIZES, far, normal
from helpers.practice.case_runner import plain
from helpers.practice.cases import Case, Check, Far
from helpers.practice.demands import at_most, barriers_for_all
from kernel_xray.machine.toolchain import device

EXACT = {"rtol": 0.0}

# -- lesson 13 ---------------------------------------------------------------------------------------------------------


def fix_bounds_cases() -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n = {n:,}", (normal(n),), {"out": normal(n)}, {"accumulation": 2})


def fix_bounds_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n),), {"out": far(n)}, {"edge": 1024, "accumulation": 2})


def fix_bounds_reference(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.diff(), x.new_zeros(min(1, len(x)))])


def digits_cases() -> Iterator[Case]:
    advice = "let each thread read its own digit, and leave the reading of counts to the atomic operation"
    for n in SIZES:
        digits = torch.randint(0, 16, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32)
        demand = at_most(-(-n // 32), "load", advice) if n < 5000 else None
        yield Case(f"n = {n:,}", (digits,), {"counts": torch.zeros(16, dtype=torch.int32)}, demand=demand)
    for digit in (0, 15):
        digits = torch.full((600,), digit, dtype=torch.int32)
        yield Case(f"600 times {digit}", (digits,), {"counts": torch.zeros(16, dtype=torch.int32)})


def digits_drawn(n: int) -> Case:
    digits = torch.randint(0, 16, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32)
    return Case(f"n = {n:,}", (digits,), {"counts": torch.zeros(16, dtype=torch.int32)})


def digits_far(n: int) -> Case:
    """The counts of the first and the last two blocks, which are whole."""
    outputs, tolerance = {"counts": far(16, dtype=torch.int32)}, EXACT | {"sure": (16,)}
    return Case(f"n = {n:,}", (far(n, dtype=torch.int32),), outputs, tolerance)


def digits_reference(digits: torch.Tensor) -> torch.Tensor:
    return torch.bincount(digits.long(), minlength=16).int()


def fix_barrier_cases() -> Iterator[Case]:
    for n in SIZES:
        out, tolerance = {"out": normal(-(-n // 256))}, {"accumulation": 256}
        yield Case(f"n = {n:,}", (normal(n),), out, tolerance, demand=barriers_for_all)


def fix_barrier_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n),), {"out": far(-(-n // 256))}, {"sure": (2,), "accumulation": 256})


def fix_barrier_far_reference(x: torch.Tensor) -> torch.Tensor:
    """The sums of the first and the last two blocks, in results of which 512 are kept at either end."""
    sums = x.view(4, 256).sum(1)
    return torch.cat([sums[:2], x.new_zeros(1020), sums[2:]])


def fix_barrier_reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, -len(x) % 256)).view(-1, 256).sum(1)


def fix_launch_cases() -> Iterator[Case]:
    for n, threads in ((0, 32), (1, 1), (31, 32), (257, 256), (1000, 1024), (40_003, 1), (100_003, 96)):
        x = normal(n)
        yield Case(f"n = {n:,}, blocks of {threads:,}", (x, 2.5, threads), {"out": x})


def fix_launch_far(n: int) -> Case:
    return Case(f"n = {n:,}, blocks of 256", (far(n), 2.5, 256), {"out": far(n)})


def a_failed_launch_raises(function: Any) -> str:
    """What is wrong with how fix_launch reports a launch that fails, or ""."""
    x = torch.ones(100, device=device)
    for threads in (1025, 2048, 2**16 + 128, 2**20):
        try:
            function(x, 2.0, threads, torch.empty_like(x))
        except RuntimeError:
            pass
        else:
            return f"blocks of {threads:,} threads: the call returned, although its launch had failed"
        try:
            function(x, 2.0, 128, torch.empty_like(x))
        except RuntimeError as error:
            return f"after a failed launch, a call with blocks of 128 threads raised\n  {plain(error)}"
    return ""


# -- lesson 14 ---------------------------------------------------------------------------------------------------------


def second_version_cases() -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n = {n:,}, called as version 1", (normal(n), 2.5))


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
        ((0,), (0,)),
        ((1,), (1,)),
        ((257,), (257,)),
        ((3, 5), (5,)),
        ((3, 1), (1, 4)),
        ((2, 3, 4), (1,)),
        ((), ()),
    )
    for of_a, of_b in shapes:
        a, b = (normal(math.prod(shape), seed=seed).view(shape) for seed, shape in enumerate((of_a, of_b)))
        yield Case(f"shapes {list(of_a)} and {list(of_b)}", (a, b))


def takes_any_array(function: Any) -> str:
    """What is wrong with how numpy_face treats strides and dtypes, or ""."""
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
                missing = [word for word in words if word not in str(error).replace(",", " ").split()]
                if missing:
                    return f"{label}: the message does not name {' and '.join(missing)}:\n  {error}"
            except Exception as error:
                return f"{label}: it raised {type(error).__name__}, not TypeError:\n  {error}"
            else:
                return f"{label}: accepted, although float32 cannot hold all its values"
    return ""


def _adds(function: Any, label: str, a: np.ndarray, b: np.ndarray) -> str:
    try:
        got = function.add(a, b)
    except Exception as error:
        return f"{label}: it raised {type(error).__name__}:\n  {plain(error)}"
    wanted = a.astype(np.float32) + b.astype(np.float32)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{label}: the result has shape {got.shape} and {got.dtype}, but should have {wanted.shape} and float32"
    return "" if np.array_equal(got, wanted) else f"{label}: the result is\n{got}\nbut should be\n{wanted}"


WHOLE_BLOCKS = 2**36 + 1024, 2**24 + 1024, 2**22 + 1024  # the lengths of far cases

CHECKS = {
    "fix_bounds": Check(fix_bounds_reference, fix_bounds_cases, far=Far(fix_bounds_far, least=LEAST)),
    "fix_race": Check(digits_reference, digits_cases, drawn=digits_drawn, far=Far(digits_far, *WHOLE_BLOCKS)),
    "fix_unwritten": Check(digits_reference, digits_cases, drawn=digits_drawn, far=Far(digits_far, *WHOLE_BLOCKS)),
    "fix_barrier": Check(
        fix_barrier_reference,
        fix_barrier_cases,
        far=Far(fix_barrier_far, *WHOLE_BLOCKS[:2], reference=fix_barrier_far_reference),
    ),
    "fix_launch": Check(
        lambda x, factor, threads: factor * x,
        fix_launch_cases,
        registered=a_failed_launch_raises,
        far=Far(fix_launch_far, least=LEAST),
    ),
    "second_version": Check(lambda x, factor: factor * x, second_version_cases, registered=keeps_version_1),
    "numpy_face": Check(
        lambda a, b: a + b,
        numpy_face_cases,
        registered=takes_any_array,
        further=False,  # the island launches on the default stream, and waits for it
        waits=5,
    ),
}
