"""`program`: builds a CUDA program, a source with a main(), and runs it in a process of its own.

With a GPU and nvcc it is built with nvcc. Otherwise, or with traced=True, it is translated for the simulator, where it
behaves as with CUDA: a fault in a kernel is printed, later calls of the run-time API return its error, and the program
ends with its own exit status.
"""

import json
import os
import random
import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from kernel_xray.build import arguments as checks
from kernel_xray.build import executable, process
from kernel_xray.build.request import Build
from kernel_xray.machine import toolchain
from kernel_xray.machine.progress import Progress
from kernel_xray.report.facts import SECONDS, limits_of
from kernel_xray.report.findings import make_report
from kernel_xray.report.report import Report
from kernel_xray.runtime.kernel_fault import KernelFault

_Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended, and what it wrote.

    ended    "exit", "time limit", or the name of the signal that ended it, such as "SIGABRT"
    status   the exit status; None unless it ended by "exit"
    fault    the fault that ended one of its kernels in the simulator, with `kind` and message; None if there was none
    report   the X-ray, with traced=True: that of `kernel_xray.xray`, whose `result` is the exit status
    dropped  bytes of output that are not in stdout and stderr, because there was too much
    """

    name: str
    ended: str
    status: int | None
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
    fault: KernelFault | None = None
    report: Report | None = None
    dropped: int = 0

    def __str__(self) -> str:
        how = f"exit status {self.status}" if self.ended == "exit" else self.ended
        return f"{self.name}: {how}" + (f"; {self.fault.kind} in a kernel" if self.fault else "")


def program(
    file: str | Path,
    *arguments: object,
    traced: bool = False,
    sources: _Paths = (),
    include_paths: _Paths = (),
    cflags: Sequence[str] | None = None,
    cuda_cflags: Sequence[str] | None = None,
    ldflags: Sequence[str] | None = None,
    stdin: str | bytes | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = 60.0,
    capture: bool = True,
    seed: int | None = None,
    max_blocks: int = 64,
    budget: int | None = None,
    seconds: float = SECONDS,
) -> ProgramResult:
    """Builds the program in `file`, or finds it in the build cache, and runs it with these arguments.

    traced         X-rays its kernels, in the simulator on any machine; they may touch memory of cudaMalloc and its
                   relatives, and global variables. `seed`, `max_blocks`, `budget` and `seconds` are those of
                   `kernel_xray.xray`
    sources        further .cu and .cpp files of the program; headers are found by themselves
    include_paths  folders of headers that are not beside the sources
    cflags         for the .cpp files; `cuda_cflags` for nvcc. C++17 unless one of them says otherwise
    ldflags        for the linker
    stdin          what the program reads; by default nothing
    cwd            its working directory: by default the folder of `file`
    env            variables, in addition to those of this process
    timeout        seconds until it is killed, with all processes that it has started; None: no limit
    capture        False: it uses the standard streams of this process, and the result holds no output

    At most 10 MB of each of stdout and stderr are kept. An exception that ends the wait, such as KeyboardInterrupt,
    kills the program. If a signal or the time limit ends it, the X-ray may lack the launches of its last half second.

    Raises ValueError or TypeError for a bad argument, FileNotFoundError for a missing source, BuildError with the
    compiler's message, UnsupportedError for code that the simulator refuses.
    """
    if timeout is not None and timeout <= 0:
        raise ValueError(f"timeout is {timeout}; it must be more than 0")
    steps, until = limits_of(max_blocks, budget, seconds)
    if cwd is not None and not Path(cwd).is_dir():
        raise NotADirectoryError(f"cwd is {cwd}, which is not a folder")
    main = checks.source_path(file, "file")
    build = Build(
        name=re.sub(r"\W+", "_", main.stem),
        sources=[main, *(checks.source_path(s) for s in checks.as_list("sources", sources))],
        cflags=checks.strings("cflags", cflags),
        cuda_cflags=checks.strings("cuda_cflags", cuda_cflags),
        ldflags=checks.strings("ldflags", ldflags),
        include_paths=[Path(p).resolve() for p in checks.as_list("include_paths", include_paths)],
        target="simulator" if traced else toolchain.of_programs(),
        traced=traced,
        program=True,
    )
    for source in build.sources:
        if source.suffix not in executable.SUFFIXES:
            raise ValueError(f"{source.name} is not a source of a program: {', '.join(executable.SUFFIXES)} are")
    place = executable.get(build)
    seed = random.getrandbits(32) if seed is None else seed
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, **(env or {}), "KERNEL_XRAY_PARENT": str(os.getpid())}
        variables["KERNEL_XRAY_FINDINGS"] = folder
        if traced:
            variables["KERNEL_XRAY_XRAY"] = f"{seed % 2**64} {max_blocks} {steps} {until}"
        # The tracer's own line of progress needs a terminal, which a captured program does not have.
        told = Progress(f"X-raying {main.name}", after=1.0) if traced and capture else nullcontext()
        with told:
            ended = process.run(
                [str(main.with_suffix("")), *map(str, arguments)],
                executable=place,
                cwd=main.parent if cwd is None else Path(cwd),
                env=variables,
                stdin=stdin.encode() if isinstance(stdin, str) else stdin,
                timeout=timeout,
                capture=capture,
            )
        fault = _fault(Path(folder))
        status = None if ended.out_of_time or ended.code < 0 else ended.code
        report = (
            make_report(_findings(Path(folder), place), status, seed, fault, whole=status is not None)
            if traced
            else None
        )
    return ProgramResult(
        name=main.stem,
        ended="time limit" if ended.out_of_time else "exit" if ended.code >= 0 else signal.Signals(-ended.code).name,
        status=status,
        stdout=ended.stdout.decode(errors="replace"),
        stderr=ended.stderr.decode(errors="replace"),
        fault=fault,
        report=report,
        dropped=ended.dropped,
    )


def _fault(folder: Path) -> KernelFault | None:
    """The fault that the program has left in its folder (simt/runtime/api/program.h)."""
    file = folder / "fault"
    if not file.exists():
        return None
    kind, _, message = file.read_text(errors="replace").partition("\n")
    return KernelFault(message, kind)


def _findings(folder: Path, place: Path) -> dict:
    """The X-ray's findings, as make_report takes them; empty if the program ended before its first launch did."""
    file = folder / "xray.json"
    if not file.exists():
        return {"accesses": [], "findings": [], "launches": []}
    found = json.loads(file.read_text(errors="replace"))
    return {**found, "image": (str(place), found["base"])}
