"""Bugs in Python: gradients, tests and timing. Each function is followed by its fixed twin. Do not use.

The gradients are for a product, a * b. The tests check a kernel that computes 2 * a: each takes the kernel and an
input, and raises AssertionError if it finds the kernel wrong.
"""

import time
from collections.abc import Callable

import torch

from helpers.ladder.checking.compare import assert_close

# ----------------------------------------------------------------------------------------------------------------------
# Gradients


class _MissingGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        _, b = ctx.saved_tensors
        return grad * b, None


class _GradientCount(_MissingGradient):
    @staticmethod
    def backward(ctx, grad):
        _, b = ctx.saved_tensors
        return grad * b


class _BroadcastGradient(_MissingGradient):
    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad_b = (grad * a).flatten()[: b.numel()]  # like a kernel that assumes b's size everywhere
        return grad * b, grad_b.view(b.shape)


class _NoDoubleBackward(_MissingGradient):
    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad_a, grad_b = torch.empty_like(a), torch.empty_like(b)
        with torch.no_grad():  # like a kernel that autograd does not know
            torch.mul(grad, b, out=grad_a)
            torch.mul(grad, a, out=grad_b)
        return grad_a, grad_b


class _Fixed(_MissingGradient):
    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        wants_a, wants_b = ctx.needs_input_grad
        grad_a = (grad * b).sum_to_size(a.shape) if wants_a else None
        grad_b = (grad * a).sum_to_size(b.shape) if wants_b else None
        return grad_a, grad_b


missing_gradient = _MissingGradient.apply
gradient_count = _GradientCount.apply
broadcast_gradient = _BroadcastGradient.apply
no_double_backward = _NoDoubleBackward.apply
missing_gradient_fixed = gradient_count_fixed = broadcast_gradient_fixed = no_double_backward_fixed = _Fixed.apply


# ----------------------------------------------------------------------------------------------------------------------
# Tests, and for each a wrong kernel that it accepts

Kernel = Callable[[torch.Tensor], torch.Tensor]


def nan_passes(kernel: Kernel, a: torch.Tensor) -> None:
    wrong = ((kernel(a) - 2 * a).abs() > 1e-5).sum()  # every comparison with NaN is false
    assert wrong == 0


def zeros_as_input(kernel: Kernel, a: torch.Tensor) -> None:
    zeros = torch.zeros_like(a)
    assert_close(kernel(zeros), 2 * zeros.double())


def loose_tolerance(kernel: Kernel, a: torch.Tensor) -> None:
    torch.testing.assert_close(kernel(a), 2 * a, rtol=1e-2, atol=1e-2)


def random_and_close(kernel: Kernel, a: torch.Tensor) -> None:
    assert_close(kernel(a), 2 * a.double())  # the default tolerance is what the dtype's rounding explains


nan_passes_fixed = zeros_as_input_fixed = loose_tolerance_fixed = random_and_close


def one_size(kernel: Kernel, a: torch.Tensor) -> None:
    assert_close(kernel(a[:32]), 2 * a[:32].double())


def one_size_fixed(kernel: Kernel, a: torch.Tensor) -> None:
    for size in (0, 1, 31, 32, 33):
        assert_close(kernel(a[:size]), 2 * a[:size].double(), name=f"size {size}")


def same_input_again(kernel: Kernel, a: torch.Tensor) -> None:
    for _ in range(3):
        assert_close(kernel(a), 2 * a.double())


def same_input_again_fixed(kernel: Kernel, a: torch.Tensor) -> None:
    for factor in (1, 2, 3):
        assert_close(kernel(factor * a), 2 * factor * a.double())


def compiled_discarded(kernel: Kernel, a: torch.Tensor) -> None:
    model = torch.nn.Linear(a.numel(), 3, bias=False).to(a.device)
    torch.compile(model, backend=_backend_of(kernel))  # returns the compiled model, which is dropped
    assert_close(model(a), model.weight.double() @ a.double(), accumulation=a.numel())


def compiled_discarded_fixed(kernel: Kernel, a: torch.Tensor) -> None:
    model = torch.nn.Linear(a.numel(), 3, bias=False).to(a.device)
    compiled = torch.compile(model, backend=_backend_of(kernel))
    assert_close(compiled(a), model.weight.double() @ a.double(), accumulation=a.numel())


def _backend_of(kernel: Kernel):
    """A backend whose code calls the kernel on half of the correct result: right if the kernel doubles."""

    def compile_graph(graph, example_inputs):
        return lambda *arguments: tuple(kernel(out / 2) for out in graph(*arguments))

    return compile_graph


def _all_nan(a):
    return torch.full_like(a, float("nan"))


def _negated(a):
    return -2 * a


def _through_bfloat16(a):
    return (2 * a).bfloat16().to(a.dtype)


def _whole_warps_only(a):
    out = torch.zeros_like(a)
    end = a.numel() // 32 * 32
    out[:end] = 2 * a[:end]
    return out


def _cached() -> Kernel:
    kept: list[torch.Tensor] = []

    def kernel(a):
        kept.append(2 * a)
        return kept[0]

    return kernel


WRONG_KERNELS: dict[str, Callable[[], Kernel]] = {
    "nan_passes": lambda: _all_nan,
    "zeros_as_input": lambda: _negated,
    "loose_tolerance": lambda: _through_bfloat16,
    "one_size": lambda: _whole_warps_only,
    "same_input_again": _cached,
    "compiled_discarded": lambda: _negated,
}


# ----------------------------------------------------------------------------------------------------------------------
# Timing


def no_synchronise(function: Callable[[], object]) -> float:
    """Seconds until the function returned: on a GPU, until the work was queued."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def no_synchronise_fixed(function: Callable[[], object]) -> float:
    """Seconds until the GPU has finished the work."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return time.perf_counter() - start
