"""`python -m helpers bench --scaling`: a training step on this machine's GPUs, beside the same step on one of them.

The model is the one of ladder/pytorch/many_gpus.py, in float32. ddp and fsdp give every GPU as many rows as the single
GPU has: at best a step takes as long. tensor_parallel divides the work on those rows among n GPUs: at best a step takes
1/n of the time. Efficiency is the share of that best. results/many_gpus.json holds the recorded times.
"""

import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

import torch

from helpers.ladder.pytorch.processes import call
from helpers.upkeep.benchmarks.timer import refusal
from helpers.upkeep.benchmarks.tools import Benchmark, positive

WIDTH, HIDDEN, ROWS = 4096, 16384, 8192
STEPS = 20
STRONG = ("tensor_parallel",)  # the same rows in all on any number of GPUs; the other ways: as many rows on each


def milliseconds(
    step: Callable[[], None], wait: Callable[[], None], *, steps: int = STEPS, clock: Callable[[], float]
) -> float:
    """The median time of `steps` steps, after three to warm up. `wait` returns when the queued work is done."""
    taken = []
    for _ in range(steps + 3):
        wait()
        start = clock()
        step()
        wait()
        taken.append(clock() - start)
    return statistics.median(taken[3:]) * 1e3


def records(alone: float, found: Mapping[str, float], processes: int) -> list[dict]:
    """A record for each way: ms per step, ms on one GPU, the speed-up in rows per second, the efficiency."""
    lines = []
    for way, ms in found.items():
        speed_up = alone / ms * (1 if way in STRONG else processes)
        lines.append(
            {"way": way, "gpus": processes, "ms": ms, "one_gpu_ms": alone}
            | {"speed_up": speed_up, "efficiency": speed_up / processes}
        )
    return lines


def measure(_arguments: Sequence[str] = ()) -> list[dict]:
    """Runs in each of several processes, on GPUs, and returns the records."""
    from helpers.ladder.pytorch import many_gpus, sharding

    mesh = many_gpus.join()
    sharding.register()
    x = torch.randn(ROWS, WIDTH, device="cuda")
    torch.distributed.broadcast(x, 0)  # tensor_parallel assumes the same rows on every GPU

    def time_of(way: str) -> float:
        torch.manual_seed(0)
        alone = many_gpus.GatedMLP(WIDTH, HIDDEN, torch.float32)
        model = many_gpus.WAYS[way](alone, mesh) if way else alone

        def step() -> None:
            model.zero_grad(set_to_none=True)
            many_gpus.step(model, x)

        torch.distributed.barrier()
        return milliseconds(step, torch.cuda.synchronize, clock=time.perf_counter)

    lines = records(time_of(""), {way: time_of(way) for way in many_gpus.WAYS}, mesh.size())
    many_gpus.leave()
    return lines


def table(document: Mapping) -> str:
    """The records as text, with GPU and date."""
    machine = document["machine"]
    lines = ["way              GPUs  scaling  rows in all  ms per step  on one GPU  speed-up  efficiency"]
    for r in document["records"]:
        kind, rows = ("strong", ROWS) if r["way"] in STRONG else ("weak", ROWS * r["gpus"])
        lines.append(
            f"{r['way']:16} {r['gpus']:>4} {kind:>8} {rows:>12,} {r['ms']:>12.2f} {r['one_gpu_ms']:>11.2f}"
            f" {r['speed_up']:>8.2f}x {r['efficiency']:>11.0%}"
        )
    source = f"recorded on {machine['gpu']}, PyTorch {machine['torch']}, {machine['date']}"
    return "\n".join([*lines, f"{source}; {ROWS:,} rows on one GPU, width {WIDTH:,}, hidden {HIDDEN:,}, float32"])


def _refusal(options: Namespace) -> str | None:
    alone = torch.cuda.device_count() < 2
    return refusal() or ("this machine has only one GPU: nothing to compare" if alone else None)


BENCHMARK = Benchmark(
    "--scaling",
    __doc__,
    lambda options: call(measure, options.gpus or torch.cuda.device_count()),
    table,
    {"--gpus": {"type": positive, "help": "how many (default: all)"}},
    file="many_gpus.json",
    where="with two GPUs",
    refusal=_refusal,
)
recorded = BENCHMARK.recorded
