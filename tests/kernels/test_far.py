"""Every operator is right at both ends of tensors whose indices need more than 32 bits."""

from dataclasses import dataclass, field

import pytest
import torch

import helpers
from helpers import catalogue
from helpers.simt import far

pytestmark = pytest.mark.skipif(
    helpers.target == "gpu" or not far.SUPPORTED, reason="the simulator on Linux reserves memory that nothing fills"
)

FAR = 2**36 + 1031  # elements of a vector: 2^32 vectors of 16, and a rest
LONG = 2**34 + 7  # of the long dimension of a matrix with a few rows or columns
STRIDE = 108 * 2048  # threads of vector_add_grid_stride on the simulator's device: the rest is the first blocks'


@dataclass(frozen=True)
class Far:
    """A shape of an operator, and how its arguments are laid out and compared."""

    shape: tuple[int, ...]
    offset: int = 0  # elements before the first one in its storage
    transposed: bool = False
    options: dict = field(default_factory=dict)  # of check_far


def rows(shape, width=2, edge=64, **options) -> Far:
    """A matrix of which a block computes neighbouring elements of a row, or all columns of a few rows."""
    first = 4 if shape[1] < 10 else 1
    return Far(shape, options={"width": width, "edge": edge, "sure": (first, 4), **options})


EVERYWHERE = [Far((FAR,))]
MATRICES = [rows((3, LONG)), rows((LONG, 5)), rows((2**18 + 5, 2**18 + 3))]
# A thread goes over the rows of a band: many columns would take it long.
BANDS = [
    rows(shape, width, accumulation=5000)
    for shape, width in (((3, LONG), 2), ((4099, 2**21 + 3), 2), ((2**29 + 5, 9), 1))
]
CASES = {
    "vector_add_grid_stride": [Far((16_000 * STRIDE + 300,))],
    "vector_add": [*EVERYWHERE, Far((16_000 * STRIDE + 300,), offset=1)],
    "bias_gelu_simple": MATRICES,
    "bias_gelu_pairs": MATRICES,
    "bias_gelu": MATRICES,
    "bias_gelu_backward_simple": BANDS,
    "bias_gelu_backward": BANDS,
    "softmax": [
        rows((2**33 + 5, 3)),
        *(rows((2**19 + 5, columns), edge=8, accumulation=1000) for columns in (8200, 20_000, 40_000)),
    ],
}


def of_rung(kernel: catalogue.Kernel) -> list[Far]:
    """c = a @ b with an a, b or c of more than 2^32 elements; a grid has at most 65,535 blocks in y."""
    options = {"edge": 32, "sure": (4, 4), "accumulation": 32_000}
    in_y = 8 * 65_535 - 3  # rows of c, with matmul_naive columns
    long, deep = 2**28 + 9, 2**33 // in_y
    shapes = [(in_y, 70, deep), (70, long, 40)]
    if kernel.name == "matmul_naive":
        shapes = [(70, in_y, deep), (long, 70, 40)]
    return [Far(shape, options=options) for shape in shapes]


def cases() -> list:
    found = []
    for operator in catalogue.ALL:
        for kernel in operator.kernels:
            if not operator.reference or (kernel.not_contracted and kernel.name not in CASES):
                continue
            for case in of_rung(kernel) if operator.name == "matmul" else CASES.get(kernel.name, EVERYWHERE):
                marks = pytest.mark.slow if kernel.slow_to_build else ()
                shape = "x".join(map(str, case.shape))
                found.append(pytest.param(operator, kernel, case, id=f"{kernel.name}-{shape}", marks=marks))
    return found


def check(operator, function, dtype, case):
    def argument(shape):
        if case.transposed:
            return torch.empty(*shape[::-1], dtype=dtype, device="meta").t()
        size = torch.Size(shape).numel()
        return torch.empty(size + case.offset, dtype=dtype, device="meta")[case.offset :].view(shape)

    inputs = [argument(shape) for shape in operator.argument_shapes(case.shape)]
    accumulation = {} if "accumulation" in case.options else {"accumulation": 8}
    far.check_far(
        function,
        inputs,
        reference=operator.exact or operator.reference,
        name=f"{operator.name}, {dtype}",
        **case.options,
        **accumulation,
    )


def function_of(kernel):
    built = kernel.extension()
    return getattr(built, kernel.function if isinstance(kernel.function, str) and kernel.function else kernel.name)


@pytest.mark.parametrize(("operator", "kernel", "case"), cases())
def test_an_operator_is_right_at_both_ends(operator, kernel, case):
    for dtype in kernel.dtypes:
        check(operator, function_of(kernel), getattr(torch, dtype), case)
