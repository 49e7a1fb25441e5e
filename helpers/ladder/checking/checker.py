"""check: run a kernel on given inputs and compare it with a reference in float64.

Why not just `torch.allclose`? It says only "False", and it accepts an output that a previous run left in memory; and a
comparison written as `abs(a - b) > tolerance` lets NaN pass. `check` fills fresh memory with NaN before the run, which
exposes elements that are never written. It also checks shape, dtype, device, and that the inputs keep their values.
Its message names the first wrong index, the worst one, and the usual cause of such a pattern.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from helpers.ladder.checking.compare import CheckFailed, CheckResult, assert_close
from helpers.ladder.checking.hints import BITS

__all__ = ["CheckFailed", "CheckResult", "assert_close", "check"]

_NANS = {torch.float16: 0x7E5A, torch.bfloat16: 0x7FDA, torch.float32: 0x7FDA5A5A, torch.float64: 0x7FFA5A5A5A5A5A5A}


def check(
    function: Callable,
    *inputs,
    reference: Callable,
    accumulation: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
    out: Sequence[int | str] = (),
    mutates: Sequence[int | str] = (),
    dtype: torch.dtype | None = None,
    name: str | None = None,
    **kwargs,
) -> CheckResult:
    """Run `function(*inputs, **kwargs)` and compare its outputs with `reference(*inputs, **kwargs)` in float64.

    In float64 a reference is exact for narrower results only. For float64 results it must add up more exactly than the
    function: `torch.sum` adds pairwise, but cumulative sums, products of matrices and normalised exponentials add in
    long chains.

    function      returns a tensor or a sequence of tensors, or writes into its arguments (`out`, `mutates`)
    reference     the same computation in PyTorch; it gets copies of the inputs, floating-point ones as float64
    accumulation  the number of terms summed into one output element (K for a matmul), for the tolerance
    rtol, atol    your own tolerance instead: atol + rtol * |expected|
    out           arguments, by position or name, that the function only writes: filled with NaN before the run,
                  compared after it, and not passed to the reference
    mutates       arguments that it changes in place: the reference gets a copy and returns the new value
    dtype         of floating-point outputs; by default the promoted dtype of the floating-point inputs
    name          the function's name in messages

    Returns a CheckResult, whose repr is one line. Raises CheckFailed if anything is wrong; errors of the
    function itself pass through. Inputs not named in `out` or `mutates` must keep their values, bit for bit.
    """
    name = name or getattr(function, "__name__", None) or type(function).__name__
    arguments = dict(enumerate(inputs)) | kwargs
    for key in (*out, *mutates):
        if not isinstance(arguments.get(key), torch.Tensor):
            raise ValueError(f"out/mutates name {key!r}, which is not a tensor among the arguments {list(arguments)}")
    tensors = {key: value for key, value in arguments.items() if isinstance(value, torch.Tensor) and key not in out}
    placed = [value.device for value in arguments.values() if isinstance(value, torch.Tensor)]
    if not placed:
        raise ValueError("check needs at least one tensor among the arguments, to know the device")
    device = placed[0]
    floating = [t.dtype for t in tensors.values() if t.is_floating_point()]
    if dtype is None and floating:
        dtype = functools.reduce(torch.promote_types, floating)

    wide = {key: _copy_wide(value) for key, value in arguments.items() if key not in out}
    expected = _as_list(
        reference(*(v for k, v in wide.items() if isinstance(k, int)), **{k: wide[k] for k in kwargs if k in wide})
    )
    before = {key: value.detach().clone() for key, value in tensors.items() if key not in mutates}
    for key in out:
        _fill_with_poison(arguments[key])
    with fresh_memory_poisoned(expected, dtype, device):
        returned = function(*inputs, **kwargs)
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # an error inside the kernel surfaces here, not at a later call

    for key, copy in before.items():
        if not _same_bits(tensors[key], copy):
            raise CheckFailed(f"{name}: it changed its input {key!r}; if it should, pass mutates=[{key!r}]")
    written = [arguments[key] for key in (*out, *mutates)]
    actual = written if written else _as_list(returned)
    if len(actual) != len(expected):
        plural = "" if len(expected) == 1 else "s"
        raise CheckFailed(f"{name}: expected {len(expected)} output tensor{plural}, got {len(actual)}")
    results = []
    for i, (got, want) in enumerate(zip(actual, expected, strict=True)):
        label = name if len(actual) == 1 else f"{name}, output {i}"
        _check_kind(label, got, dtype if want.is_floating_point() and dtype else want.dtype, device)
        options: dict[str, Any] = {"accumulation": accumulation, "rtol": rtol, "atol": atol}
        poison = poison_of(got.dtype) if written else _filled_by_torch(got.dtype, before.values())
        try:
            close = assert_close(got, want, name=label, inputs=tuple(before.values()), poison=poison, **options)
        except CheckFailed as error:
            error.output = i
            raise
        results.append(close)
    worst = max(results, key=lambda result: result.worst_error)
    once = all(result.rounded for result in results)
    return CheckResult(name, sum(result.elements for result in results), worst.worst_error, worst.tolerance, once)


@contextlib.contextmanager
def fresh_memory_poisoned(like: Sequence[torch.Tensor] = (), dtype=None, device="cpu") -> Iterator[None]:
    """Inside, memory that torch allocates is filled with NaN (integers: the largest value).

    torch does this itself in deterministic mode. Tensors allocated elsewhere, such as in compiled code, usually get the
    memory that was freed last: for them, tensors of the sizes of `like` are allocated, filled and freed.
    """
    for tensor in like:
        kind = dtype if tensor.is_floating_point() and dtype else tensor.dtype
        _fill_with_poison(torch.empty(tensor.shape, dtype=kind, device=device))
    was_on = torch.are_deterministic_algorithms_enabled()
    was_warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    deterministic: Any = torch.utils.deterministic  # mypy does not see its attribute
    was_filling = deterministic.fill_uninitialized_memory
    try:
        deterministic.fill_uninitialized_memory = True
        _set_deterministic(True, warn_only=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        _set_deterministic(was_on, warn_only=was_warn_only)
        deterministic.fill_uninitialized_memory = was_filling


def _set_deterministic(mode: bool, warn_only: bool) -> None:
    """`torch.use_deterministic_algorithms` without its import of torch.compile's machinery, which takes a second."""
    setter = getattr(torch._C, "_set_deterministic_algorithms", torch.use_deterministic_algorithms)
    setter(mode, warn_only=warn_only)


def poison_of(dtype: torch.dtype) -> int | None:
    """The bits that `check` fills an output with, as an integer: a NaN that no arithmetic makes, or the largest value.

    None for bool, of which both values are usual.
    """
    if dtype == torch.bool:
        return None
    return _NANS.get(dtype, 0x7F) if dtype.is_floating_point else torch.iinfo(dtype).max


def _filled_by_torch(dtype: torch.dtype, inputs: Iterable[torch.Tensor]) -> int | None:
    """The bits with which torch fills fresh memory; None if a NaN of the inputs has the same."""
    if not dtype.is_floating_point:
        return poison_of(dtype)
    if any(bool(x.isnan().any()) for x in inputs if x.is_floating_point()):
        return None
    return int(torch.tensor(float("nan"), dtype=dtype).view(BITS[dtype.itemsize]))


def _fill_with_poison(tensor: torch.Tensor) -> None:
    with torch.no_grad():
        poison = poison_of(tensor.dtype)
        if poison is None:
            tensor.fill_(True)
        else:
            tensor.view(BITS[tensor.element_size()]).fill_(poison)


def _copy_wide(value):
    """A copy that the reference may change, in float64 if it is floating-point."""
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().clone()
    return copy.double() if copy.is_floating_point() else copy


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bits, so that NaN equals itself."""
    bits = BITS.get(a.element_size(), a.dtype)
    return torch.equal(a.detach().contiguous().view(bits), b.contiguous().view(bits))


def _as_list(value) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [] if value is None else [value]


def _check_kind(name: str, tensor, dtype: torch.dtype, device: torch.device) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise CheckFailed(f"{name}: expected a tensor, got {type(tensor).__name__}")
    if tensor.dtype != dtype:
        raise CheckFailed(f"{name}: wrong dtype: expected {dtype}, got {tensor.dtype}")
    if tensor.device != device:
        raise CheckFailed(f"{name}: wrong device: expected {device}, where the inputs are, got {tensor.device}")
