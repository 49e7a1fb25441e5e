"""Runs the tools on exhibits; each returns a Finding."""

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

from helpers.ladder.checking.checker import check
from helpers.ladder.checking.compare import CheckFailed
from helpers.pages.museum import python_bugs
from helpers.pages.museum.exhibit import Exhibit, find, operators
from helpers.paths import ROOT
from kernel_xray.machine import toolchain
from kernel_xray.report.run import xray
from kernel_xray.runtime.kernel_fault import KernelFault


@dataclass(frozen=True)
class Finding:
    """What a tool found in an exhibit."""

    exhibit: str
    tool: str
    kind: str  # the X-ray's kind of fault; "wrong" for other tools; "" if nothing was found
    place: str  # file:line, if the tool names one
    message: str
    kernel: str = ""

    @property
    def found(self) -> bool:
        return bool(self.kind)


class NotHere(Exception):
    """This machine cannot run the exhibit; the message says what is missing."""


def examine(exhibit: Exhibit, fixed: bool = False, seed: int | None = 0) -> Finding:
    """Runs the broken function, or its fixed twin, under the exhibit's tool. `seed` is for the X-ray.

    Raises NotHere if that needs a GPU, or two, and this machine has none. No exhibit kills or hangs the process.
    """
    tool = {
        "xray": _xray,
        "check": _check,
        "gradcheck": _gradcheck,
        "gradgradcheck": _gradcheck,
        "wrong kernel": _wrong_kernel,
        "streams": _streams,
        "devices": _devices,
        "timer": _timer,
    }[exhibit.tool]
    return tool(exhibit, fixed, seed)


def _nothing(exhibit: Exhibit) -> Finding:
    return Finding(exhibit.name, exhibit.tool, "", "", "")


def _wrong(exhibit: Exhibit, message: object) -> Finding:
    return Finding(exhibit.name, exhibit.tool, "wrong", "", str(message))


_BLOCK_SECONDS = "1"  # the exhibits are small: one that runs longer never ends


def _xray(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    with mock.patch.dict(os.environ, KERNEL_XRAY_BLOCK_SECONDS=_BLOCK_SECONDS):
        report = xray(exhibit.function(fixed), *exhibit.prepare(exhibit.device), seed=seed, **exhibit.options)
    if not report.faults:
        return _nothing(exhibit)
    fault = report.faults[0]
    place = f"{Path(fault.file).name}:{fault.line}" if fault.line else ""
    return Finding(exhibit.name, "xray", fault.kind, place, str(fault), fault.kernel)


def _check(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    """A wrong result or an error is a finding; a refusal that says what an argument must be is not."""
    function = exhibit.function(fixed)
    try:
        check(function, *exhibit.prepare(exhibit.device), name=exhibit.name, **exhibit.options)
    except (KernelFault, CheckFailed) as error:
        return _wrong(exhibit, error)
    except RuntimeError as error:
        return _nothing(exhibit) if " must " in str(error) else _wrong(exhibit, str(error).split("\n")[0])
    finally:
        _forget_launch_error(exhibit)
    return _nothing(exhibit)


def _forget_launch_error(exhibit: Exhibit) -> None:
    """Clears a pending launch error, which CUDA would report at the next check."""
    if exhibit.family == "host":
        one = torch.ones(1, device=exhibit.device)
        with contextlib.suppress(RuntimeError):
            operators("host").multiply(one, one)


class _Product(torch.autograd.Function):
    """a * b by an operator that computes products: an exhibit or its twin."""

    @staticmethod
    def forward(ctx, a, b, op):
        ctx.save_for_backward(a, b)
        ctx.op = op
        return op(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad = grad.contiguous()
        return ctx.op(grad, b), ctx.op(grad, a), None


def _gradcheck(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    test = getattr(torch.autograd, exhibit.tool)
    function = exhibit.function(fixed)
    if exhibit.family != "autograd":
        op = function
        function = lambda a, b: _Product.apply(a, b, op)  # noqa: E731
    try:
        test(function, exhibit.prepare(exhibit.device))
    except (RuntimeError, AssertionError) as error:
        return _wrong(exhibit, error)
    return _nothing(exhibit)


def _wrong_kernel(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    """The exhibit is a test. It must accept a correct kernel; its bug is that it accepts a wrong one too."""
    test, inputs = exhibit.function(fixed), exhibit.prepare(exhibit.device)
    test(lambda a: 2 * a, *inputs)
    try:
        test(python_bugs.WRONG_KERNELS[exhibit.name](), *inputs)
    except AssertionError:
        return _nothing(exhibit)
    return _wrong(exhibit, f"{exhibit.function(fixed).__name__} accepted a kernel that is wrong")


def _streams(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    """Makes the inputs late, on a side stream: a kernel on another stream does not wait for them."""
    if toolchain.target != "gpu":
        raise NotHere("needs a GPU: in the simulator a launch returns only when the kernel has finished")
    function, wanted = exhibit.function(fixed), exhibit.prepare(exhibit.device)
    late = [torch.zeros_like(x) for x in wanted]
    expected = torch.mul(*wanted)
    busy = torch.rand(4096, 4096, device=exhibit.device)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):
            busy = busy @ busy
        for x, values in zip(late, wanted, strict=True):
            x.copy_(values)
        got = function(*late)
    torch.cuda.synchronize()
    if torch.equal(got, expected):
        return _nothing(exhibit)
    return _wrong(exhibit, "on a busy side stream the kernel ran before its inputs were written")


def _devices(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    """Runs in its own process: a kernel that reads another device's memory can make the GPU unusable for a process."""
    if toolchain.target != "gpu" or torch.cuda.device_count() < 2:
        raise NotHere("needs two GPUs")
    code = (
        f"from helpers.pages.museum.examine import on_second_device; print(on_second_device({exhibit.name!r}, {fixed}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=ROOT, check=False
    )
    said = (done.stdout.strip() or done.stderr.strip() or "ended without a message").splitlines()[-1]
    return _nothing(exhibit) if said == "right" else _wrong(exhibit, said)


def on_second_device(name: str, fixed: bool) -> str:
    """The result for inputs on cuda:1 while cuda:0 is current: "right", "wrong values" or the error."""
    exhibit = find(name)
    inputs = exhibit.prepare(torch.device("cuda:1"))
    try:
        with torch.cuda.device(0):
            got = exhibit.function(fixed)(*inputs)
            torch.cuda.synchronize(0)
            torch.cuda.synchronize(1)
        return "right" if torch.equal(got, torch.mul(*inputs)) else "wrong values"
    except RuntimeError as error:
        return str(error).splitlines()[0]


def _timer(exhibit: Exhibit, fixed: bool, seed: int | None) -> Finding:
    """A time is too short if the GPU is still busy when the clock has stopped."""
    if toolchain.target != "gpu":
        raise NotHere("needs a GPU: on a CPU the work is done when the call returns")
    timer = exhibit.function(fixed)
    (matrix,) = exhibit.prepare(exhibit.device)

    def work():
        for _ in range(20):
            matrix @ matrix

    work()
    torch.cuda.synchronize()
    seconds = timer(work)
    idle = torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    if idle:
        return _nothing(exhibit)
    return _wrong(exhibit, f"{1e3 * seconds:.2f} ms measured: too short, the GPU was still busy")
