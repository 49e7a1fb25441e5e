"""What an X-ray found: one record for each line and kind of access, and one for each fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Line:
    """What one source line's accesses of one kind cost, over all traced warps."""

    file: str
    line: int
    kernel: str
    space: str  # "global" or "shared"
    kind: str  # "load", "store" or "atomic"
    requests: int  # warp instructions
    sectors: int  # of 32 bytes, global memory
    ideal_sectors: int  # as few as the bytes asked for fit in
    wavefronts: int  # passes over the banks, shared memory
    ideal_wavefronts: int
    active_lanes: float  # mean over the requests, at most 32
    size: int = 0  # bytes of one lane's access
    lanes: tuple[tuple[int, int], ...] = ()  # lane and address of the fullest request, for the picture

    @property
    def efficiency(self) -> float:
        """The ideal cost over the actual one: 1.0 is best."""
        if self.space == "shared":
            return self.ideal_wavefronts / self.wavefronts if self.wavefronts else 1.0
        return self.ideal_sectors / self.sectors if self.sectors else 1.0


@dataclass(frozen=True)
class FaultRecord:
    """One thing that is wrong, once for each place."""

    kind: str
    file: str
    line: int
    kernel: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    message: str

    def __str__(self) -> str:
        place = f"{Path(self.file).name}:{self.line}" if self.line else "unknown line"
        return f"{place}: {self.kind}: {self.message}\n  in kernel '{self.kernel}', block {self.block}, thread {self.thread}"


@dataclass(frozen=True)
class Launch:
    """One launch of a traced kernel."""

    kernel: str
    file: str
    line: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks: int
    traced_blocks: int
    active_lanes: float  # mean over basic blocks and accesses: 32 without divergence
    shared_static: int  # bytes
    shared_dynamic: int


@dataclass
class Report:
    """The result of `helpers.xray`: the function's result, costs by line, faults, launches and the seed."""

    result: Any
    lines: list[Line] = field(default_factory=list)
    faults: list[FaultRecord] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    seed: int = 0
    error: BaseException | None = None  # what the function raised, if a fault ended it
