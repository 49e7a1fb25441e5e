"""Every correct kernel of the course under many seeds: nothing may be reported of any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch

import helpers
from helpers import museum
from helpers.validation.cases import COURSE, MICRO


def correct() -> dict[str, Callable[[int], list]]:
    """Name -> function from a seed to the faults that the X-ray reports: course kernels, loads, and mended twins."""
    cpu = torch.device("cpu")

    def of_case(case) -> Callable[[int], list]:
        return lambda seed: helpers.xray(case.prepared(cpu, True), seed=seed, max_blocks=6).faults

    def of_twin(exhibit) -> Callable[[int], list]:
        def run(seed: int) -> list:
            finding = museum.examine(exhibit, mended=True, seed=seed)
            return [finding.message] if finding.found else []

        return run

    found = {case.name: of_case(case) for case in COURSE + [c for c in MICRO if "load" in c.name]}
    return found | {f"{e.name}, mended": of_twin(e) for e in museum.EXHIBITS if e.tool == "xray"}


def false_alarms(seeds: Iterable[int], names: Sequence[str] | None = None) -> list[str]:
    """What is reported of correct kernels, with the seed, in words; [] is as it should be."""
    kernels = correct()
    chosen = list(kernels) if names is None else names
    return [f"{name}, seed {seed}: {fault}" for seed in seeds for name in chosen for fault in kernels[name](seed)]


def main(count: int) -> int:
    found = []
    for seed in range(count):
        found += false_alarms([seed])
        print(f"\rseed {seed + 1} of {count}: {len(found)} faults reported", end="", flush=True)
    print("", *found[:20], sep="\n")
    return 1 if found else 0
