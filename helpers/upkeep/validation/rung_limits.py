"""What limits each rung of the matmul ladder at full size: an X-ray of a few blocks, for the column of the scoreboard.

Needs nvcc and nvdisasm, but no GPU: with nvcc's machine code, the limits know the arithmetic and the issue of
instructions too. Seconds are those of `report.limits`, by resource, summed over the launches of a call.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from helpers.ladder.catalogue.entry import Kernel
from helpers.ladder.catalogue.matmul import LADDER
from helpers.ladder.results.scoreboard import LIMITS
from helpers.paths import KERNELS
from helpers.upkeep.benchmarks.conditions import commit_name
from kernel_xray.build import loader
from kernel_xray.report.run import xray

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

GPU, SHAPE = "h200", (4096, 4096, 4096)
BLOCKS = (2, 8)  # of each launch; more where the first ones differ
_SAMPLED = ("", "scaled from a sample of blocks")  # why a limit is an estimate here, and another is left out


def main(names: Sequence[str]) -> int:
    """Records the rungs, by default all that are timed; the others keep what is recorded. Returns an exit status."""
    kept = json.loads(LIMITS.read_text()) if LIMITS.exists() else {"records": []}
    records = {record["variant"]: record for record in kept["records"]}
    about = {"commit": commit_name(), "date": str(datetime.date.today())}
    for kernel in LADDER:
        if kernel.not_timed or (names and kernel.name not in names):
            continue
        dtype = "float32" if "float32" in kernel.dtypes else "bfloat16"
        report = _sample(kernel, dtype)
        seconds = _seconds(report)
        records[kernel.name] = {"variant": kernel.name, "dtype": dtype, "shape": SHAPE, "seconds": seconds, **about}
        print(kernel.name, next(iter(seconds.items())))
        ordered = [records[each.name] for each in LADDER if each.name in records]
        LIMITS.write_text(
            json.dumps({"gpu": report.limits(GPU).gpu.name, "records": ordered}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


def _sample(kernel: Kernel, dtype: str) -> Report:
    """The X-ray of a few blocks of a product."""
    sources = [KERNELS / file for file in kernel.files]
    ops = loader.load(
        f"{kernel.library_name}_bound",
        sources,
        extra_cuda_cflags=list(kernel.nvcc_flags),
        is_python_module=False,
        traced=True,
    )
    m, n, k = SHAPE
    a, b = torch.zeros(m, k, dtype=getattr(torch, dtype)), torch.zeros(k, n, dtype=getattr(torch, dtype))
    for blocks in BLOCKS:
        report = xray(getattr(ops, kernel.name), a, b, seed=0, blocks=blocks, gpu=GPU, sass=True, seconds=3600)
        if all(launch.even for launch in report.launches):
            break
    return report


def _seconds(report: Report) -> dict[str, float]:
    """The least seconds by resource, the largest first."""
    found: Counter[str] = Counter()
    for launch in report.limits(GPU).launches:
        found.update({x.resource: x.seconds for x in launch.limits if x.estimate in _SAMPLED})
    return {resource: float(f"{seconds:.4g}") for resource, seconds in found.most_common()}
