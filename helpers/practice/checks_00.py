"""The checks of lesson 00: see checks.py."""

from collections.abc import Iterator

import torch

from helpers.practice.case_inputs import LEAST, SIZES, counted, far, normal
from helpers.practice.cases import Case, Check, Far

EXACT = {"rtol": 0.0}


def integers(*shape: int) -> torch.Tensor:
    """A tensor for a kernel to write whole numbers to."""
    return torch.zeros(*shape, dtype=torch.int32)


def lanes_cases() -> Iterator[Case]:
    settings = (  # n, threads
        (0, 32), (1, 32), (31, 32), (33, 64), (64, 33), (100, 50), (100, 1), (257, 256), (1000, 96), (1030, 1024),
        (40_003, 1), (100_003, 1023),
    )  # fmt: skip
    for n, threads in settings:
        label = f"n = {n:,}, blocks of {counted(threads, 'thread')}"
        yield Case(label, (n, threads), {"warp": integers(n), "lane": integers(n)})


def lanes_reference(n: int, threads: int) -> tuple:
    thread = torch.arange(n, dtype=torch.int32) % threads
    return thread // 32, thread % 32


def lanes_far(n: int) -> Case:
    outputs = {name: far(n, dtype=torch.int32) for name in ("warp", "lane")}
    return Case(f"n = {n:,}, blocks of 256 threads", (n, 256), outputs, EXACT)


def lanes_far_reference(n: int, threads: int) -> tuple:
    thread = torch.cat([torch.arange(512), torch.arange(n - 512, n)]) % threads
    return thread // 32, thread % 32


def reverse_cases() -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n = {n:,}", (normal(n),), {"out": normal(n)}, EXACT)


def reverse_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n),), {"out": far(n)}, EXACT)


def times_table_cases() -> Iterator[Case]:
    sizes = (
        (0, 0),
        (0, 5),
        (5, 0),
        (1, 1),
        (4, 8),
        (3, 7),
        (5, 9),
        (10, 10),
        (33, 3),
        (2, 100),
        (33_000, 1),
        (3, 40_003),
    )
    for rows, columns in sizes:
        yield Case(f"{rows:,} x {columns:,}", (rows, columns), {"table": integers(rows, columns)})


def times_table_reference(rows: int, columns: int) -> torch.Tensor:
    r, c = (torch.arange(1, n + 1, dtype=torch.int32) for n in (rows, columns))
    return r[:, None] * c


CHECKS = {
    "lanes": Check(lanes_reference, lanes_cases, far=Far(lanes_far, least=LEAST, reference=lanes_far_reference)),
    "reverse": Check(lambda x: x.flip(0), reverse_cases, far=Far(reverse_far, least=LEAST)),
    "times_table": Check(times_table_reference, times_table_cases),
}
