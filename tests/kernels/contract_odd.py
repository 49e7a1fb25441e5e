"""More points of the contract: what an operator must do with input that its author did not think of.

Importing this module adds them to POINTS. An operator without a differentiable form must refuse to be differentiated,
with NotImplementedError and the name of an argument: a gradient or a tangent that is silently zero breaks the contract.
"""

import copy
import functools
import io
import pickle
from collections.abc import Callable, Iterator

import torch
from contract import POINTS, ContractBroken, Operator, blames, breaks_if_raised, differentiable_inputs, outputs, refused
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

import helpers

# A plain function need not keep these.
POINTS_OF_THE_REGISTERED = ("forward_mode", "transforms", "copies", "tensors", "devices")


def compare(got: object, wanted: object, case: str) -> None:
    """Checks tensors, or tuples of them, computed in float64. Raises ContractBroken."""
    with breaks_if_raised(case):
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-9)


def not_differentiated(operator: Operator, call: Callable[[], object], case: str) -> None:
    """Checks that a call that asks a forward-only operator for a derivative is refused. Raises ContractBroken."""
    try:
        result = call()
    except NotImplementedError as error:
        if any(blames(str(error), name) for name in operator.arguments):
            return
        raise ContractBroken(f"{operator.name}, {case}: refused without saying 'NAME must ...': {error}") from error
    except Exception as error:
        kind = f"{type(error).__name__} for NotImplementedError"
        raise ContractBroken(f"{operator.name}, {case}: {kind}: {error}") from error
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
    for names, inputs in differentiable_inputs(operator, 2):
        for test, mode in ((forwards, "forward"), (over_reverse, "forward over reverse")):
            with breaks_if_raised(f"{operator.name}, {mode} mode for {names}"):
                test(function, inputs)


def transforms(operator: Operator) -> None:
    """torch.func's transforms and their compositions give what they give for the reference, or are refused."""
    function = (operator.differentiable or operator.load)()
    if operator.differentiable is None:
        inputs = tuple(operator.inputs(5, operator.dtypes[0]))
        for name in ("grad", "jacrev", "jacfwd"):
            transformed = getattr(torch.func, name)(squares(function))
            not_differentiated(operator, lambda call=transformed: call(*inputs), f"torch.func.{name}")
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
    with breaks_if_raised(f"{operator.name}, torch.func"):
        got = results(function)
    for transform in wanted:
        compare(got[transform], wanted[transform], f"{operator.name}, torch.func, {transform}")


def copies(operator: Operator) -> None:
    """A module that keeps the operator can be copied, pickled and saved; what comes back is the same operator."""
    op = operator.load()
    module = Keeps(op)
    inputs = operator.inputs(5, operator.dtypes[0])
    wanted = outputs(module(*inputs))
    file = io.BytesIO()
    with breaks_if_raised(f"{operator.name}, a copy"):
        torch.save(module, file)
        file.seek(0)
        found = [copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(file, weights_only=False)]
    for kept in found:
        if kept.op is not op:
            raise ContractBroken(f"{operator.name}, a copy: it is another operator, {kept.op}")
        compare(outputs(kept(*inputs)), wanted, f"{operator.name}, a copy")


class Keeps(torch.nn.Module):
    """A module that keeps an operator and a parameter."""

    def __init__(self, op: Callable):
        super().__init__()
        self.op, self.scale = op, torch.nn.Parameter(torch.ones(1))

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.op(*inputs)


class Plain(torch.Tensor):
    """A subclass that changes nothing: results are of it, too."""


class Wrapper(torch.Tensor):
    """A subclass that holds a tensor, and sees every operator through __torch_dispatch__."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor):
        options = {"dtype": inner.dtype, "device": inner.device, "requires_grad": inner.requires_grad}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), **options)

    def __init__(self, inner: torch.Tensor):
        self.inner = inner.detach()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = torch.utils._pytree.tree_map_only(Wrapper, lambda x: x.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(torch.Tensor, Wrapper, func(*bare[0], **bare[1]))


def kinds_of_tensor(x: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, type]]:
    """The values of x in tensors of other kinds, and the type that results of operators then have."""
    yield "a plain subclass", x.as_subclass(Plain), Plain
    yield "a wrapper", Wrapper(x), Wrapper
    yield "a parameter", torch.nn.Parameter(x, requires_grad=False), torch.Tensor
    yield "a buffer", torch.nn.Buffer(x), torch.Tensor
    yield "a tensor with the negative bit", torch._neg_view(-x), torch.Tensor


def tensors(operator: Operator) -> None:
    """Tensors of other kinds give the same result; fake and meta ones its shape; a mixture of devices is refused."""
    op, names = operator.load(), operator.arguments
    for dtype in operator.dtypes:
        inputs = operator.inputs(17, dtype)
        wanted = outputs(op(*inputs))
        for i, name in enumerate(names):
            for kind, odd, of in kinds_of_tensor(inputs[i]):
                case = f"{operator.name}, {name} is {kind}, {dtype}"
                with breaks_if_raised(case):
                    got = outputs(op(*inputs[:i], odd, *inputs[i + 1 :]))
                if any(type(x) is not of for x in got):
                    raise ContractBroken(f"{case}: the result is a {type(got[0]).__name__}, not a {of.__name__}")
                compare([x.inner if of is Wrapper else x.as_subclass(torch.Tensor) for x in got], wanted, case)
        with FakeTensorMode() as mode:
            fake = outputs(op(*(mode.from_tensor(x) for x in inputs)))
        meta = outputs(op(*(x.to("meta") for x in inputs)))
        for kind, got in (("fake", fake), ("meta", meta)):
            facts = [[(x.shape, x.dtype, x.stride()) for x in results] for results in (got, wanted)]
            if facts[0] != facts[1]:
                raise ContractBroken(f"{operator.name}, {kind} tensors: got {facts[0]}, the kernel gives {facts[1]}")
    for i, name in enumerate(names if len(names) > 1 else ()):
        for elsewhere in {"meta", "cpu"} - {helpers.device.type}:
            mixed = [x.to(elsewhere) if i == j else x for j, x in enumerate(inputs)]
            refused(operator, mixed, range(len(names)), f"{name} on {elsewhere}")


def devices(operator: Operator) -> None:
    """A default device changes nothing; what was compiled for one device answers for another, or refuses."""
    op = operator.load()
    inputs = operator.inputs(17, operator.dtypes[0])
    wanted = outputs(op(*inputs))
    with torch.device("meta"):
        compare(outputs(op(*inputs)), wanted, f"{operator.name}, default device meta")
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: op(*x), backend="aot_eager", fullgraph=True)
    with torch.device("meta"):
        compare(outputs(compiled(*inputs)), wanted, f"{operator.name}, compiled under default device meta")
    on_meta = outputs(compiled(*(x.to("meta") for x in inputs)))
    if [(x.device.type, x.shape) for x in on_meta] != [("meta", x.shape) for x in wanted]:
        raise ContractBroken(f"{operator.name}, compiled, then called on meta tensors: got {on_meta}")
    compare(outputs(compiled(*inputs)), wanted, f"{operator.name}, compiled, then called on meta tensors and back")


POINTS |= {point.__name__: point for point in (forward_mode, transforms, copies, tensors, devices)}
