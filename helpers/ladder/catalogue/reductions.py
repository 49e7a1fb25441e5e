"""Lesson 07: sums of rows, a ballot and a scan, each kernel to show one way in which threads exchange values."""

import functools

from helpers.ladder.catalogue.entry import Kernel, Launch, Operator, whole

EDGE = (Launch((33, 1001)),)
FOUR = "its accesses are those of row_sum_block; only GPUs with clusters run it"
in_reductions = functools.partial(Kernel, files=("reductions.cu",))

OPERATORS = (
    Operator(
        name="row_sum",
        arguments={"x": whole},
        kernels=(
            *(in_reductions(name=f"row_sum_{form}", launches=EDGE) for form in ("one", "tree", "warp", "block")),
            in_reductions(name="row_sum_cluster", not_counted=FOUR),
        ),
    ),
    Operator(
        name="warp_exchange",
        arguments={"x": whole},
        kernels=(
            in_reductions(name="places", launches=EDGE),
            in_reductions(name="running_max", launches=EDGE),
        ),
    ),
)
