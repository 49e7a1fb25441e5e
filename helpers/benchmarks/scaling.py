"""`python -m helpers bench --scaling`: a training step on this machine's GPUs, beside the same step on one of them.

The model is that of helpers/pytorch/many_gpus.py, in float32. ddp and fsdp give every GPU as many rows as the single
one has: at best a step takes as long. tensor_parallel divides the work of those rows: at best a step takes the n-th
part. Efficiency is the share of that best. results/many_gpus.json holds what was recorded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from helpers.benchmarks.timer import refusal
from helpers.machine.paths import RESULTS
from helpers.pytorch.processes import call

FILE = RESULTS / "many_gpus.json"
WIDTH, HIDDEN, ROWS = 4096, 16384, 8192
STEPS = 20


def milliseconds(
    step: Callable[[], None], wait: Callable[[], None], *, steps: int = STEPS, clock: Callable[[], float]
) -> float:
    """The median time of a step, of `steps` after three to warm up. `wait` returns when its work is done."""
    taken = []
    for _ in range(steps + 3):
        wait()
        start = clock()
        step()
        wait()
        taken.append(clock() - start)
    return statistics.median(taken[3:]) * 1e3


def records(alone: float, found: Mapping[str, float], processes: int) -> list[dict]:
    """For each way: ms of a step, that of one GPU, how many times its rows per second, and the share of the best."""
    lines = []
    for way, ms in found.items():
        speed_up = alone / ms * (1 if way == "tensor_parallel" else processes)
        lines.append(
            {"way": way, "gpus": processes, "ms": ms, "one_gpu_ms": alone}
            | {"speed_up": speed_up, "efficiency": speed_up / processes}
        )
    return lines


def table(found: Mapping) -> str:
    """The records as text, with GPU and date."""
    machine = found["machine"]
    lines = ["way              GPUs  ms per step   on one GPU  speed-up  efficiency"]
    lines += [
        f"{r['way']:16} {r['gpus']:>4} {r['ms']:>12.2f} {r['one_gpu_ms']:>12.2f} {r['speed_up']:>8.2f}x"
        f" {r['efficiency']:>10.0%}"
        for r in found["records"]
    ]
    source = f"recorded on {machine['gpu']}, PyTorch {machine['torch']}, {machine['date']}"
    return "\n".join([*lines, f"{source}; {ROWS:,} rows, width {WIDTH:,}, hidden {HIDDEN:,}, float32"])


def recorded(file: Path = FILE) -> str:
    """What was recorded, as text; "not measured yet ..." if nothing was."""
    if not file.is_file():
        return f"not measured yet; with two GPUs: python -m helpers bench --scaling --record results/{FILE.name}"
    return table(json.loads(file.read_text(encoding="utf-8")))


def measured(_arguments: Sequence[str] = ()) -> list[dict]:
    """In one of several processes, on GPUs: the records."""
    from helpers.pytorch import many_gpus, sharding

    mesh = many_gpus.join()
    sharding.register()
    x = torch.randn(ROWS, WIDTH, device="cuda")
    torch.distributed.broadcast(x, 0)  # tensor_parallel takes it for the same on every GPU

    def time_of(way: str) -> float:
        torch.manual_seed(0)
        model: torch.nn.Module = many_gpus.GatedMLP(WIDTH, HIDDEN, torch.float32)
        model = many_gpus.WAYS[way](model, mesh) if way else model

        def step() -> None:
            model.zero_grad(set_to_none=True)
            many_gpus.step(model, x)

        torch.distributed.barrier()
        return milliseconds(step, torch.cuda.synchronize, clock=time.perf_counter)

    lines = records(time_of(""), {way: time_of(way) for way in many_gpus.WAYS}, mesh.size())
    many_gpus.leave()
    return lines


def main(arguments: Sequence[str]) -> int:
    """Measures and prints; with --record writes a file. Without two GPUs it shows what was recorded: exit status 1."""
    parser = argparse.ArgumentParser(prog="python -m helpers bench", description=__doc__)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count(), help="how many (all of this machine)")
    parser.add_argument("--record", type=Path, metavar="FILE", help=f"write the times there: results/{FILE.name}")
    options = parser.parse_args(arguments)
    reason = refusal() or ("" if torch.cuda.device_count() > 1 else "there is one GPU only: nothing to compare")
    if reason:
        print(f"bench: {reason}", file=sys.stderr)
        print(recorded())
        return 1
    from helpers.benchmarks.conditions import commit_name, machine_record

    lines = call(measured, options.gpus)
    found = {"machine": machine_record(commit_name()), "records": lines}
    print(table(found))
    if options.record:
        options.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
