"""The simulator's tracer through ctypes: begins and ends a session, and registers the memory that kernels may touch."""

import ctypes
import gc
import inspect
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch

from kernel_xray.runtime.libsimt import runtime_library
from kernel_xray.translate import origins

_FRESH = 2  # what simt_trace_known returns for fresh memory; 1 for a tensor, 0 for an unknown address
_ASK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The loaded libsimt, or the cached one if no kernel has loaded it yet."""
    try:
        lib = ctypes.CDLL("libsimt.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        lib = ctypes.CDLL(str(runtime_library() / "libsimt.so"))
    number, text = ctypes.c_uint64, ctypes.c_char_p
    for name, arguments, result in (
        ("begin", [number, number, number, ctypes.c_double, _ASK], None),
        ("tensor", [number, number, number, text], None),
        ("forget_tensors", [], None),
        ("known", [number], ctypes.c_int),
        ("ask_what_if", [], None),
        ("film", [ctypes.POINTER(number), number, number], None),
        ("ask_who_wrote", [], None),
        ("only_sample", [], None),
        ("sms", [ctypes.c_int], None),
        ("end", [], text),
    ):
        function = getattr(lib, f"simt_trace_{name}")
        function.argtypes, function.restype = arguments, result
    return lib


def begin(
    seed: int,
    max_blocks: int,
    limits: tuple[int, float],
    what_if: bool = False,
    who_wrote: bool = False,
    only_sample: bool = False,
    sms: int = 0,
) -> None:
    """Starts a session: launches of traced kernels are recorded from here on.

    limits      the steps of a block that are traced in any case; seconds of processor time until which more are
    what_if     also counts what the accesses would cost if the compiler merged, dropped or moved some of them
    who_wrote   also remembers the last writer of each byte of global memory
    only_sample blocks that are not traced do not run
    sms         of the device; 0: the simulator's own
    """
    library().simt_trace_begin(seed % 2**64, max_blocks, *limits, _ask)
    if what_if:
        library().simt_trace_ask_what_if()
    if who_wrote:
        library().simt_trace_ask_who_wrote()
    if only_sample:
        library().simt_trace_only_sample()
    library().simt_trace_sms(sms)


def film(blocks: Sequence[int], frames: int) -> None:
    """Films these blocks of each launch, given by their numbers in the grid, up to a number of frames in all."""
    library().simt_trace_film((ctypes.c_uint64 * len(blocks))(*blocks), len(blocks), frames)


def end() -> dict:
    """Ends the session and returns what it found: accesses, findings, launches, the frames of a film."""
    _argument_storages.clear()
    return json.loads(origins.restored(library().simt_trace_end().decode(errors="replace")))


# -- the memory that kernels may touch ---------------------------------------------------------------------------------

_argument_storages: set[int] = set()  # addresses; kernels may touch only the parts that the arguments view


def register(function: Callable, args: tuple, kwargs: dict) -> None:
    """Registers the tensors in a call's arguments, to the byte, and drops those of the previous call.

    Other tensors are searched for when a kernel touches an unknown address (`_ask`). Tensors that the X-rayed function
    allocates are registered by the allocator.
    """
    lib, spans = library(), []
    lib.simt_trace_forget_tensors()
    _argument_storages.clear()
    for label, value in _labelled(function, args, kwargs):
        for rest, tensor in tensors_in(value):
            if not _has_memory(tensor):
                continue
            storage = tensor.untyped_storage().data_ptr()
            _argument_storages.add(storage)
            start, length = extent(tensor)
            if length and lib.simt_trace_known(start) != _FRESH:
                shape = "x".join(map(str, tensor.shape)) or "a scalar of"
                name = f"{label}{rest} ({shape} {str(tensor.dtype)[6:]})"
                spans.append((start, start + length, start - storage, name))
    for start, stop, into, name in _merged(spans):
        lib.simt_trace_tensor(start, stop - start, into, name.encode())


def _labelled(function: Callable, args: tuple, kwargs: dict) -> list[tuple[str, Any]]:
    """Each argument with its parameter's name, or `argument i` where the function has no signature."""
    names: list[str] = []
    try:
        if hasattr(function, "overloads"):  # an operator of torch.ops
            names = [a.name for a in getattr(function, function.overloads()[0])._schema.arguments]
        else:
            names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError, AttributeError, IndexError):
        pass  # a built-in function
    names += [f"argument {i}" for i in range(len(names), len(args))]
    return [*zip(names, args, strict=False), *kwargs.items()]


def tensors_in(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in an argument, each with the suffix for the argument's name: empty, or `[2]` in a list."""
    if isinstance(value, torch.Tensor):
        yield "", value
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            for rest, tensor in tensors_in(item):
                yield f"[{key!r}]{rest}", tensor


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and length in bytes of the span of storage that holds the tensor's elements."""
    if tensor.numel() == 0:
        return tensor.data_ptr(), 0
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size()


def _merged(spans: list[tuple[int, int, int, str]]) -> list[tuple[int, int, int, str]]:
    """Joins overlapping spans, which are views of one storage."""
    merged: list[tuple[int, int, int, str]] = []
    for start, stop, into, name in sorted(spans):
        if merged and start < merged[-1][1]:
            before = merged.pop()
            name = before[3] if name == before[3] else f"{before[3]} and {name}"
            start, stop, into = before[0], max(stop, before[1]), before[2]
        merged.append((start, stop, into, name))
    return merged


@_ASK
def _ask(_address: int) -> bool:
    """Registers the storages of all live tensors that are still unknown; true if there are any."""
    known = set(_argument_storages)
    for tensor in _live_tensors():
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        if start in known:
            continue
        known.add(start)
        if not library().simt_trace_known(start):
            library().simt_trace_tensor(start, storage.nbytes(), 0, b"a tensor that is not an argument")
    return len(known) > len(_argument_storages)


def _live_tensors() -> Iterator[torch.Tensor]:
    are_tensors: dict[type, bool] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in are_tensors:
            are_tensors[kind] = issubclass(kind, torch.Tensor)
        if are_tensors[kind] and _has_memory(thing):
            yield thing


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether it is a CPU tensor with a storage; fake and wrapped tensors have none."""
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False  # PyTorch warns when a fake tensor's pointer is read
    try:
        return (
            tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.untyped_storage().data_ptr() != 0
        )
    except (RuntimeError, NotImplementedError, ReferenceError):
        return False
