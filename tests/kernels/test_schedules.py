"""The catalogue's kernels under the X-ray: no schedule shows a fault in a correct one, and planted mistakes are found.

Other planted mistakes are in the tests of single kernels: attention, matmul, hopper, softmax, rms_norm.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from inputs import load, mistaken, randn

import helpers
from helpers.ladder import catalogue
from helpers.ladder.catalogue.entry import Kernel, Launch, Operator
from helpers.ladder.catalogue.extensions import extension
from helpers.paths import KERNELS

BLOCKS = 6  # of a launch are traced
QUICK = ("reductions.cu",)  # soon built; the others are for the slow tests
BFLOAT16 = torch.bfloat16


@dataclass(frozen=True)
class Case:
    """A small launch of a kernel: its function, and what makes the arguments."""

    name: str
    file: str
    function: str
    arguments: Callable[[], tuple]

    def run(self, seed: int, ops: Any = None, blocks: int = BLOCKS) -> tuple[list, list[torch.Tensor]]:
        """The X-ray's faults; the arguments, which it may have written, and the results. ops: of another source."""
        name = self.file.removesuffix(".cu").replace("/", "_") + "_traced"
        arguments = self.arguments()
        function = getattr(ops or extension(name, (self.file,), traced=True), self.function)
        report = helpers.xray(function, *arguments, seed=seed, max_blocks=blocks)
        results = report.result if isinstance(report.result, tuple) else (report.result,)
        return report.faults, [t for t in (*arguments, *results) if isinstance(t, torch.Tensor)]


def launches(operator: Operator, kernel: Kernel) -> list[Launch]:
    """The smallest counted launch of each __global__ function; of a product, one that refills a ring."""
    if operator.name == "matmul":
        return [Launch((129, 264, 328) if kernel.capability else (65, 72, 168), kernel.dtypes[0])]
    beside = [other for other in operator.kernels if other.files == kernel.files]
    counted = kernel.launches or [launch for other in beside for launch in other.launches]
    found: dict[tuple, Launch] = {}
    for launch in sorted(counted, key=lambda launch: math.prod(launch.shape)):
        if not (launch.first or launch.transposed or launch.scalars):
            found.setdefault((launch.kernel, launch.dtype), launch)
    return list(found.values())


def of_catalogue() -> Iterator[Case]:
    for operator in catalogue.ALL:
        for kernel in operator.kernels:
            if kernel.python_module or kernel.flags or len(kernel.files) > 1:
                continue
            for launch in launches(operator, kernel):
                dtype = getattr(torch, launch.dtype or kernel.dtypes[0])

                def arguments(operator=operator, launch=launch, dtype=dtype):
                    if operator.reference:
                        return operator.inputs(launch.shape, dtype, "cpu")
                    shapes = operator.argument_shapes(launch.shape)
                    return tuple(randn(*shape, dtype=dtype).cpu() for shape in shapes)

                label = f"{kernel.name}, {launch.kernel or launch.label}"
                yield Case(label, kernel.files[0], kernel.name, arguments)


def matrix(rows: int, columns: int) -> torch.Tensor:
    return randn(rows, columns, dtype=BFLOAT16).cpu()


def numbers(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.int32)


UNITS, MAP, CLUSTER = "hopper_units.cu", "fragment_map.cu", "matmul/12_cluster.cu"
CASES = [
    *(case for case in of_catalogue() if case.function not in ("who_is_where", "two_ways")),
    Case("fragment_map", MAP, "fragment_map", lambda: (numbers(32, 4, 2), numbers(32, 2, 2), numbers(32, 4))),
    Case("copy_tile", UNITS, "copy_tile", lambda: (matrix(48, 64), -2, 16, 3, 8)),
    Case("barrier_alone", UNITS, "barrier_alone", lambda: (matrix(48, 64),)),
    Case("product", UNITS, "product", lambda: (matrix(64, 16), matrix(16, 256))),
    Case("ring", UNITS, "ring", lambda: (matrix(48, 64), 0)),
    Case("matmul_cluster_gelu", CLUSTER, "matmul_cluster_gelu",
         lambda: (matrix(129, 72), matrix(72, 264), randn(264, dtype=BFLOAT16).cpu())),
]  # fmt: skip


def with_seeds() -> Iterator:
    for case in CASES:
        slow = () if case.file in QUICK else pytest.mark.slow
        yield pytest.param(case, range(2), id=f"{case.name}, few", marks=slow)
        yield pytest.param(case, range(2, 100), id=f"{case.name}, many", marks=pytest.mark.slow)


@pytest.mark.parametrize(("case", "seeds"), list(with_seeds()))
def test_no_schedule_shows_a_fault(case, seeds):
    for seed in seeds:
        assert case.run(seed)[0] == [], f"seed {seed}"


# -- Mistakes. Each is found by the X-ray, or shows in the result. -----------------------------------------------------

MISTAKES = {  # case -> mistake -> correct source, wrong source
    "row_sum_tree": {
        "no barrier between steps": ("__syncthreads();  // the parts of the step before are written", ""),
        "one step too few": ("half > 0; half /= 2) {\n    __sync", "half > 1; half /= 2) {\n    __sync"),
    },
    "row_sum_block": {"sums read before they are written": ("__syncthreads();  // the sums of this call", "//")},
    "row_sum_warp": {"half a warp": ("int offset = kWarp / 2; offset > 0", "int offset = kWarp / 4; offset > 0")},
    "row_sum_cluster": {
        "does not wait for the other blocks": ("cluster.sync();  // every block's sum is written", "__syncthreads();"),
        "ends while it is read": ("cluster.sync();  // no block ends", "// no block ends"),
    },
    "places": {"counts itself": ("(1u << lane) - 1", "(2u << lane) - 1")},
    "running_max": {"of the wrong lane": ("__shfl_up_sync(kAll", "__shfl_down_sync(kAll")},
    "fragment_map": {
        "read before they are written": ("  __syncwarp();\n  uint32_t registers_a", "  uint32_t registers_a"),
        "not transposed": (
            "enough.\n  ladder::load_transposed(registers_b, &b[lane % 16][0]);",
            "enough.\n  ladder::load_matrices(registers_b, &b[lane % 8][0]);",
        ),
    },
    "copy_tile": {
        "not waited for": ("hopper::wait(full, 0);  // the tile is there", ""),
        "too few bytes": ("kTileBytes);\n    // Returns", "kTileBytes / 2);\n    // Returns"),
        "ends before it is stored": ("hopper::store_wait<0>();", ""),
    },
    "product": {
        "panel too near": ("hopper::descriptor(factors.b, sizeof(factors.b[0]))", "hopper::descriptor(factors.b, 64)"),
        "tiles not waited for": ("hopper::wait(factors.full, 0);", ""),
    },
    "ring": {
        "stage filled too soon": ("hopper::wait(ring.empty[stage], parity ^ 1);", ""),
        "released before it is read": ("__syncwarp();  // all lanes have read the tile", ""),
        "wrong parity": ("hopper::wait(ring.empty[stage], parity ^ 1);", "hopper::wait(ring.empty[stage], parity);"),
    },
    "matmul_mma_ring": {"stage read while it is filled": ("one before.\n      __syncthreads();", "one before.")},
    "matmul_mma_padded": {
        "the only stage not waited for": ("if constexpr (S::kStages == 1) __syncthreads();  // the", "//")
    },
    "matmul_warp_ring": {"stage read while it is filled": ("step's.\n    __syncthreads();", "step's.")},
    "attention, float16, 2 x 1 x 70 x 64": {
        "k filled while it is read": ("__syncthreads();  // v is here, and every warp has multiplied by k", "")
    },
}


CHANGES = [(name, mistake, *change) for name, mistakes in MISTAKES.items() for mistake, change in mistakes.items()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mistake", "good", "bad"), CHANGES, ids=[f"{c[0]}, {c[1]}" for c in CHANGES])
def test_a_mistake_is_found(name, mistake, good, bad, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")  # until a block that waits for itself is given up
    case = next(case for case in CASES if name in (case.name, case.function))
    ops = load("mistaken", mistaken(KERNELS / case.file, good, bad, tmp_path), traced=True)
    _, right = case.run(0)

    def found(seed: int) -> bool:
        faults, wrong = case.run(seed, ops, blocks=1000)
        close = (torch.allclose(w.double(), r.double(), 1e-2, 1e-2) for w, r in zip(wrong, right, strict=True))
        return bool(faults) or not all(close)

    assert any(found(seed) for seed in range(5))
