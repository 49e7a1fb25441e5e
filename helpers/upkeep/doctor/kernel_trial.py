"""The doctor's trial: a small operator is built and run in a process of its own, since a failure may kill the process.

Does the kernel's result arrive? Does a C++ exception arrive as RuntimeError? Does an edited operator replace the
previous one? The process is `python -m helpers.upkeep.doctor.kernel_trial`.
"""

import os
import resource
import signal
import subprocess
import sys

from helpers.paths import ROOT
from helpers.upkeep.doctor.kernel_probes import driver_version
from helpers.upkeep.doctor.probes import COMPILER_HINT, Finding, other_compiler, run
from kernel_xray.machine import guard

SECONDS = 900  # the first trial builds the simulator, which takes minutes on a busy or slow machine
COMMAND = [sys.executable, "-m", "helpers.upkeep.doctor.kernel_trial"]

# The launch is deliberately unchecked: a kernel that never ran must show in its result.
SOURCE = """
#include <cuda_runtime.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
using torch::stable::Tensor;
__global__ void answer_kernel(float* out) { out[threadIdx.x] = ANSWER; }
Tensor answer(const Tensor& x) {
  STD_TORCH_CHECK(x.numel() == 32, "x must have 32 elements");
  Tensor out = torch::stable::empty_like(x);
  answer_kernel<<<1, 32>>>(out.mutable_data_ptr<float>());
  return out;
}
STABLE_TORCH_LIBRARY(ladder_doctor, m) { m.def("answer(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(ladder_doctor, CUDA, m) { m.impl("answer", TORCH_BOX(&answer)); }
"""


def steps() -> None:
    """The trial itself. Prints a word for each step that succeeds."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # it may be killed
    import torch

    from kernel_xray.build.loader import load_inline
    from kernel_xray.machine.toolchain import device, find_nvcc
    from kernel_xray.runtime.libsimt import compiler

    # Part of the source, so that a change in any of these builds anew instead of hitting the build cache.
    made_with = f"// {compiler()}, {find_nvcc()}, {os.environ.get('TORCH_CUDA_ARCH_LIST')}, {driver_version()}"

    def answer(number: int):
        source = f"{made_with}{SOURCE.replace('ANSWER', f'{number}.0f')}"
        ops = load_inline("ladder_doctor", "", source, is_python_module=False, no_implicit_headers=True)
        return ops.answer

    def say(word: str) -> None:
        print(word, flush=True)

    x = torch.zeros(32, device=device)
    first = answer(41)
    say("built")
    say("answered" if (first(x) == 41).all().item() else "wrong")
    try:
        first(x[:3])
    except RuntimeError:
        say("refused")
    say("edited" if (answer(42)(x) == 42).all().item() else "old")


def check(command: list[str] | None = None) -> list[Finding]:
    """Runs the trial in a process of its own. command: what to run in its place."""
    command, pipe = command or COMMAND, subprocess.PIPE
    try:
        with guard.started(command, command[0], cwd=ROOT, text=True, stdout=pipe, stderr=pipe) as process:
            words, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        why = "building and running a small kernel takes seconds"
        found = f"no answer within {SECONDS} s"
        return [Finding("first kernel", "problem", found, why, "python -m helpers first-kernel")]
    from kernel_xray.runtime.libsimt import compiler

    return judge(words.split(), process.returncode, errors, compiler())


def judge(words: list[str], status: int, errors: str, compiler: str) -> list[Finding]:
    """words: the steps that succeeded; status, errors: the process's exit status and standard error."""
    last = signal.Signals(-status).name if status < 0 else (errors.strip().splitlines() or ["no message"])[-1]
    what, why = "first kernel", "if this smallest kernel does not build and run, no kernel does"
    if "built" not in words:
        compiler_errors = [line for line in errors.splitlines() if "error" in line.lower()]
        fix = "the message names the cause; then: python -m helpers first-kernel"
        return [Finding(what, "problem", f"does not build: {(compiler_errors or [last])[0].strip()}", why, fix)]
    if "answered" not in words:
        found = "launched, but it never ran: its result is missing" if "wrong" in words else f"it died: {last}"
        fix = "unset TORCH_CUDA_ARCH_LIST CUDA_VISIBLE_DEVICES; then see nvcc above: no newer CUDA than the driver's"
        return [Finding(what, "problem", found, why, fix)]
    findings = [Finding(what, "ok", "built, run, its result read back")]
    if "refused" not in words:
        found = f"a refused input ended the process ({last})" if status else "a refused input raised nothing"
        if linked := static_runtime(compiler):
            found += f"; {linked}"
        other = other_compiler(compiler)
        fix = f"export CXX={other}" if other else COMPILER_HINT
        why = "a wrong argument must raise RuntimeError; here it would end the notebook's process"
        return [*findings, Finding("C++ exceptions", "problem", found, why, fix)]
    findings.append(Finding("C++ exceptions", "ok", "arrive as RuntimeError"))
    if "edited" not in words:
        found = "the old code still runs" if "old" in words else f"registering it again failed: {last}"
        why = "running an edited cell again registers its operators a second time"
        fix = "make setup (for the PyTorch that the course is tested with); until then restart Python after each edit"
        return [*findings, Finding("edited operator", "problem", found, why, fix)]
    return [*findings, Finding("edited operator", "ok", "replaces the previous one")]


def static_runtime(compiler: str) -> str:
    """A sentence if the compiler has no shared C++ library, so that each extension carries a copy; else ""."""
    try:
        place = run([*compiler.split(), "-print-file-name=libstdc++.so"]).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f"{compiler} has no libstdc++.so and links a copy into every library" if place == "libstdc++.so" else ""


if __name__ == "__main__":
    steps()
