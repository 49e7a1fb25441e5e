"""Builds kernels/vector_add.cu, runs it and checks the answer: `python -m helpers first-kernel`.

The shortest proof that everything between Python and a kernel works on this machine: the compiler, PyTorch's headers,
the loader, and the GPU or the simulator.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from helpers.paths import KERNELS
from kernel_xray.build import loader
from kernel_xray.machine import toolchain
from kernel_xray.runtime import faults

SOURCE = KERNELS / "vector_add.cu"
SIZE = 1_000_003  # not a multiple of a block: some threads of the last block have no element


@dataclass(frozen=True)
class Outcome:
    """Where it ran, how long the build took (seconds), and how many elements are wrong."""

    where: str
    build_seconds: float
    size: int
    wrong: int
    first_wrong: int | None


def compare(got: torch.Tensor, expected: torch.Tensor) -> tuple[int, int | None]:
    """How many elements differ, and the index of the first. NaN differs from everything."""
    differ = torch.nonzero(~(got == expected)).flatten()
    return len(differ), int(differ[0]) if len(differ) else None


def run() -> Outcome:
    """Builds and runs the kernel on `helpers.device`. Raises the loader's errors."""
    simulated = toolchain.target == "simulator"
    where = "simulator (on the CPU)" if simulated else f"gpu ({torch.cuda.get_device_name()})"
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:  # if the simulator's bridge must be built too, build it in parallel
        bridge = pool.submit(faults.install) if simulated else None
        ops = loader.load(name="first_kernel", sources=[str(SOURCE)], is_python_module=False)
        if bridge:
            bridge.result()
    seconds = time.monotonic() - start
    # Computed on the CPU on every machine: the device under test must not compute the expected sum.
    a = torch.arange(SIZE, dtype=torch.float32)
    b = torch.linspace(-1, 1, SIZE)
    got = ops.vector_add(a.to(toolchain.device), b.to(toolchain.device)).cpu()
    wrong, first = compare(got, a + b)
    return Outcome(where, seconds, SIZE, wrong, first)


def report(outcome: Outcome) -> str:
    """The outcome as text."""
    if outcome.wrong:
        answer = f"WRONG at {outcome.wrong:,} of {outcome.size:,} elements, first at {outcome.first_wrong:,}"
    else:
        answer = f"right, all {outcome.size:,} elements"
    return (
        f"First kernel: kernels/{SOURCE.name}\n"
        f"  runs on   {outcome.where}\n"
        f"  ready in  {outcome.build_seconds:.1f} s (built, or found in the build cache)\n"
        f"  answer    {answer}"
    )


def main(arguments: list[str]) -> int:
    argparse.ArgumentParser(
        prog="python -m helpers first-kernel", description="Build and run a first kernel and check its answer."
    ).parse_args(arguments)
    outcome = run()
    print(report(outcome))
    if outcome.wrong:
        print("Something between the compiler and the kernel is broken: python -m helpers doctor", file=sys.stderr)
    return 1 if outcome.wrong else 0
