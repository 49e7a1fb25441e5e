"""The corpus that the X-ray's verdicts are held to: kernels in the idioms of published code, each with a broken twin.

The kernels are in idioms/, a file for each family. Here each has a row. It says with PyTorch what the kernel computes
from its inputs; then what the X-ray has to find in the twin: the kind of fault and a regular expression for its source
line (of a race, for one of the two lines); then what the operator is called with: tensors with values, some of which it
may update; tensors without values; numbers.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from simt_programs import load_cases

from kernel_xray.runtime.libsimt import is_clang

FOLDER = Path(__file__).parent / "idioms"


@dataclass(frozen=True)
class Idiom:
    """A correct kernel and its twin."""

    name: str  # the operator
    family: str  # its file, without the suffix
    expected: Callable[..., torch.Tensor]  # of the inputs
    kind: str  # of the twin's fault
    line: str  # a regular expression for the twin's line
    inputs: Sequence[torch.Tensor]  # copied for each call
    outputs: Sequence[torch.Tensor] = ()  # allocated anew for each call
    numbers: Sequence[int] = ()
    answer: int = -1  # which of all tensors holds the result
    ordered: bool = True  # false: the result's elements may come in any order
    remark: str = ""  # a regular expression for a line that the X-ray remarks on in the correct kernel
    seconds: float = 0.0  # how long a block of the twin may run, if it never ends by itself


IDIOMS: list[Idiom] = []


def family_of(name: str) -> Callable[..., None]:
    """A function that adds an idiom of one file: its operator, and the fields of Idiom from `expected` on."""

    def add(operator: str, *facts: Any, **more: Any) -> None:
        IDIOMS.append(Idiom(operator, name, *facts, **more))

    return add


FAMILIES = ("tiles", "warps", "atomics", "scopes", "blocks", "grids")
tiles, warps, atomics, scopes, blocks, grids = map(family_of, FAMILIES)


@functools.cache
def operators(family: str) -> Any:
    """The operators `name(tensors, numbers, bug)` of idioms/FAMILY.cu, traced."""
    return load_cases(FOLDER / f"{family}.cu", f"idioms_{family}", traced=True)


# ----------------------------------------------------------------------------------------------------------------------
# Tensors

RANDOM = torch.Generator().manual_seed(1)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(shape, generator=RANDOM, dtype=dtype)


def doubles(n: int) -> torch.Tensor:
    return floats(n, dtype=torch.float64)


def ints(n: int, low: int = 0, high: int = 100) -> torch.Tensor:
    return torch.randint(low, high, (n,), generator=RANDOM, dtype=torch.int32)


def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


empty_ints = functools.partial(empty, dtype=torch.int32)


def bincount(values: torch.Tensor, bins: int) -> torch.Tensor:
    return torch.bincount(values, minlength=bins).int()


def total(a: torch.Tensor) -> torch.Tensor:
    return a.sum(0, keepdim=True, dtype=a.dtype)


def scan(a: torch.Tensor, size: int) -> torch.Tensor:
    """Inclusive sums within pieces of `size` elements."""
    return torch.cat([piece.cumsum(0, dtype=a.dtype) for piece in a.split(size)])


# ----------------------------------------------------------------------------------------------------------------------
# Threads of a block: tiles.cu

tiles("transpose", lambda a: a.T, "race", r"tile\[thread", [floats(37, 50)], [empty(50, 37)], [37, 50])
tiles("matmul", lambda a, b: a @ b, "race", r"_tile\[", [floats(20, 35), floats(35, 18)], [empty(20, 18)], [20, 18, 35])
tiles("double_buffer", lambda a, b: a @ b, "race", r"_tiles\[", [floats(24, 24), floats(24, 24)], [empty(24, 24)], [24])
tiles("staged_copy", lambda a: a.flip(1).sum(0), "race", r"stages\[", [floats(5, 64)], [empty(64)], [5])
tiles("matvec", lambda a, x: a[:, :40] @ x, "uninitialised-read", r"chunk\[k\]",
    [floats(70, 64), floats(40) - 0.5], [empty(70)], [70, 40, 64])  # fmt: skip

PERMUTED = torch.stack([torch.randperm(48, generator=RANDOM) for _ in range(3)]).int()
tiles("two_arrays", lambda a, order: a.gather(1, order.long()), "out-of-bounds", r"places\[threadIdx\.x\] =",
    [floats(3, 48), PERMUTED], [empty(3, 48)], [48])  # fmt: skip


def nbody(body):
    place, mass = body[:70, :3], body[:70, 3]
    way = place[None] - place[:, None]
    return (way * (mass * (way.square().sum(-1) + 0.01) ** -1.5)[..., None]).sum(1)


tiles("nbody", nbody, "misaligned", r"= body\[",
    [floats(71, 4)], [empty(70, 3)], [70])  # there is memory behind the last body  # fmt: skip
tiles("stencil", lambda a: F.conv1d(a[None, None], torch.ones(1, 1, 7), padding=3)[0, 0], "uninitialised-read",
    r"window\[at \+ k\]", [floats(200)], [empty(200)], [200])  # fmt: skip
tiles("convolution", lambda a, weights: F.conv1d(a[None, None], weights[None, None], padding=2)[0, 0], "out-of-bounds",
    r"a\[i \+ k\]", [floats(150), floats(5)], [empty(150)], [150])  # fmt: skip


def smooth_twice(a):
    for _ in range(2):
        a = (a + F.pad(a, (0, 1))[1:]) / 2
    return a


tiles("smooth_twice", smooth_twice, "divergent-barrier", r"__syncthreads", [floats(50)], [empty(50)], [50])


def life(a):
    around = sum(a.roll((dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - a
    return ((around == 3) | ((around == 2) & (a == 1))).byte()


tiles("life", life, "race", r"\[self\] =",
    [(floats(19, 33) < 0.4).byte()], [empty(19, 33, dtype=torch.uint8)], [19, 33])  # fmt: skip
tiles("hillis_steele", lambda a: scan(a, 64), "race", r"buffers\[to\]", [ints(192)], [empty_ints(192)])
tiles("blelloch", lambda a: scan(a, 128) - a, "race", r"tree\[", [ints(256)], [empty_ints(256)])
tiles("bitonic_sort", lambda a: a.view(2, 64).sort(1).values.view(-1), "out-of-bounds", r"keys\[other\]",
    [ints(128)], [empty_ints(128)])  # fmt: skip
tiles("odd_even_sort", lambda a: a.sort().values, "out-of-bounds", r"keys\[i \+ 1\]", [ints(50)], [empty_ints(50)])
tiles("radix_sort", lambda a: a[(a % 16).sort(stable=True).indices], "race", r"keys\[|ones\[",
    [ints(64)], [empty_ints(64)])  # fmt: skip

SORTED = [ints(37, 0, 200).sort().values, ints(50).sort().values]
tiles("merge_path", lambda a, b: torch.cat([a, b]).sort().values, "out-of-bounds", r"a\[middle\] <= b\[",
    SORTED, [empty_ints(87)])  # fmt: skip
tiles("fft", lambda a: torch.view_as_real(torch.fft.fft(a)), "race", r"points\[", [floats(3, 64)], [empty(3, 64, 2)])


# ----------------------------------------------------------------------------------------------------------------------
# Lanes of a warp: warps.cu

warps("tree_sum", lambda a: a.view(2, 64).sum(1), "race", r"sums\[i\]", [floats(128)], [empty(2)])
warps("block_sum", lambda a: torch.stack([block.sum() for block in a.split(96)]), "uninitialised-read", r"sums\[lane\]",
    [floats(250)], [empty(3)], [250])  # fmt: skip
warps("tail_sum", total, "divergent-barrier", r"__shfl_sync", [floats(20)], [empty(1)], [20])
warps("tile_sum", lambda a, _: total(a), "race", r"sums\[", [floats(150), torch.zeros(1)], [], [150])

SEGMENTS = ints(200, 0, 6).sort().values
warps("segmented_sum", lambda keys, values, out: out.index_add(0, keys, values), "race", r"out\[key\] \+=",
    [SEGMENTS, floats(200), torch.zeros(6)], [], [200])  # fmt: skip


def sparse(rows: int, columns: int) -> list[torch.Tensor]:
    """A matrix in CSR form (starts of rows, columns, values), and a vector."""
    row, column = (floats(rows, columns) > 0.6).nonzero(as_tuple=True)
    starts = F.pad(bincount(row, rows).cumsum(0), (1, 0))
    return [starts.int(), column.int(), floats(len(column)), floats(columns) - 0.5]


def csr_warp(starts, columns, values, x):
    row = torch.arange(len(starts) - 1).repeat_interleave(starts.diff())
    return torch.zeros(len(starts) - 1).index_add(0, row, values * x[columns])


warps("csr_warp", csr_warp, "out-of-bounds", r"starts\[row", sparse(10, 90), [empty(10)], [10])
warps("warp_scan", lambda a: scan(a, 32), "divergent-barrier", r"__shfl_up_sync", [ints(150)], [empty_ints(150)], [150])
warps("leader_scan", lambda a: scan(a, 32) - a, "race", r"prefix\[", [ints(128)], [empty_ints(128)])


def kept(a: torch.Tensor, which: torch.Tensor, size: int) -> torch.Tensor:
    """The elements that are kept, and zeros behind them."""
    return F.pad(a[which], (0, size - int(which.sum())))


warps("compact", lambda a, _count, _out: kept(a, a % 3 == 0, 150), "race", r"\*count \+=",
    [ints(150, 1), zeros(1), zeros(150)], [], [150], ordered=False)  # fmt: skip
warps("aggregated", lambda a, _count, _out: kept(a, a % 2 == 1, 150), "race", r"out\[base",
    [ints(150, 1), zeros(1), zeros(150)], [], [150], ordered=False)  # fmt: skip
warps("match_bins", lambda a, _: bincount(a, 8), "race", r"counts\[key\] \+=", [ints(150, 0, 8), zeros(8)], [], [150])
warps("softmax", lambda a: a.softmax(1), "out-of-bounds", r"= exps\[", [floats(10, 50)], [empty(10, 50)], [10, 50])
warps("layer_norm", lambda a: F.layer_norm(a, (150,)), "race", r"scratch\[",
    [floats(3, 150)], [empty(3, 150)], [150, 3])  # fmt: skip
warps("welford", lambda x: torch.stack([x.mean(0), x.var(0, correction=0)]), "out-of-bounds", r"value = x\[",
    [floats(50, 5)], [empty(2, 5)], [50, 5])  # fmt: skip


def half_warps(a):
    first, second = a.view(4, 32).split(16, 1)
    return torch.cat([first.flip(1), second], 1).view(-1)


warps("half_warps", half_warps, "deadlock", r"__syncwarp", [floats(128)], [empty(128)])


def producer(a):
    sums = a.flip(1).sum(0)
    return torch.cat([sums, 2 * sums])


warps("producer", producer, "race", r"box\[", [floats(4, 32)], [empty(64)], [4])
warps("handshake", lambda a: 2 * a.flip(0), "race", r"box\[", [floats(32)], [empty(32)])


# ----------------------------------------------------------------------------------------------------------------------
# Atomics: atomics.cu

atomics("cas_sum", lambda a, _: total(a), "race", r"\*word = sum",
    [doubles(300), zeros(1, dtype=torch.float64)], [], [300])  # fmt: skip
atomics("largest", lambda a: a.amax(0, keepdim=True), "uninitialised-read", r"old = \*word",
    [floats(300) - 2], [empty(1)], [300])  # fmt: skip
# clang++ moves the write behind the loop, where it has no line; the read that it races with has one.
WRITE = r"found = \*word" if is_clang() else r"\*word = __double"
atomics("raised", lambda a, _: a.amax(0, keepdim=True), "race", WRITE, [
    doubles(300), zeros(1, dtype=torch.float64)], [], [300], remark=r"found = \*word")  # fmt: skip

HALVES = [ints(100, 0, 8), ints(100, 0, 9).half(), zeros(8, dtype=torch.float16)]
atomics("half_bins", lambda keys, values, out: out.index_add(0, keys, values), "misaligned", r"old = \*word",
    HALVES, [], [100])  # fmt: skip
atomics("product", lambda a: a.view(2, 64).prod(1), "race", r"product = 1", [2.0 ** (ints(128, 0, 3) - 1)], [empty(2)])
atomics("histogram", lambda a, _: bincount(a, 16), "race", r"counts\[", [ints(400, 0, 16), zeros(16)], [], [400])


# All numbers of 8 bits: some of their bytes are those that memory is poisoned with.
atomics("signed_bins", lambda a, _: bincount(a + 128, 256), "out-of-bounds", r"bins\[",
    [torch.arange(-128, 128, dtype=torch.int32), zeros(256)], [], [256])  # fmt: skip
atomics("dot", lambda a, b, _: total(a * b), "race", r"\*dot \+=",
    [doubles(200), doubles(200), zeros(1, dtype=torch.float64)], [], [200])  # fmt: skip
atomics("argmax", lambda a, _: a.argmax(0, keepdim=True).int(), "race", r"\*best =",
    [floats(200), zeros(1, dtype=torch.int64)], [empty_ints(1)], [200])  # fmt: skip
atomics("embedding", lambda words, gradients, out: out.index_add(0, words[words >= 0], gradients[words >= 0]),
    "out-of-bounds", "atomicAdd", [ints(30, -1, 10), floats(30, 20), torch.zeros(10, 20)], [], [30, 20])  # fmt: skip


def monte_carlo(state, hits):
    state = state.long()
    for _ in range(10):
        x = (state * 1664525 + 1013904223) % 2**32
        y = state = (x * 1664525 + 1013904223) % 2**32
        hits = hits + ((x >> 17) ** 2 + (y >> 17) ** 2 < 2**30).sum().int()
    return hits


atomics("monte_carlo", monte_carlo, "race", r"states\[id\]",
    [torch.arange(1, 97, dtype=torch.int32), zeros(1)], [], [10])  # fmt: skip
atomics("top_k", lambda a: a.topk(5).values, "out-of-bounds", r"out\[", [floats(4, 50)], [empty(4, 5)], [50, 5, 4])


RUNS = torch.arange(12, dtype=torch.int32).repeat_interleave(5)


def run_starts(a):
    starts = torch.cat([torch.ones(1, dtype=torch.bool), a[1:] != a[:-1]]).nonzero().view(-1)
    return torch.stack([starts.int(), a[starts]])


atomics("run_starts", run_starts, "out-of-bounds", r"a\[i - 1\]", [RUNS], [empty_ints(2, 12)], [60])
atomics("linked_lists", lambda values, _: zeros(8).index_add(0, values % 8, values), "out-of-bounds", r"values\[i\]",
    [ints(100), zeros(8) - 1], [empty_ints(100), empty_ints(8)], [100])  # fmt: skip
atomics("ring", lambda a, _ring, _tail: a, "out-of-bounds", r"ring\[",
    [ints(50), zeros(64), zeros(1) + 40], [empty_ints(50)], [50, 40], ordered=False)  # fmt: skip
atomics("mailboxes", lambda a, _states, _sum: total(a), "race", r"boxes\[",
    [ints(100), zeros(100), zeros(1)], [empty_ints(100)], [100], answer=2)  # fmt: skip


EDGES = ints(160, 0, 60).view(80, 2)  # of 60 nodes, in several components
NODES = torch.arange(60, dtype=torch.int32)


def components(edges, labels):
    for _ in range(60):
        for a, b in (edges.T.long(), edges.T.long().flip(0)):
            labels = labels.scatter_reduce(0, a, labels[b], "amin")
    return labels


atomics("components", components, "race", r"label =", [EDGES, NODES], [empty_ints(60), empty_ints(1)], [80], answer=1)
atomics("union_find", components, "race", r"parents\[high\] = low", [EDGES, NODES], [empty_ints(60)], [80, 60])


FLAGS = (torch.arange(181) % 60 == 0) & (torch.arange(181) != 120)  # node 0 is in the frontier and visited; go on
UNREACHED = torch.where(NODES == 0, 0, -1).int()


def bfs(edges, _, depths):
    depths = depths.clone()
    for level in range(60):
        for a, b in (edges.T.long(), edges.T.long().flip(0)):
            depths[b[(depths[a] == level) & (depths[b] < 0)]] = level + 1
    return depths


atomics("bfs", bfs, "race", r"visited\[to\]", [EDGES, FLAGS, UNREACHED], [], [80, 60], remark=r"depths\[to\] = level")


# ----------------------------------------------------------------------------------------------------------------------
# Atomics and fences of the block, the cluster, the device: scopes.cu

scopes("block_bins", lambda a, _: bincount(a, 16), "race", r"atomicAdd_block\(bin",
    [ints(400, 0, 16), zeros(16)], [], [400])  # fmt: skip


def own_words(a, _words, _sums):
    rows = a.view(3, 64)
    parity = (rows[..., None] >> torch.arange(7) & 1).sum(1) % 2
    sums = rows.sum(1)
    words = [rows.amax(1), (parity << torch.arange(7)).sum(1), sums, torch.full_like(sums, 64), sums]
    return torch.stack(words, 1).int()


scopes("own_words", own_words, "race", r"_block", [ints(192), zeros(3, 4), torch.zeros(3)], [empty_ints(3, 5)])
scopes("grid_words", lambda a, _words, out: torch.full_like(out, a.view(3, 32).sum(1).max()), "race",
    r"words\[", [ints(96), zeros(3), zeros(3)])  # fmt: skip
scopes("common_factor", lambda a, factor: a * factor, "race", r"common\.", [ints(128), zeros(1) + 3], [empty_ints(128)])
scopes("block_flag", lambda a, _boxes, _flags: a, "race", r"boxes\[at\]",
    [ints(64), zeros(64), zeros(64)], [empty_ints(64)])  # fmt: skip
scopes("last_block_fence", lambda a, _sums, _count, _out: total(a), "race", r"sums\[",
    [ints(256), zeros(4), zeros(1), zeros(1)])  # fmt: skip
scopes("last_block_ref", lambda a, _partial, _count, _out: total(a), "race", r"fetch_add",
    [ints(7), zeros(7), zeros(1), zeros(1)])  # fmt: skip
scopes("last_block_ptx", lambda a, _partial, _count, _out: total(a), "race", r"partial\[",
    [ints(7), zeros(7), zeros(1), zeros(1)])  # fmt: skip
scopes("ptx_count", lambda a, _: bincount(a, 8), "race", r"ld\.global", [ints(128, 0, 8), zeros(8)])
scopes("cluster_words", lambda a, _: a.view(3, 64).sum(1).int(), "race", r"red\.relaxed", [ints(192), zeros(3)])


# ----------------------------------------------------------------------------------------------------------------------
# Blocks of a launch: blocks.cu

blocks("last_block_inc", total, "race", r"partial\[", [floats(300)], [empty(10), empty(1)], [300])
blocks("last_block_add", total, "race", r"partial\[", [ints(384)], [empty_ints(6), empty_ints(1)])
blocks("last_block_all", lambda a, _: total(a * a), "race", r"last",
    [floats(300), zeros(1)], [empty(300), empty(1)], [300])  # fmt: skip
blocks("last_block_malloc", total, "out-of-bounds", r"partial\[blockIdx\.x\] =", [floats(256)], [empty(1)])
blocks("append", lambda a, _: kept(a, a > 0, 85), "out-of-bounds", r"out\[atomicAdd",
    [ints(150, -50, 50), zeros(85)], [], [150], ordered=False)  # fmt: skip
blocks("lock_of_blocks", lambda a, b, _dot, _mutex: total(a * b), "race", r"\*dot \+=",
    [floats(300), floats(300), torch.zeros(1), zeros(1)], [], [300], answer=2)  # fmt: skip
blocks("lock_of_warps", lambda _mutex, _total: zeros(1) + sum(range(0, 256, 32)), "race", r"\*total \+=",
    [zeros(1), zeros(1)])  # fmt: skip
blocks("bucket_locks", lambda a, _locks, _sums: torch.stack([zeros(8).index_add(0, a % 8, a), bincount(a % 8, 8)]),
    "race", r"(sums|counts)\[bucket\]", [ints(150, 0, 1000), zeros(8), zeros(2, 8)], [], [150])  # fmt: skip
blocks("lock_for_warp", lambda a, _total, _mutex: a.view(6, 32).sum(0), "race", r"total\[lane\]",
    [floats(192), torch.zeros(32), zeros(1)], [], [], answer=1)  # fmt: skip
blocks("ticket_lock", lambda a, _tickets, _total: total(a), "time-limit", r"while|^ +}",
    [ints(6), zeros(2), zeros(1)], seconds=0.3)  # fmt: skip
blocks("persistent", lambda a, _: 2 * a, "race", r"row = |row >= rows|row \*",
    [floats(7, 70), zeros(1)], [empty(7, 70)], [7, 70])  # fmt: skip
blocks("three_scans", lambda a, _: scan(a, 150), "out-of-bounds", r"totals\[",
    [ints(150), zeros(5)], [empty_ints(150)], [150])  # fmt: skip
blocks("look_back", lambda a, _next, _states: scan(a, 150), "race", r"prefixes\[",
    [ints(150), zeros(1), zeros(5)], [empty_ints(5), empty_ints(5), empty_ints(150)], [150])  # fmt: skip
blocks("packed_look_back", lambda a, _next, _words: scan(a, 150), "out-of-bounds", r"words\[t\]",
    [ints(150), zeros(1), zeros(5, dtype=torch.int64)], [empty_ints(150)], [150])  # fmt: skip
blocks("chain", lambda a: scan(a.view(5, 32).sum(1).int(), 5), "race", r"running\[place - 1\]",
    [ints(32).repeat(5)], [empty_ints(5)], [160])  # in whatever order blocks come  # fmt: skip
blocks("device_bins", lambda a: bincount(a, 16), "race", r"bins\[a\[i\]\] \+=",
    [ints(150, 0, 16)], [empty_ints(16)], [150])  # fmt: skip
blocks("managed", lambda a: total((a > 0.5).int()), "race", r"above \+=", [floats(150)], [empty_ints(1)], [150])


# ----------------------------------------------------------------------------------------------------------------------
# Threads that share nothing: grids.cu

grids("saxpy", lambda x, y: 3 * x + y, "out-of-bounds", r"y\[i\] =", [floats(500), floats(500)], [], [500])
grids("vector_copy", lambda a: a, "out-of-bounds", r"float4\*>\(out", [floats(203)], [empty(203)], [203])


def collatz(a):
    steps = torch.zeros_like(a)
    while (a > 1).any():
        steps += a > 1
        a = torch.where(a > 1, torch.where(a % 2 == 1, 3 * a + 1, a // 2), a)
    return steps


grids("collatz", collatz, "out-of-bounds", r"value = a\[i\]", [ints(100, 1, 30)], [empty_ints(100)], [100])
grids("early_exit", lambda a: torch.cat([block + F.pad(block, (1, 0))[:-1] for block in a.split(64)]), "race",
    r"values\[threadIdx\.x", [floats(150)], [empty(150)], [150], remark="__syncthreads")  # fmt: skip
grids("csr", csr_warp, "out-of-bounds", r"x\[columns", sparse(40, 30), [empty(40)], [40])
grids("row_sums", lambda a: a.sum(1), "uninitialised-read", r"out\[row\] \+=", [floats(40, 9)], [empty(40)], [40, 9])


def mandelbrot():
    x, y = torch.arange(48.0), torch.arange(16.0)[:, None]
    re, im, count, inside = torch.zeros(16, 48), torch.zeros(16, 48), zeros(16, 48), torch.tensor(True)
    for _ in range(12):
        inside = inside & (re * re + im * im <= 4)
        count += inside
        re, im = re * re - im * im + (3 * x / 48 - 2), 2 * re * im + (2 * y / 16 - 1)
    return count


grids("mandelbrot", mandelbrot, "out-of-bounds", r"out\[", [], [empty_ints(16, 48)], [16, 48, 12])


def heat(a):
    kernel = torch.tensor([[0.0, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.0]])
    return F.conv2d(a[None, None], kernel[None, None], padding=1)[0, 0]


grids("heat", heat, "out-of-bounds", r"here\[-col", [floats(19, 33)], [empty(19, 33)], [19, 33])
grids("brighten", lambda a: (a.int() + 40).clamp(max=255).byte(), "race", r"out\[",
    [ints(150, 0, 256).byte()], [zeros(150, dtype=torch.uint8)], [150])  # fmt: skip
grids("flip", lambda a: a.flip(0), "race", r"a\[", [floats(101)], [], [101])


def jacobi(a):
    for _ in range(4):
        a = torch.cat([a[:1], (a[:-2] + a[2:]) / 2, a[-1:]])
    return a


grids("jacobi", jacobi, "race", r"to\[i\] =", [floats(100)], [empty(100)], [100], answer=0)
