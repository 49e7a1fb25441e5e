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

from helpers.ladder.catalogue.matmul import LADDER, MATMUL
from helpers.ladder.results.scoreboard import LIMITS
from helpers.upkeep.benchmarks.conditions import commit_name
from helpers.upkeep.validation.recorded_calls import Call, by_resource

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

GPU, SHAPE = "h200", (4096, 4096, 4096)


def main(names: Sequence[str]) -> int:
    """Records the rungs, by default all that are timed; the others keep what is recorded. Returns an exit status."""
    kept = json.loads(LIMITS.read_text()) if LIMITS.exists() else {"records": []}
    records = {record["variant"]: record for record in kept["records"]}
    about = {"commit": commit_name(), "date": str(datetime.date.today())}
    for kernel in LADDER:
        if kernel.not_timed or (names and kernel.name not in names):
            continue
        dtype = "float32" if "float32" in kernel.dtypes else "bfloat16"
        report = Call(MATMUL, kernel, next(iter(kernel.variants)), dtype, SHAPE).report(GPU, seconds=3600)
        seconds = _seconds(report)
        records[kernel.name] = {"variant": kernel.name, "dtype": dtype, "shape": SHAPE, "seconds": seconds, **about}
        print(kernel.name, next(iter(seconds.items())))
        ordered = [records[each.name] for each in LADDER if each.name in records]
        LIMITS.write_text(
            json.dumps({"gpu": report.limits(GPU).gpu.name, "records": ordered}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


def _seconds(report: Report) -> dict[str, float]:
    """The least seconds by resource, the largest first."""
    found: Counter[str] = Counter()
    for launch in report.limits(GPU).launches:
        found.update(by_resource(launch))
    return {resource: float(f"{seconds:.4g}") for resource, seconds in found.most_common()}
