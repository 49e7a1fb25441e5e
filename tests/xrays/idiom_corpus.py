"""The corpus that the X-ray's verdicts are held to: kernels in the idioms of published code, each with a broken twin.

The kernels are in idioms/, a file for each family. Here is what each is called with, what PyTorch says it computes, and
what the X-ray has to say about its twin.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import conv1d, conv2d, layer_norm, pad

import helpers

FOLDER = Path(__file__).parent / "idioms"
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Idiom:
    """A correct kernel and its twin."""

    name: str  # the operator
    inputs: Callable[[], Tensors]  # the first tensors of a call; an operator may update them
    outputs: Callable[[], Tensors]  # the others, without values
    numbers: tuple[int, ...]
    expected: Callable[..., torch.Tensor]  # from the inputs
    kind: str  # of the twin's fault
    line: str  # a regular expression for the twin's line; of a race, for one of the two
    answer: int = -1  # which of all tensors holds the result
    ordered: bool = True  # false: the result's elements may come in any order
    remark: str = ""  # a regular expression for a line that the X-ray remarks on in the correct kernel
    seconds: float = 0.0  # how long a block of the twin may run: it never ends by itself

    @property
    def family(self) -> str:
        """The name of its file in idioms/, without the suffix."""
        return next(family for family, members in FAMILIES.items() if self in members)


@functools.cache
def operators(family: str) -> Any:
    """The operators `name(tensors, numbers, bug)` of idioms/FAMILY.cu, traced."""
    return helpers.load(f"idioms_{family}", [FOLDER / f"{family}.cu"], is_python_module=False, traced=True)


# ----------------------------------------------------------------------------------------------------------------------
# Tensors


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)  # each tensor the same at each call


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(shape, generator=generator(), dtype=dtype)


def doubles(n: int) -> torch.Tensor:
    return floats(n, dtype=torch.float64)


def ints(n: int, low: int = 0, high: int = 100) -> torch.Tensor:
    return torch.randint(low, high, (n,), generator=generator(), dtype=torch.int32)


def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def empty(*shape: int) -> Tensors:
    return (torch.empty(shape),)


def empty_ints(*shape: int) -> Tensors:
    return (torch.empty(shape, dtype=torch.int32),)


def no_tensors() -> Tensors:
    return ()


def bincount(values: torch.Tensor, bins: int) -> torch.Tensor:
    return torch.bincount(values, minlength=bins).int()


def in_blocks(a: torch.Tensor, size: int) -> torch.Tensor:
    return a.view(-1, size)


# ----------------------------------------------------------------------------------------------------------------------
# Threads of a block: tiles.cu


def padded_matrix() -> Tensors:
    return floats(70, 64), floats(40) - 0.5


def bodies() -> Tensors:
    return (floats(71, 4)[:70],)  # there is memory behind the last one


def gravity(body: torch.Tensor) -> torch.Tensor:
    place, mass = body[:, :3], body[:, 3]
    way = place[None] - place[:, None]
    return (way * (mass * (way.square().sum(-1) + 0.01) ** -1.5)[..., None]).sum(1)


def cells() -> Tensors:
    return ((floats(19, 33) < 0.4).to(torch.uint8),)


def next_generation(a: torch.Tensor) -> torch.Tensor:
    around = sum(a.roll((dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - a
    return ((around == 3) | ((around == 2) & (a == 1))).to(torch.uint8)


def smoothed(a: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        a = (a + pad(a, (0, 1))[1:]) / 2
    return a


def places() -> Tensors:
    within = torch.stack([torch.randperm(48, generator=generator()) for _ in range(3)])
    return floats(144), within.int().view(-1)


def two_sorted() -> Tensors:
    return ints(37, 0, 200).sort().values, ints(50).sort().values


TILES = [
    Idiom(
        *("transpose", lambda: (floats(37, 50),), lambda: empty(50, 37), (37, 50), lambda a: a.T),
        *("race", r"tile\[thread"),
    ),
    Idiom(
        *("matmul", lambda: (floats(20, 35), floats(35, 18)), lambda: empty(20, 18), (20, 18, 35)),
        *(torch.matmul, "race", r"_tile\["),
    ),
    Idiom(
        *("double_buffer", lambda: (floats(24, 24), 1 - floats(24, 24)), lambda: empty(24, 24), (24,)),
        *(torch.matmul, "race", r"_tiles\["),
    ),
    Idiom(
        *("staged_copy", lambda: (floats(5, 64),), lambda: empty(64), (5,), lambda a: a.flip(1).sum(0)),
        *("race", r"stages\["),
    ),
    Idiom(
        *("matvec", padded_matrix, lambda: empty(70), (70, 40, 64), lambda a, x: a[:, :40] @ x),
        *("uninitialised-read", r"chunk\[k\]"),
    ),
    Idiom(
        *("two_arrays", places, lambda: empty(144), (48,)),
        lambda a, order: in_blocks(a, 48).gather(1, in_blocks(order.long(), 48)).view(-1),
        *("out-of-bounds", r"places\[threadIdx\.x\] ="),
    ),
    Idiom("nbody", bodies, lambda: empty(70, 3), (70,), gravity, "misaligned", r"= body\["),
    Idiom(
        *("stencil", lambda: (floats(200),), lambda: empty(200), (200,)),
        lambda a: conv1d(a[None, None], torch.ones(1, 1, 7), padding=3)[0, 0],
        *("uninitialised-read", r"window\[at \+ k\]"),
    ),
    Idiom(
        *("convolution", lambda: (floats(150), floats(5)), lambda: empty(150), (150,)),
        lambda a, weights: conv1d(a[None, None], weights[None, None], padding=2)[0, 0],
        *("out-of-bounds", r"a\[i \+ k\]"),
    ),
    Idiom(
        *("smooth_twice", lambda: (floats(50),), lambda: empty(50), (50,), smoothed),
        *("divergent-barrier", r"__syncthreads"),
    ),
    Idiom(
        *("life", cells, lambda: (torch.empty(19, 33, dtype=torch.uint8),), (19, 33), next_generation),
        *("race", r"\[self\] ="),
    ),
    Idiom(
        *("hillis_steele", lambda: (ints(192),), lambda: empty_ints(192), ()),
        lambda a: in_blocks(a, 64).cumsum(1).int().view(-1),
        *("race", r"buffers\[to\]"),
    ),
    Idiom(
        *("blelloch", lambda: (ints(256),), lambda: empty_ints(256), ()),
        lambda a: (in_blocks(a, 128).cumsum(1) - in_blocks(a, 128)).int().view(-1),
        *("race", r"tree\["),
    ),
    Idiom(
        *("bitonic_sort", lambda: (ints(128),), lambda: empty_ints(128), ()),
        lambda a: in_blocks(a, 64).sort(1).values.view(-1),
        *("out-of-bounds", r"keys\[other\]"),
    ),
    Idiom(
        *("odd_even_sort", lambda: (ints(50),), lambda: empty_ints(50), (), lambda a: a.sort().values),
        *("out-of-bounds", r"keys\[i \+ 1\]"),
    ),
    Idiom(
        *("radix_sort", lambda: (ints(64),), lambda: empty_ints(64), ()),
        lambda a: a[(a % 16).sort(stable=True).indices],
        *("race", r"keys\[|ones\["),
    ),
    Idiom(
        *("merge_path", two_sorted, lambda: empty_ints(87), (), lambda a, b: torch.cat([a, b]).sort().values),
        *("out-of-bounds", r"a\[middle\] <= b\["),
    ),
    Idiom(
        *("fft", lambda: (floats(3, 64),), lambda: empty(3, 64, 2), ()),
        lambda a: torch.view_as_real(torch.fft.fft(a)),
        *("race", r"points\["),
    ),
]

# ----------------------------------------------------------------------------------------------------------------------
# Lanes of a warp: warps.cu


def segments() -> Tensors:
    return ints(200, 0, 6).sort().values, floats(200), zeros(6, dtype=torch.float32)


def sparse(rows: int, columns: int) -> Tensors:
    matrix = floats(rows, columns) * (floats(columns, rows).T > 0.6)
    csr = matrix.to_sparse_csr()
    return csr.crow_indices().int(), csr.col_indices().int(), csr.values(), floats(columns) - 0.5


def sparse_product(starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    size = (len(starts) - 1, len(x))
    return torch.sparse_csr_tensor(starts.long(), columns.long(), values, size).to_dense() @ x


def kept(keep: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The elements that are kept, before zeros."""

    def expected(a: torch.Tensor, _count: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.cat([a[keep(a)], out])[: len(out)]

    return expected


def to_compact() -> Tensors:
    return ints(150, 1, 100), zeros(1), zeros(150)


def half_reversed(a: torch.Tensor) -> torch.Tensor:
    halves = a.view(-1, 2, 16)
    return torch.stack([halves[:, 0].flip(1), halves[:, 1]], 1).view(-1)


def consumed(a: torch.Tensor) -> torch.Tensor:
    sums = a.flip(1).sum(0)
    return torch.cat([sums, 2 * sums])


WARPS = [
    Idiom(
        *("tree_sum", lambda: (floats(128),), lambda: empty(2), (), lambda a: in_blocks(a, 64).sum(1)),
        *("race", r"sums\[i\]"),
    ),
    Idiom(
        *("block_sum", lambda: (floats(250),), lambda: empty(3), (250,)),
        lambda a: in_blocks(pad(a, (0, 38)), 96).sum(1),
        *("uninitialised-read", r"sums\[lane\]"),
    ),
    Idiom(
        *("tail_sum", lambda: (floats(20),), lambda: empty(1), (20,), lambda a: a.sum(0, keepdim=True)),
        *("divergent-barrier", r"__shfl_sync"),
    ),
    Idiom(
        *("tile_sum", lambda: (floats(150), zeros(1, dtype=torch.float32)), no_tensors, (150,)),
        lambda a, out: out + a.sum(),
        *("race", r"sums\["),
    ),
    Idiom(
        *("segmented_sum", segments, no_tensors, (200,)),
        lambda keys, values, out: out.index_add(0, keys, values),
        *("race", r"out\[key\] \+="),
    ),
    Idiom(
        *("csr_warp", lambda: sparse(10, 90), lambda: empty(10), (10,), sparse_product),
        *("out-of-bounds", r"starts\[row"),
    ),
    Idiom(
        *("warp_scan", lambda: (ints(150),), lambda: empty_ints(150), (150,)),
        lambda a: in_blocks(pad(a, (0, 10)), 32).cumsum(1).int().view(-1)[:150],
        *("divergent-barrier", r"__shfl_up_sync"),
    ),
    Idiom(
        *("leader_scan", lambda: (ints(128),), lambda: empty_ints(128), ()),
        lambda a: (in_blocks(a, 32).cumsum(1) - in_blocks(a, 32)).int().view(-1),
        *("race", r"prefix\["),
    ),
    Idiom(
        *("compact", to_compact, no_tensors, (150,), kept(lambda a: a % 3 == 0), "race", r"\*count \+="),
        ordered=False,
    ),
    Idiom(
        *("aggregated", to_compact, no_tensors, (150,), kept(lambda a: a % 2 == 1), "race", r"out\[base"),
        ordered=False,
    ),
    Idiom(
        *("match_bins", lambda: (ints(150, 0, 8), zeros(8)), no_tensors, (150,), lambda a, bins: bincount(a, 8)),
        *("race", r"counts\[key\] \+="),
    ),
    Idiom(
        *("softmax", lambda: (floats(10, 50),), lambda: empty(10, 50), (10, 50), lambda a: a.softmax(1)),
        *("out-of-bounds", r"= exps\["),
    ),
    Idiom(
        *("layer_norm", lambda: (floats(3, 150),), lambda: empty(3, 150), (3, 150)),
        lambda a: layer_norm(a, (150,)),
        *("race", r"scratch\["),
    ),
    Idiom(
        *("welford", lambda: (floats(50, 5),), lambda: empty(2, 5), (50, 5)),
        lambda x: torch.stack([x.mean(0), x.var(0, correction=0)]),
        *("out-of-bounds", r"value = x\["),
    ),
    Idiom(
        *("half_warps", lambda: (floats(128),), lambda: empty(128), (), half_reversed),
        *("deadlock", r"__syncwarp"),
    ),
    Idiom("producer", lambda: (floats(4, 32),), lambda: empty(64), (4,), consumed, "race", r"box\["),
]

# ----------------------------------------------------------------------------------------------------------------------
# Atomics: atomics.cu


def half_bins() -> Tensors:
    return ints(100, 0, 8), ints(100, 0, 9).half(), zeros(8, dtype=torch.float16)


def factors() -> Tensors:
    return (2.0 ** (ints(128, 0, 3) - 1),)


def signed_numbers() -> Tensors:
    """All numbers of 8 bits, among them any pattern that memory may be poisoned with."""
    return torch.arange(-128, 128, dtype=torch.int32).repeat(2), zeros(256)


def words() -> Tensors:
    return ints(30, -1, 10), floats(30, 20), zeros(10, 20, dtype=torch.float32)


def word_gradients(word: torch.Tensor, gradients: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return out.index_add(0, word[word >= 0], gradients[word >= 0])


def generators() -> Tensors:
    return torch.arange(1, 97, dtype=torch.int32), zeros(1)


def hits(state: torch.Tensor, _hits: torch.Tensor) -> torch.Tensor:
    state, total = state.long(), zeros(1)
    for _ in range(10):
        x = state = (state * 1664525 + 1013904223) % 2**32
        y = state = (state * 1664525 + 1013904223) % 2**32
        total += ((x >> 17) ** 2 + (y >> 17) ** 2 < 2**30).sum().int()
    return total


def runs() -> Tensors:
    return (ints(60, 0, 3).sort().values.roll(7),)


def run_starts(a: torch.Tensor) -> torch.Tensor:
    starts = torch.cat([torch.ones(1, dtype=torch.bool), a[1:] != a[:-1]]).nonzero().view(-1)
    return torch.stack([starts.int(), a[starts]])


def lists() -> Tensors:
    return ints(100), torch.full((8,), -1, dtype=torch.int32)


def list_outputs() -> Tensors:
    return empty_ints(100) + empty_ints(8)


def by_key(values: torch.Tensor) -> torch.Tensor:
    return zeros(8).index_add(0, values % 8, values)


def edges() -> torch.Tensor:
    """A graph of 60 nodes with several components."""
    edge = ints(80, 0, 60).view(40, 2)
    return torch.cat([edge, (edge + 7) % 60])


def components(edge: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    """The smallest node that each node is connected to."""
    label = torch.arange(60)
    for _ in range(60):
        for a, b in (edge.T.long(), edge.T.long().flip(0)):
            label = label.scatter_reduce(0, a, label[b], "amin")
    return label.int()


def search() -> Tensors:
    flags = zeros(3 * 60 + 1, dtype=torch.bool)
    flags[[0, 60, 180]] = True  # node 0 is in the frontier and visited; there is a level
    depths = torch.full((60,), -1, dtype=torch.int32)
    depths[0] = 0
    return edges(), flags, depths


def breadth_first(edge: torch.Tensor, _flags: torch.Tensor, depths: torch.Tensor) -> torch.Tensor:
    depths = depths.clone()
    for level in range(60):
        for a, b in (edge.T.long(), edge.T.long().flip(0)):
            reached = b[(depths[a] == level) & (depths[b] < 0)]
            depths[reached] = level + 1
    return depths


ATOMICS = [
    Idiom(
        *("cas_sum", lambda: (doubles(300), zeros(1, dtype=torch.float64)), no_tensors, (300,)),
        lambda a, out: out + a.sum(),
        *("race", r"\*word = sum"),
    ),
    Idiom(
        *("largest", lambda: (floats(300) - 2,), lambda: empty(1), (300,), lambda a: a.amax(0, keepdim=True)),
        *("uninitialised-read", r"old = \*word"),
    ),
    Idiom(
        *("half_bins", half_bins, no_tensors, (100,), lambda keys, values, out: out.index_add(0, keys, values)),
        *("misaligned", r"old = \*word"),
    ),
    Idiom(
        *("product", factors, lambda: empty(2), (), lambda a: in_blocks(a, 64).prod(1)),
        *("race", r"product = 1"),
    ),
    Idiom(
        *("histogram", lambda: (ints(400, 0, 16), zeros(16)), no_tensors, (400,), lambda a, bins: bincount(a, 16)),
        *("race", r"counts\["),
    ),
    Idiom(
        *("signed_bins", signed_numbers, no_tensors, (512,), lambda a, bins: bincount(a + 128, 256)),
        *("out-of-bounds", r"bins\["),
    ),
    Idiom(
        *("dot", lambda: (doubles(200), 1 - doubles(200), zeros(1, dtype=torch.float64)), no_tensors, (200,)),
        lambda a, b, out: out + a @ b,
        *("race", r"\*dot \+="),
    ),
    Idiom(
        *("argmax", lambda: (floats(200), zeros(1, dtype=torch.int64)), lambda: empty_ints(1), (200,)),
        lambda a, best: a.argmax(0, keepdim=True).int(),
        *("race", r"\*best ="),
    ),
    Idiom("embedding", words, no_tensors, (30, 20), word_gradients, "out-of-bounds", r"atomicAdd"),
    Idiom("monte_carlo", generators, no_tensors, (10,), hits, "race", r"states\[id\]"),
    Idiom(
        *("top_k", lambda: (floats(4, 50),), lambda: empty(4, 5), (4, 50, 5), lambda a: a.topk(5).values),
        *("out-of-bounds", r"out\["),
    ),
    Idiom(
        *("run_starts", runs, lambda: empty_ints(*run_starts(*runs()).shape), (60,), run_starts),
        *("out-of-bounds", r"a\[i - 1\]"),
    ),
    Idiom(
        *("linked_lists", lists, list_outputs, (100,), lambda values, heads: by_key(values)),
        *("out-of-bounds", r"values\[i\]"),
    ),
    Idiom(
        *("ring", lambda: (ints(50), zeros(64), zeros(1) + 40), lambda: empty_ints(50), (50, 40)),
        lambda a, ring, tail: a,
        *("out-of-bounds", r"ring\["),
        ordered=False,
    ),
    Idiom(
        *("mailboxes", lambda: (ints(100), zeros(100), zeros(1)), lambda: empty_ints(100), (100,)),
        lambda a, states, out: (out + a.sum()).int(),
        *("race", r"boxes\["),
        answer=2,
    ),
    Idiom(
        *("union_find", lambda: (edges(), torch.arange(60).int()), lambda: empty_ints(60), (80, 60), components),
        *("race", r"parents\[high\] = low"),
    ),
    Idiom(
        *("components", lambda: (edges(), torch.arange(60).int()), lambda: empty_ints(60) + empty_ints(1), (80,)),
        *(components, "race", r"label ="),
        answer=1,
    ),
    Idiom(
        *("bfs", search, no_tensors, (80, 60), breadth_first, "race", r"visited\[to\]"),
        remark=r"depths\[to\] = level",
    ),
]

# ----------------------------------------------------------------------------------------------------------------------
# Blocks of a launch: blocks.cu


def scratch(*tensors: torch.Tensor) -> Callable[[], Tensors]:
    """Outputs that start with memory for the kernel's own use."""
    return lambda: tuple(torch.empty_like(tensor) for tensor in tensors)


def total(a: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return a.sum(0, keepdim=True, dtype=a.dtype)


def running_total(a: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return a.cumsum(0, dtype=torch.int32)


def positives(a: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.cat([a[a > 0], out])[: len(out)]


def locked_buckets() -> Tensors:
    return ints(150, 0, 1000), zeros(8), zeros(2, 8)


def bucket_sums(a: torch.Tensor, _locks: torch.Tensor, _out: torch.Tensor) -> torch.Tensor:
    return torch.stack([by_key(a), bincount(a % 8, 8)])


BLOCKS = [
    Idiom(
        *("last_block_inc", lambda: (floats(300),), scratch(floats(10), floats(1)), (300,), total),
        *("race", r"partial\["),
    ),
    Idiom(
        *("last_block_add", lambda: (ints(384),), scratch(ints(6), ints(1)), (), total),
        *("race", r"partial\["),
    ),
    Idiom(
        *("last_block_all", lambda: (floats(300), zeros(1)), scratch(floats(300), floats(1)), (300,)),
        lambda a, count: total(a * a),
        *("race", r"last"),
    ),
    Idiom(
        *("last_block_malloc", lambda: (floats(256),), lambda: empty(1), (), total),
        *("out-of-bounds", r"partial\[blockIdx\.x\] ="),
    ),
    Idiom(
        *("append", lambda: (ints(150, -9, 10), zeros(80)), no_tensors, (150,), positives),
        *("out-of-bounds", r"out\[atomicAdd"),
        ordered=False,
    ),
    Idiom(
        *("lock_of_blocks", lambda: (floats(300), 1 - floats(300), zeros(1, dtype=torch.float32), zeros(1))),
        *(no_tensors, (300,), lambda a, b, *_: total(a * b), "race", r"\*dot \+="),
        answer=2,
    ),
    Idiom(
        *("lock_of_warps", lambda: (zeros(1), zeros(1)), no_tensors, (), lambda *_: zeros(1) + 32 * 28),
        *("race", r"\*total \+="),
    ),
    Idiom("bucket_locks", locked_buckets, no_tensors, (150,), bucket_sums, "race", r"(sums|counts)\[bucket\]"),
    Idiom(
        *("lock_for_warp", lambda: (floats(192), zeros(32, dtype=torch.float32), zeros(1)), no_tensors, ()),
        lambda a, *_: a.view(6, 32).sum(0),
        *("race", r"total\[lane\]"),
        answer=1,
    ),
    Idiom(
        *("ticket_lock", lambda: (ints(6), zeros(2), zeros(1)), no_tensors, (), total),
        *("time-limit", r"while|^}"),
        seconds=0.3,
    ),
    Idiom(
        *("persistent", lambda: (floats(7, 70), zeros(1)), lambda: empty(7, 70), (7, 70), lambda a, _: 2 * a),
        *("race", r"row = |row >= rows|row \*"),
    ),
    Idiom(
        *("three_scans", lambda: (ints(150), zeros(5)), lambda: empty_ints(150), (150,), running_total),
        *("out-of-bounds", r"totals\["),
    ),
    Idiom(
        *("look_back", lambda: (ints(150), zeros(1), zeros(5)), scratch(ints(5), ints(5), ints(150)), (150,)),
        *(running_total, "race", r"prefixes\["),
    ),
    Idiom(
        *("packed_look_back", lambda: (ints(150), zeros(1), zeros(5, dtype=torch.int64)), lambda: empty_ints(150)),
        *((150,), running_total, "out-of-bounds", r"words\[t\]"),
    ),
    Idiom(
        *("chain", lambda: (ints(150),), lambda: empty_ints(5), (150,)),
        lambda a: total(a),
        *("race", r"running\["),
    ),
    Idiom(
        *("device_bins", lambda: (ints(150, 0, 16),), lambda: empty_ints(16), (150,), lambda a: bincount(a, 16)),
        *("race", r"bins\[a\[i\]\] \+="),
    ),
    Idiom(
        *("managed", lambda: (floats(150),), lambda: empty_ints(1), (150,)),
        lambda a: (a > 0.5).sum(0, keepdim=True).int(),
        *("race", r"above \+="),
    ),
]

# ----------------------------------------------------------------------------------------------------------------------
# Threads that share nothing: grids.cu


def collatz(a: torch.Tensor) -> torch.Tensor:
    steps = torch.zeros_like(a)
    while (a > 1).any():
        steps += a > 1
        a = torch.where(a > 1, torch.where(a % 2 == 1, 3 * a + 1, a // 2), a)
    return steps


def mandelbrot() -> torch.Tensor:
    x, y = torch.arange(48.0), torch.arange(16.0)[:, None]
    real, imaginary = 3 * x / 48 - 2, 2 * y / 16 - 1
    re, im, count = torch.zeros(16, 48), torch.zeros(16, 48), zeros(16, 48)
    inside = torch.ones(16, 48, dtype=torch.bool)
    for _ in range(12):
        inside = inside & (re * re + im * im <= 4)
        count += inside
        re, im = re * re - im * im + real, 2 * re * im + imaginary
    return count


def heat(a: torch.Tensor) -> torch.Tensor:
    kernel = torch.tensor([[0.0, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.0]])
    return conv2d(a[None, None], kernel[None, None], padding=1)[0, 0]


def jacobi(a: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        a = torch.cat([a[:1], (a[:-2] + a[2:]) / 2, a[-1:]])
    return a


GRIDS = [
    Idiom(
        *("saxpy", lambda: (floats(500), 1 - floats(500)), no_tensors, (500,), lambda x, y: 3 * x + y),
        *("out-of-bounds", r"y\[i\] ="),
    ),
    Idiom(
        *("vector_copy", lambda: (floats(203),), lambda: empty(203), (203,), lambda a: a),
        *("out-of-bounds", r"float4\*>\(out"),
    ),
    Idiom(
        *("collatz", lambda: (ints(100, 1, 30),), lambda: empty_ints(100), (100,), collatz),
        *("out-of-bounds", r"value = a\[i\]"),
    ),
    Idiom(
        *("early_exit", lambda: (floats(150),), lambda: empty(150), (150,)),
        lambda a: a + in_blocks(pad(a[:-1], (1, 42)), 64).masked_fill(torch.arange(64) == 0, 0).view(-1)[:150],
        *("race", r"values\[threadIdx\.x"),
        remark=r"__syncthreads",
    ),
    Idiom("csr", lambda: sparse(40, 30), lambda: empty(40), (40,), sparse_product, "out-of-bounds", r"x\[columns"),
    Idiom(
        *("row_sums", lambda: (floats(40, 9),), lambda: empty(40), (40, 9), lambda a: a.sum(1)),
        *("uninitialised-read", r"out\[row\] \+="),
    ),
    Idiom(
        *("mandelbrot", no_tensors, lambda: empty_ints(16, 48), (16, 48, 12), mandelbrot),
        *("out-of-bounds", r"out\["),
    ),
    Idiom(
        *("heat", lambda: (floats(19, 33),), lambda: empty(19, 33), (19, 33), heat, "out-of-bounds", r"here\[-col"),
    ),
    Idiom(
        *("brighten", lambda: (ints(150, 0, 256).to(torch.uint8),), lambda: (zeros(150, dtype=torch.uint8),), (150,)),
        lambda a: (a.int() + 40).clamp(max=255).to(torch.uint8),
        *("race", r"out\["),
    ),
    Idiom("flip", lambda: (floats(101),), no_tensors, (101,), lambda a: a.flip(0), "race", r"a\["),
    Idiom("jacobi", lambda: (floats(100),), lambda: empty(100), (100,), jacobi, "race", r"to\[i\] =", answer=0),
]

FAMILIES = {"tiles": TILES, "warps": WARPS, "atomics": ATOMICS, "blocks": BLOCKS, "grids": GRIDS}
IDIOMS = [member for members in FAMILIES.values() for member in members]
