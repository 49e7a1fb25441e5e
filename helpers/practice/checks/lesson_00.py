"""The checks of lesson 00: thread, block and grid."""

import torch

from helpers.practice.calls import Calls, on_vectors
from helpers.practice.case_inputs import BY, EXACT, LEAST
from helpers.practice.cases import Check, Far

LANES = Calls(
    "n, threads -> warp[n], lane[n]",
    label="n = {n:,}, blocks of {threads:thread}",
    dtypes=dict.fromkeys(("warp", "lane"), torch.int32),
)
TABLE = Calls("rows, columns -> table[rows, columns]", label=BY, dtypes={"table": torch.int32})


def lanes_of(thread: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return thread // 32, thread % 32


def times_table_reference(rows: int, columns: int) -> torch.Tensor:
    r, c = (torch.arange(1, n + 1, dtype=torch.int32) for n in (rows, columns))
    return r[:, None] * c


CHECKS = {
    "lanes": Check(
        lambda n, threads: lanes_of(torch.arange(n, dtype=torch.int32) % threads),
        lambda: LANES.at(
            (0, 32), (1, 32), (31, 32), (33, 64), (64, 33), (100, 50), (100, 1), (257, 256), (1000, 96), (1030, 1024),
            (40_003, 1), (100_003, 1023),
        ),
        far=Far(
            lambda n: LANES.far(n, 256, **EXACT),
            least=LEAST,
            reference=lambda n, threads: lanes_of(torch.cat([torch.arange(512), torch.arange(n - 512, n)]) % threads),
        ),
    ),
    "reverse": on_vectors(lambda x: x.flip(0), Calls("x[n] -> out[n]", tolerance=EXACT)),
    "times_table": Check(
        times_table_reference,
        lambda: TABLE.at(
            (0, 0), (0, 5), (5, 0), (1, 1), (4, 8), (3, 7), (5, 9), (10, 10), (33, 3), (2, 100), (33_000, 1),
            (3, 40_003),
        ),
        why_not={"far": "its kernel counts with an int"},
    ),
}  # fmt: skip
