"""Terminal sessions, recorded on a GPU for lesson 13: the command that a learner types, and its output."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from helpers.upkeep.validation import ncu, profiled, sanitizer
from helpers.upkeep.validation.case import HERE
from helpers.upkeep.validation.counters import METRICS

SCRIPT = HERE / "late_error.py"


def record(jobs: int = 1, only: str = "") -> list[dict]:
    """The sessions whose name contains `only`, as `name`, `command`, `output`; runs `jobs` at a time.

    A failed session's output has the error: see `problems`.
    """
    chosen = {name: session for name, session in SESSIONS.items() if only in name}
    with ThreadPoolExecutor(jobs) as pool:
        outputs = pool.map(lambda session: session[1](), chosen.values())
        return [
            {"name": name, "command": shown, "output": output}
            for (name, (shown, _)), output in zip(chosen.items(), outputs, strict=True)
        ]


def problems(sessions: Sequence[Mapping]) -> list[str]:
    """What a recorded session lacks of what it is about, such as CUDA's error; [] if each has it."""
    outputs = {session["name"]: session["output"] for session in sessions}
    found = [f"{name}: not recorded" for name in SESSIONS if name not in outputs]
    for name, output in outputs.items():
        about = ABOUT.get(name, READ_SECTION if name.startswith("ncu: ") else "")
        if not re.search(about, output):
            found.append(f"{name}: nothing matches {about!r} in {output[-200:]!r}")
        if wrong := re.search(
            r"\b(\w*(?:Import|ModuleNotFound|FileNotFound|Name|Attribute)Error|BuildError)\b", output
        ):
            found.append(f"{name}: {wrong[0]}")
    return found


def _script(settings: dict[str, str]) -> Callable[[], str]:
    return lambda: traceback_of(sanitizer.finish([sys.executable, str(SCRIPT)], settings, 90))


def _sanitizer(tool: str, exhibit: str) -> Callable[[], str]:
    return lambda: sanitizer.shown(sanitizer.run(tool, (exhibit,)))


def _ncu() -> str:
    metrics = ",".join(METRICS[label][0] for label in ("global load requests", "global load sectors"))
    launches = [sys.executable, "-m", "helpers.upkeep.validation", "launches", "--only", "load, 4 B, stride"]
    return profile_of(sanitizer.finish(ncu.call(["micro_global_load"], launches, "--metrics", metrics), {}, 90))


def _examined(*names: str) -> Callable[[], str]:
    def output() -> str:
        text = sanitizer.finish([sys.executable, "-m", "helpers.upkeep.validation", "examine"], {}, 120)
        return "\n".join(line.replace("\t", "  ") for line in text.splitlines() if line.split("\t")[0] in names)

    return output


def traceback_of(output: str) -> str:
    """The frames of the script itself and the error's first line, without folders and advice."""
    lines = output.splitlines()
    kept = []
    for i, line in enumerate(lines):
        if frame := re.match(rf'\s*File "[^"]*{re.escape(SCRIPT.name)}", (line \d+), in (.*)', line):
            kept += [f'  File "{SCRIPT.name}", {frame[1]}, in {frame[2]}', f"    {lines[i + 1].strip()}"]
        elif re.match(r"[\w.]*Error: ", line):
            kept.append(line)
    return "\n".join(["Traceback (most recent call last):", *kept]) if kept else output[-800:]


def profile_of(output: str) -> str:
    """Kernels and counters from ncu's text, without its messages and rules."""
    rows = [line.rstrip() for line in output.splitlines() if not line.startswith("==")]
    rows = [re.sub(r", Context \d+, Stream \d+, Device \d+, CC [\d.]+", "", line) for line in rows]
    rows = [line for line in rows if re.search(r"l1tex__|smsp__|micro_", line)]
    return "\n".join(rows) or output[-800:]


_RUN = "python late_error.py"
_EXHIBIT = "python -m helpers.upkeep.validation exhibit"
SESSIONS: dict[str, tuple[str, Callable[[], str]]] = {
    "asynchronous": (_RUN, _script({})),
    "blocking": (f"CUDA_LAUNCH_BLOCKING=1 {_RUN}", _script({"CUDA_LAUNCH_BLOCKING": "1"})),
    **{
        name: (f"compute-sanitizer --tool {tool} {_EXHIBIT} {exhibit}", _sanitizer(tool, exhibit))
        for name, tool, exhibit in (
            ("memcheck neighbour", "memcheck", "guard_off_by_one"),
            ("memcheck", "memcheck", "int_overflow"),
            ("racecheck", "racecheck", "tile_overwritten"),
            ("racecheck global", "racecheck", "last_block"),
            ("synccheck", "synccheck", "barrier_in_branch"),
        )
    },
    "ncu": ("ncu --metrics l1tex__t_requests...,l1tex__t_sectors... -k regex:micro_global_load ...", _ncu),
    **{
        f"ncu: {name}": ("ncu --set full --clock-control none python two_versions.py", partial(profiled.section, name))
        for name in profiled.READ
    },
    "clock and stream": ("python -m helpers.upkeep.validation examine", _examined("no_synchronise", "default_stream")),
}
# What a session is about -> a pattern that its output must match. Of a silent tool, that it ended.
ABOUT = {
    "asynchronous": r"doubled[^\n]*\n\S*Error: CUDA error: an illegal memory access",
    "blocking": r"int_overflow[^\n]*\n\S*Error: CUDA error: an illegal memory access",
    "memcheck neighbour": r"ERROR SUMMARY: 0 errors",
    "memcheck": r"Invalid __global__ read(?s:.*)int_overflow_kernel",
    "racecheck": r"Race reported(?s:.*)tile_overwritten_kernel",
    "racecheck global": r"RACECHECK SUMMARY: 0 hazards",
    "synccheck": r"COMPUTE-SANITIZER",  # it waits for ever at the barrier that it should report
    "ncu": r"l1tex__t_requests",
    "clock and stream": r"no_synchronise  broken  [\d.]+ ms",
}
READ_SECTION = r"bias_gelu_simple +bias_gelu\n.* [\d.,]+ +[\d.,]+(?:\n|$)"
