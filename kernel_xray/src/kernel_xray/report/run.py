"""X-ray: which line of a kernel wastes memory traffic, and what is wrong with it.

`xray(function, *args)` runs a function whose kernels were loaded with `load(..., traced=True)` and returns a Report. It
needs no GPU. It counts in the hardware's own units (sectors, requests, wavefronts), never in time.

Its limits: accesses to local arrays are not counted, and their bounds are checked only where the compiler knows them.
An access that strays into another tensor counts as an access to that tensor. Blocks run one after another, so a kernel
that waits for another block never ends. A clean X-ray of a sample of blocks proves nothing about the others.
The counts are of the accesses that the host's compiler emits. g++ copies structs that are not vector types member by
member, as a GPU does; clang may split them differently, and stores a float4 that a function returns in two pieces. nvcc
may merge neighbouring accesses, and turns short branches into predicates: `sass=True` corrects the former.
"""

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any

from kernel_xray.report import gpu_models
from kernel_xray.report.facts import SECONDS, limits_of
from kernel_xray.report.findings import make_report
from kernel_xray.report.report import Report
from kernel_xray.runtime import faults
from kernel_xray.runtime.kernel_fault import KernelFault
from kernel_xray.trace import tracer

MOST_FRAMES = 100_000  # of a film; 32 addresses and values each
_calls: list[tuple[Callable, tuple, dict]] = []  # the function being X-rayed, then the traced functions inside it


def xray(
    function: Callable,
    *args: Any,
    seed: int | None = None,
    max_blocks: int = 64,
    blocks: int | None = None,
    gpu: str | None = None,
    budget: int | None = None,
    seconds: float = SECONDS,
    sass: bool = False,
    film: bool | Sequence[int] = False,
    who_wrote: bool = False,
    **kwargs: Any,
) -> Report:
    """Runs `function(*args, **kwargs)` under the tracer.

    function    calls kernels that were loaded with traced=True; other kernels run untraced
    seed        of the schedule of blocks, warps and lanes; by default random, and given in the report
    max_blocks  traced per launch; larger launches are sampled evenly, including the first and the last block
    blocks      runs only so many blocks of each launch, sampled in the same way: a launch of full size costs seconds.
                The result is None unless that was all of them. Races and uninitialised reads are not looked for. For
                kernels whose accesses do not depend on what other blocks or earlier launches compute
    gpu         the device has as many SMs as this GPU, such as "h200": some functions size their grids by that
    budget      steps of a block that are traced; it then runs on unwatched, and `report.complete` is False. By default
                20 million, and more until the X-ray's launches have taken `seconds` of processor time
    sass        counts the accesses of nvcc's machine code: compiles the kernels' files with nvcc (seconds, the first
                time) and corrects the lines whose accesses nvcc merged, dropped or moved, or marks them; needs nvcc and
                nvdisasm, but no GPU
    film        records what each warp of a block does, for `report.film()`; True: of the first block of each launch; or
                the numbers of blocks in the grid, which must be among the traced ones
    who_wrote   remembers the last thread that wrote each byte of global memory: `report.writers`

    A fault ends the function; it is in `report.faults`, and `report.result` is None. What is worth knowing but not a
    fault is in `report.remarks`. Other exceptions of the function propagate. Raises RuntimeError if called inside
    itself or if `sass` lacks a tool, ValueError for a bad number or an unknown GPU.
    """
    if _calls:
        raise RuntimeError("xray was called by the function that it X-rays; call it once, on the outside")
    if not callable(function):
        raise TypeError(f"function is {function!r}; give a function and its arguments: xray(ops.add, a, b)")
    only = blocks is not None
    most, name = (max_blocks, "max_blocks") if blocks is None else (blocks, "blocks")
    limits = limits_of(most, budget, seconds, name, "budget", "seconds")
    if sass:
        from kernel_xray.report import machine_code  # imports PyTorch's extension builder

        machine_code.tools()  # raises if one is missing
    sms = gpu_models.find(gpu).sms if gpu else 0
    filmed = _filmed_blocks(film)
    seed = random.getrandbits(32) if seed is None else seed
    result, error = None, None
    with faults.fresh_allocations_known():
        tracer.begin(seed, most, limits, what_if=sass, who_wrote=who_wrote, only_sample=only, sms=sms)
        if filmed:
            tracer.film(filmed, MOST_FRAMES)
        try:
            result = call(function, args, kwargs)
        except KernelFault as fault:
            # A traceback would keep the arguments' memory alive, and stray accesses to it would go unnoticed.
            error = fault.with_traceback(None)
        finally:
            found = tracer.end()
    if error is not None and error.kind == "interrupted":
        raise error
    report = make_report(found, result, seed, error, sass)
    if only and report.sampled:
        report.result = None  # of blocks that did not all run
    return report


def _filmed_blocks(film: bool | Sequence[int]) -> list[int]:
    if isinstance(film, bool):
        return [0] if film else []
    try:
        blocks = [operator.index(number) for number in film]
    except TypeError:
        raise TypeError(f"film is {film!r}; give True, or a list of the numbers of blocks in the grid") from None
    if not blocks or min(blocks) < 0:
        raise ValueError(f"film is {film!r}; give the numbers of blocks in the grid: 0 or more")
    return blocks


def in_progress() -> bool:
    """Whether a function is being X-rayed."""
    return bool(_calls)


def call(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Calls the X-rayed function, or a traced one inside it; meanwhile kernels may access only its arguments."""
    _calls.append((function, args, kwargs))
    tracer.register(function, args, kwargs)
    try:
        return function(*args, **kwargs)
    finally:
        _calls.pop()
        if _calls:
            tracer.register(*_calls[-1])
