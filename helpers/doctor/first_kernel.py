"""Builds kernels/vector_add.cu, runs it and checks the answer: `python -m helpers first-kernel`.

The shortest proof that everything between Python and a kernel works on this machine: the compiler, PyTorch's headers,
the GPU or the simulator, and the loader.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from helpers.build import loader
from helpers.machine import toolchain
from helpers.machine.paths import KERNELS

SOURCE = KERNELS / "vector_add.cu"
SIZE = 1_000_003  # no multiple of a block, so that the last block has threads with nothing to do


@dataclass(frozen=True)
class Outcome:
    """What happened: where it ran, how long building took (seconds), and how many elements are wrong."""

    where: str
    build_seconds: float
    size: int
    wrong: int
    first_wrong: int | None


def compare(got: torch.Tensor, expected: torch.Tensor) -> tuple[int, int | None]:
    """How many elements differ, and the first one's index. NaN differs from everything."""
    differ = torch.nonzero(~(got == expected)).flatten()
    return len(differ), int(differ[0]) if len(differ) else None


def run() -> Outcome:
    """Builds and runs the kernel on `helpers.device`. Raises what the loader raises where it cannot be built."""
    from helpers.machine.toolchain import target
    from helpers.simt import faults

    where = f"gpu ({torch.cuda.get_device_name()})" if target == "gpu" else f"{target} (on the CPU)"
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:  # where it has to be built, the simulator's bridge is built beside the kernel
        bridge = pool.submit(faults.install) if target == "simulator" else None
        ops = loader.load(name="first_kernel", sources=[str(SOURCE)], is_python_module=False)
        if bridge:
            bridge.result()
    seconds = time.monotonic() - start
    # On the CPU in both cases: the expected sum must not come from the device that is put to the test.
    a = torch.arange(SIZE, dtype=torch.float32)
    b = torch.linspace(-1, 1, SIZE)
    got = ops.vector_add(a.to(toolchain.device), b.to(toolchain.device)).cpu()
    wrong, first = compare(got, a + b)
    return Outcome(where, seconds, SIZE, wrong, first)


def report(outcome: Outcome) -> str:
    """What a learner reads."""
    if outcome.wrong:
        answer = f"WRONG at {outcome.wrong:,} of {outcome.size:,} elements, first at {outcome.first_wrong:,}"
    else:
        answer = f"right, all {outcome.size:,} elements"
    return (
        f"First kernel: kernels/{SOURCE.name}\n"
        f"  runs on   {outcome.where}\n"
        f"  ready in  {outcome.build_seconds:.1f} s (built, or found built)\n"
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
