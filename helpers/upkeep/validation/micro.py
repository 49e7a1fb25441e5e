"""Micro-kernels: one access per lane, or one tile, in a pattern given as integers (access.cu, tiles.cu)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from helpers.upkeep.validation.case import HERE, Case, library
from kernel_xray.build import flags

ALL = 0xFFFFFFFF
EVEN = 0x55555555


@dataclass(frozen=True)
class Micro:
    """One access per lane in a pattern; access.cu explains the integers."""

    space: str
    verb: str
    bytes: int
    pattern: str
    blocks: int = 1
    threads: int = 32
    divide: int = 1
    multiply: int = 1
    modulus: int = 1 << 30
    flip: int = 0
    offset: int = 0
    lanes: int = ALL

    def case(self) -> Case:
        def run(device: torch.device, traced: bool) -> Callable[[], object]:
            ops = library("validation_access", (str(HERE / "access.cu"),), traced)
            sink = torch.zeros(1, dtype=torch.int32, device=device)
            where = (self.divide, self.multiply, self.modulus, self.flip, self.offset, self.lanes)
            numbers = (self.verb == "store", self.bytes, self.blocks, self.threads, *where)
            if self.space == "shared":
                return lambda: ops.micro_shared(sink, *numbers)
            data = torch.zeros(1 << 20, dtype=torch.uint8, device=device)
            return lambda: ops.micro_global(data, sink, *numbers)

        name = f"{self.space} {self.verb}, {self.bytes} B, {self.pattern}"
        return Case(name, self.space, f"micro_{self.space}_{self.verb}_kernel", "access.cu", run)


def _global() -> list[Micro]:
    found = []
    for verb in ("load", "store"):
        found += [Micro("global", verb, size, "neighbours") for size in (1, 2, 4, 8, 16)]
        found += [Micro("global", verb, size, "stride 2", multiply=2) for size in (4, 8, 16)]
        found += [Micro("global", verb, 4, f"stride {s}", multiply=s) for s in (3, 8, 32)]
        found += [Micro("global", verb, 16, "stride 32", multiply=32)]
        found += [Micro("global", verb, size, "offset 1", offset=1) for size in (1, 2, 4)]
        found += [
            Micro("global", verb, 8, "offset 3", offset=3),
            Micro("global", verb, 16, "offset 1", offset=1),
            Micro("global", verb, 4, "reversed", flip=31),
            Micro("global", verb, 4, "shuffled within 128 B", multiply=13, modulus=32),
            Micro("global", verb, 4, "scattered over 16 KB", multiply=1021, modulus=4096),
            Micro("global", verb, 8, "scattered over 16 KB", multiply=509, modulus=2048),
            Micro("global", verb, 4, "all the same", multiply=0),
            Micro("global", verb, 16, "all the same", multiply=0),
            Micro("global", verb, 4, "pairs the same", divide=2),
            Micro("global", verb, 4, "lanes 0-6", lanes=0x7F),
            Micro("global", verb, 4, "even lanes", lanes=EVEN),
            Micro("global", verb, 16, "even lanes", lanes=EVEN),
            Micro("global", verb, 4, "20 threads", threads=20),
            Micro("global", verb, 4, "3 blocks of 100", blocks=3, threads=100),
            Micro("global", verb, 16, "4 blocks of 128, stride 3", blocks=4, threads=128, multiply=3),
        ]
    return found


def _shared() -> list[Micro]:
    found = []
    for verb in ("load", "store"):
        found += [Micro("shared", verb, size, "neighbours") for size in (1, 2, 4, 8, 16)]
        found += [Micro("shared", verb, 4, f"stride {s}", multiply=s) for s in (2, 3, 4, 8, 16, 32, 33)]
        strides = ((2, 2), (2, 64), (8, 2), (8, 17), (16, 2), (16, 9))
        found += [Micro("shared", verb, size, f"stride {s}", multiply=s) for size, s in strides]
        found += [
            Micro("shared", verb, 4, "reversed", flip=31),
            Micro("shared", verb, 4, "shuffled", multiply=13, modulus=32),
            Micro("shared", verb, 4, "scattered", multiply=1021, modulus=4096),
            Micro("shared", verb, 8, "scattered", multiply=509, modulus=2048),
            Micro("shared", verb, 4, "lanes 0-6, stride 32", multiply=32, lanes=0x7F),
            Micro("shared", verb, 4, "even lanes", lanes=EVEN),
            Micro("shared", verb, 16, "lanes 0-6", lanes=0x7F),
            Micro("shared", verb, 4, "20 threads", threads=20),
            Micro("shared", verb, 4, "3 blocks of 100, stride 2", blocks=3, threads=100, multiply=2),
        ]
    # Lanes that share a word or a vector: these show the phases of accesses of 8 and 16 bytes.
    for size in (4, 8, 16):
        found += [
            Micro("shared", "load", size, "all the same", multiply=0),
            *(Micro("shared", "load", size, f"{n} the same", divide=d) for n, d in (("pairs", 2), ("fours", 4))),
            *(Micro("shared", "load", size, f"lanes {m} apart the same", modulus=m) for m in (8, 16)),
            Micro("shared", "load", size, "pairs the same, stride 2", divide=2, multiply=2),
        ]
    for size in (8, 16):
        found += [
            *(Micro("shared", "load", size, f"lanes {m} apart the same", modulus=m) for m in (2, 4)),
            Micro("shared", "load", size, "even lanes", lanes=EVEN),
            Micro("shared", "load", size, "lanes 0, 1, 4, 5, ...", lanes=0x33333333),
            Micro("shared", "load", size, "half a warp", lanes=0xFFFF),
        ]
    return found


MICRO = [micro.case() for micro in _global() + _shared()]

# ----------------------------------------------------------------------------------------------------------------------
# Tiles, which need compute capability 9.0


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` x 64 bfloat16 elements in a matrix; see tiles.cu."""

    what: str
    matrix: tuple[int, int] = (64, 64)
    rows: int = 64
    at: tuple[int, int] = (0, 0)  # row and column of the matrix

    def case(self, blocks: int = 0, store: bool = False) -> Case:
        """The case of a store, or of a load: for the loading block itself (0), or for the blocks in a mask."""

        def run(device: torch.device, traced: bool) -> Callable[[], object]:
            ops = library("validation_tiles", (str(HERE / "tiles.cu"),), traced, tuple(flags.SM_90A))
            matrix = torch.zeros(self.matrix, dtype=torch.bfloat16, device=device)
            return lambda: ops.micro_tile(matrix, self.rows, *self.at, blocks, store)

        verb = "store" if store else "load"
        receivers = {0: "", 1: " for oneself", 2: " for another", 3: " for both"}[blocks]
        kernel = f"micro_tile_{verb}_kernel"
        return Case(f"tile {verb}{receivers}, {self.rows} x 64, {self.what}", "tile", kernel, "tiles.cu", run)


def _tiles() -> list[Tile]:
    return [
        Tile("all of the matrix"),
        Tile("one of many", (64, 512), at=(0, 128)),
        *(Tile("all of the matrix", (rows, 64), rows) for rows in (1, 8, 128, 256)),
        *(Tile(f"from column {c} of 512", (64, 512), at=(0, c)) for c in (8, 16, 24, 32, 40, 48, 56)),
        *(Tile(f"rows of {columns} numbers", (64, columns)) for columns in (72, 80, 96)),
        *(Tile(f"{n} numbers inside", (64, 512), at=(0, 512 - n)) for n in (8, 16, 24, 32, 40, 48, 56)),
        *(Tile(f"rows of {columns} numbers, from column 8", (64, columns), at=(0, 8)) for columns in (24, 40, 56)),
        Tile("outside on the right", (64, 512), at=(0, 512)),
        Tile("outside below", at=(64, 0)),
        *(Tile(f"{rows} inside", (rows, 64)) for rows in (1, 3, 63)),
    ]


def _before() -> list[Tile]:  # can be loaded, not stored
    return [
        *(Tile(f"from column -{c}", (64, 512), at=(0, -c)) for c in (8, 16, 24, 32, 40, 48, 56, 64)),
        *(Tile(f"from column -8, rows of {columns} numbers", (64, columns), at=(0, -8)) for columns in (24, 40, 48)),
        Tile("from row -3", at=(-3, 0)),
        Tile("from row -3 and column -8, 3 x 24 inside", (3, 24), at=(-3, -8)),
    ]


TILES = [tile.case(blocks) for tile in _tiles() + _before() for blocks in (0, 3)]
TILES += [Tile("rows of 72 numbers", (64, 72)).case(blocks) for blocks in (1, 2)]
TILES += [tile.case(store=True) for tile in _tiles()]
