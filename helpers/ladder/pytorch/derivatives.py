"""Derivatives of an operator in every way that PyTorch asks for them, all made of its one backward function.

torch.library.register_autograd serves `loss.backward()` alone: forward-mode AD then loses the tangent silently, and
torch.func refuses the operator. Here the dispatcher's Autograd kernel is ours, and serves all three. With J the
Jacobian, backward computes J^T u, which is linear in u: so its own derivative with respect to u, applied to a tangent,
is J t, what forward mode needs. An operator therefore needs second derivatives to have a forward mode.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch._functorch.eager_transforms import enable_inplace_requires_grad
from torch._ops import OpOverload as Overload
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

_kept: list[torch.library.Library] = []  # a registration ends with its object


def register_derivatives(op: Overload, backward: Callable | None, save: Callable, zeros: bool = True) -> None:
    """Registers the Autograd kernel of `op`, whose tensors are arguments of their own, not lists.

    backward  (ctx, *gradients of the outputs) -> a gradient, or None, for each argument; itself differentiable.
              ctx.scalars has the arguments that are not tensors. None: the operator is forward only; its gradients and
              tangents raise NotImplementedError
    save      (arguments, result) -> the tensors that backward reads from ctx.saved_tensors
    zeros     whether backward gets zeros for an output without a gradient; otherwise None
    """
    names = [argument.name for argument in op._schema.arguments]
    defaults = [argument.default_value for argument in op._schema.arguments]
    derivative = backward or _refusal(op, names)

    def forward(ctx: Any, *arguments: Any) -> Any:
        # PyTorch switches both off here, but the outer levels of torch.func need them.
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            result = _below(op, arguments)
            if _in_forward_mode():  # jvp is called at once
                ctx.arguments, ctx.dual = arguments, [_tangent(x) is not None for x in arguments]
        ctx.set_materialize_grads(zeros)
        ctx.save_for_backward(*save(arguments, result))
        ctx.scalars = _scalars(arguments)
        return result

    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> Any:
        arguments, dual = ctx.arguments, ctx.dual
        del ctx.arguments
        result = autograd(*arguments)  # again: this one may be differentiated, too
        given = [t if has else None for t, has in zip(tangents, dual, strict=True)]  # not 0, for 0 * inf is NaN
        return _pushed_forward(derivative, save(arguments, result), _scalars(arguments), result, given)

    methods = {"forward": forward, "backward": derivative, "jvp": jvp}
    recorded: Any = type(f"{op._opname}_", (_SingleLevelFunction,), {k: staticmethod(f) for k, f in methods.items()})

    def autograd(*arguments: Any) -> Any:
        arguments = (*arguments, *defaults[len(arguments) :])  # the dispatcher leaves trailing defaults out
        dual = _in_forward_mode() and any(_tangent(x) is not None for x in arguments)
        if dual or (torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)):
            with enable_single_level_autograd_function():  # a kernel sees one of torch.func's levels at a time
                return recorded.apply(*arguments)
        return _below(op, arguments)

    library = torch.library.Library(op.namespace, "FRAGMENT")
    library.impl(op, autograd, "Autograd")
    _kept.append(library)


def _in_forward_mode() -> bool:
    """Whether arguments may have tangents. A compiled torch.func.jvp enters the level without telling forward_ad."""
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def _tangent(x: Any) -> torch.Tensor | None:
    return torch._VF._unpack_dual(x, level=0)[1] if isinstance(x, torch.Tensor) else None  # the only level that exists


def _scalars(arguments: Sequence) -> tuple:
    return tuple(x for x in arguments if not isinstance(x, torch.Tensor))


def _below(op: Overload, arguments: Sequence) -> Any:
    """Calls what the dispatcher has below Autograd: vmap, fake tensors, the kernel."""
    with torch._C._AutoDispatchBelowAutograd():
        return op(*arguments)


def _pushed_forward(backward: Callable, saved: Sequence, scalars: tuple, result: Any, tangents: Sequence) -> Any:
    """The tangents of the result: the derivative of u -> backward(u), applied to the tangents of the arguments."""
    single = isinstance(result, torch.Tensor)
    outputs = [result] if single else list(result)
    needed = [t is not None for t in tangents]
    ctx = SimpleNamespace(saved_tensors=tuple(saved), scalars=scalars, needs_input_grad=needed)
    recording = torch.is_grad_enabled()
    with torch.enable_grad():
        with enable_inplace_requires_grad(True):
            weights = [torch.zeros_like(x).requires_grad_() for x in outputs]
        gradients = backward(ctx, *weights)
        pairs = zip([gradients] if isinstance(gradients, torch.Tensor) else gradients, tangents, strict=True)
        found, given = zip(*((g, t) for g, t in pairs if g is not None and t is not None), strict=True)
        pushed = torch.autograd.grad(found, weights, given, create_graph=recording, allow_unused=True)
    pushed = [torch.zeros_like(x) if t is None else t for x, t in zip(outputs, pushed, strict=True)]
    return pushed[0] if single else tuple(pushed)


def _refusal(op: Overload, names: Sequence[str]) -> Callable:
    """The backward of an operator that has none."""

    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        name = next(name for name, needed in zip(names, ctx.needs_input_grad, strict=True) if needed)
        raise NotImplementedError(
            f"{op._opname} is forward only: {name} must have neither requires_grad nor a tangent, got one that has; "
            f"pass {name}.detach(), or use an operator with a backward"
        )

    return backward
