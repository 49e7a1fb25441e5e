"""The programs that run under NVIDIA's tools: all launches in order, or some exhibits."""

import sys
from collections.abc import Sequence

import torch

from helpers.pages import museum
from helpers.upkeep.validation.counted import CASES
from kernel_xray.machine import toolchain


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def launches(only: str = "") -> int:
    """Makes the launches of each case whose name contains `only`, in the table's order."""
    for case in CASES:
        if only in case.name:
            launch = case.prepared(toolchain.device, False)
            for _ in range(case.repeats):
                launch()
    _wait()
    return 0


def exhibit(names: Sequence[str], fixed: bool) -> int:
    """Runs exhibits on the GPU as they are: what happens, happens. An error of CUDA's ends it, and is printed."""
    for name in names:
        shown = museum.find(name)
        operators = museum.operators(shown.family, traced=False)
        function = getattr(operators, f"{name}_fixed" if fixed else name)
        try:
            function(*shown.prepare(toolchain.device))
            _wait()
            print(f"{name}: no error")
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}")
            return 1
    return 0


def examine_all() -> int:
    """Examines the exhibits that run on a GPU, broken and fixed, and prints a line for each."""
    for shown in museum.EXHIBITS:
        if shown.family in museum.TRACED:
            continue
        for fixed in (False, True):
            try:
                finding = museum.examine(shown, fixed)
                said = finding.message.split("\n")[0] if finding.found else "nothing"
            except museum.NotHere as reason:
                said = f"not here: {reason}"
            except RuntimeError as error:
                said = f"failed: {str(error).splitlines()[0]}"
            print(f"{shown.name}\t{'fixed' if fixed else 'broken'}\t{said}")
            sys.stdout.flush()
    return 0
