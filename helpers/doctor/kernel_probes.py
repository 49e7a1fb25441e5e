"""Probes of the way from a .cu file to its result, for the doctor: GPU, nvcc, driver, architectures, a trial.

The trial builds a small operator and runs it in a process of its own, since what it looks for may kill the process:
does the kernel's result arrive, does a C++ exception arrive as RuntimeError, and does an edited operator replace the
one before it? That process is `python -m helpers.doctor.kernel_probes`.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from helpers.doctor.probes import COMPILER_HINT, Finding, other_compiler, run
from helpers.machine.paths import ROOT

Version = tuple[int, int]
TRIAL = [sys.executable, "-m", "helpers.doctor.kernel_probes"]

# The launch is not checked on purpose: a kernel that never runs has to show by its result.
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


# -- what there is -----------------------------------------------------------------------------------------------------


def check_gpu() -> Finding:
    import torch

    why = "with no GPU the kernels run in the simulator: the same source, the same answers, but no GPU times"
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        return Finding("GPU", "ok", f"{torch.cuda.get_device_name()}, compute capability {major}.{minor}")
    if shutil.which("nvidia-smi"):
        build = "a CPU build" if torch.version.cuda is None else f"built for CUDA {torch.version.cuda}"
        mend = "update the driver, or install the PyTorch build for it (pytorch.org/get-started)"
        return Finding("GPU", "note", f"nvidia-smi is there, but PyTorch ({build}) sees no GPU", why, mend)
    return Finding("GPU", "note", "none", why, "nothing; every lesson runs without one")


def check_target() -> Finding:
    try:
        from helpers.machine.toolchain import device, target
    except (ValueError, RuntimeError) as error:
        return Finding("target", "problem", str(error), "it decides where kernels run", "unset KERNEL_LADDER_TARGET")
    return Finding("target", "ok", f"{target}; tensors live on device {str(device)!r}")


def as_version(text: str | None) -> Version | None:
    match = re.search(r"(\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def nvcc_version(nvcc: Path) -> Version | None:
    """The CUDA version that `nvcc --version` prints; None if it does not run."""
    try:
        return as_version((re.search(r"release [\d.]+", run([str(nvcc), "--version"]).stdout) or [""])[0])
    except (OSError, subprocess.TimeoutExpired):
        return None


def driver_version() -> Version | None:
    """The newest CUDA version that the driver knows; None where there is no driver."""
    number = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    return None if failed else (number.value // 1000, number.value % 1000 // 10)


def check_nvcc() -> Finding | None:
    """nvcc beside PyTorch's CUDA and the driver's. It matters only where there is a GPU."""
    import torch

    try:
        from helpers.machine.toolchain import find_nvcc
    except (ValueError, RuntimeError):  # check_target says what it is
        return None
    return judge_nvcc(find_nvcc(), as_version(torch.version.cuda), driver_version(), torch.cuda.is_available())


def judge_nvcc(nvcc: Path | None, torch_cuda: Version | None, driver: Version | None, gpu: bool) -> Finding | None:
    """torch_cuda, driver: CUDA versions, None where there is none; gpu: whether PyTorch sees one."""
    if nvcc is None:
        mend = "make setup"
        why = "without it kernels run in the simulator, not on the GPU"
        return Finding("nvcc", "note", "none", why, mend) if gpu else None
    version = nvcc_version(nvcc)
    state = "problem" if gpu else "note"
    if version is None:
        why = "kernels for the GPU are compiled with it"
        return Finding("nvcc", state, f"{nvcc} does not run", why, "make setup, and export CUDA_HOME=/path/to/cuda")
    found = f"{nvcc}, CUDA {dotted(version)}"
    if torch_cuda is None:  # a CPU build of PyTorch: nvcc is not used
        return Finding("nvcc", "ok", found)
    if version[0] != torch_cuda[0]:
        why = "PyTorch refuses to build with another major version than its own: 'The detected CUDA version mismatches'"
        return Finding(
            "nvcc", state, f"{found}; PyTorch is built for CUDA {dotted(torch_cuda)}", why, get_cuda(torch_cuda)
        )
    if driver is not None and version > driver:
        why = "the driver cannot compile PTX newer than itself: a kernel that needs it never runs, and may not say so"
        known = f"{found}; the driver knows CUDA up to {dotted(driver)}"
        return Finding("nvcc", state if version[0] > driver[0] else "note", known, why, get_cuda(driver))
    return Finding("nvcc", "ok", found)


def dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def get_cuda(version: Version, places: Path = Path("/usr/local")) -> str:
    """The command that brings nvcc of that version: the choice of one that is there, or else its installation."""
    home = places / f"cuda-{dotted(version)}"
    choose = f"export CUDA_HOME={home}"
    if os.access(home / "bin" / "nvcc", os.X_OK):
        return choose
    return f"sudo apt install cuda-toolkit-{version[0]}-{version[1]} && {choose}"


def check_architectures() -> Finding | None:
    import torch

    gpus = [torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())]
    return judge_architectures(os.environ.get("TORCH_CUDA_ARCH_LIST", ""), gpus, torch.version.cuda is not None)


def judge_architectures(wanted: str, gpus: list[Version], cuda_build: bool) -> Finding | None:
    """wanted: TORCH_CUDA_ARCH_LIST; gpus: the compute capability of each; cuda_build: whether PyTorch knows CUDA."""
    what = "architectures"
    asked = [part for part in re.split(r"[;\s]+", wanted) if part]
    here = ";".join(sorted({dotted(gpu) for gpu in gpus}))
    mend = (
        "unset TORCH_CUDA_ARCH_LIST" if gpus else "export TORCH_CUDA_ARCH_LIST=9.0 (that of your GPU; an H200's is 9.0)"
    )
    if not asked or wanted == "native":
        if gpus or not cuda_build:
            return Finding(what, "ok", f"built for {here}, what is here") if gpus else None
        why = "with no GPU to ask, PyTorch builds for every architecture, which takes minutes, or fails with IndexError"
        return Finding(what, "note", "no GPU is visible and TORCH_CUDA_ARCH_LIST is unset", why, mend)
    found = f"TORCH_CUDA_ARCH_LIST={wanted}"
    numbers = [(as_version(part), "+PTX" in part) for part in asked]
    for gpu in gpus:
        if all(v and not (v[0] == gpu[0] and v[1] <= gpu[1]) and not (ptx and v <= gpu) for v, ptx in numbers):
            why = f"none of it runs on a GPU of compute capability {dotted(gpu)}: its kernels would not start"
            return Finding(what, "problem", found, why, mend)
    if len(asked) > max(1, len(set(gpus))) or any(v is None for v, _ in numbers):
        why = "each architecture is compiled by itself: a build takes that many times as long"
        return Finding(what, "note", found, why, mend)
    return Finding(what, "ok", found)


# -- the trial ---------------------------------------------------------------------------------------------------------


def steps() -> None:
    """The trial itself. Prints a word for each step that it comes through."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # it may be killed
    import torch

    from helpers.build.loader import load_inline
    from helpers.machine.toolchain import device, find_nvcc
    from helpers.simt.libsimt import compiler

    # In the source, so that a change of any of these is tried anew and not answered from the build cache.
    made_with = f"// {compiler()}, {find_nvcc()}, {os.environ.get('TORCH_CUDA_ARCH_LIST')}, {driver_version()}"

    def answer(number: int):
        source = f"{made_with}{SOURCE.replace('ANSWER', f'{number}.0f')}"
        options = {"is_python_module": False, "no_implicit_headers": True}
        return load_inline("ladder_doctor", "", source, **options).answer

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


def check_trial(command: list[str] | None = None) -> list[Finding]:
    """Runs the trial, in a process of its own. command: what to run in its place."""
    try:
        done = subprocess.run(command or TRIAL, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    except subprocess.TimeoutExpired:
        why = "building and running a small kernel takes seconds"
        return [Finding("first kernel", "problem", "no answer within 300 s", why, "python -m helpers first-kernel")]
    from helpers.simt.libsimt import compiler

    return judge_trial(done.stdout.split(), done.returncode, done.stderr, compiler())


def judge_trial(words: list[str], status: int, errors: str, compiler: str) -> list[Finding]:
    """words: the steps that the trial came through; status, errors: its exit status and standard error."""
    last = signal.Signals(-status).name if status < 0 else (errors.strip().splitlines() or ["no message"])[-1]
    what, why = "first kernel", "if the smallest kernel does not build and run, none does"
    if "built" not in words:
        compiler_errors = [line for line in errors.splitlines() if "error" in line.lower()]
        mend = "the message names the cause; then: python -m helpers first-kernel"
        return [Finding(what, "problem", f"does not build: {(compiler_errors or [last])[0].strip()}", why, mend)]
    if "answered" not in words:
        found = "it was launched, but never ran: its result is not there" if "wrong" in words else f"it died: {last}"
        mend = (
            "unset TORCH_CUDA_ARCH_LIST CUDA_VISIBLE_DEVICES; then see nvcc above: its CUDA must not pass the driver's"
        )
        return [Finding(what, "problem", found, why, mend)]
    findings = [Finding(what, "ok", "built, run, its result read back")]
    if "refused" not in words:
        found = f"a refused input ended the process ({last})" if status else "a refused input raised nothing"
        if linked := static_runtime(compiler):
            found += f"; {linked}"
        other = other_compiler(compiler)
        mend = f"export CXX={other}" if other else COMPILER_HINT
        why = "a wrong argument has to give a RuntimeError, and would end the notebook's process instead"
        return [*findings, Finding("C++ exceptions", "problem", found, why, mend)]
    findings.append(Finding("C++ exceptions", "ok", "arrive as RuntimeError"))
    if "edited" not in words:
        found = "the old code still runs" if "old" in words else f"registering it again failed: {last}"
        why = "running an edited cell again registers its operators a second time"
        mend = "make setup (for the PyTorch that the course is tested with); until then restart Python after each edit"
        return [*findings, Finding("edited operator", "problem", found, why, mend)]
    return [*findings, Finding("edited operator", "ok", "replaces the one before it")]


def static_runtime(compiler: str) -> str:
    """Says so if the compiler has no shared C++ library, so that each extension carries a copy of its own."""
    try:
        place = run([*compiler.split(), "-print-file-name=libstdc++.so"]).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f"{compiler} has no libstdc++.so and links a copy into every library" if place == "libstdc++.so" else ""


if __name__ == "__main__":
    steps()
