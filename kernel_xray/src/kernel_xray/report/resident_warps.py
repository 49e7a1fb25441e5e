"""Theoretical occupancy: how many warps of a kernel fit on an SM at once, given the resources of a block.

The formula comes from the CUDA Programming Guide's occupancy calculator. It is an upper limit: real occupancy is lower
if the grid is small or its blocks end at different times, and higher occupancy is not always faster.
"""

from dataclasses import dataclass

from kernel_xray.report.kernel_names import shown_name


@dataclass(frozen=True)
class _SM:
    warps: int
    blocks: int
    shared: int  # bytes, at the largest share of the L1 cache
    shared_per_block: int
    reserved: int  # bytes of each block's shared memory that the system uses
    granularity: int  # bytes: the unit in which shared memory is allocated
    registers: int = 65536


# From the table 'Technical Specifications per Compute Capability' of the CUDA Programming Guide.
_KIB = 1024
SMS = {
    "7.0": _SM(64, 32, 96 * _KIB, 96 * _KIB, 0, 256),
    "7.5": _SM(32, 16, 64 * _KIB, 64 * _KIB, 0, 256),
    "8.0": _SM(64, 32, 164 * _KIB, 163 * _KIB, _KIB, 128),
    "8.6": _SM(48, 16, 100 * _KIB, 99 * _KIB, _KIB, 128),
    "8.9": _SM(48, 24, 100 * _KIB, 99 * _KIB, _KIB, 128),
    "9.0": _SM(64, 32, 228 * _KIB, 227 * _KIB, _KIB, 128),
    "10.0": _SM(64, 32, 228 * _KIB, 227 * _KIB, _KIB, 128),
    "12.0": _SM(48, 24, 100 * _KIB, 99 * _KIB, _KIB, 128),
}
_WARP, _PARTITIONS, _REGISTER_UNIT, _MOST_REGISTERS = 32, 4, 256, 255


@dataclass(frozen=True)
class Occupancy:
    """What fits on one SM, in theory."""

    capability: str  # "8.0", "9.0", ...
    threads: int  # of a block
    registers: int  # of a thread
    shared: int  # bytes of a block
    blocks: int  # that fit; 0: the kernel cannot be launched
    warps: int
    max_warps: int
    limits: tuple[str, ...]  # what prevents another block: "warps", "blocks", "registers", "shared memory"
    kernel: str = ""

    @property
    def share(self) -> float:
        """The share of the SM's warp slots that are in use: 1.0 is full."""
        return self.warps / self.max_warps

    def __str__(self) -> str:
        name = f"{shown_name(self.kernel)}: " if self.kernel else ""
        what = f"{self.threads} threads, {self.registers} registers each, {self.shared} bytes of shared memory a block"
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        return (
            f"{name}{what}: theoretical occupancy {self.share:.0%} on compute capability {self.capability} "
            f"({blocks}, {self.warps} of {self.max_warps} warps; limited by {' and '.join(self.limits)})"
        )


def occupancy(threads: int, registers: int, shared: int = 0, capability: str = "8.0", kernel: str = "") -> Occupancy:
    """How many blocks of a kernel fit on one SM, in theory.

    threads     of a block, 1 to 1024
    registers   of a thread, 1 to 255, as `nvcc -Xptxas -v` prints them
    shared      bytes of a block, static and dynamic
    capability  of the GPU: "8.0" for an A100, "9.0" for an H100 or H200, ...

    Raises ValueError for a number out of range or an unknown capability.
    """
    if capability not in SMS:
        raise ValueError(f"capability is {capability!r}; known are {', '.join(SMS)}")
    for name, value, least, most in (
        ("threads", threads, 1, 1024),
        ("registers", registers, 1, _MOST_REGISTERS),
        ("shared", shared, 0, None),
    ):
        if value < least or (most is not None and value > most):
            raise ValueError(f"{name} is {value}; it must be {least} {f'to {most}' if most else 'or more'}")
    sm = SMS[capability]
    warps = -(-threads // _WARP)
    registers_per_warp = _rounded_up(registers * _WARP, _REGISTER_UNIT)
    by_registers = sm.registers // _PARTITIONS // registers_per_warp * _PARTITIONS // warps
    if registers_per_warp * _rounded_up(warps, _PARTITIONS) > sm.registers:
        by_registers = 0  # too many for one block
    fits = {"warps": sm.warps // warps, "blocks": sm.blocks, "registers": by_registers}
    taken = _rounded_up(shared + sm.reserved, sm.granularity)
    if taken:
        fits["shared memory"] = sm.shared // taken if shared <= sm.shared_per_block else 0
    blocks = min(fits.values())
    limits = tuple(name for name, number in fits.items() if number == blocks)
    return Occupancy(
        capability=capability,
        threads=threads,
        registers=registers,
        shared=shared,
        blocks=blocks,
        warps=blocks * warps,
        max_warps=sm.warps,
        limits=limits,
        kernel=kernel,
    )


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
