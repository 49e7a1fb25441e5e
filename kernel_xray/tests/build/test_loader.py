"""The loader: builds once, gives the new code after an edit, survives killed and parallel builds, explains errors."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import kernel_xray
from kernel_xray.build import compile_errors, flags, request, sources
from kernel_xray.build.request import Build
from kernel_xray.machine import cache, toolchain
from kernel_xray.machine.paths import PACKAGE, also_include

pytestmark = pytest.mark.usefixtures("own_cache")
OPERATOR = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <cuda_runtime.h>
#include "factor.h"
using torch::stable::Tensor;
__global__ void scale_kernel(const float* x, float* y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = FACTOR * x[i];
}
Tensor scale(const Tensor& x) {
  Tensor y = torch::stable::empty_like(x);
  int64_t n = x.numel();
  scale_kernel<<<(n + 255) / 256, 256>>>(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), n);
  return y;
}
STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("scale(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CUDA, m) { m.impl("scale", TORCH_BOX(&scale)); }
"""


def write(folder, factor, namespace="TORCH_EXTENSION_NAME"):
    folder.mkdir(exist_ok=True)
    (folder / "scale.cu").write_text(OPERATOR.replace("NAMESPACE", namespace))
    (folder / "factor.h").write_text(f"#define FACTOR {factor}.0f\n")
    return folder / "scale.cu"


def load(path, name):
    return kernel_xray.load(name, path, is_python_module=False)


def elsewhere(path):
    """The command that builds a source in another process with this cache; the argument "warm" forbids the build."""
    code = (
        "import sys, pathlib, kernel_xray.machine.cache as c; c.root = lambda: pathlib.Path(sys.argv[2])\n"
        "import torch, kernel_xray, torch.utils.cpp_extension as e\n"
        "if sys.argv[3] == 'warm': e.load = None\n"
        "ops = kernel_xray.load('t_elsewhere', sys.argv[1], is_python_module=False)\n"
        "print(ops.scale(torch.ones(3, device=kernel_xray.device)).sum().item())"
    )
    return [sys.executable, "-c", code, str(path), str(cache.root())]


def ones():
    return torch.ones(5, device=kernel_xray.device)


@pytest.mark.slow  # two builds; test_units.py edits a header
def test_an_edited_header_gives_the_new_code_and_an_unchanged_source_the_same_object(tmp_path):
    path = write(tmp_path / "k", 2)
    first = load(path, "t_edit")
    assert load(path, "t_edit") is first
    assert str(first).endswith("t_edit'") or "t_edit" in repr(first)
    write(tmp_path / "k", 3)
    second = load(path, "t_edit")
    assert first.scale(ones()).tolist() == [2] * 5
    assert second.scale(ones()).tolist() == [3] * 5
    write(tmp_path / "k", 2)
    assert load(path, "t_edit") is first


def test_each_variable_that_nvcc_reads_changes_the_build(tmp_path, monkeypatch):
    path = tmp_path / "op.cu"
    path.write_text(OPERATOR)

    def keys():
        builds = [Build("op", [path], target=target) for target in ("gpu", "simulator")]
        return [build.key({path: OPERATOR}) for build in builds]

    for name in request.NVCC_ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    gpu, simulator = keys()
    for name in request.NVCC_ENVIRONMENT:
        if name not in ("CC", "CXX"):  # these change the simulator's compiler too
            with monkeypatch.context() as patch:
                patch.setenv(name, "8.0")
                assert keys() != [gpu, simulator]
                assert keys()[1] == simulator
    assert keys() == [gpu, simulator]


def test_a_copy_in_another_folder_has_the_same_build_and_its_xray_names_the_copy(tmp_path):
    first = write(tmp_path / "first", 2)
    built = kernel_xray.load("t_copy", first, is_python_module=False, traced=True)
    assert {line.file for line in kernel_xray.xray(built.scale, torch.ones(5)).lines} == {str(first)}
    copy = write(tmp_path / "copy", 2)
    assert kernel_xray.load("t_copy", copy, is_python_module=False, traced=True) is built
    report = kernel_xray.xray(built.scale, torch.ones(5))
    assert {line.file for line in report.lines} == {launch.file for launch in report.launches} == {str(copy)}


@pytest.mark.parametrize("by_folder", ["", "const char* here = __FILE__;\n", "#include FACTOR_HEADER\n"])
def test_a_source_that_may_depend_on_its_folder_has_a_build_there(tmp_path, by_folder):
    def key(folder):
        path = write(folder, 2)
        path.write_text(by_folder + path.read_text())
        build = Build("t_place", [path])
        return build.key(build.texts())

    assert (key(tmp_path / "a") == key(tmp_path / "b")) == (not by_folder)


def test_headers_of_one_name_in_two_folders_are_told_apart(tmp_path):
    def key(first, second):
        for name, factor in (("a", first), ("b", second)):
            write(tmp_path / name, factor)
        path = tmp_path / "both.cu"
        path.write_text('#include "a/factor.h"\n#undef FACTOR\n#include "b/factor.h"\n')
        build = Build("t_both", [path])
        return build.key(build.texts())

    assert key(2, 3) != key(3, 2)


SECOND_CLONE = """
import sys, torch, kernel_xray
for traced in (False, True):
    ops = kernel_xray.load(f"clone_{traced}", sys.argv[1], is_python_module=False, traced=traced)
    call = lambda: ops.scale(torch.ones(5))
    assert call().tolist() == [2] * 5
print(*{line.file for line in kernel_xray.xray(call).lines})
"""


@pytest.mark.slow
@pytest.mark.skipif(kernel_xray.target == "gpu", reason="nvcc's builds are found by path")
def test_a_second_clone_builds_nothing(tmp_path):
    """The quick suite has the two parts: a copy of a source, and test_libsimt.py's simulator in another folder."""

    def run(clone):
        shutil.copytree(PACKAGE, clone / "kernel_xray", ignore=shutil.ignore_patterns("__pycache__"))
        variables = {"PYTHONPATH": str(clone), cache.VARIABLE: str(tmp_path / "cache")}
        command = [sys.executable, "-c", SECOND_CLONE, str(write(clone, 2))]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, cwd=clone)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), {path.name for path in (tmp_path / "cache").glob("clone_*")}

    (files, built), (files_there, built_there) = run(tmp_path / "one"), run(tmp_path / "another")
    assert built == built_there and len(built) == 2
    assert files == [str(tmp_path / "one/scale.cu")] and files_there == [str(tmp_path / "another/scale.cu")]


@pytest.mark.slow  # two builds; a source is built again in the test of load_inline
def test_a_given_build_directory_does_not_keep_old_code(tmp_path):
    for factor in (2, 3):
        path = write(tmp_path / "k", factor)
        ops = kernel_xray.load("t_folder", path, build_directory=str(tmp_path / "b"), is_python_module=False)
        assert ops.scale(ones()).tolist() == [factor] * 5


@pytest.mark.slow  # two builds; a source is built again in the test of load_inline
def test_a_namespace_that_the_source_fixes_can_be_loaded_again(tmp_path):
    load(write(tmp_path / "k", 2, "t_fixed_ns"), "t_fixed")
    assert torch.ops.t_fixed_ns.scale(ones()).tolist() == [2] * 5
    load(write(tmp_path / "k", 4, "t_fixed_ns"), "t_fixed")
    assert torch.ops.t_fixed_ns.scale(ones()).tolist() == [4] * 5


@pytest.mark.slow
def test_a_finished_build_is_not_repeated_in_another_process(tmp_path, monkeypatch):
    command = elsewhere(write(tmp_path / "k", 5))
    for state in ("cold", "warm"):
        done = subprocess.run([*command, state], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "15.0", done.stderr


@pytest.mark.slow
def test_the_lock_keeps_others_out_and_dies_with_its_holder(tmp_path):
    folder = tmp_path / "held"
    code = (
        "import sys, time, pathlib; from kernel_xray.machine import cache\n"
        "with cache.locked(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline().strip() == "held"
    with open(folder / ".in_use") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder.kill()
    holder.communicate()
    with cache.locked(folder):
        pass


@pytest.mark.slow
def test_parallel_builds_of_one_source_agree(tmp_path):
    command = elsewhere(write(tmp_path / "k", 7))
    running = [subprocess.Popen([*command, "cold"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [p.communicate()[0].strip() for p in running] == ["21.0", "21.0"]


INLINE = OPERATOR.replace('#include "factor.h"', "").replace("NAMESPACE", "TORCH_EXTENSION_NAME")


def scales_inline(name, source, factor, **options):
    source, options = source.replace("FACTOR", f"{factor}.0f"), options | {"is_python_module": False}
    ops = kernel_xray.load_inline(name, cpp_sources="", cuda_sources=source, no_implicit_headers=True, **options)
    return ops.scale(ones()).tolist() == [factor] * 5


def test_load_inline_builds_an_edited_source_again():
    assert all(scales_inline("t_inline", INLINE, factor) for factor in (2, 3))


@pytest.mark.slow  # three builds for a flag of the linker
@pytest.mark.skipif(kernel_xray.target == "gpu", reason="PyTorch's own build for a GPU shares them")
def test_static_variables_of_inline_functions_are_those_of_each_library():
    """So a header's function has nothing of a library that nvcc has built from it, nor of a traced one."""
    once = "inline float factor() { static float chosen = FACTOR; return chosen; }\n__global__ void scale_kernel"
    source = INLINE.replace("__global__ void scale_kernel", once)
    source = source.replace("FACTOR * x[i]", "a * x[i]").replace("int64_t n)", "int64_t n, float a)")
    source = source.replace("y.mutable_data_ptr<float>(), n)", "y.mutable_data_ptr<float>(), n, factor())")
    for factor, traced in ((2, False), (3, False), (4, True)):
        assert scales_inline("t_once", source, factor, traced=traced)


def leave_lock(path, name):
    """What PyTorch leaves where its build is killed."""
    build = Build(name=name, sources=[path], is_python_module=False, target=kernel_xray.target)
    build.include_paths = also_include([])
    folder = cache.root() / f"{name}-{build.key(build.texts())}"
    folder.mkdir()
    (folder / "lock").touch()


def test_a_compile_error_is_the_compilers_message_at_the_line_and_a_stale_pytorch_lock_does_not_hang(tmp_path):
    path = write(tmp_path / "k", 2)
    path.write_text(path.read_text().replace("y[i] = FACTOR", "y[i] = FACTOR * missing"))
    with pytest.raises(kernel_xray.BuildError, match=r"scale\.cu:10: error: .*missing") as caught:
        load(path, "t_error")
    assert "ninja" not in str(caught.value)
    assert "missing" in caught.value.output
    assert len(caught.value._render_traceback_()) == 1
    path.write_text(path.read_text().replace(" * missing", ""))
    leave_lock(path, "t_error")
    assert load(path, "t_error").scale(ones()).tolist() == [2] * 5  # the fixed cell works, under the same name


def test_the_rewriter_reports_an_error_before_the_compiler_runs(tmp_path):
    if kernel_xray.target == "gpu":
        pytest.skip("the rewriter is the simulator's")
    path = write(tmp_path / "k", 2)
    path.write_text(path.read_text().replace("256>>>(", "256("))
    with pytest.raises(kernel_xray.BuildError, match=r"scale\.cu:15: error: .*no matching `>>>`"):
        load(path, "t_text")


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.undo()
    (tmp_path / "file").touch()
    monkeypatch.setenv("KERNEL_XRAY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(cache.CacheError, match="KERNEL_XRAY_CACHE"):
        cache.root()


@pytest.mark.parametrize(
    ("wanted", "gpu", "nvcc", "expected"),
    [("", True, True, "gpu"), ("", True, False, "simulator"), ("", False, True, "simulator")]
    + [("simulator", True, True, "simulator"), ("gpu", True, True, "gpu")],
)
def test_target(wanted, gpu, nvcc, expected):
    assert toolchain.choose(wanted, gpu, nvcc) == expected


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [True, False])
def test_pytorchs_remark_about_nvcc_without_a_gpu_is_dropped(quiet, tmp_path):
    program = "from torch.utils import cpp_extension as x; x.torch.cuda.is_available = bool; x._find_cuda_home()"
    program = ("import kernel_xray; kernel_xray.load; " if quiet else "") + program
    environment = {**os.environ, "CUDA_HOME": str(tmp_path), "KERNEL_XRAY_TARGET": "simulator"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert ("No CUDA runtime" in done.stderr) == (not quiet)


@pytest.mark.parametrize(
    ("wanted", "gpu", "nvcc", "error", "text"),
    [
        ("cpu", True, True, ValueError, "KERNEL_XRAY_TARGET is 'cpu'"),
        ("gpu", False, True, RuntimeError, "no NVIDIA GPU"),
        ("gpu", True, False, RuntimeError, "nvcc is not found"),
    ],
)
def test_an_impossible_target_is_refused(wanted, gpu, nvcc, error, text):
    with pytest.raises(error, match=text):
        toolchain.choose(wanted, gpu, nvcc)


NINJA = "Error building extension 'n': [1/2] c++ -c k.cpp -o k.o\nFAILED: [code=1] k.o\nc++ -c k.cpp -o k.o\n"
STOPPED = "ninja: build stopped: subcommand failed."


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("k.cu:3:7: error: 'x' was not declared\n    3 | x;\n      | ^\nk.cu:5:1: error: more\n", "k.cu:3: error: 'x'"),
        ('/a/k.cu(12): error: identifier "x" is undefined\n    x = 1;\n    ^\n', "/a/k.cu:12: error: identifier"),
        ("k.cu:3:7: warning: unused\nk.cu:4:1: fatal error: y.h: No such file\n", "k.cu:4: error: y.h"),
        ("ld: k.o: undefined reference to `f'\ncollect2: error: ld returned 1", "n did not build: ld: k.o: undefined"),
        (
            f"{NINJA}g++: fatal error: Killed signal\ncompilation terminated.\n{STOPPED}",
            "n did not build: g++: fatal error",
        ),
        (f"{NINJA}Assembler messages:\n/tmp/a.s: cannot open\n{STOPPED}", "n did not build: /tmp/a.s: cannot open"),
        (f"{NINJA}{STOPPED}", "n did not build: ninja: build stopped"),
        ("", "n did not build: the compiler printed nothing"),
    ],
)
def test_compiler_messages(output, expected):
    error = compile_errors.explain("n", output)
    assert str(error).startswith(expected)
    assert error.output == output


def test_a_refusal_differs_from_an_error():
    output = "k.cu:9:3: error: not supported by the simulator: inline PTX; keep it\n"
    assert isinstance(compile_errors.explain("n", output), kernel_xray.UnsupportedError)
    assert not isinstance(compile_errors.explain("n", "k.cu:9:3: error: no"), kernel_xray.UnsupportedError)


def test_names_in_a_source():
    texts = {Path("a"): "TORCH_LIBRARY(ns, m) {} TORCH_LIBRARY_IMPL(ns, CUDA, m) {} PYBIND11_MODULE( mod, m) {}"}
    assert sources.defined_names(texts, "TORCH_LIBRARY") == ["ns"]
    assert sources.defined_names(texts, "PYBIND11_MODULE") == ["mod"]
    renamed = sources.rename_registrations(texts[Path("a")], {"ns": "ns_v1"})
    assert renamed.count("ns_v1") == 2
    assert "PYBIND11_MODULE( mod, m)" in renamed


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("torch::nn::Linear layer(2, 3);", True),
        ("namespace F = torch::nn::functional;", True),
        ("using namespace torch; optim::SGD sgd(parameters);", True),
        ("torch::save(x, path);", True),
        ("torch::Tensor loaded = torch::zeros(3);", False),
        ("int nn = unn::f(); torch::save_for_backward;", False),
    ],
)
def test_a_source_that_uses_the_cpp_frontend_gets_the_whole_header(text, whole):
    assert sources.uses_cpp_frontend({Path("a"): "int f();", Path("b"): text}) == whole


@pytest.mark.slow
@pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU build uses PyTorch's own header")
def test_a_source_that_needs_the_whole_header_builds():
    source = """
        #include <torch/extension.h>
        torch::Tensor f(torch::Tensor x) { return torch::nn::functional::relu(x); }
    """
    module = kernel_xray.load_inline("frontend", cpp_sources=source, functions=["f"])
    assert module.f(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


def test_keyboard_interrupt_during_a_build_leaves_nothing_locked(tmp_path):
    folder = tmp_path / "again"
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), cache.locked(folder):
        raise KeyboardInterrupt
    with cache.locked(folder):
        assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("given", "expected"),
    [([], ["-O2"]), (["-g"], ["-O2", "-g"]), (["-DO3"], ["-O2", "-DO3"])]
    + [(given, given) for given in (["-O0"], ["-lineinfo", "-O3"], ["--optimize", "1"])],
)
def test_host_code_for_a_gpu_is_optimised_unless_told_otherwise(given, expected):
    assert flags.for_gpu(given) == expected
