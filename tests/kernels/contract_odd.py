"""More points of the contract: what an operator must do with input that its author did not think of.

Importing this module adds them to POINTS. An operator without a differentiable form must refuse to be differentiated,
with NotImplementedError and the name of an argument: a gradient or a tangent that is silently zero breaks the contract.
"""

import functools
from collections.abc import Callable

import torch
from contract import POINTS, ContractBroken, Operator, blames, outputs, passes
from torch.autograd import forward_ad

POINTS_OF_THE_REGISTERED = ("forward_mode", "transforms")  # a plain function need not keep them


def compare(got: object, wanted: object, case: str) -> None:
    """Checks tensors, or tuples of them, computed in float64. Raises ContractBroken."""
    try:
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-9)
    except AssertionError as error:
        raise ContractBroken(f"{case}: {error}") from error


def not_differentiated(operator: Operator, call: Callable[[], object], case: str) -> None:
    """Checks that a call that asks a forward-only operator for a derivative is refused. Raises ContractBroken."""
    try:
        result = call()
    except NotImplementedError as error:
        if any(blames(str(error), name) for name in operator.arguments):
            return
        raise ContractBroken(f"{operator.name}, {case}: refused without saying 'NAME must ...': {error}") from error
    except Exception as error:
        raise ContractBroken(
            f"{operator.name}, {case}: {type(error).__name__} for NotImplementedError: {error}"
        ) from error
    raise ContractBroken(f"{operator.name}, {case}: not refused although it is forward only; got {result}")


def squares(function: Callable) -> Callable:
    """The sum of the squares of a function's results, a scalar with a gradient and a Hessian."""
    return lambda *inputs: sum((x * x).sum() for x in outputs(function(*inputs)))


def forward_mode(operator: Operator) -> None:
    """Tangents are right, for each argument alone and all together, also of the backward; or they are refused."""
    if operator.differentiable is None:
        inputs = operator.inputs(5, operator.dtypes[0])
        for i, name in enumerate(operator.arguments):
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(x, x) if i == j else x for j, x in enumerate(inputs)]
                not_differentiated(operator, lambda: operator.function(*duals), f"tangent in {name}")  # noqa: B023
            leaves = [x.clone().requires_grad_(i == j) for j, x in enumerate(inputs)]
            loss = squares(operator.function)(*leaves)
            not_differentiated(operator, loss.backward, f"gradient of {name}")
        return
    function = operator.differentiable()
    forwards = functools.partial(torch.autograd.gradcheck, check_forward_ad=True, check_backward_ad=False)
    over_reverse = functools.partial(
        torch.autograd.gradgradcheck, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False
    )
    for wanted in (range(len(operator.arguments)), *([i] for i in range(len(operator.arguments)))):
        inputs = operator.inputs(2, torch.float64)
        for i in wanted:
            inputs[i].requires_grad_()
        names = ", ".join(operator.arguments[i] for i in wanted)
        passes(forwards, function, inputs, f"{operator.name}, forward mode for {names}")
        passes(over_reverse, function, inputs, f"{operator.name}, forward over reverse mode for {names}")


def transforms(operator: Operator) -> None:
    """torch.func's transforms and their compositions give what they give for the reference, or are refused."""
    function = (operator.differentiable or operator.load)()
    if operator.differentiable is None:
        inputs = tuple(operator.inputs(5, operator.dtypes[0]))
        for name, transform in (
            ("grad", torch.func.grad),
            ("jacrev", torch.func.jacrev),
            ("jacfwd", torch.func.jacfwd),
        ):
            not_differentiated(operator, lambda t=transform: t(squares(function))(*inputs), f"torch.func.{name}")
        return
    everything = tuple(range(len(operator.arguments)))
    inputs = tuple(operator.inputs(3, torch.float64))
    batches = tuple(torch.stack([x, x.flip(0), x / 2]) for x in inputs)

    def results(f: Callable) -> dict[str, object]:
        gradient = torch.func.grad(squares(f), everything)
        return {
            "vjp": torch.func.vjp(squares(f), *inputs)[1](torch.ones_like(inputs[0].sum())),
            "jvp": torch.func.jvp(f, inputs, inputs),
            "jacrev": torch.func.jacrev(f, everything)(*inputs),
            "jacfwd": torch.func.jacfwd(f, everything)(*inputs),
            "hessian": torch.func.hessian(squares(f), everything)(*inputs),
            "grad of grad": torch.func.jacrev(gradient, everything)(*inputs),
            "vmap of grad": torch.func.vmap(gradient)(*batches),
            "grad of vmap": torch.func.grad(squares(torch.func.vmap(f)), everything)(*batches),
            "jvp of vmap": torch.func.jvp(torch.func.vmap(f), batches, batches),
            "vmap of jvp": torch.func.vmap(lambda *x: torch.func.jvp(f, x, x))(*batches),
            "linearize": torch.func.linearize(squares(f), *inputs)[1](*inputs),
        }

    wanted = results(operator.reference)
    try:
        got = results(function)
    except Exception as error:
        raise ContractBroken(f"{operator.name}, torch.func: {type(error).__name__}: {error}") from error
    for transform in wanted:
        compare(got[transform], wanted[transform], f"{operator.name}, torch.func, {transform}")


POINTS |= {point.__name__: point for point in (forward_mode, transforms)}
