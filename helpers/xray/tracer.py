"""The tracing half of the simulator's library, through ctypes: begin, tell it what memory there is, end."""

from __future__ import annotations

import ctypes
import gc
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

from helpers.simt.build import runtime_library


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The library that traced kernels are linked with."""
    lib = ctypes.CDLL(str(runtime_library() / "libsimt.so"))
    lib.simt_trace_begin.argtypes = [ctypes.c_uint64] * 3
    lib.simt_trace_begin.restype = None
    lib.simt_trace_region.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
    lib.simt_trace_region.restype = None
    lib.simt_trace_end.argtypes = []
    lib.simt_trace_end.restype = ctypes.c_char_p
    return lib


def tensors_in(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in arguments, with a name that a learner recognises: `argument 0`, `argument 1[2]`, `out`."""
    if isinstance(value, torch.Tensor):
        yield "", value
    elif isinstance(value, dict):
        for key, item in value.items():
            for rest, tensor in tensors_in(item):
                yield f"{key}{rest}", tensor
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            for rest, tensor in tensors_in(item):
                yield f"[{i}]{rest}", tensor


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and length in bytes of the part of its storage that the tensor's elements lie in."""
    if tensor.numel() == 0:
        return tensor.data_ptr(), 0
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size()


def register(args: tuple, kwargs: dict) -> None:
    """Tells the tracer of the tensors in the arguments, to the byte, and of all other live tensors' storages."""
    lib, spans, storages = library(), [], set()
    for position, value in [*enumerate(args), *kwargs.items()]:
        label = f"argument {position}" if isinstance(position, int) else f"argument {position!r}"
        for rest, tensor in tensors_in(value):
            if tensor.device.type != "cpu" or tensor.layout != torch.strided:
                continue
            storages.add(tensor.untyped_storage().data_ptr())
            start, length = extent(tensor)
            if length:
                shape = "x".join(map(str, tensor.shape)) or "a scalar"
                spans.append((start, start + length, f"{label}{rest} ({shape} {str(tensor.dtype)[6:]})"))
    for start, end, name in _merged(spans):
        lib.simt_trace_region(start, end - start, 0, name.encode())
    for tensor in _live_tensors():
        storage = tensor.untyped_storage()
        if storage.data_ptr() and storage.data_ptr() not in storages:
            storages.add(storage.data_ptr())
            lib.simt_trace_region(storage.data_ptr(), storage.nbytes(), 0, b"a tensor that is no argument")


def _merged(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(spans):
        if merged and start < merged[-1][1]:  # views of one storage that overlap
            before = merged.pop()
            name = before[2] if name == before[2] else f"{before[2]} and {name}"
            start, end = before[0], max(end, before[1])
        merged.append((start, end, name))
    return merged


def _live_tensors() -> Iterator[torch.Tensor]:
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            try:
                if thing.device.type == "cpu" and thing.layout == torch.strided and thing.data_ptr():
                    yield thing
            except (RuntimeError, NotImplementedError, ReferenceError):
                continue  # a fake or wrapped tensor without memory of its own


def begin(seed: int, max_blocks: int, budget: int) -> None:
    """Starts a session: launches of traced kernels are recorded from here on."""
    library().simt_trace_begin(seed, max_blocks, budget)


def end() -> dict:
    """Ends the session and returns what it found: accesses, findings, launches."""
    return json.loads(library().simt_trace_end().decode(errors="replace"))
