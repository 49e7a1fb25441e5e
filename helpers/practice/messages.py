"""Messages between the judge and the process that runs an answer: a JSON header, and tensors as their bytes.

Nothing that arrives is executed or unpickled. The judge distrusts what it receives: sizes have bounds, and whatever is
not as described here is Malformed. Tensors travel as whole storages, so that the memory around a view, its fence, comes
back with what the answer has made of it.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

HEADER_BYTES = 8_000_000
BODY_BYTES = 256_000_000
_FRAME = struct.Struct("!4sIQ")  # a mark, the bytes of the header and of the body
_MARK = b"KL1\n"
_DTYPES = "float16 bfloat16 float32 float64 bool uint8 int8 int16 int32 int64"
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _DTYPES.split()}
Left = Callable[[], float]
_SIDE = 2**31  # a dimension of a tensor is smaller


class Malformed(Exception):
    """A message is not what its sender should have sent."""


def _for_ever() -> float:
    return math.inf


class Channel:
    """One end of a connection. `left` tells `send` and `receive` how many seconds to wait before they ask it again.

    They raise TimeoutError once that is 0 or less.
    """

    def __init__(self, connection: socket.socket):
        self._socket = connection

    def send(self, header: dict, parts: Sequence[bytes] = (), left: Left = _for_ever) -> None:
        """Raises ConnectionError if the other end is closed."""
        text = json.dumps(header, default=vars).encode()  # a record may hold records
        for part in (_FRAME.pack(_MARK, len(text), sum(map(len, parts))), text, *parts):
            rest = memoryview(part)
            while rest:
                self._limit(left)
                with suppress(TimeoutError):
                    rest = rest[self._socket.send(rest) :]

    def receive(self, left: Left = _for_ever) -> tuple[dict, memoryview]:
        """The next header and its body. Raises EOFError at the end of the connection, and Malformed."""
        mark, of_header, of_body = _FRAME.unpack(self._read(_FRAME.size, left))
        if mark != _MARK or of_header > HEADER_BYTES or of_body > BODY_BYTES:
            raise Malformed("it does not begin as a message does, or is too long")
        text, body = self._read(of_header, left), self._read(of_body, left)
        try:
            header = json.loads(text.tobytes())
        except (ValueError, RecursionError) as error:
            raise Malformed("its header is not JSON") from error
        if not isinstance(header, dict):
            raise Malformed("its header is not a JSON object")
        return header, body

    def close(self) -> None:
        self._socket.close()

    def _read(self, count: int, left: Left) -> memoryview:
        read, data = 0, memoryview(bytearray(count))
        while read < count:
            self._limit(left)
            with suppress(TimeoutError):
                got = self._socket.recv_into(data[read:])
                if not got:
                    raise EOFError
                read += got
        return data

    def _limit(self, left: Left) -> None:
        if (seconds := left()) <= 0:
            raise TimeoutError
        self._socket.settimeout(seconds if math.isfinite(seconds) else None)


# -- tensors -----------------------------------------------------------------------------------------------------------


class Storages:
    """The storages of the tensors in some arguments, each once, and a description of the arguments for a header."""

    def __init__(self, arguments: Sequence[Any]):
        self._bytes: dict[int, torch.Tensor] = {}  # address -> the storage as bytes; an empty one has address 0
        self._order: dict[int, int] = {}
        self.arguments = [self._described(value) for value in arguments]
        self.described = [[len(x), str(x.device)] for x in self._bytes.values()]

    def _described(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        number = self._order.setdefault(storage.data_ptr(), len(self._order))
        whole = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)
        self._bytes.setdefault(storage.data_ptr(), whole)
        return {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "offset": value.storage_offset(),
            "storage": number,
        }

    def parts(self) -> list[bytes]:
        """Their contents."""
        return [as_bytes(x) for x in self._bytes.values()]

    def overwrite(self, body: memoryview) -> memoryview:
        """Gives them the contents at the beginning of `body`; returns the rest of it."""
        for whole in self._bytes.values():
            content, body = body[: len(whole)], body[len(whole) :]
            if len(content) != len(whole):
                raise Malformed("its tensors are too short")
            if len(whole):
                whole.copy_(torch.frombuffer(content, dtype=torch.uint8))
        return body


def arguments_from(arguments: list, storages: list, body: memoryview) -> tuple[list, list[torch.Tensor]]:
    """The arguments that a Storages has described, in new memory, and the storages as bytes. Trusts the message."""
    memory: list[torch.Tensor] = []
    for count, device in storages:
        whole = torch.empty(count, dtype=torch.uint8)
        if count:
            whole.copy_(torch.frombuffer(body[:count], dtype=torch.uint8))
        memory.append(whole.to(device))
        body = body[count:]

    def value(given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        storage, dtype = memory[given["storage"]].untyped_storage(), DTYPES[given["dtype"]]
        empty = torch.empty(0, dtype=dtype, device=storage.device)
        return empty.set_(storage, given["offset"], given["shape"], given["stride"])

    return [value(given) for given in arguments], memory


def as_bytes(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor in order."""
    flat = tensor.detach().cpu().contiguous().flatten()
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def result_described(result: Any, parts: list[bytes]) -> Any:
    """A function's result for a header; appends the contents of its tensors to `parts`."""
    if isinstance(result, (list, tuple)):
        return [result_described(item, parts) for item in result]
    if not isinstance(result, torch.Tensor):
        return None if result is None else {"other": type(result).__name__}
    dtype = str(result.dtype).removeprefix("torch.")
    if dtype not in DTYPES or result.layout != torch.strided:
        return {"other": f"{result.layout} of {dtype}"}
    if result.device.type != "meta":
        parts.append(as_bytes(result))
    return {"dtype": dtype, "shape": list(result.shape), "device": str(result.device)}


def result_from(described: Any, body: memoryview) -> Any:
    """The result that `result_described` has described, with its contents in `body`. Raises Malformed."""
    rest = body

    def value(given: Any) -> Any:
        nonlocal rest
        if given is None:
            return None
        if isinstance(given, list) and len(given) <= 16:
            return [value(item) for item in given]
        if not isinstance(given, dict):
            raise Malformed("its result is not a tensor, a list or null")
        if "other" in given:
            return type("".join(filter(str.isidentifier, str(given["other"])[:60])) or "object", (), {})()
        dtype, shape, device = DTYPES[given["dtype"]], given["shape"], given["device"]
        if len(shape) > 16 or not all(type(n) is int and 0 <= n < _SIDE for n in shape):
            raise Malformed(f"its result has the shape {str(shape)[:80]}")
        if device == "meta":
            return torch.empty(shape, dtype=dtype, device=device)
        count = math.prod(shape)
        content, rest = rest[: count * dtype.itemsize], rest[count * dtype.itemsize :]
        if len(content) != count * dtype.itemsize:
            raise Malformed("its result is too short")
        flat = torch.frombuffer(bytearray(content), dtype=dtype) if count else torch.empty(0, dtype=dtype)
        return flat.view(shape).to(device)

    try:
        found = value(described)
    except Malformed:
        raise
    except Exception as error:  # of many types, AssertionError for a device that is not here among them
        raise Malformed(f"its result cannot be read ({type(error).__name__})") from error
    if len(rest):
        raise Malformed("it is longer than its tensors")
    return found
