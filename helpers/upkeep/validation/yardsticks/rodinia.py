"""The Rodinia benchmarks: for each program its sources, arguments for a small input, and what says that it is right.

Che et al.: Rodinia: A Benchmark Suite for Heterogeneous Computing, IISWC 2009. The suite has the same benchmarks for
CPUs (OpenMP); where its results are comparable, they are the reference.
"""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

Paths = tuple[str, ...]


@dataclass(frozen=True)
class Reference:
    """The suite's program for CPUs, run with these arguments in a folder like that of the CUDA program."""

    folder: str  # in the suite
    sources: Paths
    arguments: Paths
    defines: Paths = ()


@dataclass(frozen=True)
class Program:
    """A CUDA program of the suite. It runs in an empty folder, with the inputs in `data` where it looks for them.

    sources    .cu and .cpp files; `c` are compiled as C, as the suite's Makefile does
    output     the file that it writes, or "stdout"; `lines`: a regular expression for the lines of it that count
    says       what its own check prints if the result is right, a regular expression
    reference  a program whose output has the same numbers; or a file of `data` with them, whose first numbers are those
               of the output
    tolerance  relative, for numbers of the reference
    bug        an access of its kernels outside their memory, which a GPU lets pass: the simulator has to stop there
    needs      files of the suite's own data without which there is no input
    """

    name: str
    folder: str  # below cuda/
    sources: Paths
    arguments: Paths
    c: Paths = ()
    include: Paths = ()
    defines: Paths = ()
    output: str = "stdout"
    lines: str = ""
    says: str = ""
    reference: Reference | str | None = None
    tolerance: float = 1e-4
    bug: str = ""
    needs: Paths = ()
    traced: bool = field(default=True)  # False: the X-ray would take longer than the limit

    @property
    def benchmark(self) -> str:
        """The benchmark that it belongs to: some have several programs."""
        return PurePosixPath(self.folder).parts[0]


def _cpu(folder: str, sources: str, arguments: str, defines: str = "") -> Reference:
    return Reference(f"openmp/{folder}", tuple(sources.split()), tuple(arguments.split()), tuple(defines.split()))


def _program(folder: str, sources: str, arguments: str, *, name: str = "", **more: Any) -> Program:
    """An entry of the table, in which a string has words in place of a tuple. Its name is that of its folder."""
    more |= {key: tuple(more[key].split()) for key in more.keys() & {"c", "include", "defines", "needs"}}
    return Program(name or folder, folder, tuple(sources.split()), tuple(arguments.split()), **more)


def _cfd(name: str) -> Program:
    run, cpu = "../../data/cfd/cells", name.replace("3d", "3d_cpu")
    return _program(
        "cfd",
        f"{name}.cu",
        run,
        name=name,
        include="../hybridsort",  # where the suite has a copy of the CUDA samples' helper_cuda.h
        output="density",
        lines=r"^(?!\d+ \d+$).+",  # without the first: the CUDA program counts padding
        reference=_cpu("cfd", f"{cpu}.cpp", run, "-Dblock_length=8"),
        tolerance=1e-3,
    )


_TREE = "file ../../data/b+tree/mil.txt command ../../data/b+tree/command.txt"
_TREE_C = "util/timer/timer.c util/num/num.c"
_STREAM = "3 5 16 256 256 50 none output.txt 1"
_PARTICLES = "-x 32 -y 32 -z 3 -np 128"
PROGRAMS = (
    _program(
        "b+tree",
        "kernel/kernel_gpu_cuda_wrapper.cu kernel/kernel_gpu_cuda_wrapper_2.cu util/cuda/cuda.cu",
        _TREE,
        c=f"main.c {_TREE_C}",
        output="output.txt",
        reference=_cpu("b+tree", f"main.c kernel/kernel_cpu.c kernel/kernel_cpu_2.c {_TREE_C}", f"cores 1 {_TREE}"),
    ),
    _program("backprop", "backprop_cuda.cu", "256", c="backprop.c facetrain.c imagenet.c", says=r"Training done"),
    _program(
        "bfs",
        "bfs.cu",
        "../../data/bfs/graph.txt",
        output="result.txt",
        reference=_cpu("bfs", "bfs.cpp", "1 ../../data/bfs/graph.txt"),
    ),
    *map(_cfd, ("euler3d", "euler3d_double", "pre_euler3d", "pre_euler3d_double")),
    _program(
        "dwt2d",
        "main.cu dwt.cu components.cu dwt_cuda/common.cu dwt_cuda/fdwt53.cu dwt_cuda/fdwt97.cu dwt_cuda/rdwt53.cu "
        "dwt_cuda/rdwt97.cu",
        "../../data/dwt2d/64.bmp -d 64x64 -f -5 -l 3",
        include=".",
        says=r"DWT levels",
    ),
    # It does not print the solution.
    _program("gaussian", "gaussian.cu", "-f ../../data/gaussian/matrix.txt", says=r"Time for CUDA kernels"),
    _program(
        "heartwall",
        "main.cu",
        "../../data/heartwall/test.avi 2",
        c="AVI/avilib.c AVI/avimod.c",
        include="AVI",
        defines="-DOUTPUT",
        output="result.txt",
        reference=_cpu(
            "heartwall", "main.c AVI/avilib.c AVI/avimod.c", "../../data/heartwall/test.avi 2 1", "-DOUTPUT -IAVI"
        ),
    ),
    _program(
        "hotspot",
        "hotspot.cu",
        "64 2 4 ../../data/hotspot/temp ../../data/hotspot/power output.out",
        output="output.out",
        lines=r"(?<=\t).*",
        reference="hotspot/expected.txt",  # the suite's program for CPUs takes a thousandth of the time step
    ),
    _program(
        "hotspot3D",
        "3D.cu",
        "64 8 4 ../../data/hotspot3D/power ../../data/hotspot3D/temp output.out",
        says=r"Accuracy: (0\.0+e\+00|\d\.\d+e-(0[4-9]|[1-9]\d))",
    ),
    _program(
        "huffman",
        "main_test_cu.cu vlc_kernel_sm64huff.cu scan.cu pack_kernels.cu stats_logger.cpp cpuencode.cpp",
        "../../data/huffman/text.in",
        says=r"PASS! vectors are matching",
    ),
    _program(
        "hybridsort",
        "bucketsort.cu mergesort.cu main.cu",
        "../../data/hybridsort/numbers.txt",
        defines="-DVERIFY",
        says=r"PASSED",
    ),
    _program(
        "kmeans",
        "kmeans_cuda.cu",
        "-o -i ../../data/kmeans/points",
        c="cluster.c getopt.c kmeans.c kmeans_clustering.c rmse.c",
        lines=r"^\d+:.*",
        reference=_cpu(
            "kmeans/kmeans_serial", "cluster.c getopt.c kmeans.c kmeans_clustering.c", "-o -i ../../data/kmeans/points"
        ),
    ),
    _program(
        "lavaMD",
        "kernel/kernel_gpu_cuda_wrapper.cu util/device/device.cu",
        "-boxes1d 2",
        c="main.c util/num/num.c util/timer/timer.c",
        defines="-DOUTPUT",
        output="result.txt",
        reference=_cpu(
            "lavaMD", "main.c kernel/kernel_cpu.c util/num/num.c util/timer/timer.c", "-cores 1 -boxes1d 2", "-DOUTPUT"
        ),
    ),
    _program(
        "lud",
        "cuda/lud.cu cuda/lud_kernel.cu",
        "-s 64 -v",
        c="common/common.c",
        include="common",
        says=r"Verify[^\n]*\n(?!.*dismatch)",
    ),
    _program(
        "mummergpu",
        "src/mummergpu.cu src/mummergpu_main.cpp src/mummergpu_gold.cpp src/suffix-tree.cpp src/PoolMalloc.cpp",
        "../../data/mummergpu/reference.fna ../../data/mummergpu/queries.fna",
        include="src",
        says=r">",
    ),
    _program("myocyte", "main.cu", "2 1 0", needs="myocyte/y.txt myocyte/params.txt"),
    _program(
        "nn",
        "nn_cuda.cu",
        "../../data/nn/list -r 5 -lat 30 -lng 90",
        lines=r"(?<=Distance=).*",
        reference="nn/distances.txt",
    ),
    _program(
        "nw",
        "needle.cu",
        "64 10",
        defines="-DTRACEBACK",
        output="result.txt",
        reference=_cpu("nw", "needle.cpp", "64 10 1", "-DTRACEBACK"),
    ),
    *(
        _program(
            "particlefilter", f"ex_particle_CUDA_{form}_seq.cu", _PARTICLES, name=f"particlefilter_{form}", says=r"YE: "
        )
        for form in ("naive", "float")
    ),
    _program(
        "pathfinder",
        "pathfinder.cu",
        "500 20 4",
        defines="-DBENCH_PRINT",
        lines=r"^(?:\d+ ){500}$",
        reference=_cpu("pathfinder", "pathfinder.cpp", "500 20", "-DBENCH_PRINT"),
    ),
    _program(
        "srad/srad_v1",
        "main.cu",
        "2 0.5 64 64",
        name="srad_v1",
        output="image_out.pgm",
        reference=_cpu("srad/srad_v1", "main.c", "2 0.5 64 64 1"),
        tolerance=1e-2,  # levels of grey, rounded down
    ),
    _program(
        "srad/srad_v2",
        "srad.cu",
        "48 48 0 15 0 15 0.5 2",
        name="srad_v2",
        bug="srad_kernel.cu reads J_cuda[index_s] below the last row, and only then asks whether there is a row",
        defines="-DOUTPUT",
        lines=r"^(?:[\d.]+ ){48}$",
        reference=_cpu("srad/srad_v2", "srad.cpp", "48 48 0 15 0 15 1 0.5 2", "-DOUTPUT"),
    ),
    _program(
        "streamcluster",
        "streamcluster_cuda_cpu.cpp streamcluster_cuda.cu streamcluster_header.cu",
        _STREAM,
        output="output.txt",
        reference=_cpu("streamcluster", "streamcluster_omp.cpp", _STREAM),
    ),
    _program(
        "leukocyte",
        "CUDA/find_ellipse_kernel.cu CUDA/track_ellipse_kernel.cu",
        "../../data/leukocyte/testfile.avi 2",
        needs="leukocyte/testfile.avi",
    ),
)
