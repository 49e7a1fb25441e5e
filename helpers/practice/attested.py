"""A registration on values that only the judge knows.

`Check.registered` runs in the answer's process, the only one that has the operator, and an answer could replace it
there. So the judge also asks that process for what the registration computes from random inputs, new ones in each
check, and compares it here: a process that wants to forge it has to compute it.
"""

import secrets
from collections.abc import Callable
from typing import Any

import torch

from helpers.ladder.checking.compare import CheckFailed, assert_close
from helpers.practice.case_inputs import short
from helpers.practice.cases import Check
from helpers.practice.messages import DTYPES, arguments_from, as_bytes, result_described
from helpers.practice.remote import Remote
from kernel_xray.machine.toolchain import device


def probe(function: Any, header: dict, body: memoryview) -> tuple[dict, list[bytes]]:
    """In the answer's process: the result for meta tensors, or the gradient of the only argument."""
    parts: list[bytes] = []
    if header["what"] == "meta":
        given = [torch.empty(shape, dtype=DTYPES[dtype], device="meta") for shape, dtype in header["tensors"]]
        return {"result": result_described(function(*given), parts)}, parts
    (x, grad), whole = arguments_from(header["arguments"], header["storages"], body)
    x.requires_grad_()
    (grad_x,) = torch.autograd.grad(function(x), x, grad, allow_unused=True)
    return {"result": result_described(grad_x, parts)}, [*map(as_bytes, whole), *parts]


def problem(what: Check, function: Remote) -> str:
    """In the judge: what is wrong with the registration of an exercise, or "". Raises what the answer raises."""
    return what.attested(function, what.reference) if what.attested else ""


def without_numbers(function: Remote, reference: Callable) -> str:
    """Asks for the shape, dtype and device of an outer product of meta tensors."""
    for dtype in ("float32", "float64"):
        rows, columns = 1 + secrets.randbelow(1000), 1 + secrets.randbelow(1000)
        got, _ = function.ask("probe", (), what="meta", tensors=[[[rows], dtype], [[columns], dtype]])
        found = (got.device.type, short(got.dtype), list(got.shape)) if isinstance(got, torch.Tensor) else type(got)
        wanted = ("meta", dtype, [rows, columns])
        if found != wanted:
            return f"{dtype}, {rows} x {columns}, on the device meta: the result is {found}, but should be {wanted}"
        try:
            function.ask("probe", (), what="meta", tensors=[[[rows, 2], dtype], [[columns], dtype]])
        except RuntimeError:
            continue
        return f"on the device meta, a with shape {[rows, 2]}: accepted, although the operator itself refuses it"
    return ""


def gradient(*shapes: tuple[int, ...]) -> Callable[[Remote, Callable], str]:
    """Asks for the gradient of the only argument, in these shapes."""

    def ask(function: Remote, reference: Callable) -> str:
        generator = torch.Generator().manual_seed(secrets.randbits(40))
        for shape in shapes:
            x = torch.randn(shape, generator=generator).to(device).requires_grad_()
            result = reference(x)
            grad = torch.randn(result.shape, generator=generator).to(device)
            (wanted,) = torch.autograd.grad(result, x, grad)
            got, _ = function.ask("probe", (x.detach(), grad), what="gradient")
            if wrong := wrong_gradient(f"{x.numel()} random elements", got, wanted, accumulation=shape[-1]):
                return wrong
        return ""

    return ask


def wrong_gradient(label: str, got: object, wanted: torch.Tensor, **tolerance: float) -> str:
    """What is wrong with a gradient of x, or "". `tolerance` is that of assert_close."""
    if not isinstance(got, torch.Tensor):
        return f"{label}: x has no gradient: backward returned None"
    try:
        assert_close(got, wanted, name=f"{label}, grad_x", **tolerance)  # type: ignore[arg-type]
    except CheckFailed as error:
        return str(error)
    return ""
