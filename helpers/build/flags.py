"""The compiler flags of the GPU and of the two simulator modes."""

from __future__ import annotations

import platform
import re

from helpers.simt import libsimt

# What a kernel is compiled with for the simulator. Type punning through pointers is how kernels load vectors; -O2
# costs less time to compile than -O3 and runs as fast here.
SIMULATOR = ["-O2", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-D__SIMT__"]
if platform.system() == "Linux":
    SIMULATOR.append("-fstack-clash-protection")  # a huge frame must touch the guard, not jump over it

# PyTorch defines these for nvcc: half types have no implicit conversions and operators in its extensions.
NVCC_DEFINES = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
]

# For nvcc: what wgmma and setmaxnreg need, which are no part of compute_90 and run on compute capability 9.0 alone.
SM_90A = ["-gencode=arch=compute_90a,code=sm_90a"]

# Neither PyTorch's load nor nvcc asks the host's compiler to optimise; checks, conversions and the launch of a short
# kernel then take longer than they need to.
GPU = ["-O2"]

# For X-rays the compiler calls a hook at each access and basic block (the hooks are in the simulator's library, so
# nothing is linked for them). One access in the source should stay one, at one place: what merges, splits or copies
# accesses is off. Of debug information only functions and lines: variables would cost a third of the build's time more.
_TRACED = [
    *("-O1", "-g1", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-D__SIMT__", "-DSIMT_TRACED"),
    *("-fsanitize=thread", "-fsanitize-coverage=trace-pc", "-fno-omit-frame-pointer"),
]
_TRACED_GCC = ["-fno-tree-sra", "-fno-ipa-sra", "-fno-store-merging", "-fno-thread-jumps", "-fno-crossjumping"]
_TRACED_GCC += ["-fno-reorder-blocks", "-fno-ipa-icf", "-fno-tree-loop-distribute-patterns", "-fno-if-conversion"]
_TRACED_GCC += ["-fno-split-paths", "-fno-tree-pre", "-Wno-tsan", "-fsanitize=bounds"]
_TRACED_GCC += ["-fno-semantic-interposition"]  # else device functions that are not inline are called, not inlined
_TRACED_CLANG = ["-mllvm", "-tsan-instrument-read-before-write=1", "-fno-slp-vectorize", "-fno-unroll-loops"]
_TRACED_CLANG += ["-fsanitize=array-bounds", "-fsanitize-coverage=no-prune"]
_TRACED_CLANG += ["-gdwarf-4"]  # of version 5, binutils 2.40 does not find calls that were inlined in several pieces
_TRACED_CLANG += [f for option in ("hoist", "sink") for f in ("-mllvm", f"-{option}-common-insts=false")]
# Copies that the compiler leaves to the C library are seen too.
TRACED_LINKING = ["-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset"] if platform.system() == "Linux" else []


def traced() -> list[str]:
    """The flags of the traced mode for the compiler in use."""
    clang = "clang" in libsimt.compiler_identity(libsimt.compiler())
    return _TRACED + (_TRACED_CLANG if clang else _TRACED_GCC)


def for_gpu(given: list[str]) -> list[str]:
    """Flags of nvcc or of the host's compiler, optimising unless `given` says how to."""
    chosen = any(re.match(r"-O|--optimize", flag) for flag in given)
    return [*([] if chosen else GPU), *given]


def host_flags(cuda_cflags: list[str]) -> list[str]:
    """Those of nvcc's flags that mean the same to the host's compiler."""
    return [f for f in cuda_cflags if re.match(r"-(?:D|U|I|std=|O[0-3]$)", f)]
