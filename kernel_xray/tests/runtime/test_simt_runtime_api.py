"""The simulator's run-time API (cudaMalloc, streams, errors, ...) and its replacements for PyTorch's CUDA headers.

The C++ programs `runtime_api_*.cpp` are linked with the sources of the run-time API and a stub of the rest, so they run
without kernels. Each prints one line per check; run with --sabotage, every check must fail.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from simt_programs import COMPILERS

from kernel_xray.machine.paths import INCLUDE, PACKAGE, RUNTIME

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
TORCH = Path(torch.__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}", f"-I{PACKAGE}"]
STRICT = [*WARNINGS, f"-I{INCLUDE}", "-isystem", str(TORCH / "include"), "-DUSE_CUDA"]
OLDEST = "-DTORCH_TARGET_VERSION=0x020b000000000000"
SOURCES = sorted(path.stem for path in (RUNTIME / "api").glob("*.cpp"))
HEADERS = ["cuda_runtime_api.h", "driver_types.h"]
HEADERS += [f"simt/{path.name}" for path in sorted((INCLUDE / "simt").glob("runtime_*.h"))]
HEADERS += [f"simt/{name}.h" for name in ("error_list", "device_types", "textures", "torch_bridge")]
LIBRARIES = [f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}", "-lc10"]


def run(*command, cwd=None):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd)


def compiled(*command, cwd=None):
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=COMPILERS)
def built(request, tmp_path_factory):
    """The compiler, a folder, and the objects of the run-time API from that compiler."""
    folder = tmp_path_factory.mktemp(request.param)
    sources = [RUNTIME / "api" / f"{name}.cpp" for name in SOURCES]
    shared = ["-fPIC", "-fvisibility=hidden", "-c"]
    compiled(request.param, "-std=c++17", *WARNINGS, *shared, *sources, cwd=folder)
    return request.param, folder, [folder / f"{name}.o" for name in SOURCES]


@pytest.mark.parametrize(("name", "least"), [("memory", 100), ("device", 110), ("torch", 45)])
def test_checks(built, name, least):
    compiler, folder, objects = built
    program, source = folder / name, HERE / f"runtime_api_{name}_test.cpp"
    extra = LIBRARIES if name == "torch" else []
    compiled(compiler, "-std=c++20", *STRICT, source, *objects, "-pthread", *extra, "-o", program)

    plain = run(program)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert len(re.findall("^ok ", plain.stdout, re.M)) >= least
    note = "note: cudaEventElapsedTime gives the simulator's time"
    assert plain.stderr.count(note) == (0 if name == "memory" else 1)

    spoilt = run(program, "--sabotage").stdout
    assert re.findall("^ok .*", spoilt, re.M) == []
    assert len(re.findall("^FAILED ", spoilt, re.M)) == len(plain.stdout.splitlines())


def test_headers_compile_alone(compiler, tmp_path):
    for i, header in enumerate(HEADERS):
        standard = "c++17" if (i + COMPILERS.index(compiler)) % 2 else "c++20"  # each one in both, by one compiler each
        source = tmp_path / "alone.cpp"
        source.write_text(f"#include <{header}>\n")
        compiled(compiler, f"-std={standard}", *STRICT, "-fsyntax-only", source)


def test_refusals_are_sentences(compiler):
    source = HERE / "runtime_api_refused.cpp"
    compiled(compiler, "-std=c++17", *STRICT, "-fsyntax-only", source)
    refused = run(compiler, "-std=c++17", *STRICT, "-DREFUSED", "-fsyntax-only", source)
    assert refused.returncode != 0
    errors = {}
    for line, text in re.findall(rf"{source.name}:(\d+):\d+: error: (.*)", refused.stderr):
        errors.setdefault(int(line), []).append(text)
    expected = {
        number: line.split("// expect: ")[1]
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if "// expect: " in line
    }
    assert len(expected) == 5
    assert errors.keys() == expected.keys()
    for line, words in expected.items():
        assert any("not supported by the simulator: " in text and words in text for text in errors[line]), errors[line]


def test_const_symbols_are_refused(compiler, tmp_path):
    source = tmp_path / "symbol.cpp"
    head, tail = '#include "simt/runtime_api.h"\n', " float t[2] = {1, 2};\nvoid f() { cudaMemcpyToSymbol(t, t, 8); }\n"
    source.write_text(head + tail)
    compiled(compiler, "-std=c++17", *STRICT, "-fsyntax-only", source)
    source.write_text(head + "const" + tail)
    assert "remove the const" in run(compiler, "-std=c++17", *STRICT, "-fsyntax-only", source).stderr


def test_classic_headers_are_not_for_the_stable_abi(compiler, tmp_path):
    source = tmp_path / "mixed.cpp"
    # It brings <algorithm>, as PyTorch's does: extensions rely on that.
    source.write_text("#include <c10/cuda/CUDAException.h>\nint f() { return std::max({1, 2, 3}); }\n")
    compiled(compiler, "-std=c++20", *STRICT, "-fsyntax-only", source)
    mixed = run(compiler, "-std=c++20", *STRICT, OLDEST, "-fsyntax-only", source)
    assert "not in the stable ABI" in mixed.stderr


def test_stable_abi_compiles_for_the_oldest_pytorch(compiler):
    source = HERE / "runtime_api_stable.cpp"
    compiled(compiler, "-std=c++17", *STRICT, OLDEST, "-fsyntax-only", source)


IN_PYTHON = """
import sys, torch
torch.ops.load_library(sys.argv[1])
ops = torch.ops.simt_runtime_api
x = torch.randn(7)
assert torch.equal(ops.copy(x), x)
assert ops.stream_guard(0) and ops.stream_guard(1)
assert ops.guard_device(0) == ops.guard_device(-1) == 0
assert ops.launch_check(0) == 0
assert ops.check_message()

def message(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("no error")

launch = message(ops.launch_check, 9)
assert launch.startswith("CUDA error: invalid configuration argument\\n  cudaErrorInvalidConfiguration"), launch
assert "in launch_check at " in launch and "runtime_api_stable.cpp:" in launch, launch
assert ops.launch_check(0) == 0  # reported once
assert "got device 3" in message(ops.guard_device, 3)
assert "invalid resource handle" in message(ops.stream_guard, 2)
assert ops.stream_guard(1)
print("passed")
"""


def test_stable_abi_runs(built):
    compiler, folder, objects = built
    library = folder / "runtime_api_stable.so"
    link = [*LIBRARIES, "-ltorch_cpu", "-pthread", "-shared", "-fPIC", "-DWITH_STUB"]
    source = HERE / "runtime_api_stable.cpp"
    compiled(compiler, "-std=c++20", *STRICT, source, *objects, *link, "-o", library)
    done = run(sys.executable, "-c", IN_PYTHON, library)
    assert done.stdout.strip() == "passed", done.stdout + done.stderr
