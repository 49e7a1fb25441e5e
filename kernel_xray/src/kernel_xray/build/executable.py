"""From a program's sources to an executable in the build cache, compiled with nvcc or for the simulator.

The compilers are called directly. PyTorch's headers and libraries are used only if a source includes them: a program
without them builds in a second or two.
"""

import contextvars
import dataclasses
import re
import subprocess
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernel_xray.build import dependencies, flags, libraries, sources
from kernel_xray.build.compile_errors import explain, names_change_meaning
from kernel_xray.build.request import Build, architectures
from kernel_xray.machine import artifacts, cache, guard, toolchain
from kernel_xray.machine.paths import RUNTIME, also_include
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime import compiled_headers, libsimt
from kernel_xray.translate.errors import BuildError
from kernel_xray.translate.guards import LEFT_OUT

SUFFIXES = (".cu", ".cpp", ".cc", ".cxx")
_START = RUNTIME / "program" / "start.cpp"  # linked into each program
_CAPABILITY = re.compile(r"--?(?:arch|gencode|gpu-architecture|generate-code)\b")
_STANDARD = "-std=gnu++17"  # what nvcc asks of g++ by default
_NO_MAIN = re.compile(r"undefined reference to `main'|undefined symbols?.*\s\"?_main\b")


@dataclasses.dataclass
class Plan:
    """How to build a program: what compiles each source to an object, and what links the objects."""

    compile: list[list[str]]  # commands without their output
    linker: list[str]
    linking: list[str]  # flags that follow the objects


def get(build: Build) -> Path:
    """The executable, from the build cache or newly built. Raises BuildError."""
    try:
        return _made(build)
    except BuildError as error:
        if build.whole or LEFT_OUT not in error.output:
            raise
        return _made(dataclasses.replace(build, whole=True))


def _made(build: Build) -> Path:
    build.include_paths = also_include(build.include_paths)
    texts = build.texts()
    simulated = build.target == "simulator"
    runtime = libsimt.runtime_library().name if simulated else ""
    folders = _torch_folders() if sources.torch_headers(texts) else ""  # the program searches them
    key = dependencies.current(cache.digest("program", build.key(texts), _START.read_bytes(), runtime, folders))
    folder = cache.root() / f"{build.name}-{key}"

    def make() -> Path:
        began = time.time()
        with Progress(f"building {build.name} for the {build.target}"):
            made = _follow((_simulator_plan if simulated else _gpu_plan)(build, texts, folder), build, folder)
        dependencies.record(key, dependencies.of_makefiles(folder.glob("*.d")), texts, began)
        return made

    program = artifacts.built(folder, key, make, lambda: dependencies.state(key))
    if simulated:  # the program loads it: it is intact, or is built again
        libraries.linking(texts, [])
    return program


def _simulator_plan(build: Build, texts: dict[Path, str], folder: Path) -> Plan:
    """Translates the sources into `folder`; the host's compiler builds them."""
    compiler, runtime = libsimt.compiler().split(), libsimt.runtime_library()
    always = ["-fPIE", "-pthread", *flags.simulator(build.traced), *flags.in_more_memory()]
    with ThreadPoolExecutor(1) as pool:  # a compiler on the other core
        headers = pool.submit(contextvars.copy_context().run, _compiled_headers, build, texts, always)
        places = sources.write_translated(texts, folder / "translated", build.include_paths, {}, build.names(texts))
    beside = [f for path in dict.fromkeys(p.parent for p in texts) for f in ("-iquote", str(path))]
    common = [*compiler, "-c", *always, *beside]
    common += flags.debug_folders() if build.traced else []
    common += [*libraries.compile_flags(texts), *headers.result(), f"-I{libsimt.INCLUDE}", *libraries.headers(texts)]
    common += [f"-I{p}" for p in build.include_paths]
    linking = [*libraries.linking(texts, build.ldflags), *libsimt.linked(runtime, "simt")]
    linking += flags.TRACED_LINKING if build.traced else []
    if sources.torch_headers(texts):
        common += [*_torch_flags("cpu"), *(["-DSIMT_WHOLE_TORCH"] if sources.uses_cpp_frontend(texts) else [])]
        linking += _torch_libraries("-Wl,", "torch", "torch_cpu", "c10")
    commands = [[*compiler, "-c", "-fPIE", "-D__SIMT__", str(_START)]]
    of_cuda = flags.given(flags.host_flags(build.cuda_cflags), build.traced)
    of_host = flags.given(build.cflags, build.traced)
    for source in build.sources:
        standard = _standard(build, source, texts, _STANDARD)
        commands.append([*common, standard, *(of_cuda if source.suffix == ".cu" else of_host), str(places[source])])
    also = [flag for flag in (*of_cuda, *build.cflags) if flag.startswith("-f")]  # such as -fopenmp
    linker = [*compiler, "-pie", "-pthread", *also]
    return Plan(commands, linker, linking)


def _compiled_headers(build: Build, texts: dict[Path, str], always: list[str]) -> list[str]:
    """The flag by which g++ finds compiled headers, if no flag of this build alone changes them.

    Not in an X-ray, whose debugging information would name these headers in another way.
    """
    given = flags.given([*build.cflags, *flags.host_flags(build.cuda_cflags)], build.traced)
    same = all(flag.startswith(("-D", "-I")) for flag in given) and not sources.torch_headers(texts)
    compiled = compiled_headers.of_programs([*always, _STANDARD]) if same and not build.traced else None
    return [f"-I{compiled}"] if compiled else []


def _gpu_plan(build: Build, texts: dict[Path, str], _folder: Path) -> Plan:
    """nvcc compiles the .cu files and links; the host's compiler compiles the others."""
    nvcc = toolchain.find_nvcc()
    if nvcc is None:
        raise RuntimeError("nvcc is not found: install the CUDA toolkit, or set CUDA_HOME")
    toolchain.prepare_nvcc(nvcc)
    home, compiler = nvcc.resolve().parent.parent, libsimt.compiler().split()
    chosen = any(_CAPABILITY.match(flag) for flag in build.cuda_cflags)
    capabilities = [] if chosen else [name.replace(".", "") for name in sorted(architectures())]
    device = [*(f"-gencode=arch=compute_{n},code=sm_{n}" for n in capabilities), *build.cuda_cflags]
    common = ["-c", *(f"-I{p}" for p in build.include_paths)]
    linking = [f"-L{home / name}" for name in ("lib64", "lib") if (home / name).is_dir()]
    if sources.torch_headers(texts):
        common += _torch_flags("cuda")
        linking += _torch_libraries("-Xlinker=", "torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda")
        device.append("--expt-relaxed-constexpr")
    commands = [[*compiler, "-c", str(_START)]]
    for source in build.sources:
        cuda = [str(nvcc), *flags.for_gpu(device)]
        host = [*compiler, f"-I{home / 'include'}", *flags.for_gpu(build.cflags)]
        standard = _standard(build, source, texts, "-std=c++17")
        commands.append([*(cuda if source.suffix == ".cu" else host), standard, *common, str(source)])
    return Plan(commands, [str(nvcc), *device], [*linking, *build.ldflags])


def _standard(build: Build, source: Path, texts: dict[Path, str], default: str) -> str:
    """The flag of the C++ standard for a source."""
    given = [f for f in (build.cuda_cflags if source.suffix == ".cu" else build.cflags) if re.match(r"--?std=", f)]
    if given:
        return "-" + given[-1].lstrip("-")
    if not sources.torch_headers(texts):
        return default
    from kernel_xray.runtime import precompiled  # imports PyTorch

    return precompiled.torch_standard()


def _torch_flags(device: str) -> list[str]:
    from torch.utils import cpp_extension

    paths = [*cpp_extension.include_paths(device), sysconfig.get_path("include")]  # torch/extension.h needs Python.h
    include = [f for path in paths for f in ("-isystem", path)]
    return [*flags.NVCC_DEFINES, "-DUSE_CUDA", *include]


def _torch_folders() -> list[str]:
    from torch.utils import cpp_extension

    return cpp_extension.library_paths()


def _torch_libraries(prefix: str, *names: str) -> list[str]:
    folder = _torch_folders()[0]
    return [f"-L{folder}", *(f"-l{name}" for name in names), f"{prefix}-rpath,{folder}"]


def _follow(plan: Plan, build: Build, folder: Path) -> Path:
    """Compiles all sources at once, links the program and returns its path. Raises BuildError."""
    objects = [str(folder / f"{i}.o") for i in range(len(plan.compile))]
    outputs = (["-MD", "-MF", str(Path(o).with_suffix(".d")), "-o", o] for o in objects)
    calls = [[*command, *output] for command, output in zip(plan.compile, outputs, strict=True)]
    for call, done in zip(calls, guard.run_all(calls, BuildError, build.target), strict=True):
        if done.returncode and names_change_meaning(done.stdout + done.stderr):
            (done,) = guard.run_all([[*call, "-fpermissive"]], BuildError, build.target)
        _check(done, build)
    program = folder / "program"
    (linked,) = guard.run_all([[*plan.linker, *objects, *plan.linking, "-o", str(program)]], BuildError, build.target)
    _check(linked, build)
    return program


def _check(done: subprocess.CompletedProcess, build: Build) -> None:
    if not done.returncode:
        return
    output = done.stdout + done.stderr
    if _NO_MAIN.search(output):
        name = build.sources[0].name
        raise BuildError(f"{name} has no main(), where a program begins; kernel_xray.load builds extensions", output)
    raise explain(build.name, output)
