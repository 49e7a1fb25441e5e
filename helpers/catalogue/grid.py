"""Kernels that are not operators: those of lesson 00 show what a grid is, lesson 11 binds one to NumPy."""

from __future__ import annotations

from helpers.catalogue.elementwise import TWO, N
from helpers.catalogue.entry import Kernel, Launch, Operator, whole

OPERATORS = (
    Operator(
        name="hello_grid",
        arguments={"block": whole, "thread": whole},
        kernels=(
            Kernel(
                name="who_is_where",
                files=("hello_grid.cu",),
                dtypes=("int32",),
                launches=(Launch((N,), scalars=(256,)),),
            ),
            Kernel(name="hello", files=("hello_grid.cu",), not_counted="it only prints"),
        ),
    ),
    Operator(
        name="two_ways",
        arguments={"values": whole},
        kernels=(
            Kernel(
                name="two_ways",
                files=("hello_grid.cu",),
                dtypes=("int32",),
                launches=tuple(Launch((N,), scalars=(group,), note=f"groups of {group}") for group in (1, 32)),
            ),
        ),
    ),
    Operator(
        name="island_add",
        arguments=TWO,
        kernels=(
            Kernel(
                name="island_add",
                files=("island.cu",),
                python_module=True,
                not_counted="its accesses are those of vector_add_simple; its lesson is about the binding",
            ),
        ),
    ),
)
