"""The rungs of the matmul ladder as nested tiles, and the bytes per FLOP that each level of memory delivers.

Sizes are read from the kernels themselves. What is loaded follows from them, by the rules of `report.film_data` in
kernel_xray; tests compare it with the X-ray of each rung.
"""

from dataclasses import dataclass

from helpers.ladder.catalogue.matmul import MATMUL, RUNGS
from helpers.pages.figures.tile_constants import best_tile, constants, last_step, shape_in
from kernel_xray.report.film_data import sectors, wavefronts

_LANES, _SECTOR, _WAVEFRONT = 32, 32, 128  # bytes of the last two
SIZE = 4096  # m, n and k of the recorded measurements that the figure shows
AT_OTHER_SIZES = ("matmul/12_split.cu", "matmul/13_choice.cu")  # at this one they launch the rung before
_FMA = 4 * 4 / 2  # bytes per FLOP: a float multiply-add reads three registers and writes one, for two FLOPs
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
    "10_fragments": "The tensor cores' own instructions, swizzled tiles, copies in flight, larger tiles for warps.",
    "10_mma": "The same tiles; the next fragments are read before these are multiplied.",
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
    from_global: float  # bytes per FLOP, in whole sectors
    from_shared: float  # bytes per FLOP, in whole wavefronts
    registers: float  # bytes per FLOP that multiplications read and write
    instruction: tuple[int, int, int] = (0, 0, 0)  # m, n, k of an instruction of a warp or warp group; 0: of a lane
    blocks_sharing_b: int = 1  # of a cluster

    @property
    def adds(self) -> str:
        """What is new, in a sentence."""
        return ADDS[self.file.rpartition("/")[2].removesuffix(".cu")]


def rungs() -> list[Rung]:
    """All rungs that have tiles of their own at SIZE, from the bottom up."""
    files = {file: name for name, file in RUNGS.items() if file not in AT_OTHER_SIZES}  # the last kernel of a file
    return [_rung(name, file) for file, name in files.items()]


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
        from_global=loaded * _SECTOR / (2 * _LANES),
        from_shared=0,
        registers=_FMA,
    )


def _in_registers(name: str, file: str, dtype: str) -> Rung:
    """Tiles of a and b in shared memory; for each step along k, a lane reads an element for each row and column."""
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
    each = 4 if lanes.row_step == 4 else 1  # neighbours in one access; then a's tile is transposed
    of_a = {lane: 4 * pitch * lanes.row_step * (lane // lanes.across) for lane in range(_LANES)}  # bytes in the tile
    of_b = {lane: 4 * lanes.column_step * (lane % lanes.across) for lane in range(_LANES)}
    m, n = (sum(length for _, length in spans) for spans in (lanes.rows, lanes.columns))  # elements of a lane
    read = (m * wavefronts(of_a, 4 * each)[0] + n * wavefronts(of_b, 4 * each)[0]) / each
    return Rung(
        *(name, file, dtype),
        block=block,
        warp=(
            _extent(lanes.rows, lanes.row_step, _LANES // lanes.across),
            _extent(lanes.columns, lanes.column_step, lanes.across),
        ),
        lanes=lanes,
        from_global=_tiles(block, 4),
        from_shared=read * _WAVEFRONT / (2 * _LANES * m * n),
        registers=_FMA,
    )


def _fours(count: int, step: int) -> tuple[Span, ...]:
    return tuple((i * step, 4) for i in range(count))


def _extent(spans: tuple[Span, ...], step: int, lanes: int) -> int:
    """How many rows or columns the elements of neighbouring lanes span; `lanes` is their number."""
    first, length = spans[-1]
    return first + length + step * (lanes - 1)


def _tiles(block: tuple[int, int, int], size: int, blocks_sharing_b: int = 1) -> float:
    """Bytes per FLOP of copying a tile of a and one of b, of elements of `size` bytes."""
    m, n, _ = block
    return size * (m + n / blocks_sharing_b) / (2 * m * n)


def _on_tensor_cores(name: str, file: str, dtype: str) -> Rung:
    """A warp's instruction multiplies m x k by k x n elements; its sums are float, in registers."""
    c, sharing, in_registers = constants(file), 1, True
    if "09_wmma" in file:
        block, warp = (c["kM"], c["kN"], c["kK"]), (c["kWarpM"], c["kWarpN"])
        shape = shape_in(file, r"wmma::accumulator, (\d+), (\d+), (\d+)")
    elif "10_fragments" in file:
        m, n, *warp_tile = last_step(file)
        block, warp = (m, n, c["kK"]), (warp_tile[0], warp_tile[1])
        shape = shape_in("include/mma_sync.h", r"m(\d+)n(\d+)k(\d+)")
    elif "10_mma" in file:
        m, n, k, *warp_tile, _ = best_tile(file)
        block, warp = (m, n, k), (warp_tile[0], warp_tile[1])
        shape = shape_in("include/mma_sync.h", r"m(\d+)n(\d+)k(\d+)")
    else:
        in_registers = False  # wgmma reads its factors from shared memory
        sharing = c.get("kCluster", 1)
        block, shape = (c["kM"], c["kN"], c["kK"]), shape_in("include/hopper.h", r"wgmma_(\d+)x(\d+)x(\d+)\(")
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
