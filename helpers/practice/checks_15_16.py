"""The checks of lessons 15 and 16: see checks.py."""

from collections.abc import Iterator
from typing import Any

import torch

from helpers.ladder.checking.compare import CheckFailed, assert_close
from helpers.practice.case_inputs import INF, LEAST, NAN, counted, far, normal, short
from helpers.practice.cases import Case, Check, Far
from helpers.practice.checks_08_11 import WIDE
from kernel_xray.machine.toolchain import device

EXACT = {"rtol": 0.0}

# -- lesson 15 ---------------------------------------------------------------------------------------------------------


def softmax_op_cases() -> Iterator[Case]:
    for rows, columns in ((0, 3), (1, 1), (3, 31), (5, 33), (2, 1000)):
        label = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        yield Case(label, (normal(rows, columns),), {}, {"accumulation": 32})


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
        if got is None:
            return f"shape {list(shape)}: x has no gradient: backward returned None"
        (wanted,) = torch.autograd.grad(x.softmax(-1), x, grad)
        try:
            assert_close(got, wanted, name=f"shape {list(shape)}, grad_x", rtol=1e-9, atol=1e-12)
        except CheckFailed as error:
            return str(error)
    return ""


# -- lesson 16 ---------------------------------------------------------------------------------------------------------


def causal_rows_cases() -> Iterator[Case]:
    settings = (  # rows, columns, rank, ranks
        (0, 3, 0, 2), (1, 1, 0, 1), (4, 4, 0, 2), (4, 4, 1, 2), (5, 7, 2, 3), (10, 12, 3, 4), (10, 12, 0, 4),
        (3, 3, 3, 4), (70, 64, 2, 3), (7, 3, 1, 2), (40_003, 1, 1, 2), (9, 33_000, 2, 4),
    )  # fmt: skip
    for rows, columns, rank, ranks in settings:
        each = -(-rows // ranks)
        scores = normal(rows, columns)[rank * each : (rank + 1) * each].contiguous()
        label = f"{rows:,} x {columns:,}, rank {rank} of {ranks}"
        yield Case(label, (scores, rank, ranks, rows), {"out": scores}, EXACT)
    for rank, ranks in ((40_000, 70_000), (2**32, 2**33)):
        label = f"{ranks:,} x 7, rank {rank:,} of {ranks:,}"
        yield Case(label, (normal(1, 7), rank, ranks, ranks), {"out": normal(1, 7)}, EXACT)


def causal_rows_reference(scores: torch.Tensor, rank: int, ranks: int, rows: int) -> torch.Tensor:
    first = rank * -(-rows // ranks)
    row = first + torch.arange(len(scores), device=scores.device)
    column = torch.arange(scores.shape[1], device=scores.device)
    return scores.where(column <= row[:, None], -INF)


def causal_rows_far(rows: int) -> Case:
    """The second of two ranks; its rows lie so far down that all columns are kept. And three rows of many columns."""
    if rows == WIDE:
        scores, tolerance = far(3, WIDE), EXACT | {"sure": (1, 64)}
        return Case(f"6 x {WIDE:,}, rank 0 of 2", (scores, 0, 2, 6), {"out": scores}, tolerance)
    tolerance = EXACT | {"sure": (4, 5)}
    return Case(f"{2 * rows:,} x 5, rank 1 of 2", (far(rows, 5), 1, 2, 2 * rows), {"out": far(rows, 5)}, tolerance)


def weighted_mean_cases() -> Iterator[Case]:
    settings = (  # n, counts
        (0, (1, 2)), (1, (3,)), (5, (1, 1)), (31, (10, 1, 0)), (257, (0, 5)), (1000, (7, 7, 7, 6)),
        (100, (2**40, 2**41, 1)), (3, (0, 0)), (70_000, (1, 4)), (3, (1,) * 300), (1, (1,) * 33_000),
    )  # fmt: skip
    for n, counts in settings:
        parts = normal(len(counts), n)
        numbers = torch.tensor(counts)
        parts[numbers == 0] = NAN
        label = f"n = {n:,}, counts = {list(counts) if len(counts) < 9 else f'{len(counts)} times 1'}"
        yield Case(label, (parts, numbers), {"out": normal(n)}, {"accumulation": 4 * len(counts)})


def weighted_mean_far(n: int) -> Case:
    counts = torch.tensor([1, 2, 5])
    return Case(f"n = {n:,}, counts = [1, 2, 5]", (far(3, n), counts), {"out": far(n)}, {"accumulation": 12})


def weighted_mean_reference(parts: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    weights = counts.double()[:, None]
    return torch.where(weights > 0, weights * parts, 0.0).sum(0) / weights.sum()


def muladd_rule_cases() -> Iterator[Case]:
    for shape in ((4,), (6, 5), (2, 3, 7)):
        yield Case(
            f"shape {list(shape)}", tuple(normal(*shape, seed=seed) for seed in range(3)), {}, {"accumulation": 4}
        )


def rule_is_complete(function: Any) -> str:
    """What is missing in the rule of fused_muladd, or which line is twice in it, or ""."""
    for shape in ((4,), (6, 5)):
        tensors = [torch.ones(shape) for _ in range(3)]
        lines = [_said(*line) for line in function.rule(*tensors)]
        shards = [_said([f"S({i})"], [f"S({i})"] * 3) for i in range(len(shape))]
        partial = [_said(["P"], arguments) for arguments in (["P", "R", "P"], ["R", "P", "P"])]
        wanted = [_said(["R"], ["R"] * 3), *shards, *partial]
        for line in lines:
            if lines.count(line) > 1:
                return f"{len(shape)} dimensions: the line {line} is there twice"
            if line not in wanted:
                return f"{len(shape)} dimensions: the line {line} does not hold"
        if missing := [line for line in wanted if line not in lines]:
            kinds = "a dimension is cut" if "S" in missing[0] else "arguments are sums"
            return f"{len(shape)} dimensions: {len(missing)} more would hold, such as one where {kinds}"
    return ""


def _said(results: list, arguments: list) -> str:
    """A line of a rule in short, such as 'P, R, P -> P'."""

    def one(placement: Any) -> str:
        if isinstance(placement, str):
            return placement
        if placement.is_shard():
            return f"S({placement.dim})"
        return "P" if placement.is_partial() else "R"

    return f"{', '.join(map(one, arguments))} -> {', '.join(map(one, results))}"


def muladd_rule_reference(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return (a * b + c).expand(a.ndim + 3, *a.shape)


CHECKS = {
    "softmax_op": Check(lambda x: x.softmax(-1), softmax_op_cases, registered=softmax_op_is_registered),
    "causal_rows": Check(
        causal_rows_reference,
        causal_rows_cases,
        far=Far(causal_rows_far, 2**34, 2**21 + 7, 2**18, (2**34 + 2**31 + 7, WIDE)),
    ),
    "weighted_mean": Check(
        weighted_mean_reference,
        weighted_mean_cases,
        far=Far(weighted_mean_far, 2**34 + 1031, 2**24 + 1031, LEAST),
    ),
    "muladd_rule": Check(muladd_rule_reference, muladd_rule_cases, registered=rule_is_complete),
}
