"""The checks of lesson 16: a rank's part of an operator, and the rule for sharding one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from helpers.practice.case_inputs import EXACT, INF, LEAST, NAN, WIDE, counted, far, normal
from helpers.practice.cases import Case, Check, Far


def causal(scores: torch.Tensor, rank: int, ranks: int, rows: int, **more: Any) -> Case:
    columns = scores.shape[1]
    label = f"{rows:,} x {columns:,}, rank {rank:,} of {ranks:,}"
    return Case(label, (scores, rank, ranks, rows), {"out": torch.empty_like(scores)}, EXACT | more)


def causal_rows_cases() -> Iterator[Case]:
    settings = (  # rows, columns, rank, ranks
        (0, 3, 0, 2), (1, 1, 0, 1), (4, 4, 0, 2), (4, 4, 1, 2), (5, 7, 2, 3), (10, 12, 3, 4), (10, 12, 0, 4),
        (3, 3, 3, 4), (70, 64, 2, 3), (7, 3, 1, 2), (40_003, 1, 1, 2), (9, 33_000, 2, 4),
    )  # fmt: skip
    for rows, columns, rank, ranks in settings:
        each = -(-rows // ranks)
        yield causal(normal(rows, columns)[rank * each : (rank + 1) * each].contiguous(), rank, ranks, rows)
    for rank, ranks in ((40_000, 70_000), (2**32, 2**33)):
        yield causal(normal(1, 7), rank, ranks, ranks)


def causal_rows_reference(scores: torch.Tensor, rank: int, ranks: int, rows: int) -> torch.Tensor:
    first = rank * -(-rows // ranks)
    row = first + torch.arange(len(scores), device=scores.device)
    column = torch.arange(scores.shape[1], device=scores.device)
    return scores.where(column <= row[:, None], -INF)


def causal_rows_far(rows: int) -> Case:
    """The second of two ranks; its rows lie so far down that all columns are kept. And three rows of many columns."""
    if rows == WIDE:
        return causal(far(3, WIDE), 0, 2, 6, sure=(1, 64))
    return causal(far(rows, 5), 1, 2, 2 * rows, sure=(4, 5))


def mean(parts: torch.Tensor, counts: tuple[int, ...]) -> Case:
    """The mean of the parts; those of no elements are NaN."""
    numbers, shown = torch.tensor(counts), list(counts) if len(counts) < 9 else f"{len(counts)} times 1"
    if parts.device.type == "cpu":
        parts[numbers == 0] = NAN
    label = f"n = {parts.shape[1]:,}, counts = {shown}"
    return Case(label, (parts, numbers), {"out": torch.empty_like(parts[0])}, {"accumulation": 4 * len(counts)})


def weighted_mean_cases() -> Iterator[Case]:
    settings = (  # n, counts
        (0, (1, 2)), (1, (3,)), (5, (1, 1)), (31, (10, 1, 0)), (257, (0, 5)), (1000, (7, 7, 7, 6)),
        (100, (2**40, 2**41, 1)), (3, (0, 0)), (70_000, (1, 4)), (3, (1,) * 300), (1, (1,) * 33_000),
    )  # fmt: skip
    yield from (mean(normal(len(counts), n), counts) for n, counts in settings)
    parts = normal(3, 40)
    parts[0, 5], parts[1, 7], parts[0, 33] = NAN, INF, -INF
    spoiled = mean(parts, (2, 3, 0))
    yield replace(spoiled, label=f"{spoiled.label}, NaN and infinities in parts with rows")


def weighted_mean_reference(parts: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    weights = counts.double()[:, None]
    return torch.where(weights > 0, weights * parts, 0.0).sum(0) / weights.sum()


def muladd_rule_cases() -> Iterator[Case]:
    for shape in ((4,), (6, 5), (2, 3, 7)):
        inputs = tuple(normal(*shape, seed=seed) for seed in range(3))
        yield Case(f"shape {list(shape)}", inputs, {}, {"accumulation": 4})


def rule_is_complete(function: Any) -> str:
    """What is missing in the rule of fused_muladd, or which line is twice in it, or ""."""
    for shape in ((4,), (6, 5)):
        tensors, dimensions = [torch.ones(shape) for _ in range(3)], counted(len(shape), "dimension")
        lines = [_said(*line) for line in function.rule(*tensors)]
        shards = [_said([f"S({i})"], [f"S({i})"] * 3) for i in range(len(shape))]
        partial = [_said(["P"], arguments) for arguments in (["P", "R", "P"], ["R", "P", "P"])]
        wanted = [_said(["R"], ["R"] * 3), *shards, *partial]
        for line in lines:
            if lines.count(line) > 1:
                return f"{dimensions}: the line {line} is there twice"
            if line not in wanted:
                return f"{dimensions}: the line {line} does not hold"
        if missing := [line for line in wanted if line not in lines]:
            kinds = "a dimension is cut" if "S" in missing[0] else "arguments are sums"
            return f"{dimensions}: {len(missing)} more would hold, such as one where {kinds}"
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
    "causal_rows": Check(
        causal_rows_reference,
        causal_rows_cases,
        far=Far(causal_rows_far, 2**34, 2**21 + 7, 2**18, (2**34 + 2**31 + 7, WIDE)),
    ),
    "weighted_mean": Check(
        weighted_mean_reference,
        weighted_mean_cases,
        far=Far(lambda n: mean(far(3, n), (1, 2, 5)), 2**34 + 1031, 2**24 + 1031, LEAST),
    ),
    "muladd_rule": Check(
        muladd_rule_reference,
        muladd_rule_cases,
        registered=rule_is_complete,
        why_not={"far": "it is written in PyTorch", "attested": "it is asked for the lines of a rule"},
    ),
}
