"""Makes an operator of a C++ file a full PyTorch operator.

A `.cu` file gives PyTorch's dispatcher a schema and a kernel. That is enough to call the operator. The rest are Python
functions; lesson 12 explains each:

  fake       shape, dtype and device of the result, without data: torch.compile and torch.export trace with it
  backward   the gradient; if it calls an operator, that operator needs a backward too, for second derivatives
  vmap       a whole batch in one call
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload as Overload

from helpers.ladder.pytorch import pickling as pickling  # registers with copyreg
from helpers.ladder.pytorch.derivatives import register_derivatives


def first_class(
    op: Overload,
    *,
    fake: Callable,
    backward: Callable | None = None,
    save: Callable | None = None,
    vmap: Callable | None = None,
    zeros: bool = True,
) -> Overload:
    """Registers the functions of `op` with PyTorch and returns it. Call it once per operator.

    fake      called with the operator's arguments, without data; returns empty tensors like the results
    backward  (ctx, *gradients of the outputs) -> a gradient, or None, for each argument, for every kind of derivative
              (derivatives.py); None: the operator is forward only, and raises NotImplementedError if one is asked for
    save      (inputs, output) -> the tensors that backward reads from ctx.saved_tensors; ctx.scalars has the arguments
              that are not tensors
    zeros     whether backward gets zeros for an output without a gradient; otherwise None, which costs no memory
    vmap      (info, in_dims, *arguments) -> results and their batch dimensions; None: PyTorch's own loop, which passes
              strided views
    """
    name = op._schema.name
    torch.library.register_fake(name)(_on_one_device(op, fake))
    register_derivatives(op, backward, save or (lambda inputs, output: ()), zeros)
    if vmap is not None:
        torch.library.register_vmap(name, vmap)
    return op


def _on_one_device(op: Overload, fake: Callable) -> Callable:
    """`fake`, which refuses arguments on different devices: PyTorch calls it as soon as one is a meta tensor."""
    names = [argument.name for argument in op._schema.arguments]

    def checked(*arguments: Any) -> Any:
        tensors = [(name, x) for name, x in zip(names, arguments, strict=False) if isinstance(x, torch.Tensor)]
        for name, x in tensors[1:]:
            if x.device != tensors[0][1].device:
                wanted = f"the device of {tensors[0][0]}, {tensors[0][1].device}"
                raise RuntimeError(f"{name} must be on {wanted}, got {x.device}; move one of them")
        return fake(*arguments)

    return checked


def batched_elementwise(op: Overload) -> Callable:
    """The vmap rule of an operator whose arguments have one shape: a batch is just a larger tensor."""

    def rule(info: Any, in_dims: Sequence[int | None], *arguments: torch.Tensor):
        batches = [
            x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(arguments, in_dims, strict=True)
        ]
        result = op(*(x.contiguous() for x in batches))
        return result, 0 if isinstance(result, torch.Tensor) else (0,) * len(result)

    return rule


def looped(op: Overload) -> Callable:
    """The vmap rule of any operator that needs contiguous arguments: one call per batch element."""

    def rule(info: Any, in_dims: Sequence[int | None], *arguments: torch.Tensor):
        given = list(zip(arguments, in_dims, strict=True))
        calls = [
            op(*(x if dim is None else x.select(dim, i).contiguous() for x, dim in given))
            for i in range(info.batch_size)
        ]
        if isinstance(calls[0], torch.Tensor):
            return torch.stack(calls), 0
        return tuple(map(torch.stack, zip(*calls, strict=True))), (0,) * len(calls[0])

    return rule
