"""Lessons 08 to 11: the matmul ladder, one kernel per rung from the bottom up. Shapes are (m, n, k).

To add a rung, add its file in kernels/matmul/ and an entry in LADDER. The peer is cuBLAS without TF32; for the product
with an epilogue, gelu(a @ b + bias), it is cuBLAS with its own epilogue.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from helpers.ladder.catalogue.bias_gelu import BIAS_GELU, step_of
from helpers.ladder.catalogue.entry import FLOATING, Kernel, Launch, Operator, Shape, elements

CUBES = ((4096,) * 3, (8192,) * 3)
SMALLER_CUBES = ((1024,) * 3, (2048,) * 3)
ROW_MAJOR = "forward only, for row-major matrices: matmul_tiled has the backward"
SOLUTION = "the solution of an exercise, which has its own checks"
STEP = "the code of the file's last rung with other arguments: tests/kernels/test_matmul.py checks its products"
HOPPER = "bfloat16 in rows of whole 16 bytes only: tests/kernels/test_hopper.py has its own shapes"
# Counted launches: (m, n, k) that tiles do not divide, and others that they do.
ODD, FULL_VECTORS = (65, 70, 33), (130, 136, 72)
TENSOR_CORES = tuple(Launch(shape, "float16") for shape in ((256, 128, 64), FULL_VECTORS, ODD))
EDGES = (Launch(ODD, "float32"),)
FAST = (Launch(FULL_VECTORS, "float32"), *EDGES)
TILED = tuple(
    Launch(shape, "float32", transposed=transposed) for shape in (ODD, (64, 96, 64)) for transposed in (False, True)
)
TILES_OF_TMA = tuple(Launch(shape, "bfloat16") for shape in ((128, 256, 320), (256, 256, 320), (129, 264, 72)))


def factors(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str) -> tuple[torch.Tensor, ...]:
    """Normally distributed factors, a of m x k and b of k x n elements.

    Random, because multiplying zeros takes less power: a GPU at its power limit would run faster than on real data.
    """
    torch.manual_seed(0)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


def factors_and_bias(
    shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """a, b and a bias with an element per column of b. b is smaller than in `factors`: GELU bends near 0."""
    a, b, bias = factors(shapes, torch.float32, device)
    return a.to(dtype), (b / len(b) ** 0.5).to(dtype), bias.to(dtype)


def cublas() -> Callable:
    """torch.mm, for which PyTorch calls cuBLAS; float32 is not rounded to TF32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.mm


def bias_gelu(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gelu(a @ b + bias), in its tanh form. Two kernels: cuBLAS adds the bias, another kernel computes GELU."""
    return torch.nn.functional.gelu(torch.addmm(bias, a, b), approximate="tanh")


def cublas_epilogue() -> Callable:
    """The same in one cuBLAS kernel: its epilogue adds the bias and, on a GPU, computes GELU in its tanh form."""
    return lambda a, b, bias: torch._addmm_activation(bias, a, b, use_gelu=True)


def flops(shape: Shape) -> int:
    """A multiplication and an addition for each product."""
    return 2 * elements(shape)


def terms(shape: Shape) -> int:
    """The count of products in the sum of an element of c."""
    return max(1, shape[2])


def terms_of_tensor_cores(shape: Shape) -> int:
    """Four times `terms`.

    Tensor cores truncate sums instead of rounding them, on Hopper after 25 bits of the largest term. So the errors in a
    sum have one sign and grow faster than errors of random sign; twice the tolerance is enough for k up to 8192.
    """
    return 4 * terms(shape)


def at_size(size: int) -> Shape:
    """m is the size, or its square root from 1,000 up; k = m + 1, n = m + 2.

    If the size is 4 or 8 times an odd number, k = m + 8 and n = m + 16: rows that can be copied 16 bytes at a time.
    """
    m = size if size < 1000 else math.isqrt(size)
    return (m, m + 16, m + 8) if size % 4 == 0 and size % 16 else (m, m + 2, m + 1)


FACTORS = {"a": lambda shape: (shape[0], shape[2]), "b": lambda shape: (shape[2], shape[1])}
FACTORS_AND_BIAS = FACTORS | {"bias": lambda shape: shape[1:2]}
HALF = ("float16", "bfloat16")

# What rungs have in common: those up to matmul_tiled, those after it, those on tensor cores, those on Hopper alone.
first = functools.partial(Kernel, dtypes=FLOATING, any_layout=True)
tiled = functools.partial(first, files=("matmul/03_tiled.cu",))
fast = functools.partial(Kernel, launches=FAST, slow_to_build=True, not_differentiable=ROW_MAJOR)
on_tensor_cores = functools.partial(fast, dtypes=HALF, launches=TENSOR_CORES)
on_hopper = functools.partial(
    fast, dtypes=("bfloat16",), capability=(9, 0), launches=TILES_OF_TMA, not_contracted=HOPPER
)
warp_step = functools.partial(
    fast, files=("matmul/08_warp_tile.cu",), global_name="matmul_warp_tile_kernel", launches=(), not_contracted=STEP
)
step = functools.partial(
    on_tensor_cores, files=("matmul/10_fragments.cu",), global_name="matmul_fragments_kernel", launches=()
)
hopper_step = functools.partial(on_hopper, launches=())  # to the last rung of its file, whose tiles it has
step_to_wgmma = functools.partial(hopper_step, files=("matmul/11_wgmma.cu",))
step_to_cluster = functools.partial(hopper_step, files=("matmul/12_cluster.cu",), global_name="matmul_cluster_kernel")
compared = functools.partial(tiled, global_name="matmul_tiled_kernel", launches=TILED)

LADDER = (
    first(
        "matmul_naive",
        ("matmul/01_naive.cu",),
        largest=CUBES[0],
        launches=EDGES,
        adds="one thread per element of c; the 32 lanes of a warp read 32 rows of a",
    ),
    first(
        "matmul_coalesced",
        ("matmul/02_coalesced.cu",),
        largest=CUBES[0],
        launches=EDGES,
        adds="x is the column: the lanes read neighbours, 4 sectors per request",
    ),
    compared(
        "matmul_tiled_unpadded",
        not_timed="lesson 08 shows its bank conflicts; the padded form has none",
        not_contracted="it has the code of matmul_tiled_padded without the padding",
    ),
    compared(
        "matmul_tiled_padded", largest=CUBES[0], adds="tiles in shared memory: an element is loaded once per 32 uses"
    ),
    tiled("matmul_tiled", largest=CUBES[0], adds="no padding where rows are written: four neighbours are read at once"),
    fast(
        "matmul_register_1d",
        ("matmul/04_register_1d.cu",),
        adds="8 elements of c per thread: an element of b is read once for 8 products",
    ),
    fast(
        "matmul_register_2d",
        ("matmul/05_register_2d.cu",),
        adds="8 x 8 elements per thread: 16 reads serve 64 products",
    ),
    fast(
        "matmul_vectorised",
        ("matmul/06_vectorised.cu",),
        adds="16 bytes per access: a quarter of the instructions that read and copy",
    ),
    fast(
        "matmul_async",
        ("matmul/07_async.cu",),
        adds="cp.async and a second stage: the next copies run during the products",
    ),
    warp_step("matmul_warp_compact", adds="compact tiles for warps: 96 elements are read per index along k, not 144"),
    warp_step("matmul_warp_ring", adds="four stages: copies start three steps before their products"),
    warp_step("matmul_warp_long", adds="16 along k in a step, not 8: half as many barriers"),
    warp_step(
        "matmul_warp_ahead", adds="the next elements are read before these are multiplied: reads and products overlap"
    ),
    fast(
        "matmul_warp_tile",
        ("matmul/08_warp_tile.cu",),
        tiles=7,
        adds="tiles in groups of 8 rows: blocks that run together share the L2 cache",
    ),
    on_tensor_cores(
        "matmul_wmma", ("matmul/09_wmma.cu",), adds="tensor cores: a warp multiplies 16 x 16 x 16 elements in one call"
    ),
    step(
        "matmul_mma_padded",
        launches=TENSOR_CORES,
        adds="ldmatrix and mma.sync: c leaves from registers, not through shared memory",
    ),
    step(
        "matmul_mma_unswizzled",
        not_contracted=STEP,
        adds="no padding, for comparison: 8 rows that are read together share banks",
    ),
    step(
        "matmul_mma_swizzled",
        not_contracted=STEP,
        adds="the pieces of a row change places: these 8 rows are in 32 banks",
    ),
    step("matmul_mma_ring", not_contracted=STEP, adds="four stages and cp.async: copies run during the products"),
    step(
        "matmul_mma_tiles",
        not_contracted=STEP,
        adds="64 x 64 elements per warp: a third fewer reads, but one block per SM, alone at its barriers",
    ),
    step(
        "matmul_mma_grouped",
        adds="tiles in groups of 8 rows: blocks that run together share the L2 cache, which counts at 8192",
    ),
    on_tensor_cores(
        "matmul_mma",
        ("matmul/10_mma.cu",),
        tiles=6,
        adds="fragments are read ahead, so the tensor cores do not wait after a barrier",
    ),
    step_to_wgmma(
        "matmul_wgmma_in_turns",
        not_counted="its tiles are those of matmul_wgmma",
        adds="TMA copies and wgmma multiplies, in turns: no registers for factors, no instructions for addresses",
    ),
    step_to_wgmma(
        "matmul_wgmma_ring",
        global_name="matmul_wgmma_kernel",
        adds="a producer fills four stages that consumers empty: copies run during products",
    ),
    on_hopper(
        "matmul_wgmma",
        ("matmul/11_wgmma.cu",),
        adds="persistent blocks: the next tile is copied while this one is written",
    ),
    step_to_cluster("matmul_cluster_only", adds="two blocks share the tiles of b: a third less from the L2 cache"),
    step_to_cluster("matmul_cluster_stored", adds="TMA stores c: whole lines, and no addresses in the threads"),
    on_hopper(
        "matmul_cluster",
        ("matmul/12_cluster.cu",),
        adds="c is stored during the next tile's products: the tensor cores do not stop between tiles",
    ),
    on_hopper(
        "matmul_split",
        ("matmul/12_split.cu",),
        adds="for small products smaller tiles in larger clusters, or halves of k: every SM has work",
    ),
    hopper_step(
        "matmul_choice",
        ("matmul/13_choice.cu",),
        adds="for any product the tile, and the parts of k, whose predicted time is least",
    ),
)
product_of = functools.partial(
    Operator,
    results=(lambda shape: shape[:2],),
    limit="cublas",
    accumulation=terms,
    accumulation_timed=terms_of_tensor_cores,
)

MATMUL = product_of(
    name="matmul",
    arguments=FACTORS,
    reference=lambda a, b: a @ b,  # for which PyTorch calls cuBLAS
    flops=flops,
    peers={"cublas": cublas},
    dtypes=("float32", "bfloat16"),
    shapes=CUBES,
    sweep=SMALLER_CUBES,
    sample=factors,
    at_size=at_size,
    sizes=(0, 1, 7, 16, 17, 31, 32, 33, 44, 63, 64, 65, 128, 129, 136),
    spread=1.0,
    kernels=LADDER,
)

MATMUL_BIAS_GELU = product_of(
    name="matmul_bias_gelu",
    at_size=at_size,
    arguments=FACTORS_AND_BIAS,
    reference=bias_gelu,
    flops=lambda shape: flops(shape) + 11 * elements(shape[:2]),  # as in bias_gelu
    peers={"cublas": cublas_epilogue},
    dtypes=HALF,
    shapes=CUBES,
    sample=factors_and_bias,
    peer_sums=4,  # eager rounds the sum before GELU
    kernels=(
        Kernel(name="matmul_bias_gelu", files=("solutions/matmul_bias_gelu.cu",), dtypes=HALF, not_contracted=SOLUTION),
        Kernel(
            "matmul_cluster_gelu",
            ("matmul/12_cluster.cu",),
            global_name="matmul_cluster_kernel",
            dtypes=("bfloat16",),
            capability=(9, 0),
            rough=4 * 2**16,  # it rounds a @ b + bias before GELU, as eager does
            not_contracted=HOPPER,
        ),
        Kernel(
            "matmul_choice_gelu",
            ("matmul_choice_gelu.cu",),
            dtypes=("bfloat16",),
            capability=(9, 0),
            rough=4 * 2**16,
            not_contracted=HOPPER,
        ),
    ),
)


def fused_step(ops: Any) -> Callable:
    """The same step as `step_of(bias_gelu)`: forward on Hopper saves a @ b for backward, which ends in cuBLAS."""
    forward = ops.matmul_cluster_gelu_saving.default
    backward = BIAS_GELU.kernels[-1].extension().bias_gelu_backward.default

    def step(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, sums = forward(a, b, bias)
        grad_sums, grad_bias = backward(grad, sums, bias)
        return out, grad_sums @ b.t(), a.t() @ grad_sums, grad_bias

    return step


def grad_and_factors(
    shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """The gradient of the result, and a, b and bias as in `factors_and_bias`."""
    return *factors(shapes[:1], dtype, device), *factors_and_bias(shapes[1:], dtype, device)


MATMUL_BIAS_GELU_TRAINING = Operator(
    name="matmul_bias_gelu_training",
    at_size=at_size,
    arguments={"grad": lambda shape: shape[:2]} | FACTORS_AND_BIAS,
    results=(lambda shape: shape[:2], *FACTORS_AND_BIAS.values()),
    reference=step_of(bias_gelu),
    compiled=lambda compiler: step_of(compiler(bias_gelu)),
    limit="cublas",
    flops=lambda shape: 3 * flops(shape) + 31 * elements(shape[:2]),  # as in bias_gelu_training
    dtypes=("bfloat16",),
    shapes=CUBES,
    sample=grad_and_factors,
    accumulation=lambda shape: 2**32,  # a @ b and its gradient are rounded before they are used
    kernels=(
        Kernel(
            name="matmul_cluster_gelu_training",
            function=fused_step,
            files=("matmul/12_cluster.cu",),
            dtypes=("bfloat16",),
            capability=(9, 0),
            not_contracted=HOPPER,
        ),
    ),
)

OPERATORS = (MATMUL, MATMUL_BIAS_GELU, MATMUL_BIAS_GELU_TRAINING)
# The ladder: rung -> file in kernels/
RUNGS = {kernel.name: kernel.files[0] for kernel in LADDER if not kernel.not_timed}
