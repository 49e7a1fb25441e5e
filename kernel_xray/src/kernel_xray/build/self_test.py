"""`kernel-xray doctor`: can this machine build and run kernels? In a few lines, each with what to do if not.

A kernel that this builds and runs is the proof; the other lines say why it may fail.
"""

import argparse
import os
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernel_xray.build.programs import program
from kernel_xray.machine import cache, toolchain
from kernel_xray.machine.paths import of_torch
from kernel_xray.runtime import libsimt

_KERNEL = """#include <cstdio>
__global__ void square(int* x) { x[threadIdx.x] = threadIdx.x * threadIdx.x; }
int main() {
  int* x;
  int last = -1;
  cudaMalloc(&x, 64 * sizeof(int));
  square<<<1, 64>>>(x);
  cudaMemcpy(&last, x + 63, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\\n", last);
}
"""


def main(arguments: list[str], prog: str = "kernel-xray doctor") -> int:
    """Prints the findings; returns 1 if a kernel cannot be built and run here."""
    parser = argparse.ArgumentParser(prog=prog, description="Can this machine build and run kernels?")
    parser.parse_args(arguments)
    failed = False
    for name, good, text in _findings():
        failed |= good is False
        print(f"{'ok' if good else '--' if good is None else 'no':3} {name:12} {text}", flush=True)
    return 1 if failed else 0


def _findings() -> Iterator[tuple[str, bool | None, str]]:
    """Name, whether it is as it should be (None: not there, and needed by some only), and what was found."""
    try:
        yield "compiler", True, libsimt.compiler_identity(libsimt.compiler())
    except RuntimeError as error:
        yield "compiler", False, str(error)
        return
    try:
        folder = cache.root()
        writable = os.access(folder, os.W_OK)
        yield "cache", writable, f"{folder}" if writable else f"{folder} cannot be written; {cache.ADVICE}"
    except cache.CacheError as error:
        yield "cache", False, str(error)
        return
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if of_torch() is None:
        yield "PyTorch", None, "not installed: programs run, extensions need it (pip install 'kernel-xray[torch]')"
    elif header.is_file():
        yield "PyTorch", True, f"{of_torch()}, and Python.h for extensions"
    else:
        yield "PyTorch", None, f"no {header}: extensions need it (Debian and Ubuntu: apt install python3-dev)"
    for traced in (False, True):
        yield "traced" if traced else "kernel", *_tried(traced)


def _tried(traced: bool) -> tuple[bool, str]:
    """Whether the kernel gives the right number."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "square.cu"
        source.write_text(_KERNEL)
        try:
            ended = program(source, traced=traced)
        except (RuntimeError, OSError) as error:
            return False, str(error)
    where = "simulator" if traced else toolchain.of_programs()
    if ended.stdout.strip() != "3969":
        return False, f"on the {where}, a kernel gave {ended.stdout.strip()!r}, not 3969; {ended}\n{ended.stderr}"
    if ended.report is not None and not ended.report.lines:
        return False, "the X-ray of a kernel names no line; does addr2line (binutils) run here?"
    return True, f"built, and ran on the {where}" + (", with its lines" if traced else "")
