"""The kernels of helpers/ladder/catalogue/ in the form that the contract takes."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from contract import SIZES, Operator
from contract_odd import POINTS_OF_THE_REGISTERED
from inputs import factors

import helpers
from helpers.ladder import catalogue
from helpers.ladder.catalogue import Kernel
from helpers.ladder.checking.checker import check
from helpers.ladder.pytorch import operators

AGAIN = "another version of an operator that is under contract"


def counted_inputs(operator: catalogue.Operator, kernel: Kernel) -> Iterator[list[torch.Tensor]]:
    """Arguments for the launches in the catalogue, which together run every kernel of the function."""
    for launch in kernel.launches:
        inputs = operator.inputs(launch.shape, getattr(torch, launch.dtype or kernel.dtypes[0]), helpers.device)
        offset = [launch.first * (x.shape == launch.shape) for x in inputs]
        moved = [torch.cat([x.new_zeros(n), x.flatten()])[n:] for n, x in zip(offset, inputs, strict=True)]
        shifted = [x.view(like.shape) for x, like in zip(moved, inputs, strict=True)]
        yield [x.t().contiguous().t() for x in shifted] if launch.transposed else shifted


def of_catalogue(operator: catalogue.Operator, kernel: Kernel) -> Operator:
    """The record that tests/kernels/contract.py works with, of one kernel."""

    def load() -> Callable:
        if kernel.python_module:
            return getattr(kernel.extension(), kernel.function)
        return operators.registered(kernel.name)

    excuses = {"gradients": kernel.not_differentiable}
    excuses |= dict.fromkeys(("registration", *POINTS_OF_THE_REGISTERED), kernel.not_registered)
    return Operator(
        name=kernel.name,
        load=load,
        reference=operator.exact or operator.reference,
        arguments=tuple(operator.arguments),
        dtypes=tuple(getattr(torch, dtype) for dtype in kernel.dtypes),
        shape=lambda size, position: operator.argument_shapes(operator.at_size(size))[position],
        spread=operator.spread,
        elementwise=operator.elementwise,
        sizes=tuple(operator.sizes) or SIZES,
        accumulation=lambda size: operator.accumulation(operator.at_size(size)),
        widened=operator.widened,
        differentiable=None if kernel.not_differentiable else load,
        overload=None if kernel.not_registered else load,
        every_kernel=lambda: counted_inputs(operator, kernel),
        excused={point: reason for point, reason in excuses.items() if reason},
    )


def of_first_version(operator: catalogue.Operator, kernel: Kernel) -> Operator:
    """The record of a kernel that is not under contract, for the points sizes and stream."""
    found = of_catalogue(operator, replace(kernel, not_differentiable=AGAIN, not_registered=AGAIN))
    return replace(found, load=lambda: getattr(kernel.extension(), kernel.function or kernel.name))


def every_choice_of_tiles(kernel: Kernel) -> None:
    """The function NAME_with is right for each choice of tiles, and refuses other numbers."""
    call, dtype = getattr(kernel.extension(), f"{kernel.name}_with"), getattr(torch, kernel.dtypes[0])
    for tile in range(kernel.tiles):
        # The last two have more rows than a group of tiles; only one has whole tiles in its columns.
        for shape in ((33, 7, 129), (130, 264, 72), (2090, 264, 8), (1090, 256, 8)):
            function = functools.partial(lambda tile, a, b: call(a, b, tile), tile)
            check(function, *factors(*shape, dtype), reference=torch.mm, accumulation=129)
    for tile in (-2, kernel.tiles):  # -1 is the best one, for a kernel that chooses
        with pytest.raises(RuntimeError, match=f"tile must be 0 to {kernel.tiles - 1}, "):
            call(*factors(8, 8, 8, dtype), tile)


def as_parameter(operator: Operator):
    """An operator as a case of a parametrised test.

    Of the kernels that compute the same, the quick suite holds the last one to the contract that it builds. The others
    share its checks and registration; their own tests and the lessons run them on shapes of every kind. A backward is
    checked by the point `gradients` of its forward.
    """
    slow = operator.name not in _QUICK or operator.name.endswith("_backward")
    return pytest.param(operator, id=operator.name, marks=pytest.mark.slow if slow else ())


OPERATORS = [of_catalogue(operator, kernel) for operator, kernel in catalogue.CONTRACTED]
_QUICK = {operator.name: kernel.name for operator, kernel in catalogue.CONTRACTED if not kernel.slow_to_build}.values()
