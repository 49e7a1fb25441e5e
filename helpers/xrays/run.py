"""X-ray: which line of a kernel wastes memory traffic, and what is wrong with it.

`xray(function, *args)` runs a function whose kernels were loaded with `helpers.load(..., traced=True)` and returns a
Report. It needs no GPU; what it counts are the hardware's own units (sectors, requests, wavefronts), never time.

What it cannot see: memory that a kernel keeps in local arrays is checked for its bounds only where the compiler knows
them, and is not counted; an access that strays as far as into another tensor counts as one to that tensor; blocks run
one after another, so a kernel that waits for another block does not end; a clean X-ray of a sample is no proof.
Counts are of the accesses that the host's compiler leaves: structs that are no vector types are copied in pieces of
their members, as on a GPU, by g++; clang may choose other pieces, and stores a float4 that a function returns in two.
nvcc may merge accesses that are neighbours, and turns short branches into predicates.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from helpers.simt import faults
from helpers.xrays import tracer
from helpers.xrays.findings import make_report
from helpers.xrays.report import Report

_calls: list[tuple[Callable, tuple, dict]] = []  # what is being X-rayed, and the traced functions called inside it


def xray(
    function: Callable,
    *args: Any,
    seed: int | None = None,
    max_blocks: int = 64,
    budget: int = 20_000_000,
    **kwargs: Any,
) -> Report:
    """Runs `function(*args, **kwargs)` under the tracer.

    function    calls kernels that were loaded with traced=True; others run as ever
    seed        of the order in which blocks, warps and lanes take turns; by default drawn anew, and in the report
    max_blocks  of a launch that are traced; larger launches are sampled evenly, first and last block included
    budget      steps that a block may take before it counts as endless

    A fault ends the function; it is in `report.faults`, and `report.result` is None. Other exceptions of the function
    are raised as they are. Raises RuntimeError if called inside itself, ValueError for a bad number.
    """
    if _calls:
        raise RuntimeError("xray was called by the function that it X-rays; call it once, on the outside")
    if not callable(function):
        raise TypeError(f"function is {function!r}; give a function and its arguments: xray(ops.add, a, b)")
    for name, number in (("max_blocks", max_blocks), ("budget", budget)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more")
    seed = random.getrandbits(32) if seed is None else seed
    result, error = None, None
    with faults.fresh_allocations_known():
        tracer.begin(seed, max_blocks, budget)
        try:
            result = call(function, args, kwargs)
        except faults.KernelFault as fault:
            error = fault.with_traceback(None)  # which holds the arguments: memory that strays would find, and not miss
        finally:
            found = tracer.end()
    if error is not None and error.kind == "interrupted":
        raise error
    return make_report(found, result, seed, error)


def in_progress() -> bool:
    """Whether a function is being X-rayed."""
    return bool(_calls)


def call(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Calls a function that is, or is part of, what is X-rayed: meanwhile its arguments are what kernels may touch."""
    _calls.append((function, args, kwargs))
    tracer.register(function, args, kwargs)
    try:
        return function(*args, **kwargs)
    finally:
        _calls.pop()
        if _calls:
            tracer.register(*_calls[-1])
