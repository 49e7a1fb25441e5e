"""Runs every correct kernel of the course under many seeds: the X-ray must report nothing."""

from collections.abc import Callable, Iterable, Sequence

import torch

from helpers.pages import museum
from helpers.practice import registry
from helpers.practice.checks import CHECKS
from helpers.upkeep.validation.counted import COURSE
from helpers.upkeep.validation.micro import MICRO
from kernel_xray.build import loader
from kernel_xray.report.run import xray

SMALL = 3000  # elements: larger cases of an exercise only take longer
BLOCKS = 6  # of a launch are traced


def correct(solutions: bool = True) -> dict[str, Callable[[int], list]]:
    """Name -> function from a seed to the X-ray's faults.

    They are the course's kernels, micro-kernels that load, the museum's fixed twins and, with `solutions`, those of
    the exercises, each of which is built first.
    """
    cpu = torch.device("cpu")

    def of_case(case) -> Callable[[int], list]:
        return lambda seed: xray(case.prepared(cpu, True), seed=seed, max_blocks=BLOCKS).faults

    def of_twin(exhibit) -> Callable[[int], list]:
        def run(seed: int) -> list:
            finding = museum.examine(exhibit, fixed=True, seed=seed)
            return [finding.message] if finding.found else []

        return run

    found = {case.name: of_case(case) for case in COURSE + [c for c in MICRO if "load" in c.name]}
    found |= {f"{e.name}, fixed": of_twin(e) for e in museum.EXHIBITS if e.tool == "xray"}
    if solutions:
        found |= {f"exercise {e.name}": _of_solution(e) for e in registry.exercises() if e.solution.suffix == ".cu"}
    return found


def _of_solution(exercise: registry.Exercise) -> Callable[[int], list]:
    def run(seed: int) -> list:
        name = f"seeds_{exercise.name}"
        ops = loader.load(name=name, sources=[exercise.solution], is_python_module=False, traced=True)
        found = []
        for case in CHECKS[exercise.name].cases():
            arguments = [*case.inputs, *(out.clone() for out in case.outputs.values())]
            if sum(x.numel() for x in arguments if isinstance(x, torch.Tensor)) <= SMALL:
                found += xray(getattr(ops, exercise.name), *arguments, seed=seed, max_blocks=BLOCKS).faults
        return found

    return run


def false_alarms(
    seeds: Iterable[int], kernels: dict[str, Callable[[int], list]], names: Sequence[str] | None = None
) -> list[str]:
    """The faults reported in correct kernels, as text, with the seed; [] is right."""
    chosen = list(kernels) if names is None else names
    return [f"{name}, seed {seed}: {fault}" for seed in seeds for name in chosen for fault in kernels[name](seed)]


def main(count: int) -> int:
    """Prints the faults reported under `count` seeds; returns 1 if there are any."""
    found, kernels = [], correct()
    for seed in range(count):
        found += false_alarms([seed], kernels)
        print(f"\r{len(kernels)} kernels, seed {seed + 1} of {count}: {len(found)} faults reported", end="", flush=True)
    print("", *found[:20], sep="\n")
    return 1 if found else 0
