"""`python -m helpers bench --overhead`: what a call costs on the CPU, for each way to call one and the same kernel.

Tensors of 16 elements: the kernel is shorter than its launch, so the time from one call to the next is that of Python,
PyTorch and the driver. It is CPU time, but that of a GPU's host: in the simulator a call also runs the kernel, and
nothing is measured. results/call_overhead.json holds what was recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from helpers.benchmarks.timer import Stats, refusal, summary
from helpers.build import loader
from helpers.machine.paths import RESULTS

FILE = RESULTS / "call_overhead.json"
CALLS, ROUNDS = 400, 25  # calls in a sample: fewer than the driver queues before it makes the CPU wait
BASE = "torch.add"


def forms(device: str = "cuda") -> dict[str, Callable[[], object]]:
    """The ways to call, ready to be timed, as name -> call. Builds what they need; needs a GPU unless it is "cpu"."""
    from helpers.pytorch import operators

    kernel = operators.KERNELS / "elementwise_mult_kernel.cu"
    module = loader.load("elementwise_mult_split", [operators.KERNELS / "elementwise_mult.cpp", kernel])
    bare = operators.library("bare_mult", "elementwise_mult_stable.cu", kernel.name)
    overload, first_class = bare.elementwise_mult.default, operators.elementwise_mult()
    a, b = torch.rand(2, 16, device=device).unbind(0)
    leaf = a.clone().requires_grad_()

    @torch.library.custom_op("call_overhead::mult", mutates_args=())
    def in_python(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return overload(a, b)

    class Mult(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return overload(a, b)

        @staticmethod
        def backward(ctx, grad):
            raise NotImplementedError("only forward is timed")

    in_python.register_fake(lambda a, b: torch.empty_like(a))
    compiled = torch.compile(first_class, fullgraph=True, dynamic=False)
    ways = {
        BASE: lambda: torch.add(a, b),
        "torch.add, gradient recorded": lambda: torch.add(leaf, b),
        "pybind11 function": lambda: module.elementwise_mult(a, b),
        "C++ operator": lambda: overload(a, b),
        "C++ operator, looked up at each call": lambda: torch.ops.bare_mult.elementwise_mult(a, b),
        "C++ operator with autograd": lambda: first_class(a, b),
        "C++ operator with autograd, gradient recorded": lambda: first_class(leaf, b),
        "Python operator": lambda: in_python(a, b),
        "autograd.Function, gradient recorded": lambda: Mult.apply(leaf, b),
        "torch.compile": lambda: compiled(a, b),
    }
    if device == "cuda":
        graph = torch.cuda.CUDAGraph()
        overload(a, b)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            overload(a, b)
        ways["CUDA graph of one call"] = graph.replay
    return ways


def measure(
    ways: Mapping[str, Callable[[], object]],
    wait: Callable[[], None],
    *,
    calls: int = CALLS,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Stats]:
    """Seconds of `clock` per call of each of `ways`, in turns, as Stats in *milliseconds*.

    wait  returns when all queued work is done; it is called before and after each sample, outside of it
    """
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(-2, rounds):  # two rounds to warm up
        for name, call in ways.items():
            wait()
            start = clock()
            for _ in range(calls):
                call()
            elapsed = clock() - start
            wait()
            if number >= 0:
                samples[name].append(elapsed / calls * 1e3)
    return {name: summary(taken) for name, taken in samples.items()}


def document(machine: Mapping, stats: Mapping[str, Stats]) -> dict:
    """What the file holds: the machine, and for each way microseconds per call and how many times torch.add's."""
    base = stats[BASE].median_ms
    records = [
        {
            "form": name,
            **{f"{key}_us": round(getattr(s, f"{key}_ms") * 1e3, 3) for key in ("median", "p20", "p80")},
            "of_add": round(s.median_ms / base, 3),
        }
        for name, s in stats.items()
    ]
    return {"machine": dict(machine), "records": records}


def table(found: Mapping) -> str:
    """The records as text, with GPU and date."""
    machine = found["machine"]
    width = max(len(r["form"]) for r in found["records"])
    lines = [f"{'microseconds per call, 16 elements':{width}}   median   20% to 80%  of torch.add"]
    for r in found["records"]:
        spread = f"{r['p20_us']:.1f} to {r['p80_us']:.1f}"
        lines.append(f"{r['form']:{width}} {r['median_us']:8.1f} {spread:>12} {r['of_add']:11.2f}x")
    return "\n".join(
        [*lines, f"recorded on the host of {machine['gpu']}, PyTorch {machine['torch']}, {machine['date']}"]
    )


def recorded(file: Path = FILE) -> str:
    """What was recorded, as text; "not measured yet ..." if nothing was."""
    if not file.is_file():
        return (
            "not measured yet; on a GPU's host: python -m helpers bench --overhead --record " + f"results/{FILE.name}"
        )
    return table(json.loads(file.read_text(encoding="utf-8")))


def main(arguments: list[str]) -> int:
    """Measures and prints; with --record writes a file. In the simulator it shows what was recorded: exit status 1."""
    parser = argparse.ArgumentParser(prog="python -m helpers bench", description=__doc__)
    parser.add_argument("--overhead", action="store_true", required=True)
    parser.add_argument("--record", type=Path, metavar="FILE", help=f"write the times there: results/{FILE.name}")
    options = parser.parse_args(arguments)
    if reason := refusal():
        print(f"bench: {reason}", file=sys.stderr)
        print(recorded())
        return 1
    from helpers.benchmarks.conditions import commit_name, machine_record

    stats = measure(forms(), torch.cuda.synchronize)
    found = document(machine_record(commit_name()), stats)
    print(table(found))
    if options.record:
        options.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0
