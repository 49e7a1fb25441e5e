"""`program`: what a program writes and how it ends, faults as CUDA reports them, X-rays, limits, builds."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from simt_programs import line_marked

import kernel_xray
from kernel_xray.__main__ import main
from kernel_xray.build import executable, flags, libraries, process
from kernel_xray.build.extension import Build
from kernel_xray.machine import guard, toolchain
from kernel_xray.runtime import compiled_headers, libsimt

PROGRAMS = Path(__file__).parent / "programs"
SIMULATOR = kernel_xray.target == "simulator"
on_simulator = pytest.mark.skipif(not SIMULATOR, reason="the simulator's own report of a fault")
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's parent-death signal")


def plain(*arguments, **options):
    return kernel_xray.program(PROGRAMS / "plain.cu", *arguments, **options)


def traced(*arguments, **options):
    return kernel_xray.program(PROGRAMS / "traced.cu", *arguments, traced=True, **options)


def marked(name, file="traced.cu"):
    return line_marked(PROGRAMS / file, name)


def alive(pid):
    """Whether a process runs; one that has ended and was not waited for by its parent does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in ("", "Z")


def gone(*pids, seconds=10):
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


# ----------------------------------------------------------------------------------------------------------------------
# What it writes, and how it ends


FILLS = "-ftrivial-auto-var-init=pattern"


@pytest.mark.parametrize(
    ("identity", "recent"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("c++ (GCC) 14.1.1 20240701 (Red Hat 14.1.1-7)", True),
        ("g++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", False),
        ("Apple clang version 16.0.0 (clang-1600.0.26.3)", True),
        ("Debian clang version 14.0.6", False),
    ],
)
def test_recent_compilers_fill_locals(identity, recent, monkeypatch):
    monkeypatch.setattr(flags.libsimt, "compiler_identity", lambda command: identity)
    assert (FILLS in flags.simulator(traced=False)) == recent
    assert FILLS not in flags.simulator(traced=True)


@pytest.mark.parametrize(
    ("identity", "machine", "spared"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "aarch64", True),
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "x86_64", False),
        ("g++ (Debian 14.2.0-19) 14.2.0", "aarch64", False),
        ("Debian clang version 12.0.1", "aarch64", False),
    ],
)
def test_loops_in_which_a_compiler_fails_are_not_vectorised(identity, machine, spared, monkeypatch):
    monkeypatch.setattr(flags.libsimt, "compiler_identity", lambda command: identity)
    monkeypatch.setattr(flags.platform, "machine", lambda: machine)
    assert ("-fno-tree-loop-vectorize" in flags.simulator(traced=False)) == spared


@pytest.mark.slow  # a build; the flag is the one of extensions
@on_simulator
def test_a_local_without_a_value_is_not_zero_by_luck():
    if FILLS not in flags.simulator(traced=False):
        pytest.skip("g++ before 12 and clang before 16 have no flag that fills locals")
    forgotten, right = kernel_xray.program(PROGRAMS / "locals.cu").stdout.split()
    assert right == "10"
    assert abs(float(forgotten)) > 1e30 or forgotten == "nan"


def test_a_program_prints_and_exits():
    result = plain("hello")
    assert (result.stdout, result.stderr) == ("hello from thread 0\nhello from thread 1\n", "")
    assert (result.ended, result.status, result.fault, result.report) == ("exit", 0, None, None)
    assert str(result) == "plain: exit status 0"


def test_it_gets_its_arguments_and_a_name_beside_its_source_and_its_exit_status_comes_back():
    result = plain("arguments", 1, "two words", Path("/three"))
    assert result.stdout == f"[{PROGRAMS / 'plain'}][arguments][1][two words][/three]"
    assert result.status == 7


@pytest.mark.parametrize(("given", "written"), [("banana\n", "bAnAnA\n"), (b"a\xff", "A�"), (None, "")])
def test_it_reads_what_it_is_given(given, written):
    assert plain("stdin", stdin=given).stdout == written


def test_input_that_is_not_read_does_no_harm():
    assert plain("hello", stdin="x" * 1_000_000).status == 0


def test_it_runs_in_a_folder_with_variables(tmp_path):
    (tmp_path / "data.txt").write_text("here")
    assert plain("file", cwd=tmp_path, env={"SOME_VARIABLE": "set"}).stdout == "here set"
    with pytest.raises(NotADirectoryError, match=r"cwd is .*missing"):
        plain("file", cwd=tmp_path / "missing")


@pytest.mark.slow  # one more build; the test above passes a folder
def test_its_own_folder_is_the_default(tmp_path):
    (tmp_path / "data.txt").write_text("beside")
    (tmp_path / "reads.cu").write_text((PROGRAMS / "plain.cu").read_text())
    assert kernel_xray.program(tmp_path / "reads.cu", "file", env={"SOME_VARIABLE": "x"}).stdout == "beside x"


def test_output_is_kept_up_to_a_limit_and_the_program_still_ends():
    result = plain("flood")
    assert len(result.stdout) == process.OUTPUT_BYTES
    assert result.dropped == 12_000 * 1_000 - process.OUTPUT_BYTES
    assert (result.stderr, result.status) == ("the end\n", 0)
    assert plain("hello").dropped == 0


def test_a_signal_is_named_and_output_before_it_is_kept():
    result = plain("abort")
    assert (result.ended, result.status, result.stdout) == ("SIGABRT", None, "before\n")
    assert str(result) == "plain: SIGABRT"


def test_the_time_limit_ends_the_program_and_its_children():
    plain("hello")  # builds it
    result = plain("sleep", timeout=1.0)
    assert (result.ended, result.status) == ("time limit", None)
    assert gone(*map(int, result.stdout.split()))


def test_an_interrupt_ends_the_program_and_its_children(tmp_path):
    plain("hello")

    def interrupt(number, frame):
        raise KeyboardInterrupt

    pids = []

    def wait_and_interrupt():
        while len(pids) < 2:
            time.sleep(0.05)
            pids[:] = children_of(os.getpid())
        os.kill(os.getpid(), signal.SIGUSR1)

    def children_of(pid):
        # In a C locale, ps does not print the folder as it is called.
        found = subprocess.run(["ps", "-Ao", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        return [int(line.split()[0]) for line in found.splitlines() if line.endswith("/plain sleep")]

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Thread(target=wait_and_interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            plain("sleep")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(pids) == 2 and gone(*pids)


@pytest.mark.slow  # waits for a process to end
@on_linux
def test_the_program_ends_with_the_process_that_started_it():
    place = executable.get(build(PROGRAMS / "plain.cu"))
    starter = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], env={**os.environ, 'KERNEL_XRAY_PARENT': str(os.getpid())})\n"
        "child.wait()"
    )
    command = [sys.executable, "-c", starter, place, "sleep"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        program, child = map(int, parent.stdout.readline().split())
        assert alive(program)
        parent.kill()
    assert gone(program)
    os.kill(child, signal.SIGKILL)  # it is not of the group that a time limit would end


def test_text_that_only_looks_like_code_stays():
    written = plain("text").stdout.splitlines()
    assert written == ["k<<<1, 1(((", 'asm("mov") // /* \\', 'k<<<)" tex2D', "2"]


def test_it_computes_with_halves_as_nvcc_does_without_pytorch():
    assert plain("half").status == 0


# ----------------------------------------------------------------------------------------------------------------------
# Faults in kernels


@on_simulator
def test_a_fault_is_printed_once_and_every_later_call_returns_its_error():
    result = plain("fault")
    assert (result.ended, result.status) == ("exit", 3)
    calls = dict(line.split() for line in result.stdout.splitlines())
    assert set(calls.values()) == {"cudaErrorIllegalAddress"}
    assert len(calls) == 11
    assert result.fault.kind == "illegal-access"
    assert "past the end of an allocation of 1024 bytes" in str(result.fault)
    where = f"launched at {PROGRAMS / 'plain.cu'}:{marked('fault', 'plain.cu')}"
    assert f"in kernel 'fill_kernel', block (0, 0, 0), thread (0, 0, 0), {where}" in str(result.fault)
    assert result.stderr == f"kernel fault (illegal-access): {result.fault}\n"
    assert str(result) == "plain: exit status 3; illegal-access in a kernel"


@on_simulator
def test_an_assertion_in_a_kernel_has_its_own_error():
    result = plain("assert")
    assert (result.status, result.fault.kind) == (0, "assert")
    place = f"{PROGRAMS / 'plain.cu'}:{marked('assert', 'plain.cu')}"
    assert f"assertion failed: int(threadIdx.x) < limit\n  at {place}, in assert_kernel" in result.stderr


def test_without_a_fault_errors_are_ordinary():
    result = plain("good")
    assert (result.status, result.fault, result.stderr) == (0, None, "")
    # An H200 with CUDA 13 calls too many threads an invalid value; the simulator has the older, more telling name.
    assert re.fullmatch("cudaErrorInvalid(Configuration|Value), then cudaSuccess\n", result.stdout)


# ----------------------------------------------------------------------------------------------------------------------
# X-rays


def test_an_xray_counts_by_line_also_in_a_header():
    result = traced("cost")
    report = result.report
    assert (result.status, report.result, result.fault, report.faults) == (0, 0, None, [])
    assert [(launch.kernel, launch.blocks, launch.traced_blocks) for launch in report.launches] == [
        ("copy_kernel", 4, 4)
    ] * 2
    costs = {(record.kind, record.requests): (record.sectors, record.ideal_sectors) for record in report.lines}
    # 32 warps for each launch. A store has 4 sectors, as has a load with stride 1; with stride 32 it has 32.
    assert costs == {("store", 64): (256, 256), ("load", 64): (128 + 1024, 256)}
    assert {(Path(record.file).name, record.line) for record in report.lines} == {
        ("traced.cuh", marked("copy", "traced.cuh"))
    }
    assert "traced.cuh" in str(report)


def test_an_xray_finds_a_race_and_the_program_goes_on():
    result = traced("race", seed=1)
    assert (result.status, result.fault, result.report.seed) == (0, None, 1)
    (fault,) = result.report.faults
    assert (fault.kind, Path(fault.file).name, fault.line) == ("race", "traced.cu", marked("race"))
    assert "race" not in [found.kind for found in traced("cost", seed=1).report.faults]


def test_an_xray_finds_an_access_outside_and_no_kernel_runs_after_it():
    result = traced("outside")
    assert (result.status, result.stdout) == (0, "cudaErrorIllegalAddress\n")
    (fault,) = result.report.faults
    assert (fault.kind, fault.line, fault.thread) == ("out-of-bounds", marked("outside"), (100, 0, 0))
    assert "just past the end of an allocation of 400 bytes" in fault.message
    assert [launch.kernel for launch in result.report.launches] == ["copy_kernel"] * 2 + ["outside_kernel"] * 2
    assert (result.fault.kind, result.report.error) == ("out-of-bounds", result.fault)
    assert result.stderr.count("kernel fault") == 1


@pytest.mark.parametrize(("how", "ended", "status"), [("exit", "exit", 6), ("abort", "SIGABRT", None)])
def test_an_xray_survives_the_ways_to_end(how, ended, status):
    result = traced(how)
    assert (result.ended, result.status, len(result.report.launches)) == (ended, status, 2)


@pytest.mark.slow  # waits for its limit; the other ways to end are above
def test_an_xray_survives_the_time_limit():
    traced("nothing")  # builds it
    result = traced("sleep", timeout=2.0)
    assert (result.ended, len(result.report.launches)) == ("time limit", 2)


@pytest.mark.slow  # waits for its limit; an X-ray that survives other ends is above
def test_the_time_limit_in_a_launch_leaves_the_blocks_so_far():
    traced("nothing")  # builds it
    report = traced("slow", timeout=3.0, max_blocks=1000).report
    assert 0 < report.launches[-1].traced_blocks < 1000
    assert marked("slow") in [record.line for record in report.lines]
    assert {fault.line for fault in report.faults} == {marked("slow")}  # every block adds to the same elements


@pytest.mark.slow  # a build; test_xray.py has reports that end early
def test_an_xray_of_many_launches_is_complete():
    assert len(traced("many").report.launches) == 202


def test_an_xray_without_a_launch_is_empty():
    result = traced("nothing")
    assert (result.status, result.report.launches, result.report.lines) == (5, [], [])


def test_max_blocks_samples_a_launch():
    launches = traced("cost", max_blocks=2).report.launches
    assert [launch.traced_blocks for launch in launches] == [2, 2]


# ----------------------------------------------------------------------------------------------------------------------
# Builds


def build(*files, **options):
    return Build(Path(files[0]).stem, [Path(file) for file in files], target=kernel_xray.target, **options)


@pytest.mark.slow  # a build of three files; test_units.py has such an extension
def test_a_program_of_several_sources_with_headers_in_folders(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "scale.cuh").write_text("#pragma once\nvoid scale(float* x, float by);\n")
    (tmp_path / "a main.cu").write_text(
        '#include <scale.cuh>\n#include "util.h"\n'
        "int main() { float* x; cudaMallocManaged(&x, 128); for (int i = 0; i < 32; ++i) x[i] = i;\n"
        "scale(x, FACTOR); cudaDeviceSynchronize(); return rounded(x[31]); }\n"
    )
    (tmp_path / "scale.cu").write_text(
        '#include "scale.cuh"\n'
        "__global__ void scale_kernel(float* x, float by) { x[threadIdx.x] *= by; }\n"
        "void scale(float* x, float by) { scale_kernel<<<1, 32>>>(x, by); }\n"
    )
    (tmp_path / "util.h").write_text("#pragma once\nint rounded(float x);\n")
    (tmp_path / "util.cpp").write_text(
        '#include "util.h"\n#if __cplusplus < 202002L || !defined(UTIL)\n#error flags\n#endif\n'
        "int rounded(float x) { return int(x + 0.5f); }\n"
    )
    result = kernel_xray.program(
        tmp_path / "a main.cu",
        sources=[tmp_path / "scale.cu", tmp_path / "util.cpp"],
        include_paths=tmp_path / "own",
        cflags=["-std=c++20", "-DUTIL"],
        cuda_cflags=["-DFACTOR=3.0f"],
    )
    assert result.status == 93


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "int main() {\n  return undeclared;\n}\n",
            r"bad.cu:2: error: .*undeclared",
            marks=pytest.mark.slow,  # test_xray_command.py has a program with an error
        ),
        ("__global__ void k() {}\n", r"bad.cu has no main\(\), where a program begins"),
        pytest.param(
            "void missing();\nint main() { missing(); }\n",
            "undefined reference to .missing",
            marks=pytest.mark.slow,  # the linker's error above; test_malformed_sources.py has this one of an extension
        ),
        ('#include "missing.h"\nint main() {}\n', r"bad.cu:1: error: '?missing.h"),
    ],
)
def test_what_does_not_build_is_named(tmp_path, text, message):
    (tmp_path / "bad.cu").write_text(text)
    with pytest.raises(kernel_xray.BuildError, match=message):
        kernel_xray.program(tmp_path / "bad.cu", ldflags=["-lcudart"])  # named in vain in the simulator


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"file names .*missing.cu, which does not exist"):
        kernel_xray.program(tmp_path / "missing.cu")
    with pytest.raises(FileNotFoundError, match=r"sources names .*missing.cpp"):
        plain("hello", sources=[tmp_path / "missing.cpp"])
    (tmp_path / "main.f90").touch()
    with pytest.raises(ValueError, match=r"main.f90 is not a source of a program"):
        kernel_xray.program(tmp_path / "main.f90")
    for name, least in (("timeout", "more than 0"), ("max_blocks", "1 or more"), ("budget", "1 or more")):
        with pytest.raises(ValueError, match=f"{name} is 0; it must be {least}"):
            plain("hello", **{name: 0})
    with pytest.raises(TypeError, match="cuda_cflags is '-O3'"):
        plain("hello", cuda_cflags="-O3")


def test_flags_of_nvcc_for_the_hosts_compiler():
    given = ["-arch=sm_80", "-Xcompiler", "-fopenmp,-Wall", "--compiler-options=-march=native", "-DX=1", "-lineinfo"]
    assert flags.host_flags(given) == ["-fopenmp", "-Wall", "-march=native", "-DX=1"]


@pytest.mark.parametrize(
    ("given", "blackwell"),
    [
        (["-arch=sm_100a"], True),
        (["-arch", "sm_100f"], True),
        (flags.SM_100A, True),
        (["-arch=native"], False),
        (["-DNAME=sm_100a"], False),
        ([*flags.SM_90A, *flags.SM_100A], False),  # made for both: the device stays a Hopper
    ],
)
def test_an_architecture_chooses_the_simulated_device(given, blackwell):
    assert ("-DSIMT_BLACKWELL" in flags.host_flags(given)) == blackwell


LIBRARIES = ["-lcublas", "-lcurand"]


@pytest.mark.slow
@pytest.mark.skipif(SIMULATOR and libraries.cccl() is None, reason="needs NVIDIA's headers: nvidia-cuda-cccl")
def test_a_program_may_use_the_libraries_of_cuda(tmp_path):
    (tmp_path / "libraries.cu").write_text(
        "#include <cublas_v2.h>\n#include <curand_kernel.h>\n#include <thrust/device_vector.h>\n"
        "#include <thrust/sequence.h>\n"
        "int main() {\n"
        "  thrust::device_vector<float> x(5), y(5, 2.f), random(100);\n"
        "  thrust::sequence(x.begin(), x.end());\n"
        "  cublasHandle_t blas;\n"
        "  curandGenerator_t generator;  // declared by curand_kernel.h too\n"
        "  float dot = 0;\n"
        "  if (cublasCreate(&blas) || curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_XORWOW)) return 1;\n"
        "  if (curandGenerateUniform(generator, random.data().get(), 100)) return 2;\n"
        "  if (cublasSdot(blas, 5, x.data().get(), 1, y.data().get(), 1, &dot)) return 3;\n"
        "  const float sum = thrust::reduce(random.begin(), random.end());\n"
        "  return sum > 30 && sum < 70 ? int(dot) : 4;\n"
        "}\n"
    )
    assert kernel_xray.program(tmp_path / "libraries.cu", ldflags=LIBRARIES).status == 20


@pytest.mark.slow
def test_a_program_may_use_pytorch(tmp_path):
    (tmp_path / "tensors.cu").write_text(
        "#include <torch/torch.h>\n"
        "__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }\n"
        "int main() {\n"
        "  auto x = torch::ones({32}, torch::kCUDA);\n"
        "  twice_kernel<<<1, 32>>>(x.data_ptr<float>());\n"
        "  return x.is_cuda() ? x.sum().item<int>() : 1;\n"
        "}\n"
    )
    assert kernel_xray.program(tmp_path / "tensors.cu").status == 64


@pytest.mark.slow  # nvcc; the quick suite runs programs in the simulator
@pytest.mark.skipif(toolchain.find_nvcc() is None, reason="needs nvcc")
def test_nvcc_builds_a_program_where_there_is_no_gpu(tmp_path):
    request = build(PROGRAMS / "plain.cu", ldflags=["-lcudart"])
    request.target = "gpu"
    place = executable.get(request)
    done = subprocess.run([place, "arguments"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"[{place}][arguments]", 7)
    (tmp_path / "bad.cu").write_text("__global__ void k() {\n  undeclared();\n}\nint main() {}\n")
    request = build(tmp_path / "bad.cu")
    request.target = "gpu"
    with pytest.raises(kernel_xray.BuildError, match=r"bad.cu:2: error: .*undeclared"):
        executable.get(request)


# ----------------------------------------------------------------------------------------------------------------------
# kernel-xray run


def run(capfd, *arguments):
    status = main(["run", *map(str, arguments)])
    return status, *capfd.readouterr()


def test_the_command_passes_output_arguments_and_exit_status_on(capfd):
    status, written, _ = run(capfd, PROGRAMS / "plain.cu", "arguments", "--xray", "-x")
    assert status == 7
    assert written == f"[{PROGRAMS / 'plain'}][arguments][--xray][-x]"


def test_the_command_prints_an_xray(capfd):
    status, written, _ = run(capfd, "--xray", "--seed", 3, "--budget", 100_000, PROGRAMS / "traced.cu", "race")
    assert status == 0
    assert f"traced.cu:{marked('race')}: race" in written and "seed 3" in written


def test_the_command_says_how_a_program_ended(capfd, tmp_path):
    status, written, errors = run(capfd, PROGRAMS / "plain.cu", "abort")
    assert (status, written) == (128 + signal.SIGABRT, "before\n") and "plain: SIGABRT" in errors
    status, _, errors = run(capfd, "--timeout", 1, PROGRAMS / "plain.cu", "sleep")
    assert status == 124 and "plain: time limit" in errors
    status, _, errors = run(capfd, tmp_path / "missing.cu")
    assert status == 2 and "missing.cu" in errors


# ----------------------------------------------------------------------------------------------------------------------
# Compiled headers


def compiled_headers_of(monkeypatch, source, **options):
    """The folders that this build asked for, and what the program printed."""
    made, folders = compiled_headers.of_programs, []
    monkeypatch.setattr(compiled_headers, "of_programs", lambda given: folders.append(made(given)) or folders[-1])
    return folders, kernel_xray.program(source, **options).stdout


@on_simulator
@pytest.mark.parametrize(
    ("options", "asked", "printed"),
    [
        ({}, True, "0 1"),
        ({"cuda_cflags": ["-DANSWER=2"]}, True, "2 1"),
        ({"cuda_cflags": ["-DNDEBUG"]}, True, "0 0"),  # g++ sees that it changes a header
        ({"cuda_cflags": ["-std=c++20"]}, False, "0 1"),
        ({"traced": True}, False, "0 1"),
    ],
)
def test_headers_are_compiled_once_for_builds_with_the_same_flags(tmp_path, monkeypatch, options, asked, printed):
    source = tmp_path / "small.cu"
    source.write_text(
        f"""// {tmp_path}
        #include <cstdio>
        #include <cuda_runtime.h>
        #include "cuda_runtime.h"
        #ifndef ANSWER
        #define ANSWER 0
        #endif
        int main() {{
          bool evaluated = false;
          assert((evaluated = true));
          std::printf("%d %d", ANSWER, evaluated);
        }}"""
    )
    folders, output = compiled_headers_of(monkeypatch, source, **options)
    assert output == printed and len(folders) == asked
    if asked and libsimt.finds_precompiled_headers():
        assert (folders[0] / f"{compiled_headers.PROGRAMS}.gch").exists()


@on_simulator
@pytest.mark.skipif(not libsimt.finds_precompiled_headers(), reason="only g++ finds precompiled headers by itself")
def test_the_compiler_takes_its_compiled_headers(tmp_path, monkeypatch):
    commands, run_all = [], guard.run_all
    monkeypatch.setattr(guard, "run_all", lambda calls, *given: commands.extend(calls) or run_all(calls, *given))
    source = tmp_path / "taken.cu"
    source.write_text(f"// {tmp_path}\nint main() {{}}\n")
    kernel_xray.program(source)
    (command,) = [call for call in commands if "-MD" in call and any(word.endswith("taken.cu.cpp") for word in call)]
    subprocess.run([*command[: command.index("-MD")], "-Winvalid-pch", "-Werror", "-o", tmp_path / "o"], check=True)
