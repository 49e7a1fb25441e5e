"""The process that runs an answer: builds it, and calls its functions as the judge asks (remote.py).

It computes and reports; it judges nothing. It has the inputs of the call that is running, and no expected value.
"""

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from helpers.ladder.checking.checker import fresh_memory_poisoned
from helpers.practice import advice, attested, object_code, preprocessed, python_answer
from helpers.practice.allowance import WAITING
from helpers.practice.case_runner import behind_other_work, plain
from helpers.practice.checks import CHECKS
from helpers.practice.far_case import computed
from helpers.practice.messages import Channel, arguments_from, as_bytes, result_described
from kernel_xray.build.flags import SM_90A, filled_locals, loads_where_written
from kernel_xray.build.loader import load
from kernel_xray.machine.toolchain import target
from kernel_xray.report.facts import Writer
from kernel_xray.report.films import around_opening
from kernel_xray.report.run import xray
from kernel_xray.runtime.kernel_fault import KernelFault
from kernel_xray.translate.errors import BuildError

BLOCK_SECONDS = "5"  # the simulator ends a block after this time and names it
LOAD_SECONDS = 20  # of processor time, for the initialisation of global variables when a library is loaded
_TEXT = 20_000  # characters of a message


def serve(connection: int, printed: int) -> None:
    """Answers the judge's messages until the connection ends. Kernels print to the file `printed`."""
    os.environ.setdefault("KERNEL_XRAY_BLOCK_SECONDS", BLOCK_SECONDS)
    faulthandler.disable()  # inherited from the notebook or pytest: here a crash becomes a verdict
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)  # likewise: it ends this process
    quiet = os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    channel, answer = Channel(socket.socket(fileno=connection)), Answer()
    os.dup2(quiet, 0)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            header, body = channel.receive()
            for standard in (1, 2):
                os.dup2(printed if header["do"] in ("build", "run", "behind_other_work") else quiet, standard)
            reply, parts = answer.do(header, body)
            flush_c_output()
            channel.send({**reply, "nonce": header["nonce"]}, parts)


class Answer:
    """An answer in this process: a job of the judge is a method's name with the method's arguments."""

    def do(self, header: dict, body: memoryview) -> tuple[dict, list[bytes]]:
        """The reply to a message, and the contents of its tensors."""
        if header["do"] == "build":
            return self._build(header["name"], header["source"]), []
        if header["do"] == "registration":
            return self._registration(), []
        try:
            return self._call(header, body)
        except Exception as error:  # any exception of the answer goes to the learner
            exact = "RuntimeError" if type(error) is RuntimeError else "other"
            kind = "KernelFault" if isinstance(error, KernelFault) else exact
            subclass = isinstance(error, RuntimeError) and kind == "other"
            reply = {"error": "unusual RuntimeError" if subclass else kind, "message": str(error)[:_TEXT]}
            return {**reply, "kind": getattr(error, "kind", "")}, []

    def _build(self, name: str, source: str) -> dict:
        self._name, self._source = name, source
        try:
            with _loading(source):
                try:
                    namespace, traced = _load_both(name, source)
                except preprocessed.Stale:
                    namespace, traced = _load_both(name, source)  # now it is built again
        except BuildError as error:
            return {"problem": advice.on_build(name, str(error).partition("; the exception's `output`")[0])[:_TEXT]}
        except (python_answer.Failed, Refused) as error:
            return {"problem": str(error)[:_TEXT]}
        except Exception as error:  # not the answer's fault: no compiler, no disk space, ...
            return {"problem": f"the build itself failed: {type(error).__name__}: {plain(error)}"[:_TEXT]}
        self._function: Any = getattr(namespace, name, None)
        if self._function is None:
            return {"problem": f"it registers no function {name}: keep the lines with STABLE_TORCH_LIBRARY"}
        self._traced: Any = None if traced is None else getattr(traced, name)
        return {"problem": "", "traced": traced is not None, "names": _names_of_arguments(self._function)}

    def _registration(self) -> dict:
        try:
            registered = CHECKS[self._name].registered
            return {"problem": registered(self._function)[:_TEXT] if registered else ""}
        except Exception as error:
            return {"error": python_answer.located(error, self._source)[:_TEXT]}

    def _call(self, header: dict, body: memoryview) -> tuple[dict, list[bytes]]:
        if header["do"] == "far":
            return self._far(header["length"], header["width"])
        if header["do"] == "probe":
            return attested.probe(self._function, header, body)
        arguments, whole = arguments_from(header["arguments"], header["storages"], body)
        parts: list[bytes] = []
        if header["do"] == "xray":
            options = {name: header[name] for name in ("seed", "who_wrote", "film", "max_blocks")}
            # A right answer may take many steps; an endless one is told seconds later.
            report = xray(self._traced, *arguments, seconds=5, **options)
            facts = ("lines", "faults", "launches", "remarks", "writers")
            reply: dict[str, Any] = {name: [vars(record) for record in getattr(report, name)] for name in facts}
            wrote = Writer(**header["wrote"]) if header["wrote"] else None
            reply["frames"] = [asdict(frame) for frame in around_opening(report, wrote)]
            reply["ended"] = report.error is not None
            reply["result"] = result_described(report.result, parts)
        else:
            function: Callable = self._function
            if header["do"] == "behind_other_work":
                function = behind_other_work(function, header["waits"])
            with fresh_memory_poisoned():
                result = function(*arguments)
                if torch.cuda.is_initialized():
                    torch.cuda.synchronize()  # an error inside the kernel surfaces here, not at a later call
            reply = {"result": result_described(result, parts)}
        return reply, [*map(as_bytes, whole), *parts]

    def _far(self, length: int, width: int) -> tuple[dict, list[bytes]]:
        """The far case is too large to be sent: this process makes its inputs, and sends the results' ends."""
        given = CHECKS[self._name].far
        assert given is not None
        found = computed(self._function, given.case(length), width)
        parts: list[bytes] = []
        reply = {"shapes": found.shapes, "left_out": found.left_out, "touched": found.touched}
        return {"result": result_described(found.ends, parts), **reply}, parts


class Refused(Exception):
    """An answer was built, but is not loaded. The message says why."""


@contextlib.contextmanager
def _loading(source: str) -> Iterator[None]:
    """Inside, a library is looked at before it is loaded; one that takes more than LOAD_SECONDS ends this process.

    It ends by SIGPROF, or by SIGALRM if it waits. The build has time. Raises Refused.
    """
    load = torch.ops.load_library
    text = Path(source).read_text(encoding="utf-8", errors="replace")

    def limited(path: str) -> None:
        if problem := _problem(source, text, Path(path).parent):
            raise Refused(problem)
        signal.setitimer(signal.ITIMER_PROF, LOAD_SECONDS)
        signal.alarm(WAITING * LOAD_SECONDS)
        try:
            load(path)
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)

    torch.ops.load_library = limited
    try:
        yield
    finally:
        torch.ops.load_library = load


def _problem(source: str, text: str, folder: Path) -> str:
    """Why a built kernel is not loaded, or "". Code in Python can do whatever the process can, so it is not asked."""
    if source.endswith(".py") or target != "simulator" or not object_code.supported():
        return ""
    return preprocessed.problem(text, Path(source), folder) or object_code.problem(sorted(folder.glob("*.o")))


def _load_both(name: str, source: str):
    """The answer's functions for this machine, and those for the traced mode or None.

    With the simulator one build serves both: outside an X-ray its functions run untraced. Locals without a value are
    filled, so that none is 0 by luck, and a load before its guard is seen there. On a GPU two builds run at
    the same time; the traced one is None if the simulator refuses the source, which may still be right on the GPU.
    Python code is not traced. Raises BuildError, and python_answer.Failed for Python code.
    """
    if source.endswith(".py"):
        return python_answer.run(source), None
    if target == "simulator":
        as_written = [*filled_locals(), *loads_where_written()]
        traced = load(name, [source], is_python_module=False, traced=True, extra_cflags=as_written)
        return traced.untraced, traced
    flags = SM_90A if CHECKS[name].capability == (9, 0) else None
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(load, f"{name}_traced", [source], is_python_module=False, traced=True)
        namespace = load(name, [source], is_python_module=False, extra_cuda_cflags=flags)
        try:
            return namespace, waiting.result()
        except BuildError:
            return namespace, None


def _names_of_arguments(function: Any) -> list[str]:
    """Those of an operator's schema; none of a Python function."""
    overloads: list[str] = function.overloads() if hasattr(function, "overloads") else []
    return [argument.name for argument in getattr(function, overloads[0])._schema.arguments] if overloads else []


def flush_c_output() -> None:
    """Flushes the buffer of C's printf."""
    ctypes.CDLL(None).fflush(None)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
