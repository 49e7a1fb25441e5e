"""Where kernels run: on an NVIDIA GPU, built by nvcc, or in the simulator, built by the host's C++ compiler.

`target` is "gpu" or "simulator"; `device` is the torch.device on which tensors for the kernels live. The environment
variable KERNEL_XRAY_TARGET overrides the choice. Both are decided once, when one of them is first asked for, and then
PyTorch is imported. `of_programs` decides for programs, which need no PyTorch.
"""

import ctypes
import logging
import os
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    target: str
    device: torch.device

_VARIABLE = "KERNEL_XRAY_TARGET"


def __getattr__(name: str) -> Any:
    if name not in ("target", "device"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    nvcc = find_nvcc()
    chosen = choose(os.environ.get(_VARIABLE, ""), torch.cuda.is_available(), nvcc is not None)
    if chosen == "gpu" and nvcc is not None:
        prepare_nvcc(nvcc)
    globals().update(target=chosen, device=torch.device("cuda" if chosen == "gpu" else "cpu"))
    return globals()[name]


@cache
def of_programs() -> str:
    """The target of programs: `target`, once PyTorch is there; else the driver says whether there is a GPU."""
    if "torch" in sys.modules:
        return sys.modules[__name__].target
    nvcc = find_nvcc()
    return choose(os.environ.get(_VARIABLE, ""), nvcc is not None and _driver_lists_a_gpu(), nvcc is not None)


def _driver_lists_a_gpu() -> bool:
    """Whether NVIDIA's driver lists a GPU that CUDA_VISIBLE_DEVICES does not hide."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    try:
        driver = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    count = ctypes.c_uint(0)
    return not driver.nvmlInit_v2() and not driver.nvmlDeviceGetCount_v2(ctypes.byref(count)) and count.value > 0


def find_nvcc() -> Path | None:
    """The first nvcc found in CUDA_HOME, on PATH, in /usr/local/cuda, in NVIDIA's wheels (cuda-toolkit[nvcc])."""
    candidates = [Path(os.environ[v]) / "bin" / "nvcc" for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    if on_path := shutil.which("nvcc"):
        candidates.append(Path(on_path))
    candidates.append(Path("/usr/local/cuda/bin/nvcc"))
    candidates += sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin/nvcc"), reverse=True)
    return next((c for c in candidates if os.access(c, os.X_OK)), None)


def ensure_tools_on_path() -> None:
    """Puts the environment's `ninja` on PATH if it is not activated; sets CXX if no compiler is called c++."""
    if not os.environ.get("CXX") and not shutil.which("c++"):
        if found := shutil.which("g++") or shutil.which("clang++"):
            os.environ["CXX"] = found
    if shutil.which("ninja"):
        return
    scripts = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    for folder in scripts:
        if (Path(folder) / "ninja").exists():
            os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", "")
            return


def quieten_pytorch() -> None:
    """Drops the remark of PyTorch's builder that there is nvcc but no GPU: the simulator needs neither."""
    builder = logging.getLogger("torch.utils.cpp_extension")
    builder.addFilter(lambda record: "No CUDA runtime" not in record.getMessage())


def prepare_nvcc(nvcc: Path) -> None:
    """Sets CUDA_HOME for PyTorch and adds the `libcudart.so` that NVIDIA's wheels lack, for the linker."""
    home = nvcc.resolve().parent.parent
    if not os.environ.get("CUDA_HOME"):
        os.environ["CUDA_HOME"] = str(home)
    library = home / "lib"
    versioned = sorted(library.glob("libcudart.so.*"))
    if "site-packages" in str(library) and versioned and not (library / "libcudart.so").exists():
        (library / "libcudart.so").symlink_to(versioned[0].name)
    cpp_extension: Any = sys.modules.get("torch.utils.cpp_extension")
    if cpp_extension is not None and cpp_extension.CUDA_HOME is None:  # imported before CUDA_HOME was set
        cpp_extension.CUDA_HOME = str(home)


def choose(wanted: str, gpu: bool, nvcc: bool) -> str:
    """The target: the `wanted` one ("": any) if this machine can run it. Raises ValueError or RuntimeError."""
    if wanted not in ("", "gpu", "simulator"):
        raise ValueError(f"{_VARIABLE} is {wanted!r}; set it to 'gpu' or 'simulator', or leave it unset")
    if wanted == "gpu" and not gpu:
        raise RuntimeError(
            f"{_VARIABLE} is 'gpu', but no NVIDIA GPU is seen here (by PyTorch: torch.cuda.is_available() is False)"
        )
    if wanted == "gpu" and not nvcc:
        raise RuntimeError(f"{_VARIABLE} is 'gpu', but nvcc is not found: install the CUDA toolkit, or set CUDA_HOME")
    return wanted or ("gpu" if gpu and nvcc else "simulator")


ensure_tools_on_path()
quieten_pytorch()
