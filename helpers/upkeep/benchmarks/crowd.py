"""`python -m helpers bench --load`: many learners on one machine, at the same time.

First a class that hands in: exercise checks, each of an answer of its own, in processes of their own. Then a
JupyterHub: notebooks that start together, each building a kernel of its own, on a build cache that is still empty.
Both need no GPU. A run counts as right if it ends with the right result.

Memory is that of all processes together: their proportional set sizes (PSS), sampled every second, in which a page
that n of them share counts 1/n for each: https://docs.kernel.org/filesystems/proc.html (read in November 2026). Where
the system has no PSS, as on macOS, it is the memory that each process shares with no other.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from helpers import paths
from helpers.upkeep.benchmarks import tools
from kernel_xray.machine import cache

EXERCISE = "roll"
COMPILERS = ("cc1plus", "clang", "cicc", "ptxas", "cudafe++")  # the processes that translate; drivers only wait

_NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.argv[1:]:
    shell.run_cell(cell).raise_error()
"""
_CELLS = (
    "import torch, helpers",
    "from helpers.upkeep.benchmarks.builds import STABLE",
    "ops = helpers.load_inline('crowd', '', cuda_sources=STABLE.replace('FACTOR', '{0}.0f'), "
    "no_implicit_headers=True, is_python_module=False)",
    "x = torch.arange(1000.0, device=helpers.device)",
    "assert torch.equal(ops.scale(x), {0} * x)",
)


@dataclass
class Crowd:
    """How a crowd of processes fared."""

    what: str
    seconds: list[float] = field(default_factory=list)  # of each
    wrong: list[str] = field(default_factory=list)  # what those said that failed
    wall: float = 0.0
    gigabytes: float = 0.0  # at the peak, all processes together
    compilers: int = 0  # at most at the same time

    def __str__(self) -> str:
        right = f"{len(self.seconds) - len(self.wrong)} of {len(self.seconds)}"
        lines = [
            f"{self.what}: {len(self.seconds)} at once, cores: {os.cpu_count()}",
            f"  right        {right:>8}",
            f"  wall time    {self.wall:8.1f} s",
            f"  each         {statistics.median(self.seconds):8.1f} s median, {max(self.seconds):.1f} s the slowest",
            f"  memory       {self.gigabytes:8.2f} GB at the peak, all processes together",
            f"  compilers    {self.compilers:8} at most at once",
        ]
        return "\n".join([*lines, *(f"  failed: {said}" for said in self.wrong)])


def checks(count: int) -> Crowd:
    """`count` checks of distinct right answers to one exercise."""
    solution = paths.KERNELS / "solutions" / f"{EXERCISE}.cu"
    with tempfile.TemporaryDirectory() as folder:
        commands = []
        for learner in range(count):
            answer = Path(folder) / f"learner_{learner}" / solution.name
            answer.parent.mkdir()
            answer.write_text(f"{solution.read_text(encoding='utf-8')}\n// learner {learner}, {time.time()}\n")
            commands.append([sys.executable, "-m", "helpers", "check", EXERCISE, str(answer)])
        return run("exercise checks", commands)


def notebooks(count: int) -> Crowd:
    """`count` processes with IPython, each building a kernel of its own, on an empty build cache."""
    with tempfile.TemporaryDirectory() as folder:
        cells = [[cell.format(factor) for cell in _CELLS] for factor in range(2, count + 2)]
        commands = [[sys.executable, "-c", _NOTEBOOK, *each] for each in cells]
        return run("notebooks on an empty cache", commands, {**paths.environment(), cache.VARIABLE: folder})


def run(
    what: str,
    commands: Sequence[Sequence[str]],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    every: float = 1.0,
) -> Crowd:
    """Starts all `commands` at once and watches them, with all that they start, to their end.

    environment  by default that of paths.environment
    folder       in which they run
    every        seconds between two looks at memory and compilers
    """
    crowd, start = Crowd(what), time.monotonic()
    settings: dict[str, Any] = {"env": paths.environment() if environment is None else environment, "cwd": folder}
    with tempfile.TemporaryDirectory() as log:
        started = {}
        for number, command in enumerate(commands):
            with open(Path(log) / str(number), "wb") as said:
                process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, **settings)
            started[process] = Path(said.name)
        try:
            running, sampled = set(started), 0.0
            while running:
                for process in [process for process in running if process.poll() is not None]:
                    running.remove(process)
                    crowd.seconds.append(time.monotonic() - start)
                    if process.returncode:
                        lines = started[process].read_text(errors="replace").strip().splitlines()
                        crowd.wrong.append(f"status {process.returncode}: {' / '.join(lines[-3:])[-300:]}")
                if time.monotonic() - sampled > every:
                    sampled = time.monotonic()
                    _sample(crowd, running)
                time.sleep(0.05)
        finally:
            for process in started:
                process.kill()
                process.wait()
    crowd.wall = time.monotonic() - start
    return crowd


def _sample(crowd: Crowd, running: Iterable[subprocess.Popen]) -> None:
    """Notes the memory and the compilers of the running processes and all their descendants, if the most so far."""
    total, compilers = 0, 0
    for started in running:
        with suppress(psutil.Error):  # it has ended meanwhile
            first = psutil.Process(started.pid)
            for process in (first, *first.children(recursive=True)):
                with suppress(psutil.Error):
                    compilers += process.name().startswith(COMPILERS)
                    memory = process.memory_full_info()
                    total += getattr(memory, "pss", 0) or memory.uss
    crowd.gigabytes = max(crowd.gigabytes, total / 1e9)
    crowd.compilers = max(crowd.compilers, compilers)


BENCHMARK = tools.Benchmark(
    "--load",
    __doc__,
    lambda options: (checks(options.checks), notebooks(options.notebooks)),
    lambda crowds: "\n".join(map(str, crowds)),
    {
        "--checks": {"type": tools.positive, "default": 64, "help": "exercise checks at once (64)"},
        "--notebooks": {"type": tools.positive, "default": 10, "help": "notebooks at once (10)"},
    },
    right=lambda crowds: not any(crowd.wrong for crowd in crowds),
)
