"""One fresh process for each operator and dtype: `python -m helpers.upkeep.benchmarks.worker JOB OUTPUT`.

torch.compile performs best in a process that has compiled nothing else: a function compiled for one shape is compiled
for dynamic shapes at the next. A separate process also keeps one operator's crash from the others.

JOB is a JSON object: {"op", "dtype", "cells": [{"shape", "compiled", "budget_ms"}, ...], "commit"}, or {"op", "commit",
"build": true} to build the kernels and name the machine. OUTPUT gets a line of JSON for each result at once, so a
crash loses no earlier measurement: {"machine": ...}, {"cell": {op, dtype, shape, records, failures}},
{"failures": ...}.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from helpers.ladder.catalogue import OPERATORS, Operator
from helpers.paths import environment
from helpers.upkeep.benchmarks.cell import measure_cell
from helpers.upkeep.benchmarks.conditions import machine_record, memory_peak
from helpers.upkeep.benchmarks.gpu import CudaBackend

SECONDS = 240  # time limit of a process
Emit = Callable[[dict], None]


def run_job(job: Mapping, emit: Emit, *, operators: Mapping[str, Operator] = OPERATORS, device=None, gpu=None) -> None:
    """Does a job in this process and emits the lines listed at the top of this file.

    Raises ValueError if any cell but the first is to be compiled.

    gpu  an object with `backend()`, `machine(commit, backend)` and `peak()`; `Gpu` by default
    """
    if any(cell["compiled"] for cell in job.get("cells", ())[1:]):
        raise ValueError(
            "only the first cell of a job can have torch.compile as a peer: give the others a job of their own"
        )
    gpu = gpu or Gpu()
    operator = operators[job["op"]]
    if wanted := job.get("kernels"):
        operator = replace(operator, kernels=tuple(k for k in operator.kernels if k.name in wanted))
    backend = gpu.backend()  # first: without a GPU, nothing is built
    variants, failures = operator.load()
    if failures:
        emit({"failures": {f"{job['op']}, {name}": why for name, why in failures.items()}})
    if job.get("build"):
        emit({"machine": gpu.machine(job.get("commit", "unknown"), backend)})
        return
    for number, cell in enumerate(job["cells"]):
        where = f"{job['op']}, {job['dtype']}, {cell['shape']}"
        try:
            done = measure_cell(
                operator,
                {name: call for name, call in variants.items() if operator.takes(name, job["dtype"], cell["shape"])},
                job["dtype"],
                cell["shape"],
                backend,
                device=device or gpu.device,
                compiled=cell["compiled"],
                budget_ms=cell["budget_ms"],
                peak=gpu.peak(),
            )
        except Exception as error:  # out of memory at one shape, say; the others may work
            emit({"failures": {where: f"{type(error).__name__}: {error}"}})
        else:
            emit({"cell": asdict(done)})
        if number == 0:
            emit({"machine": gpu.machine(job.get("commit", "unknown"), backend)})


class Gpu:
    """The GPU of this machine. `backend` raises TimerError in the simulator."""

    device = "cuda"

    def backend(self):
        return CudaBackend()

    def machine(self, commit: str, backend) -> dict:
        return machine_record(commit, backend.busy)

    def peak(self) -> float | None:
        return memory_peak()


def launch(job: Mapping) -> list[dict]:
    """Does a job in a fresh process. Returns what it emitted, with a failure at the end if the process failed."""
    return collect(start(job), job)


def start(job: Mapping) -> tuple[subprocess.Popen, Path]:
    """Starts a fresh process for a job; `collect` waits for it."""
    output = Path(tempfile.mkdtemp(prefix="bench_")) / "lines"
    output.touch()
    # One thread compiles: starting a pool of compiler processes costs more than the one kernel that is compiled.
    variables = {"TORCHINDUCTOR_COMPILE_THREADS": "1", **environment()}
    command = [sys.executable, "-m", "helpers.upkeep.benchmarks.worker", json.dumps(job), str(output)]
    log = open(output.with_name("log"), "w")  # noqa: SIM115  the process keeps it open
    with log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=variables), output


def collect(started: tuple[subprocess.Popen, Path], job: Mapping, seconds: float = SECONDS) -> list[dict]:
    """Waits for a process from `start` and returns what it emitted, with a failure at the end if it failed."""
    process, output = started
    try:
        status = process.wait(timeout=seconds)
        ended = f"the process ended with status {status}"
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        status, ended = -1, f"the process was killed after {seconds:.0f} s"
    lines = [json.loads(line) for line in output.read_text().splitlines() if line.endswith("}")]
    log = output.with_name("log")
    if status != 0:
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        where = f"{job['op']}, {job.get('dtype', 'build')}"
        lines.append({"failures": {where: f"{ended}; it said: " + " / ".join(said[-3:])[-600:]}})
    for path in (output, log):
        path.unlink(missing_ok=True)
    output.parent.rmdir()
    return lines


def main(arguments: list[str]) -> int:
    job, path = json.loads(arguments[0]), arguments[1]
    with open(path, "a", encoding="utf-8") as output:

        def emit(line: dict) -> None:
            output.write(json.dumps(line) + "\n")
            output.flush()

        run_job(job, emit)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
