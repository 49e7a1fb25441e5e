"""`python -m helpers bench --overhead`: what a call costs on the CPU, for each way to call one kernel.

Tensors have 16 elements, so the kernel is shorter than its launch and the time between two calls is spent in Python,
PyTorch and the driver. It is the CPU time of a machine with a GPU: in the simulator a call also runs the kernel, so
nothing is measured there. results/call_overhead.json holds the recorded times.
"""

import time
from collections.abc import Callable, Mapping

import torch

from helpers.ladder.results.measurement import Stats
from helpers.upkeep.benchmarks.timer import in_turns, refusal
from helpers.upkeep.benchmarks.tools import Benchmark
from kernel_xray.build import loader

CALLS, ROUNDS = 400, 25  # calls per sample: fewer than the driver queues before it makes the CPU wait
BASE = "torch.add"


def forms(device: str = "cuda") -> dict[str, Callable[[], object]]:
    """The ways to call the kernel: name -> call. Builds the kernel; a device other than "cpu" needs a GPU."""
    from helpers.ladder.pytorch import operators

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
) -> list[dict]:
    """Times each of `ways`, round-robin; a record holds microseconds per call and the ratio to torch.add.

    wait   returns when all queued work is done; it is called before and after each sample, outside its time
    clock  returns seconds
    """

    def milliseconds(call: Callable[[], object]) -> float:
        wait()
        start = clock()
        for _ in range(calls):
            call()
        elapsed = clock() - start
        wait()
        return elapsed / calls * 1e3

    stats = in_turns(ways, milliseconds, rounds)
    return [_record(name, s, stats[BASE]) for name, s in stats.items()]


def _record(name: str, stats: Stats, base: Stats) -> dict:
    times = {"median_us": stats.median_ms, "p20_us": stats.p20_ms, "p80_us": stats.p80_ms}
    rounded = {key: round(ms * 1e3, 3) for key, ms in times.items()}
    return {"form": name, **rounded, "of_add": round(stats.median_ms / base.median_ms, 3)}


def table(document: Mapping) -> str:
    """The records as text, with GPU and date."""
    machine = document["machine"]
    width = max(len(r["form"]) for r in document["records"])
    lines = [f"{'microseconds per call, 16 elements':{width}}   median   20% to 80%  of torch.add"]
    for r in document["records"]:
        spread = f"{r['p20_us']:.1f} to {r['p80_us']:.1f}"
        lines.append(f"{r['form']:{width}} {r['median_us']:8.1f} {spread:>12} {r['of_add']:11.2f}x")
    lines.append(f"recorded on the host of {machine['gpu']}, PyTorch {machine['torch']}, {machine['date']}")
    return "\n".join(lines)


BENCHMARK = Benchmark(
    "--overhead",
    __doc__,
    lambda options: measure(forms(), torch.cuda.synchronize),
    table,
    file="call_overhead.json",
    where="on a GPU's host",
    refusal=lambda options: refusal(),
)
recorded = BENCHMARK.recorded
