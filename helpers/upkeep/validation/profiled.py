"""One profile with `ncu --set full`, of two versions of a kernel, read section by section for lesson 13.

ncu prints some 200 lines for each kernel. READ names the lines that answer a question; `section` shows them for both
kernels side by side. Counters that are no part of a section, such as why warps wait, are asked for by name.
"""

import functools
import re
import sys
import threading
from collections.abc import Sequence

from helpers.upkeep.validation import ncu, sanitizer
from helpers.upkeep.validation.case import HERE

SCRIPT = HERE / "two_versions.py"
KERNELS = ("bias_gelu_simple_kernel", "bias_gelu_kernel")
# Why a warp did not issue, in warps per issued instruction: the warp state in ncu's source counters and in its guide.
STALLS = (
    "long_scoreboard", "lg_throttle", "short_scoreboard", "mio_throttle", "math_pipe_throttle", "wait", "barrier",
    "not_selected", "selected",
)  # fmt: skip
ASKED = "Command line profiler metrics"
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_SHORT = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
READ = {  # section -> the rows to show, as ncu names them
    "GPU Speed Of Light Throughput": (
        "Duration", "Compute (SM) Throughput", "Memory Throughput", "L1/TEX Cache Throughput", "L2 Cache Throughput",
        "DRAM Throughput",
    ),
    "Scheduler Statistics": ("Active Warps Per Scheduler", "Eligible Warps Per Scheduler", "No Eligible"),
    "Warp State Statistics": ("Warp Cycles Per Issued Instruction",),
    "Instruction Statistics": ("Executed Instructions",),
    "Occupancy": ("Theoretical Occupancy", "Achieved Occupancy"),
    ASKED: tuple(map(_STALL.format, STALLS)),
}  # fmt: skip
_LOCK = threading.Lock()


def command(stalls: Sequence[str]) -> list[str]:
    """ncu and the script with both kernels."""
    return ncu.call(KERNELS, [sys.executable, str(SCRIPT)], "--set", "full", "--metrics", ",".join(stalls))


def section(name: str) -> str:
    """The rows of READ[name], with a column for each kernel, from one run of ncu for all sections."""
    with _LOCK:
        return section_of(_output(), name)


@functools.cache
def _output() -> str:
    stalls = READ[ASKED]
    output = sanitizer.finish(command(stalls), {}, 120)
    if unknown := ncu.MISSING.findall(output):
        output = sanitizer.finish(command([stall for stall in stalls if stall not in unknown]), {}, 120)
    return output


def section_of(output: str, name: str) -> str:
    """The same from what ncu printed. Without such rows: the end of the output, where an error would be."""
    values: dict[str, dict[str, str]] = {}  # row -> kernel -> value
    units: dict[str, str] = {}
    kernel = inside = ""
    for line in output.splitlines():
        if found := re.match(r"\s+(?:void )?(\w+)(?:<.*>)?\(.*\(\d+, \d+, \d+\)x\(", line):
            kernel = found[1]
        elif found := re.match(r"\s+Section: (.*\S)", line):
            inside = found[1]
        elif inside == name and (row := _row(line)) and row[0] in READ[name]:
            values.setdefault(row[0], {})[kernel] = row[2]
            units[row[0]] = row[1]
    if not values:
        return output[-800:]
    names = [k for k in KERNELS if any(k in of_row for of_row in values.values())]
    table = [(_SHORT.sub(r"stalled: \1", row) + units[row], values[row]) for row in READ[name] if row in values]
    width = max(len(name), *(len(row) for row, _ in table))
    lines = [f"{name:{width}}" + "".join(f"  {k.removesuffix('_kernel'):>16}" for k in names)]
    lines += [f"{row:{width}}" + "".join(f"  {of_row.get(k, ''):>16}" for k in names) for row, of_row in table]
    return "\n".join(line.rstrip() for line in lines)


def _row(line: str) -> tuple[str, str, str] | None:
    """Name, unit and value of a row of a table: columns are two or more spaces apart, and the unit may be missing."""
    cells = re.split(r"\s{2,}", line.strip())
    if len(cells) not in (2, 3) or not re.fullmatch(r"[\d.,]+", cells[-1]):
        return None
    return cells[0], f", {cells[1]}" if len(cells) == 3 else "", cells[-1]
