"""The exhibits: name, family, the published mistake, its file, and the tool that finds it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import gelu, silu

from helpers.ladder.catalogue.extensions import extension
from helpers.pages.museum import exhibit_inputs as inputs
from helpers.pages.museum import python_bugs
from helpers.paths import KERNELS
from kernel_xray.build import flags
from kernel_xray.machine import toolchain

FOLDER = KERNELS / "museum"
FAMILIES = {
    "bounds": "bounds and vectors",
    "synchronisation": "synchronisation",
    "units": "Hopper's units",
    "published": "published kernels, named with file and line",
    "values": "coverage and numerics",
    "host": "host code, streams, devices",
    "autograd": "autograd",
    "tests": "tests and timing",
}
# Only in the simulator: on a GPU they damage other memory, or are right by luck.
TRACED = ("bounds", "synchronisation", "units", "published")
FLAGS = {"units": flags.SM_90A}  # family -> flags for nvcc


@dataclass(frozen=True)
class Exhibit:
    """One bug."""

    name: str  # the operator in kernels/museum/FAMILY.cu, or the function in python_bugs.py
    family: str  # a key of FAMILIES
    story: str  # the mistake, in a few words
    # Finds it: "xray", "check", "gradcheck", "gradgradcheck", "wrong kernel" (the exhibit is a test that must reject
    # one), "streams" and "timer" (need a GPU), "devices" (needs two).
    tool: str
    finds: str  # what the tool reports: a kind of fault, or a regular expression for its message
    prepare: Callable[[torch.device], tuple]  # makes the arguments, on a device
    options: dict[str, Any] = field(default_factory=dict)  # for the tool

    @property
    def path(self) -> Path:
        """Its source file."""
        in_cuda = FOLDER / f"{self.family}.cu"
        return in_cuda if in_cuda.exists() else Path(python_bugs.__file__)

    @property
    def device(self) -> torch.device:
        """The device of its tensors: the CPU for exhibits that only the simulator runs."""
        return torch.device("cpu") if self.family in TRACED else toolchain.device

    def function(self, fixed: bool = False) -> Callable:
        """The broken function or its fixed twin, built if it is in a .cu file."""
        name = f"{self.name}_fixed" if fixed else self.name
        if self.path.suffix == ".py":
            return getattr(python_bugs, name)
        return getattr(operators(self.family), "multiply" if fixed and self.family == "host" else name)


@dataclass(frozen=True)
class Planted:
    """The lines that an arrow marks: where a tool finds the bug."""

    kind: str
    lines: tuple[int, ...]


def operators(family: str, traced: bool | None = None):
    """The operators of kernels/museum/FAMILY.cu. Families that would do damage are built for the traced mode.

    traced=False builds them for the GPU, where `units` needs compute capability 9.0.
    """
    traced = family in TRACED if traced is None else traced
    name = f"museum_{family}_traced" if traced else f"museum_{family}"
    lines = "-lineinfo"  # compute-sanitizer and ncu then name lines
    return extension(name, (f"museum/{family}.cu",), flags=(lines, *FLAGS.get(family, [])), traced=traced)


def planted(exhibit: Exhibit) -> Planted | None:
    """The lines with arrows `// <- KIND` in the exhibit's broken kernel; None if it has none."""
    if exhibit.path.suffix == ".py":
        return None
    text = exhibit.path.read_text(encoding="utf-8").split("\n")
    start = next((i for i, line in enumerate(text) if re.search(rf"\b{exhibit.name}_kernel\(", line)), None)
    if start is None:
        return None
    end = next(i for i in range(start, len(text)) if text[i] == "}")
    found = {i + 1: m[1] for i in range(start, end) if (m := re.search(r"// <- ([\w-]+)", text[i]))}
    return Planted(next(iter(found.values())), tuple(found)) if found else None


def find(name: str) -> Exhibit:
    """The exhibit of this name. Raises ValueError if there is none."""
    for exhibit in EXHIBITS:
        if exhibit.name == name:
            return exhibit
    raise ValueError(f"no exhibit {name!r}; there are {', '.join(e.name for e in EXHIBITS)}")


def _of(family: str, tool: str, rows: Sequence[tuple], **common: Any) -> list[Exhibit]:
    """Exhibits of one family and tool. A row is (name, story, finds, prepare), perhaps with options at its end."""
    return [
        Exhibit(name, family, story, tool, finds, prepare, options=common | dict(*options))
        for name, story, finds, prepare, *options in rows
    ]


_BOUNDS = [
    ("guard_off_by_one", "the guard is i <= n", "out-of-bounds", inputs.one_of_two),
    ("vector_guard", "the guard counts elements, a float4 takes four", "out-of-bounds", inputs.floats(1001)),
    ("load_before_guard", "eight halves are loaded before the guard", "out-of-bounds", inputs.halves(800)),
    ("vector_misaligned", "x[1:] is read 16 bytes at a time", "misaligned", inputs.sliced(1024)),
    ("negative_index", "-1 is used as an offset, not as 'the last'", "out-of-bounds", inputs.indices),
    ("int_overflow", "row * columns in 32 bits", "out-of-bounds", inputs.two_gigabytes),
]
_SYNCHRONISATION = [
    ("tile_overwritten", "no barrier before the next tile overwrites", "race", inputs.floats(256)),
    ("barrier_in_branch", "__syncthreads() inside if (i < n)", "divergent-barrier", inputs.floats(100)),
    ("warp_synchronous", "no __syncwarp() between lanes", "race", inputs.floats(64)),
    ("last_block", "'the last block adds up', without a fence", "race", inputs.floats_and_counter(500)),
    ("shuffle_in_branch", "a full mask that only some lanes reach", "divergent-barrier", inputs.floats(20)),
    ("uncleared_bins", "shared memory assumed to be zero", "uninitialised-read", inputs.values_and_bins(300)),
    ("lost_updates", "bins[v] += 1 by many threads", "race", inputs.values_and_bins(300)),
    ("waits_for_all", "a block waits for blocks that may not run yet", "time-limit", inputs.floats_and_counter(4)),
]
_UNITS = [
    ("no_barrier_init", "an mbarrier that is never initialised", "uninitialised-read", inputs.floats(32)),
    ("one_arrival", "one lane arrives for its whole warp", "race", inputs.floats(32)),
    ("tile_too_soon", "TMA's tile is read before it has arrived", "race", inputs.tiles(4)),
    ("no_proxy_fence", "no fence between writes and TMA's store", "race", inputs.tiles(4)),
    ("no_store_wait", "the block ends before TMA has read its tile", "race", inputs.tiles(4)),
]
_PUBLISHED = [
    (
        "masked_half",
        "half a matrix is written, all of it read",
        "uninitialised-read",
        inputs.scores_and_values(33),
    ),
    ("winner_overwritten", "no barrier after the winner is read", "race", inputs.points_and_picks(200, 8)),
    ("late_clearing", "counting starts before all bins are cleared", "race", inputs.values_and_bins(300)),
    ("block_barrier", "a block's barrier, taken for the grid's", "race", inputs.values_and_bins(300)),
    ("scan_in_place", "a scan reads what its neighbour rewrites", "race", inputs.floats(64)),
    ("sum_into_empty", "sums are added to an output never cleared", "uninitialised-read", inputs.floats(200)),
]
_VALUES = [
    ("capped_grid", "the grid is capped, no loop covers the rest", "fresh memory", inputs.floats(10_000)),
    ("vector_tail", "n % 4 elements are never written", "fresh memory", inputs.floats(1003)),
    ("truncated_block", "columns / 4 threads, rounded down", "fresh memory", inputs.floats(3, 1023)),
]
_NUMERICS = [
    (
        "power_of_two",
        "a tree of sums for 2^k threads, run with 96",
        "wrong",
        inputs.floats(96),
        {"reference": lambda a: a.sum(0, keepdim=True), "accumulation": 96},
    ),
    (
        "half_exp",
        "e^x in half is infinite from x = 11.1",
        "got nan",
        inputs.ramp(8, torch.float16),
        {"reference": lambda a: gelu(a, approximate="tanh"), "rtol": 2e-3, "atol": 1e-3},
    ),
    (
        "clamped_input",
        "x is clamped to 10 so that e^x is finite",
        "wrong",
        inputs.ramp(30, torch.float32),
        {"reference": silu, "rtol": 1e-6, "atol": 1e-6},
    ),
    (
        "half_accumulator",
        "a sum in half stops growing at 2,048",
        "wrong",
        inputs.ones(4, 4000, dtype=torch.half),
        {"reference": lambda a: a.sum(1), "accumulation": 4000},
    ),
    (
        "maximum_from_tiny",
        "a running maximum starts at 1e-30",
        "wrong",
        inputs.negative(4, 50),
        {"reference": lambda a: a.amax(1)},
    ),
]
LAUNCH_FAILED = "invalid (configuration )?argument"  # the driver's message
_HOST = [
    ("or_for_and", "shapes || dtypes are checked, && was meant", "wrong", inputs.float_and_double),
    ("strided_input", "a transpose is read as if contiguous", "wrong", inputs.transposed),
    ("zero_size", "no elements: a grid of no blocks", LAUNCH_FAILED, inputs.two_floats(0)),
    (
        "no_launch_check",
        "2,048 threads per block, launch not checked",
        f"fresh mem|{LAUNCH_FAILED}",
        inputs.two_floats(5000),
    ),
]
_AUTOGRAD = [
    ("missing_gradient", "None for an input that needs a gradient", "Jacobian mismatch", inputs.two_doubles),
    ("gradient_count", "two inputs, one gradient", "incorrect number of gradients", inputs.two_doubles),
    ("broadcast_gradient", "a broadcast input's gradient is not summed", "Jacobian", inputs.broadcast_doubles),
]
_TESTS = [
    ("nan_passes", "count(|a - b| > tol) lets NaN pass", "accepted", inputs.floats(64)),
    ("zeros_as_input", "zeros in, zeros out, for almost any kernel", "accepted", inputs.floats(64)),
    ("loose_tolerance", "1e-2 by habit", "accepted", inputs.floats(64)),
    ("one_size", "only a power of two is tried", "accepted", inputs.floats(64)),
    ("same_input_again", "a cached output passes for a new one", "accepted", inputs.floats(64)),
    ("compiled_discarded", "torch.compile's result dropped, eager tested", "accepted", inputs.floats(64)),
]

EXHIBITS = [
    *_of("bounds", "xray", _BOUNDS),
    *_of("synchronisation", "xray", _SYNCHRONISATION, budget=200_000),
    *_of("units", "xray", _UNITS),
    *_of("published", "xray", _PUBLISHED),
    *_of("values", "check", _VALUES, reference=lambda a: 2 * a),
    *_of("values", "check", _NUMERICS),
    *_of("host", "check", _HOST, reference=torch.mul),
    *_of("host", "gradcheck", [("unchecked_dtype", "float64 read through a float*", "Jac|reent", inputs.two_doubles)]),
    *_of(
        "host", "streams", [("default_stream", "launched on the default stream", "before", inputs.two_floats(100_003))]
    ),
    *_of("host", "devices", [("no_device_guard", "launched on the current device", ".", inputs.two_floats(1000))]),
    *_of("autograd", "gradcheck", _AUTOGRAD),
    *_of("autograd", "gradgradcheck", [("no_double_backward", "backward cannot be derived", ".", inputs.two_doubles)]),
    *_of("tests", "wrong kernel", _TESTS),
    *_of("tests", "timer", [("no_synchronise", "the clock stops at the launch", "too short", inputs.large_matrix)]),
]
