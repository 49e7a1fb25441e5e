"""Every operator is right at both ends of tensors whose indices need more than 32 bits."""

from dataclasses import dataclass, field

import pytest
import torch
from narrowed import narrowed

import helpers
from helpers import catalogue
from helpers.machine.paths import KERNELS
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


ROUNDS = (19_500 * STRIDE + 200,)
FIRST = {"width": 1, "sure": (200,)}  # the first block has the rest, too
EVERYWHERE = [Far((FAR,))]
MATRICES = [rows((3, LONG)), rows((LONG, 5)), rows((2**18 + 5, 2**18 + 3))]
# A thread goes over the rows of a band: many columns would take it long.
BANDS = [
    rows(shape, width, accumulation=5000)
    for shape, width in (((3, LONG), 2), ((4099, 2**21 + 3), 2), ((2**33 + 5, 1), 1))
]
CASES = {
    "vector_add_simple": EVERYWHERE,
    "vector_add_grid_stride": [Far(ROUNDS, options=FIRST)],
    "vector_add": [*EVERYWHERE, Far(ROUNDS, offset=1, options=FIRST)],
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
    long = 2**33 + 9 if kernel.any_layout else 2**30 + 9  # the others count with an int
    deep = 2**33 // in_y
    shapes = [(in_y, 70, deep), (70, long, 40)]
    if kernel.name == "matmul_naive":
        shapes = [(70, in_y, deep), (long, 70, 40)]
    found = [Far(shape, options=options) for shape in shapes]
    return found + [Far(shapes[1], transposed=True, options=options)] * kernel.any_layout


def cases() -> list:
    found = []
    for operator in catalogue.ALL:
        for kernel in operator.kernels:
            if not operator.reference or (kernel.not_contracted and kernel.name not in CASES):
                continue
            for case in of_rung(kernel) if operator.name == "matmul" else CASES.get(kernel.name, EVERYWHERE):
                marks = pytest.mark.slow if kernel.slow_to_build else ()
                shape = "x".join(map(str, case.shape)) + ", transposed" * case.transposed
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


def name_of(kernel):
    return kernel.function if isinstance(kernel.function, str) and kernel.function else kernel.name


@pytest.mark.parametrize(("operator", "kernel", "case"), cases())
def test_an_operator_is_right_at_both_ends(operator, kernel, case):
    for dtype in kernel.dtypes:
        check(operator, getattr(kernel.extension(), name_of(kernel)), getattr(torch, dtype), case)


# ----------------------------------------------------------------------------------------------------------------------
# Kernels with one narrower type are found


def survives(mutant, source, folder, names) -> bool:
    """Whether the kernels of `names` pass all their cases when `source` has the mutant's text."""
    chosen = [(p.values[0], p.values[1], p.values[2]) for p in cases() if p.values[1].name in names]
    kernels = {kernel.name: kernel for _, kernel, _ in chosen}
    (folder / source.name).write_text(mutant.text)
    files = [KERNELS / file for file in next(iter(kernels.values())).files]
    if source not in files and source.suffix == ".h":  # found first, beside the file that includes it
        (folder / files[0].name).write_text(files[0].read_text())
        files[0] = folder / files[0].name
    sources = [folder / file.name if file == source else file for file in files]
    built = helpers.load("narrowed", sources, extra_include_paths=[KERNELS], is_python_module=False)
    try:
        for operator, kernel, case in chosen:
            check(operator, getattr(built, name_of(kernel)), getattr(torch, kernel.dtypes[0]), case)
    except (helpers.CheckFailed, RuntimeError):  # a KernelFault, or a refused launch
        return False
    return True


@pytest.mark.parametrize("number", [4, 8, 18])
def test_a_narrow_index_is_found(number, tmp_path):
    source = KERNELS / "vector_add.cu"
    mutant = list(narrowed(source))[number]
    assert not survives(mutant, source, tmp_path, MUTATED["vector_add.cu"]), mutant.after


MUTATED = {  # file -> the kernels that it is for, all of one library
    "vector_add.cu": ["vector_add_simple", "vector_add", "vector_add_grid_stride"],
    "elementwise_mult_kernel.cu": ["elementwise_mult"],
    "fused_muladd.cu": ["fused_muladd", "fused_muladd_backward"],
    "bias_gelu.cu": ["bias_gelu_simple", "bias_gelu_backward_simple"],
    "bias_gelu_half.cu": ["bias_gelu_pairs"],
    "bias_gelu_float4.cu": ["bias_gelu", "bias_gelu_backward"],
    "include/bias_gelu.h": ["bias_gelu_backward_simple"],
    "include/vector.h": ["fused_muladd"],
    "softmax.cu": ["softmax"],
    "include/matmul.h": ["matmul_naive"],
    "matmul/01_naive.cu": ["matmul_naive"],
    "matmul/02_coalesced.cu": ["matmul_coalesced"],
    "matmul/03_tiled.cu": ["matmul_tiled"],
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", MUTATED)
def test_narrow_indices_are_found(file, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LADDER_BLOCK_SECONDS", "3")  # a loop whose index wraps round does not end
    mutants = list(narrowed(KERNELS / file))
    alive = [mutant for mutant in mutants if survives(mutant, KERNELS / file, tmp_path, MUTATED[file])]
    assert 20 * len(alive) <= len(mutants), [(mutant.line, mutant.after) for mutant in alive]
    print(f"{file}: {len(mutants) - len(alive)} of {len(mutants)} found")
