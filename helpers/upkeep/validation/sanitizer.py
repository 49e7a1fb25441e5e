"""compute-sanitizer: the command for one exhibit, and a reader of its output."""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass

# PyTorch's tensors are parts of large allocations, and memcheck knows only the allocations. With the cache off, each
# tensor has its own allocation.
UNCACHED = "memcheck, uncached"
TOOLS = ("memcheck", UNCACHED, "racecheck", "initcheck", "synccheck")
FOR_FAMILY = {
    "bounds": ("memcheck", UNCACHED, "initcheck"),
    "synchronisation": ("memcheck", "racecheck", "initcheck", "synccheck"),
    "units": ("memcheck", "racecheck", "initcheck", "synccheck"),  # the others do not use shared memory
    "published": ("memcheck", "racecheck", "initcheck", "synccheck"),
}
_PREFIX = re.compile(r"^=========\s?")
_PLACE = re.compile(r"([\w.+-]+\.(?:cuh?|h)):(\d+)")  # for an inlined function of hopper.h, a line of that file
_KERNEL = re.compile(r"\bat (?:void )?(\w+)(?:<[^(]*>)?\(")
_SUMMARY = re.compile(r"SUMMARY: (\d+) (?:error|hazard)s?\b(?! were not printed)")
# How a finding begins; lines about the host or the program's exit are not findings.
_FINDING = re.compile(
    r"^(Invalid __\w+__ (?:read|write|atomic)|Uninitialized __?\w+|Error: Race|Warning: Race|Error: Potential|"
    r"Warning: \(Warp|Error: \(Warp|Barrier error|Invalid arguments|Divergent|Error: .*hazard|Malloc/Free error|"
    r"Unknown Error|Misaligned|Program hit \w+)"
)


_ENDED = re.compile(r"^\w+: (CUDA error: .+)$", re.MULTILINE)  # as children.exhibit prints it


@dataclass(frozen=True)
class Verdict:
    """A tool's first finding: its first line, its place, and the tool's count of findings. kind "": it found nothing.

    If the tool reported nothing and CUDA ended the run, the kind is CUDA's error.
    """

    kind: str
    place: str = ""
    kernel: str = ""
    count: int = 0

    def as_dict(self) -> dict:
        return {"kind": self.kind, "place": self.place, "count": self.count}


def command(tool: str, program: list[str]) -> tuple[list[str], dict[str, str]]:
    """The compute-sanitizer command for a program, and variables for its environment."""
    name = tool.partition(",")[0]
    call = [shutil.which("compute-sanitizer") or "compute-sanitizer", "--tool", name, "--print-limit", "5"]
    call += ["--show-backtrace", "no"]
    if name == "memcheck":  # PyTorch itself causes and handles some API errors
        call += ["--report-api-errors", "no"]
    return [*call, *program], {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if tool == UNCACHED else {}


@functools.cache
def run(tool: str, exhibits: tuple[str, ...], fixed: bool = False, timeout: float = 90) -> str:
    """The output for exhibits in a process of their own, run once; says so in the text if that had to be ended."""
    program = [sys.executable, "-m", "helpers.upkeep.validation", "exhibit", *exhibits, *(["--fixed"] if fixed else [])]
    call, settings = command(tool, program)
    return finish(call, settings, timeout)


def finish(call: list[str], settings: dict[str, str], timeout: float) -> str:
    """Runs a command; kills it and its children after `timeout` seconds. Returns everything it printed."""
    try:
        process = subprocess.Popen(
            call,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **settings},
            start_new_session=True,
        )
    except OSError as error:
        return f"[it did not start: {error}]\n"
    try:
        return process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + f"\n[ended after {timeout:.0f} s]\n"


def parse(output: str) -> Verdict | None:
    """Reads the output; None if the tool did not finish, so its silence means nothing."""
    lines = [_PREFIX.sub("", line).strip() for line in output.splitlines() if line.startswith("=========")]
    begins = [i for i, line in enumerate(lines) if _FINDING.match(line)]
    totals = [int(m[1]) for line in lines if (m := _SUMMARY.search(line))]
    if not begins:
        ended = _ENDED.search(output)
        return Verdict(ended[1] if ended else "") if totals and not totals[-1] else None
    ends = [next((i for i in range(b + 1, len(lines)) if not lines[i]), len(lines)) for b in begins]
    blocks = [" ".join(lines[b : min([e, *(n for n in begins if n > b)])]) for b, e in zip(begins, ends, strict=True)]
    chosen = next((i for i, block in enumerate(blocks) if _PLACE.search(block)), 0)  # the first that names a line
    place, kernel = _PLACE.search(blocks[chosen]), _KERNEL.search(blocks[chosen])
    kind = lines[begins[chosen]].partition(" at ")[0].removesuffix(" Read access").removesuffix(" Write access")
    kind = re.sub(r"\s+between.*|^Error: |^Warning: ", "", kind).rstrip(".")
    return Verdict(
        kind,
        f"{place[1]}:{place[2]}" if place else "",
        kernel[1] if kernel else "",
        totals[-1] if totals else 1,
    )


def shown(output: str, limit: int = 24) -> str:
    """The tool's lines as a lesson shows them: without addresses and host frames."""
    lines = [line.rstrip() for line in output.splitlines() if line.startswith("=========")]
    lines = [line for line in lines if not re.search(r"Host Frame|Saved host backtrace|^=========\s*$", line)]
    lines = [re.sub(r"0x[0-9a-f]{6,}", "0x...", line) for line in lines]
    return "\n".join([*lines[:limit], "..."] if len(lines) > limit else lines)
