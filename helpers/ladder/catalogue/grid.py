"""Kernels that are not operators: what a grid is, what a lane holds, Hopper's units, a binding to NumPy, peers."""

import functools

from helpers.ladder.catalogue.elementwise import TWO, N
from helpers.ladder.catalogue.entry import Kernel, Launch, Operator, whole

BINDING = "its accesses are those of vector_add_simple; its lesson is about the binding"
ADDRESSES = "it reads through addresses in a tensor, on several GPUs over the link between them"
UNIT = "helpers/upkeep/validation/tiles.cu counts what TMA moves; its lesson is about the unit"
in_int32 = functools.partial(Kernel, files=("hello_grid.cu",), dtypes=("int32",))

OPERATORS = (
    Operator(
        name="hello_grid",
        arguments={"block": whole, "thread": whole},
        kernels=(
            in_int32(name="who_is_where", launches=(Launch((N,), scalars=(256,)),)),
            in_int32(name="hello", not_counted="it only prints"),
        ),
    ),
    Operator(
        name="two_ways",
        arguments={"values": whole},
        kernels=(
            in_int32(
                name="two_ways",
                launches=tuple(Launch((N,), scalars=(group,), note=f"groups of {group}") for group in (1, 32)),
            ),
        ),
    ),
    Operator(
        name="fragment_map",
        arguments=dict.fromkeys("abc", whole),
        kernels=(
            Kernel(
                name="fragment_map",
                files=("fragment_map.cu",),
                dtypes=("int32",),
                not_counted="it asks the instructions which lane holds what",
            ),
        ),
    ),
    Operator(
        name="hopper_units",
        arguments={"x": whole},
        kernels=tuple(
            Kernel(name=unit, files=("hopper_units.cu",), dtypes=("bfloat16",), capability=(9, 0), not_counted=UNIT)
            for unit in ("copy_tile", "barrier_alone", "product", "ring")
        ),
    ),
    Operator(
        name="island_add",
        arguments=TWO,
        kernels=(Kernel(name="island_add", files=("island.cu",), python_module=True, not_counted=BINDING),),
    ),
    Operator(
        name="sum_of_peers",
        arguments={"mine": whole, "addresses": whole},
        kernels=(Kernel(name="sum_of_peers", files=("sum_of_peers.cu",), not_counted=ADDRESSES),),
    ),
)
