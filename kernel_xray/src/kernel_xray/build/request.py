"""`Build`: a checked request, with everything that its result depends on, and the key of that."""

import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from kernel_xray.build import flags, libraries, sources
from kernel_xray.machine import cache, toolchain
from kernel_xray.runtime import libsimt
from kernel_xray.translate import includes, origins

# The variables that PyTorch's build and nvcc read: architectures, host compiler, further flags.
NVCC_ENVIRONMENT = ("TORCH_CUDA_ARCH_LIST", "CC", "CXX", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


@dataclass
class Build:
    """One extension or program to build: everything that the result depends on."""

    name: str
    sources: list[Path]
    cflags: list[str] = field(default_factory=list)
    cuda_cflags: list[str] = field(default_factory=list)
    ldflags: list[str] = field(default_factory=list)
    include_paths: list[Path] = field(default_factory=list)
    with_cuda: bool | None = None
    is_python_module: bool = True
    verbose: bool = False
    target: str = "simulator"
    traced: bool = False
    program: bool = (
        False  # an executable: it may print its sources' paths, as assert does, so it serves no other folder
    )
    whole: bool = False  # a program with all headers that it names, also those which it seems not to read

    def texts(self) -> dict[Path, str]:
        flags = [*self.cflags, *self.cuda_cflags, *libsimt.compiler().split()]
        some = self.program and self.target == "simulator" and not self.whole
        return includes.closure(self.sources, self.include_paths, flags if some else None)

    def key(self, texts: dict[Path, str]) -> str:
        known_as = self.names(texts)
        parts = [(known_as[path], text, self._included(path, text, known_as)) for path, text in texts.items()]
        return cache.digest(self.name, parts, *self.conditions(texts))

    def conditions(self, texts: dict[Path, str]) -> tuple[object, object]:
        """What the result depends on besides its texts and its name: flags, compilers, versions."""
        cuda_cflags = self.cuda_cflags if self.target == "gpu" else flags.host_flags(self.cuda_cflags)
        given = (self.cflags, cuda_cflags, self.ldflags, self.with_cuda, self.is_python_module, self.traced)
        here: tuple[object, ...] = (sys.version_info[:3], platform.machine(), self.target)
        if not self.program or sources.torch_headers(texts):
            import torch

            here += (torch.__version__, torch.version.cuda)
        if self.target == "gpu":
            variables = [os.environ.get(name) for name in NVCC_ENVIRONMENT]
            here += (sorted(architectures()), str(toolchain.find_nvcc()), variables, flags.GPU)
        else:
            compiler = libsimt.compiler_identity(libsimt.compiler())
            here += (libsimt.headers_digest(), compiler, flags.simulator(self.traced), flags.NVCC_DEFINES)
            here += (libsimt.runtime_key(), sources.translation_digest(), libraries.compile_flags(texts))
        return given, here

    def names(self, texts: dict[Path, str]) -> dict[Path, str]:
        """What the build calls its texts: paths, or names that do not depend on a folder (simt/origins.py)."""
        free = self.target == "simulator" and not self.program
        return origins.names(texts) if free else {path: str(path) for path in texts}

    def _included(self, path: Path, text: str, known_as: dict[Path, str]) -> list[str]:
        return [known_as.get(file, "") for file in includes.included(path, text, self.include_paths)]


def architectures() -> list[str]:
    """The compute capabilities of this machine's GPUs, such as "9.0"."""
    if torch := sys.modules.get("torch"):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return ["{}.{}".format(*torch.cuda.get_device_capability(i)) for i in range(count)]
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"^\d+\.\d+$", listed, re.MULTILINE)
