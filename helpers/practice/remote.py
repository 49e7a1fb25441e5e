"""An answer's function as the judge calls it: the call happens in the answer's process, the comparison here.

Arguments travel to that process and back, with the memory around them, so a stray write is visible here too. What the
process sends can be wrong, but it is only tensors and text: a file that it names is not read (quoted.py).
"""

import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import torch

from helpers.practice.messages import Malformed, Storages, result_from
from kernel_xray.report.facts import FaultRecord, Launch, Line, Writer
from kernel_xray.report.film_data import Film, Frame
from kernel_xray.report.report import Report
from kernel_xray.runtime.far import Computed
from kernel_xray.runtime.kernel_fault import KernelFault

# Header and contents of tensors -> the same of the reply.
Ask = Callable[[dict, Sequence[bytes]], tuple[dict, memoryview]]
BLOCKS = 64  # of a launch that an X-ray traces; a class's grader has all of a small case traced
_TEXT = 20_000  # characters
_RECORDS = 20_000  # of a kind in a report


class AnswerError(Exception):
    """An exception of the answer that is not a RuntimeError."""


class UnusualRuntimeError(RuntimeError):
    """An exception of the answer that is of a subclass of RuntimeError."""


ERRORS = {
    "RuntimeError": RuntimeError,
    "KernelFault": KernelFault,
    "unusual RuntimeError": UnusualRuntimeError,
    "other": AnswerError,
}


class Remote:
    """The answer's function. Raises what the answer raises, as one of ERRORS, and Malformed."""

    def __init__(self, ask: Ask, names: Sequence[str] = (), waits: int = 0):
        self._ask, self.names = ask, tuple(names)  # names: of its arguments
        self._waits = waits  # how often the host may wait in a call on a busy stream

    def __call__(self, *arguments: Any) -> Any:
        return self.ask("run", arguments)[0]

    def behind_other_work(self, *arguments: Any) -> Any:
        """The call on a busy stream: see case_runner.behind_other_work."""
        return self.ask("behind_other_work", arguments, waits=self._waits)[0]

    def xray(
        self,
        *arguments: Any,
        seed: int,
        who_wrote: bool = False,
        film: Sequence[int] = (),
        wrote: Writer | None = None,
    ) -> Report:
        """The X-ray of a call of the function that was loaded traced.

        film   numbers of blocks; recorded is what a warp did around the first fault, or around the write `wrote`
        """
        at = asdict(wrote) if wrote else None
        options = {"seed": seed, "who_wrote": who_wrote, "film": list(film) or False, "max_blocks": BLOCKS}
        result, reply = self.ask("xray", arguments, wrote=at, **options)
        lines, launches = _records(Line, reply, "lines"), _records(Launch, reply, "launches")
        faults, remarks = _records(FaultRecord, reply, "faults"), _records(FaultRecord, reply, "remarks")
        report = Report(result, lines, faults, launches, remarks, seed, _records(Writer, reply, "writers"))
        if film:
            report.recorded = Film(tuple(_records(Frame, reply, "frames")), 0)
            report.error = KernelFault("", "") if reply.get("ended") is True else None
        return report

    def far(self, length: int, width: int = 0) -> Computed:
        """What it computes in its far case at a length, in a window of a width: see far_case.py."""
        found, reply = self.ask("far", (), length=length, width=width)
        shapes = reply.get("shapes")
        if not isinstance(found, list) or not all(isinstance(x, torch.Tensor) for x in found):
            raise Malformed("its results are not tensors")
        if not isinstance(shapes, list) or [len(x.shape) for x in found] != [len(_integers(one)) for one in shapes]:
            raise Malformed("its shapes are not those of its results")
        left_out, touched = _integers([reply.get("left_out"), reply.get("touched")])
        return Computed(found, [tuple(shape) for shape in shapes], left_out, touched)

    def ask(self, job: str, arguments: Sequence[Any], **more: Any) -> tuple[Any, dict]:
        """The result of a job of answering.py, and the reply that describes it."""
        given = Storages(arguments)
        header = {"do": job, "arguments": given.arguments, "storages": given.described, **more}
        reply, body = self._ask(header, given.parts())
        if "error" in reply:
            kind = ERRORS.get(text_of(reply, "error"))
            if kind is None:
                raise Malformed("it names an unknown kind of error")
            if kind is KernelFault:
                raise KernelFault(text_of(reply, "message"), text_of(reply, "kind"))
            raise kind(text_of(reply, "message"))
        return result_from(reply.get("result"), given.overwrite(body)), reply


def text_of(reply: dict, key: str) -> str:
    """A text in a reply, without control characters, which could change what a terminal shows. Raises Malformed."""
    text = reply.get(key)
    if not isinstance(text, str) or len(text) > _TEXT:
        raise Malformed(f"its {key} is not a text")
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _integers(given: Any) -> list[int]:
    if not isinstance(given, list) or not all(type(n) is int for n in given):
        raise Malformed("its numbers are not integers")
    return given


def _records(kind: type, reply: dict, name: str) -> list:
    given = reply.get(name)
    if not isinstance(given, list) or len(given) > _RECORDS:
        raise Malformed(f"its {name} are not a list")
    return [_record(kind, record) for record in given]


def _record(kind: type, given: Any) -> Any:
    if not isinstance(given, dict):
        raise Malformed(f"a {kind.__name__} is not an object")
    return kind(**{field.name: _value(field.type, given.get(field.name), field.name) for field in fields(kind)})


def _value(kind: Any, given: Any, name: str) -> Any:
    """`given` as a value of a record's field, whose type is `kind`. Raises Malformed."""
    if kind is str:
        text = text_of({name: given}, name)
        if name in ("kind", "space") and not re.fullmatch(r"[a-z -]{0,40}", text):  # shown in a page as it is
            raise Malformed(f"its {name} is not a word")
        return text
    if kind is float and type(given) in (int, float):
        return float(given)
    if kind in (int, bool) and type(given) is kind:
        return given
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind, given)
    parts = typing.get_args(kind)
    if parts and isinstance(given, list) and len(given) <= _RECORDS:
        if parts[-1] is ...:
            parts = (parts[0],) * len(given)
        if len(parts) == len(given):
            return tuple(_value(part, item, name) for part, item in zip(parts, given, strict=True))
    raise Malformed(f"its {name} has another type")
