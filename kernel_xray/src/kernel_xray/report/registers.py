"""The registers and shared memory of each kernel of a file, from `ptxas -v`. Needs nvcc, but no GPU."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch.utils import cpp_extension

from kernel_xray.machine import cache, toolchain
from kernel_xray.machine.paths import also_include
from kernel_xray.report.facts import Launch
from kernel_xray.report.resident_warps import SMS, Occupancy, occupancy
from kernel_xray.report.symbols import bare_name
from kernel_xray.translate import includes


@dataclass(frozen=True)
class Resources:
    """Registers and memory of one kernel, compiled for one compute capability."""

    kernel: str  # as C++ writes it, with template arguments and parameters
    registers: int  # of a thread
    shared: int  # bytes of a block, static

    @property
    def name(self) -> str:
        """The kernel's name without return type, namespaces, template arguments and parameters."""
        return bare_name(re.sub(r"^void ", "", self.kernel))


def resources(file: str | Path, capability: str = "8.0") -> list[Resources]:
    """The resources of each kernel of a .cu file; compiled again only if the file or a header that it includes changes.

    Raises RuntimeError if nvcc is missing or fails, ValueError for an unknown capability.
    """
    if capability not in SMS:
        raise ValueError(f"capability is {capability!r}; known are {', '.join(SMS)}")
    nvcc = toolchain.find_nvcc()
    if nvcc is None:
        raise RuntimeError("occupancy needs the kernel's registers, which nvcc reports, and nvcc is not installed")
    path = Path(file)
    texts = includes.closure([path], also_include([]))
    key = cache.digest([(str(p), t) for p, t in texts.items()], _architecture(capability), str(nvcc))
    kept = cache.root() / "resources" / f"{key}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        found = _parse(_ptxas(str(nvcc), path, capability))
        cache.write_whole(kept, json.dumps(found))
    return [Resources(*entry) for entry in json.loads(kept.read_text())]


def _architecture(capability: str) -> str:
    """nvcc's name of a capability. 9.0a adds wgmma to 9.0; other kernels compile to the same code for both."""
    return "sm_" + {"9.0": "90a"}.get(capability, capability.replace(".", ""))


def _ptxas(nvcc: str, path: Path, capability: str) -> str:
    """The output of `ptxas -v` for a file, with demangled names."""
    arch = _architecture(capability)
    includes = [*also_include([]), *cpp_extension.include_paths()]
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-cubin", "-arch", arch, "-std=c++17", "-O3", "-Xptxas", "-v", "--expt-relaxed-constexpr"]
        command += ["-DUSE_CUDA", "-DTORCH_EXTENSION_NAME=occupancy", *(f"-I{i}" for i in includes)]
        done = subprocess.run(
            [*command, "-o", f"{folder}/kernels.cubin", str(path)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"nvcc could not compile {path} for {arch}:\n{done.stderr}")
    demangler = shutil.which("c++filt") or shutil.which("cu++filt") or shutil.which("llvm-cxxfilt")
    if demangler is None:
        raise RuntimeError("c++filt is not found; it comes with binutils (Debian and Ubuntu: apt install binutils)")
    return subprocess.run([demangler], input=done.stderr, capture_output=True, text=True, check=True).stdout


def _parse(text: str) -> list[tuple[str, int, int]]:
    """Kernel, registers, shared memory of each entry in the output of `ptxas -v`."""

    def number(pattern: str, part: str) -> int:
        match = re.search(pattern, part)
        return int(match[1]) if match else 0

    found = []
    for part in text.split("Compiling entry function '")[1:]:
        kernel = part[: part.index("' for 'sm_")]
        if registers := number(r"Used (\d+) registers", part):
            found.append((kernel, registers, number(r"(\d+) bytes smem", part)))
    return found


def occupancy_of_launches(launches: Sequence[Launch], capability: str) -> list[Occupancy]:
    """One record per kernel and block size. Of a template's instances, the one with the most registers counts."""
    records = []
    for launch in dict.fromkeys((x.file, x.kernel, x.block, x.shared_static, x.shared_dynamic) for x in launches):
        file, kernel, block, static, dynamic = launch
        matching = [r for r in resources(file, capability) if r.name == bare_name(kernel)]
        if not matching:
            continue  # launched from this file, defined in another
        threads = block[0] * block[1] * block[2]
        registers = max(r.registers for r in matching)
        shared = max(static, *(r.shared for r in matching)) + dynamic
        records.append(occupancy(threads, registers, shared, capability, kernel))
    return records
