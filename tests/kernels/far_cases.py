"""The far cases of every operator: shapes whose indices need more than 32 bits, computed at both ends."""

from dataclasses import dataclass, field, replace

import torch

from helpers.ladder import catalogue
from helpers.ladder.checking.both_ends import check_far
from kernel_xray.runtime import far

FAR = 2**36 + 1031  # elements of a vector: 2^32 vectors of 16, and a rest
LONG = 2**34 + 7  # of the long dimension of a matrix with a few rows or columns
STRIDE = 108 * 2048  # threads of vector_add_grid_stride on the simulator's device: the rest is the first blocks'


@dataclass(frozen=True)
class Far:
    """A shape of an operator, and how its arguments are laid out and compared."""

    shape: tuple[int, ...]
    offset: int = 0  # elements before the first one in its storage
    transposed: bool = False
    one_dtype: bool = False  # for a case that takes long, of a kernel whose indices depend on no dtype
    options: dict = field(default_factory=dict)  # of check_far


def rows(shape, width=2, edge=64, **options) -> Far:
    """A matrix of which a block computes neighbouring elements of a row, or all columns of a few rows."""
    first = 4 if shape[1] < 10 else 1
    return Far(shape, options={"width": width, "edge": edge, "sure": (first, 4), **options})


def long_rows(count, columns) -> Far:
    return rows((count, columns), edge=8, accumulation=1000)


ROUNDS = (19_500 * STRIDE + 200,)
FIRST = {"width": 1, "sure": (200,)}  # the first block has the rest, too
EVERYWHERE = [Far((FAR,))]
MATRICES = [rows((3, LONG)), rows((LONG, 5)), rows((2**18 + 8, 2**18 + 3))]  # the last of 4 or 8 rows is the last
# A thread goes over the rows of a band: many columns would take it long.
TALL = (((3, LONG), 2), ((4099, 2**21 + 3), 2), ((2**33 + 5, 1), 1))
# Rows of whole vectors: of others, blocks that lie far apart add to the same column.
WHOLE = (((3, LONG + 1), 2), ((4099, 2**21 + 8), 2), TALL[-1])
BANDS, WHOLE_BANDS = ([rows(shape, width, accumulation=5000) for shape, width in shapes] for shapes in (TALL, WHOLE))
CASES = {
    "vector_add_simple": EVERYWHERE,
    "vector_add_grid_stride": [Far(ROUNDS, options=FIRST)],
    "vector_add": [*EVERYWHERE, Far(ROUNDS, offset=1, options=FIRST)],
    "bias_gelu_simple": MATRICES,
    "bias_gelu_pairs": MATRICES,
    "bias_gelu": [rows((1, LONG)), *MATRICES[1:], rows((3, 500_000))],  # two rows per thread
    "bias_gelu_backward_simple": [replace(case, one_dtype=True) for case in BANDS],
    "bias_gelu_backward": WHOLE_BANDS,
    # Without the rows of a cluster: it takes one after the other, and these lie far apart.
    "softmax": [rows((2**33 + 5, 3)), *(long_rows(2**32 // columns + 1000, columns) for columns in (8000, 40_001))],
    "rms_norm": [rows((2**33 + 5, 3)), *(long_rows(2**19 + 5, columns) for columns in (8200, 40_000))],
    "rms_norm_backward": [],  # the weight's gradient needs every row
    "attention": [],  # an element depends on all tokens, which are counted with int
    "attention_decode": [],  # likewise
}


COUNT_WITH_INT64 = ("matmul_register_1d", "matmul_register_2d")  # of the rungs for row-major matrices


def of_rung(kernel: catalogue.Kernel) -> list[Far]:
    """c = a @ b with an a, b or c of more than 2^32 elements; a grid has at most 65,535 blocks in y."""
    truncates = not {"float32", "float64"} & set(kernel.dtypes)  # tensor cores: see catalogue/matmul.py
    options = {"edge": 32, "sure": (4, 4), "accumulation": 32_000 * (4 if truncates else 1)}
    tile = {"matmul_tiled": 32, "matmul_register_1d": 64, "matmul_register_2d": 128}.get(kernel.name, 8)
    in_y = tile * 65_535 - 3  # rows of c, with matmul_naive columns
    wide = kernel.any_layout or kernel.name in COUNT_WITH_INT64
    long = 2**33 + 9 if wide else 2**30 + 9
    deep = 2**15 + 24  # of which a 16-bit index cannot count the columns
    shapes = [(in_y, 70, deep), (70, long, 40)]
    if kernel.name == "matmul_naive":
        shapes = [(70, in_y, deep), (long, 70, 40)]
    if not wide:
        shapes.append((70, 2**30 + 16, 40))  # rows that are copied 16 bytes at a time
    found = [Far(shape, options=options, one_dtype=shape[2] == deep) for shape in shapes]
    return found + [Far(shapes[1], transposed=True, options=options)] * kernel.any_layout


def cases() -> list[tuple[catalogue.Operator, catalogue.Kernel, Far]]:
    """Every far case; kernels that are not under contract have one only if CASES names them."""
    return [
        (operator, kernel, case)
        for operator in catalogue.ALL
        for kernel in operator.kernels
        if operator.reference and (kernel.name in CASES or not kernel.not_contracted)
        for case in (of_rung(kernel) if operator.name == "matmul" else CASES.get(kernel.name, EVERYWHERE))
    ]


def dtypes(kernel: catalogue.Kernel, case: Far) -> tuple[str, ...]:
    """The dtypes in which a case is computed."""
    return kernel.dtypes[:1] if case.one_dtype else kernel.dtypes


def check(operator: catalogue.Operator, kernel: catalogue.Kernel, dtype: str, case: Far) -> None:
    """Computes a far case and compares its ends. Raises CheckFailed, and what the kernel raises."""
    function = getattr(kernel.extension(), name_of(kernel))

    def argument(shape):
        if case.transposed:
            return torch.empty(*shape[::-1], dtype=getattr(torch, dtype), device="meta").t()
        size = torch.Size(shape).numel()
        return torch.empty(size + case.offset, dtype=getattr(torch, dtype), device="meta")[case.offset :].view(shape)

    inputs = [argument(shape) for shape in operator.argument_shapes(case.shape)]
    options = {"reference": operator.exact or operator.reference, "accumulation": 8, **case.options}
    check_far(function, inputs, name=f"{operator.name}, {dtype}", **options)


def name_of(kernel: catalogue.Kernel) -> str:
    return kernel.function if isinstance(kernel.function, str) and kernel.function else kernel.name


def must_refuse(kernel: catalogue.Kernel) -> None:
    """A kernel that counts rows and columns with an int refuses those that 31 bits cannot count.

    Raises AssertionError, and what the kernel raises if it runs.
    """
    function, dtype = getattr(kernel.extension(), name_of(kernel)), getattr(torch, kernel.dtypes[0])
    for m, n, k in ((2**31, 8, 8), (8, 2**31, 8), (8, 8, 2**31)):
        with far.window():
            try:
                function(torch.empty(m, k, dtype=dtype), torch.empty(k, n, dtype=dtype))
            except RuntimeError as error:
                if "a and b must have fewer than 2^31 rows and columns" in str(error):
                    continue
                raise
        raise AssertionError(f"{kernel.name} takes m, n, k = {m}, {n}, {k}, which it cannot count")


COUNT_WITH_INT = [
    kernel
    for operator, kernel in catalogue.CONTRACTED
    if operator.name == "matmul" and not (kernel.any_layout or kernel.name in COUNT_WITH_INT64 or kernel.python_module)
]
