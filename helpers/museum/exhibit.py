"""The exhibits: name, family, the published mistake, where it lies, and the tool that finds it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import helpers
from helpers.museum import inputs, python_bugs

FOLDER = Path(__file__).resolve().parent.parent.parent / "kernels" / "museum"
FAMILIES = {
    "bounds": "bounds and vectors",
    "synchronisation": "synchronisation",
    "values": "coverage and numerics",
    "host": "host code, streams, devices",
    "autograd": "autograd",
    "tests": "tests and timing",
}
TRACED = (
    "bounds",
    "synchronisation",
)  # families that run in the simulator only: on a GPU they damage what is not theirs


@dataclass(frozen=True)
class Exhibit:
    """One bug.

    name    of the operator in kernels/museum/FAMILY.cu, or of the function in python_bugs.py
    family  a key of FAMILIES
    story   the mistake, in one sentence
    tool    what finds it: "xray", "check", "gradcheck", "gradgradcheck", "wrong kernel" (a test that must reject one),
            "streams" (needs a GPU), "devices" (needs two)
    finds   what the tool says: a kind of fault, or a regular expression for its message
    prepare makes the arguments, on a device
    options for the tool
    """

    name: str
    family: str
    story: str
    tool: str
    finds: str
    prepare: Callable[[torch.device], tuple] = lambda device: ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file that it lies in."""
        in_cuda = FOLDER / f"{self.family}.cu"
        return in_cuda if in_cuda.exists() else Path(python_bugs.__file__)

    @property
    def device(self) -> torch.device:
        """Where its tensors live: on the CPU for those that only the simulator runs."""
        return torch.device("cpu") if self.family in TRACED else helpers.device

    def function(self, mended: bool = False) -> Callable:
        """The broken function or its twin, built if it is in a .cu file."""
        if self.path.suffix == ".py":
            return getattr(python_bugs, self.name + "_mended" * mended)
        name = "multiply" if mended and self.family == "host" else self.name + "_mended" * mended
        return getattr(operators(self.family), name)


@dataclass(frozen=True)
class Planted:
    """The lines of a file that an arrow marks: where a tool finds the bug."""

    kind: str
    lines: tuple[int, ...]


@functools.cache
def operators(family: str, traced: bool | None = None):
    """The operators of kernels/museum/FAMILY.cu, built for the simulator's traced mode where they would do harm."""
    traced = family in TRACED if traced is None else traced
    return helpers.load(
        name=f"museum_{family}" + "_traced" * traced,
        sources=[FOLDER / f"{family}.cu"],
        extra_cuda_cflags=["-lineinfo"],  # compute-sanitizer and ncu then name lines
        is_python_module=False,
        traced=traced,
    )


def planted(exhibit: Exhibit) -> Planted | None:
    """Where the arrows `// <- KIND` stand in the exhibit's broken kernel; None if it has none."""
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
    """The exhibit of that name. Raises ValueError if there is none."""
    for exhibit in EXHIBITS:
        if exhibit.name == name:
            return exhibit
    raise ValueError(f"no exhibit {name!r}; there are {', '.join(e.name for e in EXHIBITS)}")


def _gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def _twice(a):
    return 2 * a


EXHIBITS = [
    # bounds and vectors: seen by the X-ray
    Exhibit("guard_off_by_one", "bounds", "the guard is i <= n", "xray", "out-of-bounds", inputs.one_of_two),
    Exhibit("vector_guard", "bounds", "the guard counts elements, a float4 takes four", "xray", "out-of-bounds", inputs.floats(1001)),
    Exhibit("load_before_guard", "bounds", "eight halves are loaded before the guard", "xray", "out-of-bounds", inputs.halves(800)),
    Exhibit("vector_misaligned", "bounds", "x[1:] is read 16 bytes at a time", "xray", "misaligned", inputs.sliced(1024)),
    Exhibit("negative_index", "bounds", "-1 is taken for an address, not for 'the last'", "xray", "out-of-bounds", inputs.indices),
    Exhibit("int_overflow", "bounds", "row * columns in 32 bits", "xray", "out-of-bounds", inputs.two_gigabytes),
    # synchronisation: seen by the X-ray
    Exhibit("tile_overwritten", "synchronisation", "no barrier before the next tile overwrites", "xray", "race", inputs.floats(256)),
    Exhibit("barrier_in_branch", "synchronisation", "__syncthreads() inside if (i < n)", "xray", "divergent-barrier", inputs.floats(100)),
    Exhibit("warp_synchronous", "synchronisation", "no __syncwarp() between lanes", "xray", "race", inputs.floats(64)),
    Exhibit("last_block", "synchronisation", "'the last block adds up', without a fence", "xray", "race", inputs.floats_and_counter(500)),
    Exhibit("shuffle_in_branch", "synchronisation", "a full mask where some lanes come", "xray", "divergent-barrier", inputs.floats(20)),
    Exhibit("uncleared_bins", "synchronisation", "shared memory taken for zeros", "xray", "uninitialised-read", inputs.values_and_bins(300)),
    Exhibit("lost_updates", "synchronisation", "bins[v] += 1 by many threads", "xray", "race", inputs.values_and_bins(300)),
    Exhibit("waits_for_all", "synchronisation", "a block waits for blocks that have not started", "xray", "deadlock",
            inputs.floats_and_counter(4), {"budget": 50_000}),
    # coverage and numerics: seen by a check
    Exhibit("capped_grid", "values", "the grid is capped, no loop makes up for it", "check", "fresh memory", inputs.floats(10_000), {"reference": _twice}),
    Exhibit("vector_tail", "values", "n % 4 elements are never written", "check", "fresh memory", inputs.floats(1003), {"reference": _twice}),
    Exhibit("truncated_block", "values", "columns / 4 threads, rounded down", "check", "fresh memory", inputs.floats(3, 1023), {"reference": _twice}),
    Exhibit("power_of_two", "values", "a tree of sums for 2^k threads, given 96", "check", "wrong", inputs.floats(96),
            {"reference": lambda a: a.sum(0, keepdim=True), "accumulation": 96}),
    Exhibit("half_exp", "values", "e^x in half is infinite from x = 11.1 on", "check", "got nan", inputs.ramp(8, torch.float16),
            {"reference": _gelu, "rtol": 2e-3, "atol": 1e-3}),
    Exhibit("clamped_input", "values", "x is clamped to 10 so that e^x is finite", "check", "wrong", inputs.ramp(30, torch.float32),
            {"reference": torch.nn.functional.silu, "rtol": 1e-6, "atol": 1e-6}),
    Exhibit("half_accumulator", "values", "a sum kept in half stands still at 2,048", "check", "wrong", inputs.ones(4, 4000, dtype=torch.float16),
            {"reference": lambda a: a.sum(1), "accumulation": 4000}),
    Exhibit("maximum_from_tiny", "values", "a running maximum starts at 1e-30", "check", "wrong", inputs.negative(4, 50), {"reference": lambda a: a.amax(1)}),
    # host code
    Exhibit("or_for_and", "host", "shapes || dtypes are checked, && was meant", "check", "wrong", inputs.float_and_double, {"reference": torch.mul}),
    Exhibit("strided_input", "host", "a transpose is read as if contiguous", "check", "wrong", inputs.transposed, {"reference": torch.mul}),
    Exhibit("zero_size", "host", "no elements: a grid of no blocks", "check", "configuration", inputs.two_floats(0), {"reference": torch.mul}),
    Exhibit("no_launch_check", "host", "2,048 threads to a block, and nobody asks", "check", "fresh memory|configuration", inputs.two_floats(5000), {"reference": torch.mul}),
    Exhibit("unchecked_dtype", "host", "float64 read through a float pointer", "gradcheck", "Jacobian|reentrant", inputs.two_doubles),
    Exhibit("default_stream", "host", "launched on the default stream", "streams", "before its inputs", inputs.two_floats(100_003)),
    Exhibit("no_device_guard", "host", "launched on whatever device is current", "devices", "illegal|wrong|device", inputs.two_floats(1000)),
    # autograd
    Exhibit("missing_gradient", "autograd", "None for an input that needs one", "gradcheck", "Jacobian mismatch|backward", inputs.two_doubles),
    Exhibit("gradient_count", "autograd", "two inputs, one gradient", "gradcheck", "incorrect number of gradients", inputs.two_doubles),
    Exhibit("broadcast_gradient", "autograd", "the gradient of a broadcast input is not summed", "gradcheck", "Jacobian mismatch", inputs.broadcast_doubles),
    Exhibit("no_double_backward", "autograd", "backward calls what has no backward", "gradgradcheck", "", inputs.two_doubles),
    # tests and timing
    Exhibit("nan_passes", "tests", "count(|a - b| > tol) lets NaN pass", "wrong kernel", "accepted", inputs.floats(64)),
    Exhibit("zeros_as_input", "tests", "zeros in, zeros out, whatever it computes", "wrong kernel", "accepted", inputs.floats(64)),
    Exhibit("loose_tolerance", "tests", "1e-2 by habit", "wrong kernel", "accepted", inputs.floats(64)),
    Exhibit("one_size", "tests", "only a power of two is tried", "wrong kernel", "accepted", inputs.floats(64)),
    Exhibit("same_input_again", "tests", "a cached output passes for a new one", "wrong kernel", "accepted", inputs.floats(64)),
    Exhibit("compiled_discarded", "tests", "torch.compile's result is dropped, eager is tested", "wrong kernel", "accepted", inputs.floats(64)),
    Exhibit("no_synchronise", "tests", "the clock stops when the launch returns", "timer", "too short", inputs.large_matrix),
]  # fmt: skip
