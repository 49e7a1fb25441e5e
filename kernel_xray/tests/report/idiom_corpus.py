"""The corpus that the X-ray's verdicts are held to: kernels in the idioms of published code, each with a broken twin.

The kernels are in idioms/, a file for each family. Here each has a function of the same name, which says with PyTorch
what the kernel computes from its inputs. The decorator says what the X-ray has to find in the twin: the kind of fault
and a regular expression for its source line (of a race, for one of the two lines). Then it says what the operator is
called with: tensors with values, some of which it may update; tensors without values; numbers.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from simt_programs import load_cases

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


def family_of(name: str) -> Callable[..., Callable]:
    """The decorator for the idioms of one file."""

    def describe(*facts: Any, **more: Any) -> Callable:
        def add(expected: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
            IDIOMS.append(Idiom(expected.__name__, name, expected, *facts, **more))
            return expected

        return add

    return describe


FAMILIES = ("tiles", "warps", "atomics", "blocks", "grids")
tiles, warps, atomics, blocks, grids = map(family_of, FAMILIES)


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


@tiles("race", r"tile\[thread", [floats(37, 50)], [empty(50, 37)], [37, 50])
def transpose(a):
    return a.T


@tiles("race", r"_tile\[", [floats(20, 35), floats(35, 18)], [empty(20, 18)], [20, 18, 35])
def matmul(a, b):
    return a @ b


@tiles("race", r"_tiles\[", [floats(24, 24), floats(24, 24)], [empty(24, 24)], [24])
def double_buffer(a, b):
    return a @ b


@tiles("race", r"stages\[", [floats(5, 64)], [empty(64)], [5])
def staged_copy(a):
    return a.flip(1).sum(0)


@tiles("uninitialised-read", r"chunk\[k\]", [floats(70, 64), floats(40) - 0.5], [empty(70)], [70, 40, 64])
def matvec(a, x):
    return a[:, :40] @ x


PERMUTED = torch.stack([torch.randperm(48, generator=RANDOM) for _ in range(3)]).int()


@tiles("out-of-bounds", r"places\[threadIdx\.x\] =", [floats(3, 48), PERMUTED], [empty(3, 48)], [48])
def two_arrays(a, order):
    return a.gather(1, order.long())


@tiles("misaligned", r"= body\[", [floats(71, 4)], [empty(70, 3)], [70])  # there is memory behind the last body
def nbody(body):
    place, mass = body[:70, :3], body[:70, 3]
    way = place[None] - place[:, None]
    return (way * (mass * (way.square().sum(-1) + 0.01) ** -1.5)[..., None]).sum(1)


@tiles("uninitialised-read", r"window\[at \+ k\]", [floats(200)], [empty(200)], [200])
def stencil(a):
    return F.conv1d(a[None, None], torch.ones(1, 1, 7), padding=3)[0, 0]


@tiles("out-of-bounds", r"a\[i \+ k\]", [floats(150), floats(5)], [empty(150)], [150])
def convolution(a, weights):
    return F.conv1d(a[None, None], weights[None, None], padding=2)[0, 0]


@tiles("divergent-barrier", r"__syncthreads", [floats(50)], [empty(50)], [50])
def smooth_twice(a):
    for _ in range(2):
        a = (a + F.pad(a, (0, 1))[1:]) / 2
    return a


@tiles("race", r"\[self\] =", [(floats(19, 33) < 0.4).byte()], [empty(19, 33, dtype=torch.uint8)], [19, 33])
def life(a):
    around = sum(a.roll((dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - a
    return ((around == 3) | ((around == 2) & (a == 1))).byte()


@tiles("race", r"buffers\[to\]", [ints(192)], [empty_ints(192)])
def hillis_steele(a):
    return scan(a, 64)


@tiles("race", r"tree\[", [ints(256)], [empty_ints(256)])
def blelloch(a):
    return scan(a, 128) - a


@tiles("out-of-bounds", r"keys\[other\]", [ints(128)], [empty_ints(128)])
def bitonic_sort(a):
    return a.view(2, 64).sort(1).values.view(-1)


@tiles("out-of-bounds", r"keys\[i \+ 1\]", [ints(50)], [empty_ints(50)])
def odd_even_sort(a):
    return a.sort().values


@tiles("race", r"keys\[|ones\[", [ints(64)], [empty_ints(64)])
def radix_sort(a):
    return a[(a % 16).sort(stable=True).indices]


SORTED = [ints(37, 0, 200).sort().values, ints(50).sort().values]


@tiles("out-of-bounds", r"a\[middle\] <= b\[", SORTED, [empty_ints(87)])
def merge_path(a, b):
    return torch.cat([a, b]).sort().values


@tiles("race", r"points\[", [floats(3, 64)], [empty(3, 64, 2)])
def fft(a):
    return torch.view_as_real(torch.fft.fft(a))


# ----------------------------------------------------------------------------------------------------------------------
# Lanes of a warp: warps.cu


@warps("race", r"sums\[i\]", [floats(128)], [empty(2)])
def tree_sum(a):
    return a.view(2, 64).sum(1)


@warps("uninitialised-read", r"sums\[lane\]", [floats(250)], [empty(3)], [250])
def block_sum(a):
    return torch.stack([block.sum() for block in a.split(96)])


@warps("divergent-barrier", r"__shfl_sync", [floats(20)], [empty(1)], [20])
def tail_sum(a):
    return total(a)


@warps("race", r"sums\[", [floats(150), torch.zeros(1)], [], [150])
def tile_sum(a, _):
    return total(a)


SEGMENTS = ints(200, 0, 6).sort().values


@warps("race", r"out\[key\] \+=", [SEGMENTS, floats(200), torch.zeros(6)], [], [200])
def segmented_sum(keys, values, out):
    return out.index_add(0, keys, values)


def sparse(rows: int, columns: int) -> list[torch.Tensor]:
    """A matrix in CSR form (starts of rows, columns, values), and a vector."""
    row, column = (floats(rows, columns) > 0.6).nonzero(as_tuple=True)
    starts = F.pad(bincount(row, rows).cumsum(0), (1, 0))
    return [starts.int(), column.int(), floats(len(column)), floats(columns) - 0.5]


@warps("out-of-bounds", r"starts\[row", sparse(10, 90), [empty(10)], [10])
def csr_warp(starts, columns, values, x):
    row = torch.arange(len(starts) - 1).repeat_interleave(starts.diff())
    return torch.zeros(len(starts) - 1).index_add(0, row, values * x[columns])


@warps("divergent-barrier", r"__shfl_up_sync", [ints(150)], [empty_ints(150)], [150])
def warp_scan(a):
    return scan(a, 32)


@warps("race", r"prefix\[", [ints(128)], [empty_ints(128)])
def leader_scan(a):
    return scan(a, 32) - a


def kept(a: torch.Tensor, which: torch.Tensor, size: int) -> torch.Tensor:
    """The elements that are kept, and zeros behind them."""
    return F.pad(a[which], (0, size - int(which.sum())))


@warps("race", r"\*count \+=", [ints(150, 1), zeros(1), zeros(150)], [], [150], ordered=False)
def compact(a, _count, _out):
    return kept(a, a % 3 == 0, 150)


@warps("race", r"out\[base", [ints(150, 1), zeros(1), zeros(150)], [], [150], ordered=False)
def aggregated(a, _count, _out):
    return kept(a, a % 2 == 1, 150)


@warps("race", r"counts\[key\] \+=", [ints(150, 0, 8), zeros(8)], [], [150])
def match_bins(a, _):
    return bincount(a, 8)


@warps("out-of-bounds", r"= exps\[", [floats(10, 50)], [empty(10, 50)], [10, 50])
def softmax(a):
    return a.softmax(1)


@warps("race", r"scratch\[", [floats(3, 150)], [empty(3, 150)], [150, 3])
def layer_norm(a):
    return F.layer_norm(a, (150,))


@warps("out-of-bounds", r"value = x\[", [floats(50, 5)], [empty(2, 5)], [50, 5])
def welford(x):
    return torch.stack([x.mean(0), x.var(0, correction=0)])


@warps("deadlock", r"__syncwarp", [floats(128)], [empty(128)])
def half_warps(a):
    first, second = a.view(4, 32).split(16, 1)
    return torch.cat([first.flip(1), second], 1).view(-1)


@warps("race", r"box\[", [floats(4, 32)], [empty(64)], [4])
def producer(a):
    sums = a.flip(1).sum(0)
    return torch.cat([sums, 2 * sums])


@warps("race", r"box\[", [floats(32)], [empty(32)])
def handshake(a):
    return 2 * a.flip(0)


# ----------------------------------------------------------------------------------------------------------------------
# Atomics: atomics.cu


@atomics("race", r"\*word = sum", [doubles(300), zeros(1, dtype=torch.float64)], [], [300])
def cas_sum(a, _):
    return total(a)


@atomics("uninitialised-read", r"old = \*word", [floats(300) - 2], [empty(1)], [300])
def largest(a):
    return a.amax(0, keepdim=True)


HALVES = [ints(100, 0, 8), ints(100, 0, 9).half(), zeros(8, dtype=torch.float16)]


@atomics("misaligned", r"old = \*word", HALVES, [], [100])
def half_bins(keys, values, out):
    return out.index_add(0, keys, values)


@atomics("race", r"product = 1", [2.0 ** (ints(128, 0, 3) - 1)], [empty(2)])
def product(a):
    return a.view(2, 64).prod(1)


@atomics("race", r"counts\[", [ints(400, 0, 16), zeros(16)], [], [400])
def histogram(a, _):
    return bincount(a, 16)


# All numbers of 8 bits: some of their bytes are those that memory is poisoned with.
@atomics("out-of-bounds", r"bins\[", [torch.arange(-128, 128, dtype=torch.int32), zeros(256)], [], [256])
def signed_bins(a, _):
    return bincount(a + 128, 256)


@atomics("race", r"\*dot \+=", [doubles(200), doubles(200), zeros(1, dtype=torch.float64)], [], [200])
def dot(a, b, _):
    return total(a * b)


@atomics("race", r"\*best =", [floats(200), zeros(1, dtype=torch.int64)], [empty_ints(1)], [200])
def argmax(a, _):
    return a.argmax(0, keepdim=True).int()


@atomics("out-of-bounds", "atomicAdd", [ints(30, -1, 10), floats(30, 20), torch.zeros(10, 20)], [], [30, 20])
def embedding(words, gradients, out):
    return out.index_add(0, words[words >= 0], gradients[words >= 0])


@atomics("race", r"states\[id\]", [torch.arange(1, 97, dtype=torch.int32), zeros(1)], [], [10])
def monte_carlo(state, hits):
    state = state.long()
    for _ in range(10):
        x = (state * 1664525 + 1013904223) % 2**32
        y = state = (x * 1664525 + 1013904223) % 2**32
        hits = hits + ((x >> 17) ** 2 + (y >> 17) ** 2 < 2**30).sum().int()
    return hits


@atomics("out-of-bounds", r"out\[", [floats(4, 50)], [empty(4, 5)], [50, 5, 4])
def top_k(a):
    return a.topk(5).values


RUNS = torch.arange(12, dtype=torch.int32).repeat_interleave(5)


@atomics("out-of-bounds", r"a\[i - 1\]", [RUNS], [empty_ints(2, 12)], [60])
def run_starts(a):
    starts = torch.cat([torch.ones(1, dtype=torch.bool), a[1:] != a[:-1]]).nonzero().view(-1)
    return torch.stack([starts.int(), a[starts]])


@atomics("out-of-bounds", r"values\[i\]", [ints(100), zeros(8) - 1], [empty_ints(100), empty_ints(8)], [100])
def linked_lists(values, _):
    return zeros(8).index_add(0, values % 8, values)


@atomics("out-of-bounds", r"ring\[", [ints(50), zeros(64), zeros(1) + 40], [empty_ints(50)], [50, 40], ordered=False)
def ring(a, _ring, _tail):
    return a


@atomics("race", r"boxes\[", [ints(100), zeros(100), zeros(1)], [empty_ints(100)], [100], answer=2)
def mailboxes(a, _states, _sum):
    return total(a)


EDGES = ints(160, 0, 60).view(80, 2)  # of 60 nodes, in several components
NODES = torch.arange(60, dtype=torch.int32)


@atomics("race", r"label =", [EDGES, NODES], [empty_ints(60), empty_ints(1)], [80], answer=1)
def components(edges, labels):
    for _ in range(60):
        for a, b in (edges.T.long(), edges.T.long().flip(0)):
            labels = labels.scatter_reduce(0, a, labels[b], "amin")
    return labels


@atomics("race", r"parents\[high\] = low", [EDGES, NODES], [empty_ints(60)], [80, 60])
def union_find(edges, parents):
    return components(edges, parents)


FLAGS = (torch.arange(181) % 60 == 0) & (torch.arange(181) != 120)  # node 0 is in the frontier and visited; go on
UNREACHED = torch.where(NODES == 0, 0, -1).int()


@atomics("race", r"visited\[to\]", [EDGES, FLAGS, UNREACHED], [], [80, 60], remark=r"depths\[to\] = level")
def bfs(edges, _, depths):
    depths = depths.clone()
    for level in range(60):
        for a, b in (edges.T.long(), edges.T.long().flip(0)):
            depths[b[(depths[a] == level) & (depths[b] < 0)]] = level + 1
    return depths


# ----------------------------------------------------------------------------------------------------------------------
# Blocks of a launch: blocks.cu


@blocks("race", r"partial\[", [floats(300)], [empty(10), empty(1)], [300])
def last_block_inc(a):
    return total(a)


@blocks("race", r"partial\[", [ints(384)], [empty_ints(6), empty_ints(1)])
def last_block_add(a):
    return total(a)


@blocks("race", r"last", [floats(300), zeros(1)], [empty(300), empty(1)], [300])
def last_block_all(a, _):
    return total(a * a)


@blocks("out-of-bounds", r"partial\[blockIdx\.x\] =", [floats(256)], [empty(1)])
def last_block_malloc(a):
    return total(a)


@blocks("out-of-bounds", r"out\[atomicAdd", [ints(150, -50, 50), zeros(85)], [], [150], ordered=False)
def append(a, _):
    return kept(a, a > 0, 85)


@blocks("race", r"\*dot \+=", [floats(300), floats(300), torch.zeros(1), zeros(1)], [], [300], answer=2)
def lock_of_blocks(a, b, _dot, _mutex):
    return total(a * b)


@blocks("race", r"\*total \+=", [zeros(1), zeros(1)])
def lock_of_warps(_mutex, _total):
    return zeros(1) + sum(range(0, 256, 32))


@blocks("race", r"(sums|counts)\[bucket\]", [ints(150, 0, 1000), zeros(8), zeros(2, 8)], [], [150])
def bucket_locks(a, _locks, _sums):
    return torch.stack([zeros(8).index_add(0, a % 8, a), bincount(a % 8, 8)])


@blocks("race", r"total\[lane\]", [floats(192), torch.zeros(32), zeros(1)], [], [], answer=1)
def lock_for_warp(a, _total, _mutex):
    return a.view(6, 32).sum(0)


@blocks("time-limit", r"while|^ +}", [ints(6), zeros(2), zeros(1)], seconds=0.3)
def ticket_lock(a, _tickets, _total):
    return total(a)


@blocks("race", r"row = |row >= rows|row \*", [floats(7, 70), zeros(1)], [empty(7, 70)], [7, 70])
def persistent(a, _):
    return 2 * a


@blocks("out-of-bounds", r"totals\[", [ints(150), zeros(5)], [empty_ints(150)], [150])
def three_scans(a, _):
    return scan(a, 150)


@blocks("race", r"prefixes\[", [ints(150), zeros(1), zeros(5)], [empty_ints(5), empty_ints(5), empty_ints(150)], [150])
def look_back(a, _next, _states):
    return scan(a, 150)


@blocks("out-of-bounds", r"words\[t\]", [ints(150), zeros(1), zeros(5, dtype=torch.int64)], [empty_ints(150)], [150])
def packed_look_back(a, _next, _words):
    return scan(a, 150)


@blocks("race", r"running\[place - 1\]", [ints(32).repeat(5)], [empty_ints(5)], [160])  # in whatever order blocks come
def chain(a):
    return scan(a.view(5, 32).sum(1).int(), 5)


@blocks("race", r"bins\[a\[i\]\] \+=", [ints(150, 0, 16)], [empty_ints(16)], [150])
def device_bins(a):
    return bincount(a, 16)


@blocks("race", r"above \+=", [floats(150)], [empty_ints(1)], [150])
def managed(a):
    return total((a > 0.5).int())


# ----------------------------------------------------------------------------------------------------------------------
# Threads that share nothing: grids.cu


@grids("out-of-bounds", r"y\[i\] =", [floats(500), floats(500)], [], [500])
def saxpy(x, y):
    return 3 * x + y


@grids("out-of-bounds", r"float4\*>\(out", [floats(203)], [empty(203)], [203])
def vector_copy(a):
    return a


@grids("out-of-bounds", r"value = a\[i\]", [ints(100, 1, 30)], [empty_ints(100)], [100])
def collatz(a):
    steps = torch.zeros_like(a)
    while (a > 1).any():
        steps += a > 1
        a = torch.where(a > 1, torch.where(a % 2 == 1, 3 * a + 1, a // 2), a)
    return steps


@grids("race", r"values\[threadIdx\.x", [floats(150)], [empty(150)], [150], remark="__syncthreads")
def early_exit(a):
    return torch.cat([block + F.pad(block, (1, 0))[:-1] for block in a.split(64)])


@grids("out-of-bounds", r"x\[columns", sparse(40, 30), [empty(40)], [40])
def csr(starts, columns, values, x):
    return csr_warp(starts, columns, values, x)


@grids("uninitialised-read", r"out\[row\] \+=", [floats(40, 9)], [empty(40)], [40, 9])
def row_sums(a):
    return a.sum(1)


@grids("out-of-bounds", r"out\[", [], [empty_ints(16, 48)], [16, 48, 12])
def mandelbrot():
    x, y = torch.arange(48.0), torch.arange(16.0)[:, None]
    re, im, count, inside = torch.zeros(16, 48), torch.zeros(16, 48), zeros(16, 48), torch.tensor(True)
    for _ in range(12):
        inside = inside & (re * re + im * im <= 4)
        count += inside
        re, im = re * re - im * im + (3 * x / 48 - 2), 2 * re * im + (2 * y / 16 - 1)
    return count


@grids("out-of-bounds", r"here\[-col", [floats(19, 33)], [empty(19, 33)], [19, 33])
def heat(a):
    kernel = torch.tensor([[0.0, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.0]])
    return F.conv2d(a[None, None], kernel[None, None], padding=1)[0, 0]


@grids("race", r"out\[", [ints(150, 0, 256).byte()], [zeros(150, dtype=torch.uint8)], [150])
def brighten(a):
    return (a.int() + 40).clamp(max=255).byte()


@grids("race", r"a\[", [floats(101)], [], [101])
def flip(a):
    return a.flip(0)


@grids("race", r"to\[i\] =", [floats(100)], [empty(100)], [100], answer=0)
def jacobi(a):
    for _ in range(4):
        a = torch.cat([a[:1], (a[:-2] + a[2:]) / 2, a[-1:]])
    return a
