"""What is mutated: the cells of the solutions and the course's kernels; what judges each: practice, contract, tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from helpers.ladder import catalogue
from helpers.paths import KERNELS
from helpers.practice import registry
from helpers.upkeep.mutants.mutation import Mutant, Operator, mutants

# Headers by the kernels that judge them: all that their code serves, the fast to build first. Others: see TESTS.
HEADERS = {
    "include/vector.h": ("fused_muladd", "bias_gelu"),
    "include/matrix.h": ("bias_gelu_backward_simple", "rms_norm"),
    "include/bias_gelu.h": ("bias_gelu_backward_simple", "bias_gelu_backward"),
    "include/gelu.h": ("bias_gelu_simple", "bias_gelu_backward_simple", "bias_gelu"),
    "include/floating.h": ("bias_gelu_simple", "softmax"),
    "include/launch.h": ("vector_add", "bias_gelu"),
    "include/matmul.h": ("matmul_naive", "matmul_tiled", "matmul_register_1d", "matmul_vectorised"),
    "include/narrow.h": ("matmul_wmma", "matmul_mma"),
    "include/fragments.h": ("matmul_mma_grouped", "matmul_mma"),
    "include/async_copy.h": ("matmul_async",),
    "include/approximate.h": ("softmax",),
    "include/row.h": ("softmax", "rms_norm"),
    "include/rms_norm.h": ("rms_norm", "rms_norm_backward"),
    "include/column_sums.h": ("rms_norm_backward", "bias_gelu_backward"),
}
# Files by the modules in tests/kernels/ that judge them, with the contract of the kernels that are under one; -k picks
# tests.
TESTS = {
    "softmax.cu": ("test_softmax.py",),
    "rms_norm.cu": ("test_rms_norm.py",),
    "rms_norm_backward.cu": ("test_rms_norm.py",),
    "reductions.cu": ("test_reductions.py",),
    "island.cu": ("test_island.py",),
    "hopper_units.cu": ("test_hopper_units.py",),
    "attention.cu": ("test_attention.py",),
    "attention_backward.cu": ("test_attention.py",),
    "attention_decode.cu": ("test_attention_decode.py",),
    "attention_hopper.cu": ("test_attention_hopper.py",),
    "attention_hopper_backward.cu": ("test_attention_hopper_backward.py",),
    "matmul/11_wgmma.cu": ("test_hopper.py", "-kmatmul_wgmma"),
    "matmul/12_cluster.cu": ("test_hopper.py", "-kmatmul_cluster or bias or saved"),
    "matmul/12_split.cu": ("test_hopper.py", "-kmatmul_split or form"),
    "matmul/13_choice.cu": ("test_hopper.py", "-kmatmul_choice or form"),
    "matmul/13_fp8.cu": ("test_matmul_fp8.py",),
    "include/two_sums.h": ("test_rms_norm.py",),
    "include/rms_norm_backward.h": ("test_rms_norm.py",),
    "include/attention.h": ("test_attention.py",),
    "include/hopper_cluster.h": ("test_hopper.py", "-kmatmul_cluster or bias or saved"),
    "include/hopper_parts.h": ("test_hopper.py", "-kform"),
    "include/hopper_swapped.h": ("test_hopper.py", "-kform"),
    "include/sequences.h": ("test_attention_packed.py",),
    "include/work_tiles.h": ("test_attention_hopper.py", "-kerror or window"),
    "include/attention_tiles.h": ("test_attention.py",),
    "include/attention_simple.h": ("test_attention.py",),
    "include/attention_consumer.h": ("test_attention_hopper.py",),
    "include/attention_key_work.h": ("test_attention_hopper_backward.py", "test_attention_packed.py"),
    "include/attention_key_consumer.h": ("test_attention_hopper_backward.py",),
    "include/attention_key_tiles.h": ("test_attention_hopper_backward.py",),
    "include/attention_grad_q.h": ("test_attention_hopper_backward.py",),
    "include/decode_warp.h": ("test_attention_decode.py",),
    "include/hopper_matmul.h": ("test_hopper_units.py", "test_hopper.py", "-kring or matmul_cluster"),
}
# Files that hold kernels and are not mutated -> why.
LEFT_OUT = {
    "elementwise_mult.cu": "a pybind11 module, slow to build; elementwise_mult_kernel.cu has the same kernel",
    "elementwise_mult.cpp": "the bindings of elementwise_mult_kernel.cu",
    "elementwise_mult_stable.cu": "the registration of elementwise_mult_kernel.cu",
    "hello_grid.cu": "not an operator: it shows the grid",
    "fragment_map.cu": "not an operator: it asks the instructions which lane holds what",
    "sum_of_peers.cu": "not an operator: it reads other GPUs through addresses; tests/ladder/pytorch checks it",
}


@dataclass(frozen=True)
class Target:
    """A source to mutate.

    name     on the command line
    file     in kernels/
    kernels  of the catalogue, whose contract judges a mutant
    region   the first and the last line that a mutant may change
    tests    modules in tests/kernels/ that judge it, and options of pytest's

    With neither kernels nor tests, the check of the exercise `name` judges.
    """

    name: str
    file: str
    kernels: tuple[str, ...] = ()
    region: tuple[int, int] | None = None
    tests: tuple[str, ...] = ()

    @property
    def is_answer(self) -> bool:
        return not self.kernels and not self.tests

    def text(self) -> str:
        return (KERNELS / self.file).read_text(encoding="utf-8")

    def original(self) -> Mutant:
        """The source without a mistake, as a record has it."""
        return Mutant(self.file, "none", 0, "", "", self.text())

    def mutants(self, operators: Sequence[Operator]) -> Iterator[Mutant]:
        return mutants(self.file, self.text(), operators, self.region)


def targets() -> list[Target]:
    """The exercises written in CUDA in the order of the lessons, then the kernels, then their headers."""
    answers = [
        Target(e.name, f"solutions/{e.solution.name}", region=registry.read(e.name).solution_cell)
        for e in registry.exercises()
        if e.solution.suffix == ".cu"
    ]
    by_file: dict[str, list[str]] = {file: [] for file in TESTS if not file.startswith("include/")}
    for operator in catalogue.ALL:
        for kernel in operator.kernels:
            if (
                operator.reference
                and not kernel.python_module
                and not kernel.flags
                and isinstance(kernel.function, str)
            ):
                for file in kernel.files:
                    if file not in TESTS or not kernel.not_contracted:
                        by_file.setdefault(file, []).append(kernel.name)
    kernels = [
        Target(file.removesuffix(".cu"), file, tuple(names), tests=TESTS.get(file, ()))
        for file, names in by_file.items()
        if file not in LEFT_OUT and not file.startswith("solutions/")
    ]
    headers = [Target(file.removesuffix(".h"), file, names) for file, names in HEADERS.items()]
    headers += [Target(f.removesuffix(".h"), f, tests=names) for f, names in TESTS.items() if f.startswith("include/")]
    return answers + kernels + headers


def find(names: Sequence[str]) -> list[Target]:
    """The targets of these names, all for none. Raises ValueError."""
    known = {target.name: target for target in targets()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no {', '.join(unknown)} to mutate; there are {', '.join(known)}")
    return [known[name] for name in names or known]
