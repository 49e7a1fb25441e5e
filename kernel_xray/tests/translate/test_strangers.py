"""Forms of CUDA C++ that published programs use: each builds and answers as with nvcc, or is refused as by nvcc.

The programs are in `strangers/`. What the rewriter makes of each form is in test_rewriter.py.
"""

import ctypes
import shutil
from pathlib import Path

import pytest
from simt_programs import side_by_side

import kernel_xray

pytestmark = pytest.mark.slow  # a program for each form; the translator has tests of text for most

STRANGERS = Path(__file__).parent / "strangers"
ON_SIMULATOR = pytest.mark.skipif(kernel_xray.target != "simulator", reason="a GPU build is PyTorch's alone")
PROGRAMS = {"names": ["names.cu", "host.cpp"], "headers": ["headers.cu"]}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A function from a name in PROGRAMS to its library, built where folder and file names have spaces and colons."""

    def build(name):
        folder = tmp_path_factory.mktemp("a folder: with (odd) characters")
        sources = [shutil.copy(STRANGERS / file, folder / f"its {file}") for file in PROGRAMS[name]]
        path = kernel_xray.load(f"stranger_{name}", sources, is_python_module=False)
        return ctypes.CDLL(path)

    with side_by_side(build, PROGRAMS) as libraries:
        yield libraries


RUNS = {
    "built_in_names": [316, 308, 204, 108, 11, 42, 7, 6, 5, 4],
    "outer_shared": [100 * 96 + 24 + 62, 100 * 96 + 25 + 62, 4 * 4 * 8 + 32],
    "inner_shared": [3 * 31 * 16 + 2],
    "launches": [1, 2, 3, 3, 4, 647, 647],
    "destructors": [5, 6, 7, 1, 40, 10, 5, 0],
    "assertions": [2],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_form_answers_as_on_a_gpu(programs, name):
    expected = RUNS[name]
    out = (ctypes.c_int * len(expected))()
    assert getattr(programs("names"), f"run_{name}")(out, len(expected)) == 0
    assert list(out) == expected


@ON_SIMULATOR
def test_sources_without_pytorch_are_compiled_as_cpp_17(programs):
    out = (ctypes.c_int * 2)()
    assert programs("names").run_standard(out, 2) == 0
    assert list(out) == [2017, 4]


def test_assert_in_a_cpp_source(programs):
    assert programs("names").half_of(14) == 7


def test_complex_numbers_and_other_headers(programs):
    out = (ctypes.c_double * 32)()
    assert programs("headers").run_headers(out) == 0
    pairs = [complex(out[i], out[i + 1]) for i in range(0, 28, 2)]
    a, b = 1 + 2j, 3 - 4j
    expected = [a + b, a - b, a * b, a / b, b.conjugate(), a * b + a]
    assert pairs[:6] == pytest.approx(expected, rel=1e-6)
    assert pairs[6] == a * b
    assert pairs[7:13] == pytest.approx(expected, rel=1e-15)
    assert pairs[13] == pytest.approx(1)
    assert out[28:30] == pytest.approx([5, 5e200])
    assert out[30:] == [5 + 2 * (1 + 2 + 3 + 4) + 1 + 4 * 8 + 3 * 7, 5]


# x[0..3] = i + 1 + 2, and 4 more for x[0]; 2 i; i + 3; 10 * sizeof(int); 1; 14 + 4
ARGUMENTS = "7 4 5 6 0 2 4 6 3 4 5 6 40 1 18 cudaSuccess"


def test_arguments_of_launches_in_a_source_of_latin_1(tmp_path):
    shutil.copy(STRANGERS / "arguments.h", tmp_path)
    source = (STRANGERS / "arguments.cu").read_bytes().replace(b"// 0 is a", b"// f\xfcr 0: a")
    (tmp_path / "arguments.cu").write_bytes(b"\xef\xbb\xbf" + source)
    assert kernel_xray.program(tmp_path / "arguments.cu").stdout == ARGUMENTS


# the neighbours' elements: 2 and 1000, 0 in the upper half of 4, 1 and 1000; all: 64 * 65 / 2 + 48 * 1000; 1 + 1000.
# An invalid value (1) thrice, and thrice not; what the copies have brought: 4, and the second element, 2
# The driver's results; its context, and no device 99 (101); a name cut to 6 letters; a warp, no virtual memory, and an
# unknown attribute (1); an allocation, and none (500); what the simulator does not have (801)
FORMS = "2 0 1 1000 51081 1 1 4 1 1 0 0 0 6 0 0 0 CUDA_ERROR_INVALID_VALUE: invalid argument; 1 "
FORMS += "0 0 101 0 Kernel 0 0 32 0 1 0 1 500 801 801 801"


@ON_SIMULATOR
def test_forms_of_a_program():
    ended = kernel_xray.program(STRANGERS / "forms.cu")
    assert ended.stdout == FORMS
    for refused in ("cudaIpcGetMemHandle", "cuMemCreate", "cuModuleLoad"):
        assert f"{refused} is not supported by the simulator: " in ended.stderr
    ended = kernel_xray.program(STRANGERS / "forms.cu", "an argument")
    assert (ended.status, ended.stdout) == (0, "")


@ON_SIMULATOR
def test_bytes_of_a_string_stay(tmp_path):
    (tmp_path / "bytes.cu").write_bytes(b'#include <cstdio>\nint main() { return (unsigned char)"\xfc"[0]; }\n')
    assert kernel_xray.program(tmp_path / "bytes.cu").status == 0xFC


@ON_SIMULATOR
def test_a_kernel_runs_in_its_clusters_whatever_launches_it():
    for traced in (False, True):
        ended = kernel_xray.program(STRANGERS / "clusters.cu", traced=traced)
        assert ended.stdout == "2 2 4 8 1 4 2 1 8 1 2 4 4 cudaErrorInvalidClusterSize 01/4  9121 01/2  9121 912"
    assert not ended.report.faults and [launch.blocks for launch in ended.report.launches] == [8] * 15


@ON_SIMULATOR
def test_a_launch_of_a_pointer_reads_it_once_and_names_its_kernel():
    for traced in (False, True):
        ended = kernel_xray.program(STRANGERS / "pointers.cu", traced=traced)
        assert ended.stdout == "6 10 15 1 9 16 18 20 25 10 35 48 10 20 2 11 14 2"
    names = "add twice x<3> add add twice twice x<4> x<5> twice x<6> x<7> x<8> add twice in_pairs ten_kernel twice"
    assert not ended.report.faults
    assert [launch.kernel for launch in ended.report.launches] == names.replace("x<", "inner::times<").split()


PART = """
__device__ int lane() {
  int number;
  asm("mov.u32 %0, %%laneid;" : "=r"(number));
  return number;
}
"""
WHOLE = """
#include <cstdio>
namespace part {
#include "part.h"
}
__global__ void lanes(int* out) { out[threadIdx.x] = part::lane(); }
int main() {
  int* out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  lanes<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  printf("%d", out[31]);
}
"""


@ON_SIMULATOR
def test_a_part_with_ptx_in_a_namespace(tmp_path):
    (tmp_path / "part.h").write_text(PART)
    (tmp_path / "whole.cu").write_text(WHOLE)
    assert kernel_xray.program(tmp_path / "whole.cu").stdout == "31"


MEANING = """
template <int count>
struct Part {};
struct Whole {
  using Part = Part<3>;
  Part part;
};
"""


@ON_SIMULATOR
def test_a_name_may_change_its_meaning_in_a_class(tmp_path):
    source = tmp_path / "meaning.cu"
    source.write_text(MEANING + "int main() { return sizeof(Whole); }\n")
    assert kernel_xray.program(source).status == 1
    kernel_xray.load("meaning", source, is_python_module=False)
    source.write_text(MEANING + "int main() { int* p = 1; }\n")  # which -fpermissive would allow, too
    with pytest.raises(kernel_xray.BuildError) as refused:
        kernel_xray.program(source)
    assert "invalid conversion" in refused.value.output


HEAD = "#include <cuda_runtime.h>\n"
REFUSED = {
    "a launch of a host function": (
        "void f(int* p) { *p = 1; }\nvoid g(int* p) { f<<<1, 1>>>(p); }\n",
        kernel_xray.BuildError, r"broken\.cu:3: .*a host function call cannot be configured",
    ),
    "a template that takes a destructor": (
        "struct D { ~D() {} };\ntemplate <typename T> __global__ void k(D, T, long) {}\n"
        "void g() {\n  k<<<1, 1>>>(D(), 2.f, 3);\n}\n",
        kernel_xray.BuildError, r"broken\.cu:5: ",
    ),
    "a built-in atomic of a type that nvcc refuses": (
        "__global__ void k(long long* p) {\n  __nv_atomic_add(p, 1, __NV_ATOMIC_RELAXED);\n}\n",
        kernel_xray.BuildError, "nvcc has no __nv_atomic_add of this type",
    ),
    "a function of CUDA's that the simulator lacks": (
        "void g() {\n  cublasZher2k(0);\n}\n",
        kernel_xray.BuildError, r"(?s)broken\.cu:3: error: .*If nvcc takes cublasZher2k: the simulator does not",
    ),
    "a name that nobody has": (
        "void g() {\n  cubature(0);\n}\n",
        kernel_xray.BuildError, r"(?s)broken\.cu:3: error: (?!.*the simulator)",
    ),
    "a file that is not text": ("\0", kernel_xray.BuildError, r"broken\.cu is not text .* byte 26 is zero"),
    "a macro of another file": (
        '#include "shared.h"\n__global__ void k() {\n  SHARED int n;\n}\n',
        kernel_xray.UnsupportedError, "a macro of another file that stands for __shared__",
    ),
}  # fmt: skip


@ON_SIMULATOR
@pytest.mark.parametrize("name", REFUSED)
def test_a_form_is_refused(name, tmp_path):
    text, kind, words = REFUSED[name]
    folder = tmp_path / "a: b (c)"
    folder.mkdir()
    (folder / "shared.h").write_text("#define SHARED __shared__\n")
    (folder / "broken.cu").write_text(HEAD + text)
    with pytest.raises(kernel_xray.BuildError, match=words) as caught:
        kernel_xray.load("broken", [folder / "broken.cu"], is_python_module=False)
    assert type(caught.value) is kind
