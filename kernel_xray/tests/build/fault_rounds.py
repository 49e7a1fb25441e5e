"""What test_fault_rounds.py needs to be quick: processes that load a kernel, and a simulator that builds in a second.

A process takes seconds to import PyTorch. Here one process imports it and forks for each load; it loads nothing itself,
so a fork does all that a fresh process does after its imports. The objects of libsimt, which take a minute to compile,
are copies of those in the build cache of the tests; the rest, the linking included, is real.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from kernel_xray.machine.paths import PACKAGE
from kernel_xray.runtime import libsimt

SOURCE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <cuda_runtime.h>
#ifndef HIDDEN  // so only the compiler knows the file
#define HIDDEN "value.h"
#endif
#include HIDDEN
__global__ void fill(float* y) { y[threadIdx.x] = VALUE + NUMBER; }
void run(torch::stable::Tensor y) { fill<<<1, 4>>>(y.mutable_data_ptr<float>()); }
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("run(Tensor(a!) y) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("run", TORCH_BOX(&run)); }
"""


def write_kernel(folder: Path, in_source: int, in_header: int) -> Path:
    """A kernel that fills a tensor with the sum of two numbers, of which one is in a header."""
    source = folder / "k.cu"
    source.write_text(SOURCE.replace("NUMBER", f"{in_source}"))
    (folder / "value.h").write_text(f"#define VALUE {in_header}\n")
    return source


SERVER = """
import json, os, resource, signal, sys, time, torch, kernel_xray
import kernel_xray.build.loader, kernel_xray.runtime.faults

def load(source, output, most):
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs without
    for number in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    y = torch.zeros(4, device=kernel_xray.device)
    kernel_xray.load("t_faults", source, is_python_module=False).run(y)
    print(y.sum().item(), flush=True)

def wait(pid, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)

os.environ.update([sys.argv[1].split("=")])
for line in sys.stdin:
    what, *arguments = json.loads(line)
    if what == "wait":
        print(json.dumps(wait(*arguments)), flush=True)
    elif pid := os.fork():
        print(pid, flush=True)
    else:
        code = 1
        try:
            load(*arguments)
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
"""


class Loads:
    """Starts processes that load a source and run its kernel; a context manager, which ends them."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self._folder = folder
        self._mark = f"KERNEL_XRAY_TEST={uuid.uuid4().hex}"
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, "PYTHONPATH": str(PACKAGE.parent)},
        )

    def __enter__(self) -> "Loads":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()
        self._server.communicate()

    def start(self, source: Path, most: int = -1) -> "Load":
        """`most`: the bytes to which a file may grow, -1 for any."""
        output = Path("/dev/null") if most >= 0 else self._folder / f"output_{uuid.uuid4().hex}"
        return Load(self, self.ask("load", str(source), str(output), most), output)

    def ask(self, *request: object):
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps(request), file=self._server.stdin, flush=True)
        return json.loads(self._server.stdout.readline())

    def parts(self) -> dict[int, str]:
        """The processes that the loads have started, by name: reaper (as "python"), ninja, compilers."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in (place / "environ").read_bytes():
                    found[int(place.name)] = (place / "comm").read_text().strip()
        return found


class Load:
    """A process that loads."""

    def __init__(self, loads: Loads, pid: int, output: Path):
        self.pid, self._loads, self._output = pid, loads, output

    def kill(self, number: int = signal.SIGKILL, group: bool = False) -> None:
        with contextlib.suppress(ProcessLookupError):  # its group has another number until it has called setsid
            (os.killpg if group else os.kill)(self.pid, number)

    def end(self, seconds: float = 600) -> tuple[int | None, str]:
        """Its exit status, None if it did not end in time, and what it has printed."""
        code = self._loads.ask("wait", self.pid, seconds)
        printed = self._output.read_text() if self._output.is_file() else ""
        return code, printed


COMPILER = """#!/bin/sh
# The compiler, but the simulator's own objects are copies of those in {objects}.
for output; do :; done
case "$*" in
*/simt-*/*_[0-9].cpp\\ -o\\ *)
  exec cp "{objects}/${{output##*/}}" "$output" ;;
*) exec {compiler} "$@" ;;
esac
"""


def quick_compiler(folder: Path) -> dict[str, str]:
    """Writes such a compiler into a new folder; returns the environment in which it is found."""
    name = libsimt.compiler().split()[0]
    compiler, objects = shutil.which(name), libsimt.runtime_library()
    assert compiler is not None and list(objects.glob("*.o"))
    folder.mkdir()
    script = folder / Path(name).name
    script.write_text(COMPILER.format(objects=objects, compiler=compiler))
    script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
