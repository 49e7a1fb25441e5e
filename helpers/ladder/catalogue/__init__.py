"""The catalogue of the course's operators: files, references, dtypes, shapes, bytes or FLOPs, peers, counted launches.

entry.py has its form; a module for each family has the entries. The contract suite, the benchmarks, the validation, the
scoreboard and helpers/ladder/pytorch/operators.py read them from here, so a new operator or kernel is one more entry.
"""

from helpers.ladder.catalogue import attention, bias_gelu, elementwise, fp8, grid, matmul, reductions, rms_norm, softmax
from helpers.ladder.catalogue.entry import Kernel, Launch, Operator

# Every entry in the order of the lessons, including kernels that are not operators.
ALL = (
    *grid.OPERATORS,
    *elementwise.OPERATORS,
    *bias_gelu.OPERATORS,
    *reductions.OPERATORS,
    *softmax.OPERATORS,
    *rms_norm.OPERATORS,
    *matmul.OPERATORS,
    *fp8.OPERATORS,
    *attention.OPERATORS,
)
# What is measured: name -> entry
OPERATORS = {operator.name: operator for operator in ALL if operator.shapes}
# What tests/kernels/contract.py is about, and helpers/ladder/pytorch/operators.py registers.
CONTRACTED = [
    (operator, kernel)
    for operator in ALL
    for kernel in operator.kernels
    if operator.reference and not kernel.not_contracted
]

__all__ = ["ALL", "CONTRACTED", "OPERATORS", "Kernel", "Launch", "Operator"]
