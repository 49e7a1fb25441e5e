"""CUDA's headers and libraries in the simulator: what including one takes to build, and which are refused.

cuBLAS, cuRAND and cuFFT are in libraries/, compiled once into `libsimt-libraries.so`. Thrust and libcu++ are NVIDIA's
own headers (CCCL), which run on a CPU too; `include/` replaces the few that do not. CUB is ours, in libraries/include.
"""

import os
import re
import sysconfig
from functools import lru_cache
from pathlib import Path

from kernel_xray.machine import toolchain
from kernel_xray.runtime import libsimt
from kernel_xray.translate.includes import directives
from kernel_xray.translate.refusals import REFUSAL

# Headers with other names of what one of ours has.
_FORWARDED = {
    "simt/textures.h": "cuda_texture_types.h channel_descriptor.h texture_types.h texture_fetch_functions.h "
    "texture_indirect_functions.h surface_types.h surface_functions.h surface_indirect_functions.h",
    "simt/atomics.h": "device_atomic_functions.h",
    "simt/intrinsics.h": "sm_61_intrinsics.h",
    "simt/maths.h": "math_functions.h",
    "simt/runtime_api.h": "cuda_profiler_api.h",  # whose functions do nothing here
    "simt/vector_types.h": "vector_functions.h",
    "cuda.h": "cudaProfiler.h",
    "cuda_runtime.h": "device_launch_parameters.h",
    "nvtx3/nvToolsExt.h": "nvToolsExt.h",
    "ATen/cuda/Atomic.cuh": "THC/THCAtomics.cuh",
    "ATen/cuda/DeviceUtils.cuh": "THC/THCDeviceUtils.cuh",
    "thrust/execution_policy.h": "thrust/system/cuda/execution_policy.h",
    "cub/iterator/iterators.cuh": " ".join(
        f"cub/iterator/{kind}_input_iterator.cuh" for kind in ("arg_index", "constant", "counting", "transform")
    ),
    "cub/util_type.cuh": "cub/config.cuh cub/util_ptx.cuh",
    "cublas_api.h": "cublas_v2.h",
    "curand_kernel.h": " ".join(
        f"curand_{part}.h"
        for part in ("globals", "uniform", "normal", "lognormal", "poisson", "mrg32k3a", "philox4x32_x")
    ),
    "cuda_pipeline.h": "cuda_pipeline_primitives.h",
}
FORWARDED = {name: header for header, names in _FORWARDED.items() for name in names.split()}

# Headers whose functions are in libsimt-libraries.so.
_LINKED = ("cublas_api.h", "cublasLt.h", "curand.h", "curand_kernel.h", "cufft.h")

# What a GPU build gives to the linker for NVIDIA's libraries: -lcublas, -l:libcublas.so.13. Those that the simulator
# lacks are refused in their headers.
_NAMES = "cuda|cudart|cudadevrt|cublas|cublasLt|curand|cufft|cufftw|cusparse|cusolver|nvrtc|nvToolsExt|nvidia-ml"
_OF_CUDA = re.compile(rf"-l(?::lib)?(?:{_NAMES})(?:_static)?(?:\.(?:so|a).*)?$")

# Thrust with its CPU back end on both sides.
_CCCL_FLAGS = [
    "-DTHRUST_HOST_SYSTEM=THRUST_HOST_SYSTEM_CPP",
    "-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP",
    "-DCCCL_IGNORE_DEPRECATED_API",
]
_CCCL_FOLDERS = ("thrust/", "cuda/", "nv/")
_NO_CCCL = (
    "Thrust and libcu++ are headers of NVIDIA, and this machine has none: "
    "pip install nvidia-cuda-cccl (13.0 or newer; they need no GPU)"
)

_LIBRARIES = {
    "cuDNN: use the operators of PyTorch (torch.nn.functional)": ("cudnn",),
    "cuBLASXt: use cublas_v2.h": ("cublasXt",),
    "the cuBLAS interface of before CUDA 4: include cublas_v2.h": ("cublas.h",),
    "interfaces of cuFFT for several devices, callbacks and FFTW: include cufft.h": ("cufftXt", "cufftw", "cufftMp"),
    "cuSPARSE: torch.sparse has its operations": ("cusparse",),
    "cuSOLVER: torch.linalg has its factorisations": ("cusolver",),
    "cuTENSOR: torch.einsum has its contractions": ("cutensor",),
    "NCCL: copy between devices with cudaMemcpyPeer": ("nccl",),
    "NVSHMEM: copy between devices with cudaMemcpyPeer": ("nvshmem",),
    "NVRTC: kernels are compiled with the program": ("nvrtc", "nvJitLink", "nvPTXCompiler"),
    "NVML: there is no driver": ("nvml",),
    "NPP: write the kernel": ("npp",),
    "nvJPEG: decode images on the host": ("nvjpeg",),
    "CUTLASS and CuTe: their kernels are inline PTX": ("cutlass/", "cute/"),
    "cuFile": ("cufile",),
    "CUPTI: nothing here can be profiled": ("cupti",),
    "OpenGL and Vulkan: copy the result to the host": ("cuda_gl_interop", "cudaGL", "cuda_egl_interop"),
    "quasi-random direction vectors of cuRAND": ("curand_mtgp32", "curand_discrete"),
    "waits of libcu++ other than barriers: use cuda::barrier": ("cuda/semaphore", "cuda/latch", "cuda/std/semaphore",
                                                               "cuda/std/latch"),
    "PTX instructions": ("cuda/ptx",),
    "memory resources of libcu++": ("cuda/memory_resource",),
}  # fmt: skip


def directive(header: str) -> str | None:
    """What an `#include` of this header becomes; None: it stays."""
    own = any((folder / header).is_file() for folder in (libsimt.INCLUDE, libsimt.LIBRARY_HEADERS))
    if header.startswith(_CCCL_FOLDERS) and cccl() is None and not (own and header.startswith("cuda/")):
        return f"#error {_NO_CCCL}"
    if own:
        return None
    if header in FORWARDED:
        return f"#include <{FORWARDED[header]}>"
    for sentence, stems in _LIBRARIES.items():
        if header.startswith(stems):
            return f"#error {REFUSAL}{sentence}"
    if header.startswith("cub/"):
        return f"#error {REFUSAL}{header}; the simulator has other parts of CUB: see cub/cub.cuh in its include folder"
    return None


def compile_flags(texts: dict[Path, str]) -> list[str]:
    """The compiler's flags for the libraries that these texts include."""
    folder = cccl() if _includes(texts, _CCCL_FOLDERS) else None
    return [] if folder is None else ["-isystem", str(folder), *_CCCL_FLAGS]


def headers(texts: dict[Path, str]) -> list[str]:
    """The flag that finds our own headers of CUDA's libraries.

    Before NVIDIA's if these texts include one; else behind all other folders, where no other header waits for it.
    """
    wanted = _includes(texts, (*_LINKED, "cub/", "thrust/"))
    return [f"-I{libsimt.LIBRARY_HEADERS}" if wanted else f"-idirafter{libsimt.LIBRARY_HEADERS}"]


def linking(texts: dict[Path, str], given: list[str]) -> list[str]:
    """The linker's flags: those `given` without CUDA's own libraries, and what these texts include in their place.

    Builds the library if needed. Raises RuntimeError.
    """
    ours = libsimt.linked(libsimt.cuda_libraries(), "simt-libraries") if _includes(texts, _LINKED) else []
    return [flag for flag in given if not _OF_CUDA.match(flag)] + ours


@lru_cache(maxsize=1)
def cccl() -> Path | None:
    """The folder with NVIDIA's `thrust/` and `cuda/`: of the wheel nvidia-cuda-cccl, or of the CUDA toolkit 13."""
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    homes = [*sorted(wheels.glob("cu[0-9]*"), reverse=True)]
    homes += [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    if nvcc := toolchain.find_nvcc():
        homes.append(nvcc.resolve().parent.parent)
    homes.append(Path("/usr/local/cuda"))
    folders = [home / "include" / "cccl" for home in homes]
    return next((folder for folder in folders if (folder / "thrust" / "version.h").is_file()), None)


def _includes(texts: dict[Path, str], starts: tuple[str, ...]) -> bool:
    names = (name for text in texts.values() for _, name in directives(text))
    return any(FORWARDED.get(name, name).startswith(starts) for name in names)
