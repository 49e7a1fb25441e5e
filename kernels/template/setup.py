"""Builds my_op/_C.abi3.so: with nvcc where PyTorch has CUDA, otherwise for the Kernel Ladder's simulator.

KERNEL_LADDER_TARGET=simulator chooses the simulator anywhere. A package built for it runs only on the machine that
built it, and its version says so: 0.1.0+simulator.

One wheel serves every PyTorch since 2.11 and every Python since 3.10: the library uses only PyTorch's stable
interface of 2.11, and none of Python's.
"""

import os

try:
    import helpers  # the Kernel Ladder, where it is installed, also finds an nvcc that came as a Python package
except ImportError:
    helpers = None
import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CUDAExtension

SOURCES = ["csrc/my_op.cu"]
VERSION = "0.1.0"
FLAGS = ["-O3", "-DUSE_CUDA", "-DTORCH_TARGET_VERSION=0x020b000000000000"]  # 2.11: later functions do not compile
# Lists every GPU that the wheel is for. +PTX lets later GPUs compile the last one at first use.
ARCHITECTURES = "7.5;8.0;9.0+PTX"

if torch.version.cuda and CUDA_HOME and os.environ.get("KERNEL_LADDER_TARGET") != "simulator":
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", ARCHITECTURES)
    extension = CUDAExtension(
        "my_op._C", SOURCES, extra_compile_args={"cxx": FLAGS, "nvcc": FLAGS}, py_limited_api=True
    )
elif helpers:
    from kernel_xray.build.packaging import simulator_extension

    VERSION += "+simulator"  # a label that package indexes refuse, as they should
    extension = simulator_extension("my_op._C", SOURCES, FLAGS[1:])
else:
    raise SystemExit(
        "my_op is built with nvcc and a CUDA build of PyTorch, or for the simulator in the environment of the Kernel "
        "Ladder; this machine has neither. With the latter: pip install --no-build-isolation ."
    )

setup(
    version=VERSION,
    ext_modules=[extension],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
