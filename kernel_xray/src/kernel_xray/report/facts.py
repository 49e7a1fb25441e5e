"""The facts of an X-ray: a record for each line and kind of access, for each fault and for each launch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kernel_xray.report.film_data import Film
from kernel_xray.report.kernel_names import shown_name
from kernel_xray.report.resident_warps import Occupancy

Index = tuple[int, int, int]
SECONDS = 30.0  # of processor time of an X-ray's launches, in which blocks are traced beyond _STEPS
_STEPS = 20_000_000  # a second or so
PATH = 4  # sectors a cycle and SM, between the registers and L1 or shared memory: 128 bytes
CP_ASYNC = "cp.async writes without a store instruction"  # in `Line.nvcc`, of what it writes
NOT_CORRECTED = "not corrected: "  # in `Line.nvcc`: the machine code has other accesses, and it is not known how


def limits_of(max_blocks: int, budget: int | None, seconds: float, *names: str) -> tuple[int, float]:
    """The steps of a block that are traced in any case, and the seconds in which more are. ValueError for a bad one."""
    numbers = ((max_blocks, 1), (budget, 1), (seconds, 0))
    for name, (number, least) in zip(names or ("max_blocks", "budget", "seconds"), numbers, strict=True):
        if number is not None and not number >= least:
            raise ValueError(f"{name} is {number}; it must be {least} or more")
    return (_STEPS, float(seconds)) if budget is None else (budget, 0.0)


@dataclass(frozen=True)
class Line:
    """The cost of one source line's accesses of one kind, over all traced warps."""

    file: str
    line: int
    kernel: str
    space: str  # "global" or "shared"
    kind: str  # "load", "store", "atomic"; by TMA: "tile load", "tile store"
    requests: int  # warp instructions; tiles
    sectors: int  # of 32 bytes, global memory
    ideal_sectors: int  # the fewest that hold the requested bytes
    wavefronts: int  # passes over the banks, shared memory
    ideal_wavefronts: int  # without bank conflicts
    active_lanes: float  # mean over the requests, at most 32
    size: int = 0  # bytes of one lane's access, or of a tile
    received: int = 0  # of tile loads: sectors, once per receiving block, with the zeros for parts out of bounds
    lanes: tuple[tuple[int, int], ...] = field(default=(), repr=False)  # lane and address, of one full request
    all_blocks: int = 0  # the cost in all blocks, scaled up from those that were traced; 0 with sass=True
    error: int = 0  # the standard error of that; 0 if all were traced
    complete: bool = True  # False: a trace of the kernel ended early, and the counts are lower bounds
    passes: int = 0  # of global loads and stores, over the banks of the L1 cache at least
    nvcc: str = ""  # with sass=True: how nvcc changed these accesses, or why they are not corrected

    @property
    def cost(self) -> int:
        """Sectors or, in shared memory, wavefronts."""
        return self.wavefronts if self.space == "shared" else self.sectors

    @property
    def ideal(self) -> int:
        """The least possible cost."""
        return self.ideal_wavefronts if self.space == "shared" else self.ideal_sectors

    @property
    def unit(self) -> str:
        """The unit of the cost."""
        return "wavefronts" if self.space == "shared" else "sectors"

    @property
    def efficiency(self) -> float:
        """The ideal cost over the actual one: 1.0 is best."""
        return self.ideal / self.cost if self.cost else 1.0

    @property
    def cycles(self) -> float:
        """Cycles in which an SM's load and store units move the data at least; TMA moves tiles without them."""
        if self.space == "shared":
            return self.wavefronts
        if self.kind.startswith("tile"):
            return 0
        return max(self.requests, self.ideal_sectors / PATH, self.passes if self.kind != "atomic" else 0)

    @property
    def source(self) -> str:
        """The source line, without its indentation; empty if the file cannot be read."""
        return source_line(self.file, self.line).strip()


@dataclass(frozen=True)
class FaultRecord:
    """One fault or remark, reported once per line, for the first thread of the grid that had it.

    `kind` is "out-of-bounds", "race", "uninitialised-read", "misaligned", "divergent-barrier" (also: a wrong mask) or
    "deadlock". Faults that end a kernel outside an X-ray too keep their names there: "time-limit" (an endless loop, or
    a wait for another block), "assert", "trap", "exception", "division-by-zero", "stack-overflow", "shared-memory",
    "tensor-memory" (allocated or freed wrongly).
    Remarks are of kind "race" (all write the same value), "divergent-barrier" (threads have ended before a barrier) or
    "budget" (a part of a block was not traced). `others` are the places of a race's other accesses.
    """

    kind: str
    file: str
    line: int
    kernel: str
    block: Index
    thread: Index
    message: str
    others: tuple[tuple[str, int], ...] = ()
    callers: tuple[tuple[str, int], ...] = ()  # of the function that was inlined there, the innermost first

    def __str__(self) -> str:
        place = f"{Path(self.file).name}:{self.line}" if self.line else "unknown line"
        where = (
            f"  in kernel '{shown_name(self.kernel)}', block {self.block}, thread {self.thread}" if self.kernel else ""
        )
        code = source_line(self.file, self.line).strip()
        outside = next((caller for caller in self.callers if caller[0] != self.file), None)
        called = outside and f"  called at {Path(outside[0]).name}:{outside[1]}: {source_line(*outside).strip()}"
        head = f"{place}: {self.kind}: {self.message}"
        return "\n".join(s for s in (head, code and f"  > {code}", called, where) if s)


@dataclass(frozen=True)
class Products:
    """What the tensor cores multiply in the traced blocks of a launch."""

    dtype: str  # of the factors: "float16", "bfloat16", "tf32", "float8", "int8"
    multiply_adds: int
    least: int  # of them, in the block that has the fewest


@dataclass(frozen=True)
class Launch:
    """One launch of a traced kernel."""

    kernel: str
    file: str
    line: int
    grid: Index
    block: Index
    blocks: int
    traced_blocks: int
    active_lanes: float  # mean over basic blocks and accesses: 32 without divergence
    shared_static: int  # bytes of a block
    shared_dynamic: int
    loading: int = 0  # threads of the traced blocks that load from global memory, or have TMA load a tile
    storing: int = 0  # and that store to it
    most_loads: int = 0  # of one thread
    most_stores: int = 0
    cut_blocks: int = 0  # traced blocks whose trace ended before they did; their counts are lower bounds
    sectors_read: int = 0  # of 32 bytes, each once: read before the launch wrote them
    sectors_written: int = 0
    sectors_readable: int = 0  # of all tensors and allocations that the traced blocks read from
    products: tuple[Products, ...] = ()  # of tensor cores, one for each type of factors
    sms_told: int = 0  # how many SMs the device has, if the function asked for it before the launch; else 0
    special: int = 0  # results of special-function units, of intrinsics and PTX
    most_updates: int = 0  # atomic updates of the word in global memory that has most; those of a warp are one
    least_read: int = 0  # of the sectors read, those of the traced block, or cluster, that is first to read the fewest
    scale: float = 0.0  # of a sample: the cost in all blocks, as it is estimated, over that in the traced ones
    even: bool = False  # all traced blocks made the same requests at the same cost; False for clusters of blocks


@dataclass(frozen=True)
class Issued:
    """Instructions of the machine code that the warps of a kernel issue, in all traced blocks."""

    kernel: str
    unit: str  # "issue": all; "float32", "float64", "integer", "special", "bits", "mma"
    number: float  # at least


@dataclass(frozen=True)
class Writer:
    """The last thread that wrote some bytes of global memory."""

    name: str  # of the tensor or allocation
    offset: int  # in bytes, from its start
    size: int  # bytes
    kernel: str
    block: int  # its number in the grid
    thread: int  # its number in the block


@dataclass(repr=False)
class Facts:
    """Everything that one X-ray found. `report.Report` adds the ways to show it."""

    result: Any
    lines: list[Line] = field(default_factory=list)
    faults: list[FaultRecord] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    remarks: list[FaultRecord] = field(default_factory=list)  # worth knowing, but not faults
    seed: int = 0
    writers: list[Writer] = field(default_factory=list)  # with who_wrote=True, by name and offset
    error: BaseException | None = None  # the function's exception, if a fault ended it
    whole: bool = True  # False: the program was ended from outside, and what its last launches did may be missing
    sass: str = ""  # the architecture whose machine code is counted, such as sm_90a; empty: the source is
    issued: list[Issued] = field(default_factory=list)  # with sass=True
    recorded: Film | None = None  # with film=True: what each warp of some blocks did
    occupancies: list[Occupancy] = field(default_factory=list)  # once `Report.occupancy` has computed them
    limited: Any = None  # the Limits that `Report.limits` has computed

    @property
    def complete(self) -> bool:
        """Whether every access was counted: of all blocks, to their ends."""
        return self.whole and self.error is None and not self.cut and not self.sampled

    @property
    def cut(self) -> list[str]:
        """The kernels whose trace ended early (budget, time): nothing can be judged by their counts."""
        return list(dict.fromkeys(launch.kernel for launch in self.launches if launch.cut_blocks))

    @property
    def sampled(self) -> bool:
        """Whether only some blocks of a launch were traced."""
        return any(launch.traced_blocks < launch.blocks for launch in self.launches)

    @property
    def worst(self) -> Line | None:
        """The line that wastes the most sectors or wavefronts; None if no line wastes any."""
        wasteful = max(self.lines, key=lambda record: record.cost - record.ideal, default=None)
        return wasteful if wasteful and wasteful.cost > wasteful.ideal else None


@cache
def _source(file: str, _modified: float) -> list[str]:
    return Path(file).read_text(errors="replace").splitlines()


_given: ContextVar[Mapping[str, list[str]] | None] = ContextVar("given", default=None)


@contextmanager
def sources_given(texts: Mapping[str, str]) -> Iterator[None]:
    """Inside, the source lines of a report are those of `texts`, by file, and no file is read.

    For a report whose facts somebody else sends: a path among them opens nothing.
    """
    before = _given.set({file: text.splitlines() for file, text in texts.items()})
    try:
        yield
    finally:
        _given.reset(before)


def source_line(file: str, line: int) -> str:
    """One line of a file, counted from 1; empty if there is none."""
    given = _given.get()
    try:
        lines = _source(file, Path(file).stat().st_mtime) if given is None else given.get(file, [])
    except OSError:
        return ""
    return lines[line - 1] if 1 <= line <= len(lines) else ""
