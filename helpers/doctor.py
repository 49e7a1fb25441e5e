"""Says what this machine has and what it lacks for the course: `python -m helpers doctor`.

A finding says what was found, why it matters and, where something is missing, the command that mends it. The exit
status is 0 when the course can run here, on a GPU or in the simulator.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OLDEST_TORCH = (2, 11)
PROBE = "#include <type_traits>\ntemplate <class T> requires std::is_integral_v<T> T one() { return 1; }\n"
COMPILER_HINT = "install g++ or clang++ (Debian, Ubuntu: sudo apt install g++; macOS: xcode-select --install)"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `state` is "ok", "note" (the course runs without it) or "problem" (it does not)."""

    what: str
    state: str
    found: str
    why: str = ""
    mend: str = ""

    def __str__(self) -> str:
        lines = [f"{self.state:8}{self.what:15}{self.found}"]
        if self.state != "ok":
            lines += [f"{'':23}why it matters: {self.why}", f"{'':23}what to do: {self.mend}"]
        return "\n".join(lines)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    found = ".".join(map(str, version))
    if version >= (3, 10):
        return Finding("Python", "ok", f"{found} ({sys.executable})")
    return Finding("Python", "problem", found, "PyTorch needs 3.10 or newer", "make setup PYTHON=/path/to/python3")


def check_torch() -> Finding:
    mend = "make setup"
    try:
        import torch
    except ImportError as error:
        return Finding("PyTorch", "problem", f"cannot be imported: {error}", "every kernel is called through it", mend)
    return judge_torch(torch.__version__, torch.version.cuda)


def judge_torch(version: str, cuda: str | None) -> Finding:
    found = f"{version} ({'CUDA ' + cuda if cuda else 'CPU only'})"
    if tuple(int(part) for part in version.split("+")[0].split(".")[:2]) >= OLDEST_TORCH:
        return Finding("PyTorch", "ok", found)
    return Finding("PyTorch", "problem", found, "kernels use the stable C++ interface of 2.11 and later", "make setup")


def check_compiler(command: str | None = None) -> Finding:
    """Compiles a line of C++20, for a name on PATH may be an empty promise (as on a new macOS).

    command: the compiler; None for the one that the loader uses.
    """
    from helpers.simt.build import compiler

    command = command or compiler()
    why = "kernels are C++; without a compiler none can be built"
    others = [name for name in ("g++", "clang++") if shutil.which(name)]
    mend = f"export CXX={others[0]}" if others and others[0] != command else COMPILER_HINT
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE)
        try:
            probe = run([*command.split(), "-std=c++20", "-fsyntax-only", str(source)])
            version = run([*command.split(), "--version"])
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding("C++ compiler", "problem", f"{command} does not run: {error}", why, mend)
    if probe.returncode:
        first = (probe.stderr.strip().splitlines() or ["no message"])[0]
        return Finding("C++ compiler", "problem", f"{command} does not compile C++20: {first}", why, mend)
    return Finding("C++ compiler", "ok", f"{command}: {(version.stdout.splitlines() or ['?'])[0]}")


def run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def check_python_headers() -> Finding:
    folder = sysconfig.get_path("include")
    if Path(folder, "Python.h").exists():
        return Finding("Python headers", "ok", folder)
    return Finding(
        "Python headers",
        "note",
        f"no Python.h in {folder}",
        "extensions with PYBIND11_MODULE need it; most kernels of the course do not",
        f"Debian, Ubuntu: sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-dev",
    )


def check_ninja() -> Finding:
    import helpers.toolchain  # noqa: F401  (puts the environment's own ninja on PATH)

    found = shutil.which("ninja")
    if found:
        return Finding("ninja", "ok", found)
    return Finding("ninja", "problem", "not found", "PyTorch builds extensions with it", "make setup")


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


def check_nvcc() -> Finding | None:
    """nvcc matters only where there is a GPU."""
    import torch

    from helpers.toolchain import find_nvcc

    nvcc = find_nvcc()
    if nvcc:
        return Finding("nvcc", "ok", str(nvcc))
    if not torch.cuda.is_available():
        return None
    return Finding("nvcc", "note", "none", "without it kernels run in the simulator, not on the GPU", "make setup")


def check_target() -> Finding:
    try:
        from helpers.toolchain import device, target
    except (ValueError, RuntimeError) as error:
        return Finding("target", "problem", str(error), "it decides where kernels run", "unset KERNEL_LADDER_TARGET")
    return Finding("target", "ok", f"{target}; tensors live on device {str(device)!r}")


CHECKS: tuple[Callable[[], Finding | None], ...] = (
    check_python,
    check_torch,
    check_compiler,
    check_python_headers,
    check_ninja,
    check_gpu,
    check_nvcc,
    check_target,
)


def examine() -> list[Finding]:
    """All findings, in the order in which they build on each other. Stops where PyTorch is missing."""
    findings: list[Finding] = []
    for check in CHECKS:
        finding = check()
        if finding is not None:
            findings.append(finding)
        if check is check_torch and findings[-1].state == "problem":
            break
    return findings


def report(findings: list[Finding]) -> str:
    """The findings and a last line that sums them up."""
    problems = sum(finding.state == "problem" for finding in findings)
    end = f"{problems} to mend before the course can run here." if problems else "The course can run here."
    return "\n".join([*map(str, findings), end])


def main(arguments: list[str]) -> int:
    argparse.ArgumentParser(
        prog="python -m helpers doctor", description="Say what this machine has and lacks for the course."
    ).parse_args(arguments)
    findings = examine()
    print(report(findings))
    return 1 if any(finding.state == "problem" for finding in findings) else 0
