"""Lesson 11: the product of matrices of 8-bit numbers (e4m3), each with a scale. Shapes are (m, n, k).

The peer is cuBLAS through torch._scaled_mm, with fast accumulation, as our kernel accumulates. PyTorch multiplies no
such matrices itself, so `eager` widens them to bfloat16, which is exact, and multiplies these.
"""

from collections.abc import Callable, Sequence

import torch

from helpers.ladder.catalogue.entry import Kernel, Launch, Operator, Shape
from helpers.ladder.catalogue.matmul import CUBES, FACTORS, flops

FLOAT8 = torch.float8_e4m3fn


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x as e4m3, in x's layout, and the scale to multiply it by: float32, one element. The largest |x| becomes 448."""
    scale = (x.abs().amax().float() / torch.finfo(FLOAT8).max).reshape(1)
    return (x / scale.clamp(min=1e-12)).to(FLOAT8), scale


def factors(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str) -> tuple[torch.Tensor, ...]:
    """Normally distributed factors, quantised: a row-major, b column-major, and their scales."""
    torch.manual_seed(0)
    rows, columns = (torch.randn(shape, device=device) for shape in (shapes[0], shapes[1][::-1]))
    (a, scale_a), (b, scale_b) = quantised(rows), quantised(columns)
    return a.to(dtype), b.t().to(dtype), scale_a, scale_b


def product(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
    """scale_a * scale_b * (a @ b), in float64 if a is; otherwise in bfloat16, of which every e4m3 is a value."""
    wide = a.dtype if a.dtype == torch.float64 else torch.bfloat16
    return (scale_a * scale_b * (a.to(wide) @ b.to(wide))).to(wide)


def cublas() -> Callable:
    """torch._scaled_mm with bfloat16 results, for which PyTorch calls cuBLASLt."""
    return lambda a, b, scale_a, scale_b: torch._scaled_mm(
        a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def terms(shape: Shape) -> int:
    """For the tolerance: as many float32 roundings of random sign as allow k / 32 roundings to 14 bits, and 8 more.

    Hopper's tensor cores truncate a sum of e4m3 products 13 bits below its leading bit, once for each 32 along k, so
    the errors have one sign and add up. In a small sum, they are those of the products.
    """
    return (16 * (shape[2] + 256)) ** 2


MATMUL_FP8 = Operator(
    name="matmul_fp8",
    arguments=FACTORS | {"scale_a": lambda shape: (1,), "scale_b": lambda shape: (1,)},
    results=(lambda shape: shape[:2],),
    result_dtype="bfloat16",
    reference=product,
    flops=flops,
    limit="cublas",
    peers={"cublas": cublas},
    dtypes=("float8_e4m3fn",),
    shapes=CUBES,
    sample=factors,
    accumulation=terms,
    peer_sums=4,  # eager rounds the product before it is scaled
    kernels=(
        Kernel(
            name="matmul_fp8",
            files=("matmul/13_fp8.cu",),
            dtypes=("float8_e4m3fn",),
            capability=(9, 0),
            launches=(Launch((128, 256, 320)), Launch((129, 264, 80))),
            slow_to_build=True,
            adds="factors of 8 bits: half the bytes, and twice the products per instruction",
            not_contracted="float8 has no arithmetic in PyTorch, and scales are float32: "
            "tests/kernels/test_matmul_fp8.py has shapes, refusals and mistakes of its own",
        ),
        Kernel(
            name="matmul_choice_fp8",
            files=("matmul_choice_fp8.cu",),
            dtypes=("float8_e4m3fn",),
            capability=(9, 0),
            slow_to_build=True,
            adds="for any product the tile, and the parts of k, whose predicted time is least",
            not_contracted="as matmul_fp8",
        ),
    ),
)

OPERATORS = (MATMUL_FP8,)
