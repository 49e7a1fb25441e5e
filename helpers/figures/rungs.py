"""The rungs of the matmul ladder as nested tiles, and the bytes per FLOP that each level of memory delivers.

Sizes are read from the kernels themselves. What is loaded follows from them, by the rules of `xrays.film_data`; tests
compare it with the X-ray of each rung.
"""

import re
from dataclasses import dataclass

from helpers.catalogue.matmul import MATMUL, RUNGS
from helpers.machine.paths import KERNELS
from helpers.xrays.film_data import sectors, wavefronts

_LANES, _SECTOR, _WAVEFRONT = 32, 32, 128  # bytes of the last two
_HOPPER = "include/hopper_matmul.h"
SIZE = 4096  # m, n and k of the recorded measurements that the figure shows
Span = tuple[int, int]  # first row or column, and how many

# What a rung adds, in the words of the figure.
ADDS = {
    "01_naive": "One thread for each element of c; the lanes of a warp have neighbouring rows.",
    "02_coalesced": "x and y exchanged: the lanes have neighbouring columns, so b is read in 4 sectors.",
    "03_tiled": "The block copies tiles of a and b to shared memory and reads each element there 32 times.",
    "04_register_1d": "A thread computes 8 rows of a column: an element of b is read once and used 8 times.",
    "05_register_2d": "A thread computes 8 x 8 elements: 16 reads serve 64 multiplications.",
    "06_vectorised": "A thread reads 4 neighbours at once: a quarter of the instructions.",
    "07_async": "The same bytes, but the next tiles are copied while these are multiplied.",
    "08_warp_tile": "A compact tile for each warp, more copies in flight, and sizes found by measuring.",
    "09_wmma": "Tensor cores: a warp multiplies matrices of 16 x 16, in 16-bit types.",
    "10_mma": "The tensor cores' own instructions; larger tiles for blocks and warps; copies in flight.",
    "11_wgmma": "Four warps multiply straight from shared memory: no registers for factors.",
    "12_cluster": "Two blocks share each tile of b: half of it comes from the other block.",
}


@dataclass(frozen=True)
class Lanes:
    """Which elements of its warp's tile a lane computes: lane 0's spans, and the steps to the next lanes."""

    across: int  # lanes in a row of lanes
    row_step: int
    column_step: int
    rows: tuple[Span, ...] = ((0, 1),)  # of lane 0
    columns: tuple[Span, ...] = ((0, 1),)


@dataclass(frozen=True)
class Rung:
    """One rung: the sizes of its tiles in elements, and bytes per FLOP."""

    name: str
    file: str  # below kernels/
    dtype: str
    block: tuple[int, int, int]  # rows and columns of c; elements along k in a step, 0 if nothing is copied to tiles
    warp: tuple[int, int]  # rows and columns of c that a warp's elements span; of a warp group on Hopper
    lanes: Lanes | None  # on tensor cores: None
    instruction: tuple[
        int, int, int
    ]  # m, n, k of what one instruction of a warp or warp group multiplies; 0s: a lane's
    blocks_sharing_b: int  # of a cluster
    from_global: float  # bytes per FLOP, in whole sectors
    from_shared: float  # bytes per FLOP, in whole wavefronts
    registers: float  # bytes per FLOP that multiplications read and write

    @property
    def adds(self) -> str:
        """What is new, in a sentence."""
        return ADDS[self.file.rpartition("/")[2].removesuffix(".cu")]


def constants(file: str) -> dict[str, int]:
    """The integers that a file below kernels/ defines with `constexpr int NAME = ...;`, outside of functions.

    Those of Hopper's rungs are in the header that they share, too.
    """
    found = constants(_HOPPER) if f'#include "{_HOPPER.rpartition("/")[2]}"' in _text(file) else {}
    for line in re.findall(r"^(?:\[\[maybe_unused\]\] )?constexpr int (.+?);", _text(file), re.MULTILINE):
        for name, value in re.findall(r"(\w+) = ([\w\s+*/-]+)(?:,|$)", line):
            found[name] = int(eval(value.replace("/", "//"), {"__builtins__": {}}, found))
    return found


def best_tile(file: str) -> tuple[int, ...]:
    """The template arguments of the choice of tile that a file uses by default."""
    text = _text(file)
    chosen = re.search(r"\bkBest = (\d+)", text) or re.search(r"\busing Best = Tile(\d+);", text)
    assert chosen, f"{file} names no best tile"
    numbers = re.search(rf"\busing Tile{chosen[1]} = Tile<([\d, ]+)>;", text)
    assert numbers, f"{file} has no Tile{chosen[1]}"
    return tuple(int(number) for number in numbers[1].split(","))


def rungs() -> list[Rung]:
    """All rungs, from the bottom up."""
    files = {file: name for name, file in RUNGS.items()}  # of several kernels in a file, the last
    return [_rung(name, file) for file, name in files.items()]


def _text(file: str) -> str:
    return (KERNELS / file).read_text(encoding="utf-8")


def _rung(name: str, file: str) -> Rung:
    dtype = "float32" if MATMUL.takes(name, "float32") else "bfloat16"
    if dtype == "bfloat16":
        return _on_tensor_cores(name, file, dtype)
    if file in ("matmul/01_naive.cu", "matmul/02_coalesced.cu"):
        return _without_tiles(name, file, dtype)
    return _in_registers(name, file, dtype)


def _without_tiles(name: str, file: str, dtype: str) -> Rung:
    """Every multiplication loads two elements from global memory."""
    c = constants(file)
    x, y = c["kThreads"], c["kWarps"]
    by_rows = "naive" in file  # x, the lane, is the row
    rows = [lane if by_rows else 0 for lane in range(_LANES)]
    columns = [0 if by_rows else lane for lane in range(_LANES)]
    loaded = sectors([4 * SIZE * row for row in rows], 4)[0] + sectors([4 * column for column in columns], 4)[0]
    return Rung(
        *(name, file, dtype),
        block=(x, y, 0) if by_rows else (y, x, 0),
        warp=(_LANES, 1) if by_rows else (1, _LANES),
        lanes=Lanes(1, 1, 0) if by_rows else Lanes(_LANES, 0, 1),
        instruction=(0, 0, 0),
        blocks_sharing_b=1,
        from_global=loaded * _SECTOR / (2 * _LANES),
        from_shared=0,
        registers=_FMA,
    )


_FMA = 4 * 4 / 2  # a float multiply-add reads three registers and writes one, for two FLOPs


def _in_registers(name: str, file: str, dtype: str) -> Rung:
    """Tiles of a and b in shared memory; a lane reads `of_a` rows and `of_b` columns for each step along k."""
    c = constants(file)
    pitch = 1  # elements of shared memory from a row of a's tile to the next
    if "tiled" in file:
        tile = c["kTile"]
        block, lanes, pitch = (tile, tile, tile), Lanes(tile, 0, 1), tile
    elif "register_1d" in file:
        block = c["kM"], c["kN"], c["kK"]
        lanes, pitch = Lanes(_LANES, 0, 1, rows=((0, c["kRows"]),)), c["kK"]
    elif "register_2d" in file:
        block = c["kM"], c["kN"], c["kK"]
        rows, columns = (tuple((i * c[k], 1) for i in range(c[n])) for n, k in (("kRows", "kY"), ("kColumns", "kX")))
        lanes, pitch = Lanes(c["kX"], 1, 1, rows, columns), c["kK"]
    elif "warp_tile" in file:
        m, n, k, warp_m, warp_n, thread_m, thread_n, _ = best_tile(file)
        block, across, down = (m, n, k), warp_n // thread_n, warp_m // thread_m
        lanes = Lanes(across, 4, 4, _fours(thread_m // 4, 4 * down), _fours(thread_n // 4, 4 * across))
    else:
        block = c["kM"], c["kN"], c["kK"]
        lanes = Lanes(c["kX"], 4, 4, _fours(c["kFours"], 4 * c["kY"]), _fours(c["kFours"], 4 * c["kX"]))
    wide = lanes.row_step == 4  # four neighbours in one access, of a's transposed tile
    size = 16 if wide else 4
    places = {lane: divmod(lane, lanes.across) for lane in range(_LANES)}
    of_a = {lane: 4 * pitch * lanes.row_step * y for lane, (y, _) in places.items()}
    of_b = {lane: 4 * lanes.column_step * x for lane, (_, x) in places.items()}
    high, broad = (sum(length for _, length in spans) for spans in (lanes.rows, lanes.columns))
    per = 4 if wide else 1
    read = high // per * wavefronts(of_a, size)[0] + broad // per * wavefronts(of_b, size)[0]
    warp = tuple(_extent(lanes, along) for along in ("rows", "columns"))
    return Rung(
        *(name, file, dtype),
        block=block,
        warp=(warp[0], warp[1]),
        lanes=lanes,
        instruction=(0, 0, 0),
        blocks_sharing_b=1,
        from_global=_tiles(block, 4),
        from_shared=read * _WAVEFRONT / (2 * _LANES * high * broad),
        registers=_FMA,
    )


def _fours(count: int, step: int) -> tuple[Span, ...]:
    return tuple((i * step, 4) for i in range(count))


def _extent(lanes: Lanes, along: str) -> int:
    """How many rows or columns a warp's elements span."""
    spans, step = (lanes.rows, lanes.row_step) if along == "rows" else (lanes.columns, lanes.column_step)
    last = (_LANES // lanes.across if along == "rows" else lanes.across) - 1
    return spans[-1][0] + spans[-1][1] + last * step


def _tiles(block: tuple[int, int, int], size: int, blocks_sharing_b: int = 1) -> float:
    """Bytes per FLOP of copying a tile of a and one of b, of elements of `size` bytes."""
    m, n, _ = block
    return size * (m + n / blocks_sharing_b) / (2 * m * n)


def _on_tensor_cores(name: str, file: str, dtype: str) -> Rung:
    """A warp's instruction multiplies m x k by k x n elements; its sums are float, in registers."""
    c, sharing, in_registers = constants(file), 1, True
    if "09_wmma" in file:
        block, warp = (c["kM"], c["kN"], c["kK"]), (c["kWarpM"], c["kWarpN"])
        shape = _shape(file, r"wmma::accumulator, (\d+), (\d+), (\d+)")
    elif "10_mma" in file:
        m, n, k, *warp_tile, _ = best_tile(file)
        block, warp = (m, n, k), (warp_tile[0], warp_tile[1])
        shape = _shape("include/mma_sync.h", r"m(\d+)n(\d+)k(\d+)")
    else:
        in_registers = False  # wgmma reads its factors from shared memory
        sharing = c.get("kCluster", 1)
        block, shape = (c["kM"], c["kN"], c["kK"]), _shape(file, r"wgmma_(\d+)x(\d+)x(\d+)\(")
        warp = (c["kM"] // c["kConsumers"], c["kN"])
    m, n, k = shape
    factors, sums = 2 * k * (m + n), 4 * m * n
    rows, columns = warp if in_registers else (m, n)
    return Rung(
        *(name, file, dtype),
        block=block,
        warp=warp,
        lanes=None,
        instruction=shape,
        blocks_sharing_b=sharing,
        from_global=_tiles(block, 2, sharing),
        from_shared=2 * (rows + columns) / (2 * rows * columns),
        registers=(in_registers * factors + 2 * sums) / (2 * m * n * k),
    )


def _shape(file: str, pattern: str) -> tuple[int, int, int]:
    found = re.search(pattern, _text(file))
    assert found, f"{file} has no {pattern}"
    return int(found[1]), int(found[2]), int(found[3])
