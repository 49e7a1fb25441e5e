"""Probes of everything between a .cu file and its result, for the doctor: GPU, nvcc, driver, architectures."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

from helpers.upkeep.doctor.probes import Finding, run

Version = tuple[int, int]


def check_gpu() -> Finding:
    import torch

    why = "without a GPU the kernels run in the simulator: the same source, the same answers, but no GPU times"
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        return Finding("GPU", "ok", f"{torch.cuda.get_device_name()}, compute capability {major}.{minor}")
    if shutil.which("nvidia-smi"):
        build = "a CPU build" if torch.version.cuda is None else f"built for CUDA {torch.version.cuda}"
        fix = "update the driver, or install the PyTorch build for it (pytorch.org/get-started)"
        return Finding("GPU", "note", f"nvidia-smi is installed, but PyTorch ({build}) sees no GPU", why, fix)
    return Finding("GPU", "note", "none", why, "nothing; every lesson runs without one")


def check_target() -> Finding:
    try:
        from kernel_xray.machine.toolchain import device, target
    except (ValueError, RuntimeError) as error:
        return Finding("target", "problem", str(error), "it decides where kernels run", "unset KERNEL_LADDER_TARGET")
    return Finding("target", "ok", f"{target}; tensors live on device {str(device)!r}")


def as_version(text: str | None) -> Version | None:
    match = re.search(r"(\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def nvcc_version(nvcc: Path) -> Version | None:
    """The CUDA version that `nvcc --version` prints; None if nvcc does not run."""
    try:
        return as_version((re.search(r"release [\d.]+", run([str(nvcc), "--version"]).stdout) or [""])[0])
    except (OSError, subprocess.TimeoutExpired):
        return None


def driver_version() -> Version | None:
    """The newest CUDA version that the driver supports; None without a driver."""
    number = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    return None if failed else (number.value // 1000, number.value % 1000 // 10)


def check_nvcc() -> Finding | None:
    """Compares nvcc with PyTorch's CUDA and the driver's. Without a GPU this hardly matters."""
    import torch

    try:
        from kernel_xray.machine.toolchain import find_nvcc
    except (ValueError, RuntimeError):  # check_target reports it
        return None
    return judge_nvcc(find_nvcc(), as_version(torch.version.cuda), driver_version(), torch.cuda.is_available())


def judge_nvcc(nvcc: Path | None, torch_cuda: Version | None, driver: Version | None, gpu: bool) -> Finding | None:
    """torch_cuda, driver: CUDA versions, None if there is none; gpu: whether PyTorch sees one."""
    if nvcc is None:
        fix = "make setup"
        why = "without it kernels run in the simulator, not on the GPU"
        return Finding("nvcc", "note", "none", why, fix) if gpu else None
    version = nvcc_version(nvcc)
    state = "problem" if gpu else "note"
    if version is None:
        why = "it compiles the kernels for the GPU"
        return Finding("nvcc", state, f"{nvcc} does not run", why, "make setup, and export CUDA_HOME=/path/to/cuda")
    found = f"{nvcc}, CUDA {dotted(version)}"
    if torch_cuda is None:  # a CPU build of PyTorch: nvcc is not used
        return Finding("nvcc", "ok", found)
    if version[0] != torch_cuda[0]:
        why = "PyTorch builds only with its own major version: 'The detected CUDA version mismatches'"
        return Finding(
            "nvcc", state, f"{found}; PyTorch is built for CUDA {dotted(torch_cuda)}", why, get_cuda(torch_cuda)
        )
    if driver is not None and version > driver:
        why = "the driver cannot compile PTX newer than itself: a kernel that needs it never runs, perhaps silently"
        known = f"{found}; the driver supports CUDA up to {dotted(driver)}"
        return Finding("nvcc", state if version[0] > driver[0] else "note", known, why, get_cuda(driver))
    return Finding("nvcc", "ok", found)


def dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def get_cuda(version: Version, places: Path = Path("/usr/local")) -> str:
    """The command that selects nvcc of that version if it is installed, or else installs it."""
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
    """wanted: TORCH_CUDA_ARCH_LIST; gpus: the compute capability of each; cuda_build: whether PyTorch has CUDA."""
    what = "architectures"
    asked = [part for part in re.split(r"[;\s]+", wanted) if part]
    here = ";".join(sorted({dotted(gpu) for gpu in gpus}))
    export = "export TORCH_CUDA_ARCH_LIST=9.0 (the compute capability of your GPU; 9.0 is an H200's)"
    fix = "unset TORCH_CUDA_ARCH_LIST" if gpus else export
    if not asked or wanted == "native":
        if gpus or not cuda_build:
            return Finding(what, "ok", f"built for {here}, the GPUs of this machine") if gpus else None
        why = "without a GPU to query, PyTorch builds for every architecture (minutes), or fails with IndexError"
        return Finding(what, "note", "no GPU is visible and TORCH_CUDA_ARCH_LIST is unset", why, fix)
    found = f"TORCH_CUDA_ARCH_LIST={wanted}"
    numbers = [(as_version(part), "+PTX" in part) for part in asked]
    for gpu in gpus:
        if all(v and not (v[0] == gpu[0] and v[1] <= gpu[1]) and not (ptx and v <= gpu) for v, ptx in numbers):
            why = f"no kernel built for these would start on a GPU of compute capability {dotted(gpu)}"
            return Finding(what, "problem", found, why, fix)
    if len(asked) > max(1, len(set(gpus))) or any(v is None for v, _ in numbers):
        why = "each architecture is compiled separately: a build takes that many times as long"
        return Finding(what, "note", found, why, fix)
    return Finding(what, "ok", found)
