"""Wrong operators: each point of the contract must reject at least one.

Each has exactly one mistake, in most cases a published one. Those in C++ are the lessons' wrong kernels; a few lines of
Python are enough for the others.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from contract import Operator

import helpers
from helpers.ladder.pytorch.operators import library


@dataclass(frozen=True)
class Wrong:
    """An operator that breaks `point`; the message must match `match`, a regular expression."""

    point: str
    operator: Operator
    match: str


WRONG: list[Wrong] = []


def plant(point: str, match: str, **options):
    """Plants the decorated function, named after its mistake; without options it is a wrong product."""

    def add(function: Callable) -> Callable:
        wrong(point, function.__name__, match, function, **options)
        return function

    return add


def wrong(point: str, name: str, match: str, function: Callable, **options) -> None:
    """Plants a function as `plant` does, under a name that says its mistake."""
    WRONG.append(Wrong(point, Operator(name, **{"load": lambda: function, **MULT, **options}), match))


def muladd(a, b, c):
    return a * b + c


MULADD = {"reference": muladd, "arguments": ("a", "b", "c"), "accumulation": lambda size: 2}
MULT = {"reference": torch.mul, "arguments": ("a", "b")}


# -- In C++ ------------------------------------------------------------------------------------------------------------


def plant_compiled(point: str, match: str, file: str, name: str, **options) -> None:
    """Plants an operator of a file in kernels/wrong/, built at its first use."""

    def load() -> Callable:
        return getattr(library(f"{file}_wrong", f"wrong/{file}.cu"), name).default

    WRONG.append(Wrong(point, Operator(name, load, **options), match))


plant_compiled("sizes", "size 1: .*got nan", "fused_muladd", "muladd_no_tail", **MULADD)
plant_compiled("layouts", "every other element in a, .*wrong", "fused_muladd", "muladd_any_layout", **MULADD)
plant_compiled("shapes", "wrong shape", "elementwise_mult", "mult_same_count", **MULT)
plant_compiled("dtypes", "only b is torch.float64: refused without", "fused_muladd", "muladd_any_layout", **MULADD)
plant_compiled("graph_capture", "cannot be captured", "elementwise_mult", "mult_synchronising", **MULT)


STRAY = "before its inputs|add_kernel, at .*, is not launched in PyTorch's current stream"


@plant("stream", STRAY, reference=torch.add)
def default_stream(a, b):
    out = torch.empty_like(a)
    library("vector_add_wrong", "wrong/vector_add.cu").add_default_stream(a, b, out)
    return out


# -- Values ------------------------------------------------------------------------------------------------------------


@plant("sizes", "size 0: .*grid of 0 blocks")
def launches_nothing(a, b):
    if a.numel() == 0:
        raise RuntimeError("CUDA error: invalid configuration argument: a grid of 0 blocks")
    return a * b


@plant("sizes", "size 100003: .*wrong")
def index_overflows(a, b):
    out = (a * b).view(-1)
    out[2**16 :] = out[: max(0, out.numel() - 2**16)].clone()  # a 16-bit index, as int is a 32-bit one
    return out.view(a.shape)


wrong("sizes", "flattens", r"shape \(3, 5, 7\): .*wrong shape", lambda a, b: a.flatten() * b.flatten())


@plant("layouts", "storage offset 1 in a, .*wrong")
def ignores_storage_offset(a, b):
    a, b = (x.as_strided(x.shape, x.stride(), 0) for x in (a, b))
    return a * b


def refuses_with(message: str) -> Callable:
    def multiply(a, b):
        if not (a.is_contiguous() and b.is_contiguous()):
            raise RuntimeError(message)
        return a * b

    return multiply


NAMELESS, OTHER = refuses_with("a tensor is not contiguous"), refuses_with("a must be contiguous")
wrong("layouts", "refuses_without_a_name", "refused without saying 'a must ...'", NAMELESS)
wrong("layouts", "blames_the_other", "refused without saying 'b must ...'", OTHER)


@plant("shapes", "wrong shape: expected .*, got")
def cuts_to_the_shorter(a, b):
    n = min(a.numel(), b.numel())
    return a.flatten()[:n] * b.flatten()[:n] if a.shape != b.shape else a * b


wrong("dtypes", "claims_less_than_it_takes", "torch.float64: neither refused nor handled", torch.mul)


@plant("dtypes", "torch.int32: neither refused")
def reads_any_32_bits(a, b):
    for name, x in (("a", a), ("b", b)):
        if x.element_size() != 4:
            raise RuntimeError(f"{name} must be float32, got {x.dtype}")
    return a.view(torch.float32) * b.view(torch.float32)


@plant("dtypes", "only b is torch.float64: .*wrong")
def looks_at_the_first_only(a, b):
    if a.dtype != torch.float32:
        raise RuntimeError(f"a must be float32, got {a.dtype}")
    return a * b.view(torch.float32).flatten()[: a.numel()].view(a.shape)


wrong(
    "dtypes", "computes_doubles_in_float", "torch.float64: .*wrong", lambda a, b: (a.float() * b.float()).to(a.dtype),
    dtypes=(torch.float32, torch.float64),
)  # fmt: skip
wrong(
    "dtypes", "rounds_in_between", "torch.float16: .*wrong", muladd,
    **MULADD, dtypes=(torch.float32, torch.float16),
)  # fmt: skip


@plant("special_values", "expected nan, got -?inf")
def drops_nan(a, b):
    return torch.fmax(a * b, torch.full_like(a, -float("inf")))


@plant("special_values", "expected -?inf, got")
def clamps_infinities(a, b):
    out, largest = a * b, torch.finfo(a.dtype).max
    return torch.where(out.isinf(), out.sign() * largest, out)


@plant("special_values", r"expected -?\d\S*e-3\d, got -?0\n")
def flushes_subnormals(a, b):
    out = a * b
    return torch.where(out.abs() < torch.finfo(a.dtype).tiny, torch.zeros_like(out), out)


@plant("determinism", "gave different bits")
def order_by_chance(a, b):
    out = a * b
    return out * (1 + torch.finfo(a.dtype).eps * torch.randint_like(out, 2))  # the last bit, as in sums by atomics


# -- Gradients ---------------------------------------------------------------------------------------------------------


def plant_gradient(match: str):
    """Plants a product with the decorated function as its backward: (ctx, grad, a, b) -> grad_a, grad_b."""

    def add(backward: Callable) -> Callable:
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                return a * b

        Product.backward = staticmethod(lambda ctx, grad: backward(ctx, grad, *ctx.saved_tensors))
        return plant("gradients", match, load=lambda: torch.mul, differentiable=lambda: Product.apply)(backward)

    return add


@plant_gradient("gradcheck for a, b: .*Jacobian mismatch")
def gradients_swapped(ctx, grad, a, b):
    return grad * a, grad * b


@plant_gradient("gradcheck")
def one_gradient_missing(ctx, grad, a, b):
    return grad * b, None


@plant_gradient("gradgradcheck for a, b: ")
def not_differentiable_twice(ctx, grad, a, b):
    with torch.no_grad():
        return grad * b, grad * a


@plant_gradient("gradcheck for a, b: .*Jacobian mismatch")
def gradient_in_single_precision(ctx, grad, a, b):
    return (grad.float() * b.float()).double(), (grad.float() * a.float()).double()


@plant_gradient("gradcheck for b: ")
def gradient_only_if_the_first_needs_one(ctx, grad, a, b):
    return (grad * b, grad * a) if ctx.needs_input_grad[0] else (None, None)


# -- Registration ------------------------------------------------------------------------------------------------------


def plant_registered(name: str, fake: Callable, body: Callable = torch.mul) -> None:
    """Plants an operator registered in Python with a fake kernel."""

    def typed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return body(a, b)

    @functools.cache
    def load() -> Callable:
        torch.library.custom_op(f"contract_wrong::{name}", typed, mutates_args=()).register_fake(fake)
        return getattr(torch.ops.contract_wrong, name).default

    WRONG.append(Wrong("registration", Operator(name, load, overload=load, **MULT), "opcheck"))


plant_registered("fake_of_another_shape", fake=lambda a, b: a.new_empty(a.numel() + 1))
plant_registered("fake_of_another_dtype", fake=lambda a, b: torch.empty_like(a, dtype=torch.float64))
plant_registered("changes_its_input", fake=lambda a, b: torch.empty_like(a), body=lambda a, b: a.mul_(b).clone())


# -- Derivatives of every kind -----------------------------------------------------------------------------------------


@functools.cache
def by_register_autograd() -> Callable:
    """A product whose derivatives are registered as PyTorch's documentation has it: for loss.backward() alone."""

    def typed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b

    op = torch.library.custom_op("contract_wrong::product", typed, mutates_args=())
    op.register_fake(lambda a, b: torch.empty_like(a))
    op.register_autograd(
        lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return torch.ops.contract_wrong.product.default


class HalfATangent(torch.autograd.Function):
    """A product without the tangent of b."""

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a

    @staticmethod
    def jvp(ctx, a_tangent, b_tangent):
        return a_tangent * ctx.saved_tensors[1]


class SavesDetached(HalfATangent):
    """A product whose first derivatives are right, and whose second ones lack the part through a and b."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output):
        HalfATangent.setup_context(ctx, [x.detach() for x in inputs], output)

    @staticmethod
    def jvp(ctx, a_tangent, b_tangent):
        a, b = ctx.saved_tensors
        return a_tangent * b + a * b_tangent


def plant_differentiable(point: str, match: str, name: str, load: Callable) -> None:
    WRONG.append(Wrong(point, Operator(name, load, differentiable=load, **MULT), match))


plant_differentiable("forward_mode", "Jacobian computed with forward mode mismatch", "lost", by_register_autograd)
plant_differentiable("forward_mode", "forward mode for a, b: .*mismatch", "half", lambda: HalfATangent.apply)
plant_differentiable("transforms", "RuntimeError: .*setup_context", "refused_by_torch_func", by_register_autograd)
plant_differentiable("transforms", "torch.func, hessian: ", "saves_detached", lambda: SavesDetached.apply)


@plant("forward_mode", "tangent in a: not refused although it is forward only")
@plant("transforms", "torch.func.grad: not refused although it is forward only")
def loses_derivatives(a, b):
    return a.detach() * b.detach()


@plant("forward_mode", "tangent in a: refused without saying 'NAME must ...'")
def refuses_derivatives_without_a_name(a, b):
    raise NotImplementedError("no derivative")


# -- Copies, tensors of other kinds, other devices ---------------------------------------------------------------------

WRONG.append(Wrong("copies", Operator("local_function", lambda: lambda a, b: a * b, **MULT), "a copy: .*local object"))
WRONG.append(Wrong("copies", Operator("made_anew", lambda: functools.partial(torch.mul), **MULT), "another operator"))
WRONG += [Wrong("tensors", w.operator, "fake tensors: got") for w in WRONG if w.operator.name.startswith("fake_of_")]


@plant("tensors", "a is a plain subclass, .*: the result is a Tensor, not a Plain")
def looks_at_storage(a, b):
    a, b = (x.new_empty(0).as_subclass(torch.Tensor).set_(x.untyped_storage(), 0, x.shape, x.stride()) for x in (a, b))
    return a * b


NEGATED = "a is a tensor with the negative bit, .*not close"
wrong("tensors", "ignores_the_negative_bit", NEGATED, lambda a, b: (-a if a.is_neg() else a) * b)
wrong("tensors", "follows_the_first", "a on (meta|cpu): neither refused", lambda a, b: a * b.to(a.device))
ELSEWHERE = "result_on_the_default_device"
wrong("devices", ELSEWHERE, "default device meta: ", lambda a, b: torch.empty(a.shape).copy_(a * b))


# -- On a GPU ----------------------------------------------------------------------------------------------------------


@plant("graph_capture", "cannot be captured")
def looks_at_a_value(a, b):
    if bool(a.isnan().all()):
        return a.clone()
    return a * b


wrong("device", "result_on_the_current_device", "wrong device", lambda a, b: (a * b).to(helpers.device))
wrong("device", "moves_silently", "neither refused", lambda a, b: a * b.to(a.device))


@plant("device", "changed the current device")
def changes_the_device(a, b):
    torch.cuda.set_device(a.device)
    return a * b
