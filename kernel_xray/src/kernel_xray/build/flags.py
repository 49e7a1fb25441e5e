"""The compiler flags of the GPU and of the two simulator modes."""

import os
import platform
import re

from kernel_xray.runtime import libsimt

# For kernels in the simulator. Kernels load vectors through type-punned pointers, hence -fno-strict-aliasing. -O2
# compiles faster than -O3, and the code runs as fast; -Og compiles faster still, for short runs.
OPTIMISATION = os.environ.get("KERNEL_XRAY_OPTIMISATION", "-O2")
_SIMULATOR = [OPTIMISATION, "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-D__SIMT__"]
_SIMULATOR.append("-fno-delete-null-pointer-checks")  # else clang leaves away what accesses a null that it sees
_SIMULATOR.append("-fno-semantic-interposition")  # else no kernel of a shared library is inlined into its loop
if platform.system() == "Linux":
    _SIMULATOR.append("-fstack-clash-protection")  # a huge frame must touch the guard, not jump over it

# x86-64 traps at a division of integers by zero. AArch64 gives 0, so there the compiler adds a test and a call.
_DIVISION = ["-fsanitize=integer-divide-by-zero"] if platform.machine() in ("aarch64", "arm64") else []
_SIMULATOR += _DIVISION

# PyTorch defines these for nvcc: half types have no implicit conversions and operators in its extensions.
NVCC_DEFINES = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
]

# For nvcc: wgmma and setmaxnreg need compute_90a and run on compute capability 9.0 alone.
SM_90A = ["-gencode=arch=compute_90a,code=sm_90a"]

SM_100A = ["-gencode=arch=compute_100a,code=sm_100a"]  # for nvcc: tcgen05

# By default neither PyTorch's load nor nvcc tells the host's compiler to optimise; checks, conversions and the launch
# of a short kernel would be slower than necessary.
GPU = ["-O2"]

# For X-rays the compiler calls a hook at each access and basic block; the hooks are in the simulator's library. One
# access in the source should stay one access in one place, so optimisations that merge, split or copy accesses are off.
# Debug information holds only functions and lines: variables would make a build take a third longer.
_TRACED = ["-O1", "-g1", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-D__SIMT__", "-DSIMT_TRACED"]
_TRACED += ["-fsanitize=thread", "-fsanitize-coverage=trace-pc", "-fno-omit-frame-pointer", *_DIVISION]
# Some systems' compilers add checks of their own by default (Ubuntu's): calls that are not in the source, and copies
# without hooks.
_TRACED += ["-fno-stack-protector", "-U_FORTIFY_SOURCE"]
_TRACED_GCC = ["-fno-tree-sra", "-fno-ipa-sra", "-fno-store-merging", "-fno-thread-jumps", "-fno-crossjumping"]
_TRACED_GCC += ["-fno-reorder-blocks", "-fno-ipa-icf", "-fno-tree-loop-distribute-patterns", "-fno-if-conversion"]
_TRACED_GCC += ["-fno-split-paths", "-fno-tree-pre", "-Wno-tsan", "-fsanitize=bounds"]
_TRACED_GCC += ["--param=tsan-distinguish-volatile=1"]  # volatile accesses are ordered like atomics
_TRACED_GCC += ["-fno-semantic-interposition"]  # else only functions marked inline are inlined
_TRACED_CLANG = ["-mllvm", "-tsan-instrument-read-before-write=1", "-fno-slp-vectorize", "-fno-unroll-loops"]
_TRACED_CLANG += ["-mllvm", "-tsan-distinguish-volatile=1"]
_TRACED_CLANG += ["-fsanitize=array-bounds"]
# A hook in each block that the source has: lanes that skip a branch would fall out of step by one in a split edge.
_TRACED_CLANG += ["-fsanitize-coverage=bb,no-prune"]
_TRACED_CLANG += ["-mllvm", "-disable-loop-idiom-all"]  # no memset in place of a loop's stores
_TRACED_CLANG += ["-mllvm", "-disable-licm-promotion"]  # no store behind the loop in place of those in it
_TRACED_CLANG += ["-gdwarf-4"]  # in version 5, binutils 2.40 misses calls that were inlined in several pieces
_TRACED_CLANG += [f for option in ("hoist", "sink") for f in ("-mllvm", f"-{option}-common-insts=false")]
# Of the C library, what stores through a pointer: calls of these go to hooks.cpp, which traces the accesses. Those of
# malloc, new and their like go to heap.cpp.
_WRAPPED = "memcpy memmove memset frexp frexpf modf modff remquo remquof sincos sincosf "
_WRAPPED += "malloc free _Znwm _Znam _ZdlPv _ZdlPvm _ZdaPv _ZdaPvm"
TRACED_LINKING = [f"-Wl,--wrap={',--wrap='.join(_WRAPPED.split())}"] if platform.system() == "Linux" else []


def simulator(traced: bool) -> list[str]:
    """The flags for a kernel in the simulator; those of the traced mode depend on the compiler in use."""
    clang, version = _compiler()
    # A static variable of an inline function is one in all libraries of a process, unless g++ is told otherwise: one in
    # those that nvcc has built from the same header, too.
    apart = [] if clang or platform.system() != "Linux" else ["-fno-gnu-unique"]
    if traced:
        return [*_TRACED, *(_TRACED_CLANG if clang else _TRACED_GCC), *apart]
    # g++ 12.2 ends with an internal error where it vectorises some loops of the course for AArch64.
    spared = not clang and version == 12 and platform.machine() == "aarch64"
    return [*_SIMULATOR, *apart, *(["-fno-tree-loop-vectorize"] if spared else []), *filled_locals()]


def of_kernels(traced: bool) -> list[str]:
    """All flags that every kernel in the simulator has, by which the headers of the stable ABI are compiled."""
    return [*NVCC_DEFINES, *simulator(traced), "-DUSE_CUDA"]


def debug_folders() -> list[str]:
    """The flags of the traced mode by which debugging information does not depend on where this environment lies."""
    return [f"-fdebug-prefix-map={folder}={name}" for folder, name in libsimt.DEBUG_FOLDERS.items()]


def filled_locals() -> list[str]:
    """The flag by which locals without a value hold a pattern, so that none is 0 by luck: since g++ 12, clang 16.

    Traced builds have it only if the caller gives it: filling an array adds branches, which an X-ray counts.
    """
    clang, version = _compiler()
    return ["-ftrivial-auto-var-init=pattern"] if version >= (16 if clang else 12) else []


def loads_where_written() -> list[str]:
    """The flags by which a load stays where the source has it, not behind the guard that should stand before it.

    An X-ray then sees an access that a compiler for the GPU may move away, too, or may not.
    """
    clang, _ = _compiler()
    return ["-mllvm", "-instcombine-code-sinking=false"] if clang else ["-fno-tree-sink"]


def in_more_memory() -> list[str]:
    """The flag by which g++ collects garbage from 2 GB on: below, it finds little, for a quarter of the time.

    Only sources with the headers of PyTorch or of a template library such as CuTe take so much: sgemm_sm80 of CUTLASS
    1.45 GB, where collecting from 512 MB on it takes 1.27 GB and a tenth longer.
    """
    clang, _ = _compiler()
    return [] if clang else ["--param=ggc-min-heapsize=2097152"]


def _compiler() -> tuple[bool, int]:
    """Whether the compiler in use is clang, and its major version; 0 if it names none."""
    identity = libsimt.compiler_identity(libsimt.compiler())
    version = re.search(r"(\d+)\.\d+", re.sub(r"\([^)]*\)", "", identity))
    return libsimt.is_clang(), int(version[1]) if version else 0


def standard(given: list[str], uses_torch: bool) -> list[str]:
    """The C++ standard of a simulator build: nvcc's default, unless `given` flags or PyTorch's headers choose.

    PyTorch's headers need C++20 since version 2.13, and its builder asks for it, with nvcc too.
    """
    return [] if uses_torch or any(flag.startswith("-std=") for flag in given) else ["-std=c++17"]


def for_gpu(given: list[str]) -> list[str]:
    """Flags of nvcc or of the host's compiler, with -O2 unless `given` sets the level."""
    chosen = any(re.match(r"-O|--optimize", flag) for flag in given)
    return list(given) if chosen else [*GPU, *given]


def given(kept: list[str], traced: bool) -> list[str]:
    """The caller's flags for the host's compiler; the traced mode has its own level of optimisation."""
    return [flag for flag in kept if not (traced and re.match(r"-O", flag))]


def host_flags(cuda_cflags: list[str]) -> list[str]:
    """The flags of nvcc that mean the same to the host's compiler, and those that nvcc passes on to it.

    Those of an architecture choose the simulated device: a Blackwell, if all of them name sm_100a or its like.
    """
    named = re.findall(
        r"\b(?:sm|compute)_(\w+)", " ".join(flag for flag in cuda_cflags if flag[:2] not in ("-D", "-I"))
    )
    kept = ["-DSIMT_BLACKWELL"] if named and all(name.startswith("100") for name in named) else []
    rest = iter(cuda_cflags)
    for flag in rest:
        option, _, value = flag.partition("=")
        if option in ("-Xcompiler", "--compiler-options"):
            kept += (value or next(rest, "")).split(",")
        elif re.match(r"-(?:D|U|I|std=|O[0-3]$)", flag):
            kept.append(flag)
    return kept
