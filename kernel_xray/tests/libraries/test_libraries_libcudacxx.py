"""libcu++ in kernels: atomics with orders, barriers, pipelines; and what NVIDIA's own headers are needed for."""

import subprocess
from pathlib import Path

import pytest
import torch
from cuda_libraries import load
from simt_programs import COMPILERS, operators, zeros

import kernel_xray
from kernel_xray.build import libraries
from kernel_xray.machine.paths import INCLUDE
from kernel_xray.runtime.libsimt import LIBRARY_HEADERS

pytestmark = pytest.mark.slow
PLACES = [(INCLUDE, "cuda/*"), (INCLUDE, "cuda/std/*"), (LIBRARY_HEADERS, "cub/**/*.cuh")]
NAMES = [str(p.relative_to(place)) for place, glob in PLACES for p in sorted(place.glob(glob)) if p.is_file()]

built = operators(load, "libcudacxx")
traced = operators(load, "libcudacxx", traced=True)


TYPES = [torch.int32, torch.uint32, torch.int64, torch.float32, torch.float64]


@pytest.mark.parametrize("number", range(len(TYPES)))
def test_atomic_operations(built, number):
    cells = torch.tensor([0, 5, 100, 1000, 0], dtype=torch.int32).to(TYPES[number]).to(kernel_xray.device)
    tickets = zeros(200, dtype=TYPES[number])
    built.operations([cells, tickets], [number])
    assert cells.tolist() == [200, 199, 0, 1000 - 400, 600]
    assert sorted(tickets.tolist()) == list(range(200))


def test_atomic_bits(built):
    cells = torch.tensor([0, -1, 5, 0, 0, 0], dtype=torch.int32).to(kernel_xray.device)
    built.bits([cells], [])
    ones = 2**20 - 1
    assert cells[:3].tolist() == [ones, ~ones, 5 ^ ones]
    assert cells[3].item() in [1 << i for i in range(20)]
    assert cells[4:].tolist() == [16, 16]


def test_lock_and_flag(built):
    counter, data, out = zeros(1), zeros(1), zeros(32)
    built.lock([counter], [])
    assert counter.item() == 8
    built.flag([data, out], [])
    assert out.tolist() == [42] * 32


@pytest.mark.parametrize("threads", [1, 33, 300, 1024])
def test_barrier(built, threads):
    values = torch.arange(threads, dtype=torch.int32, device=kernel_xray.device)
    built.rotate([values], [5, 1])
    assert torch.equal(values, torch.arange(threads, dtype=torch.int32, device=kernel_xray.device).roll(-5))


def test_copies_and_pipelines(built):
    x = torch.randn(384, device=kernel_xray.device)
    out = torch.empty_like(x)
    built.tile([x, out], [1])
    assert torch.equal(out, x.view(3, 128).flip(1).flatten())
    built.pipeline([x, out], [1])
    assert torch.equal(out, 2 * x.view(6, 64).flip(1).flatten())
    words = torch.arange(256, dtype=torch.int32, device=kernel_xray.device)
    copied = torch.empty_like(words)
    built.own_pipeline([words, copied], [])
    assert torch.equal(copied, words)


def faults(function, tensors, numbers):
    return {fault.kind for fault in kernel_xray.xray(function, tensors, numbers).faults}


def test_order_of_an_atomic_decides_about_a_race(traced):
    for releases, expected in ((1, set()), (0, {"race"})):
        x = torch.arange(1000, dtype=torch.int32)
        partial, ticket, out = (torch.zeros(n, dtype=torch.int32) for n in (5, 1, 1))
        assert faults(traced.last_block, [x, partial, ticket, out], [releases]) == expected
        assert out.item() == x.sum()


def test_waiting_decides_about_a_race(traced):
    x = torch.randn(384)
    for waits, expected in ((1, set()), (0, {"race"})):
        assert faults(traced.rotate, [torch.arange(64, dtype=torch.int32)], [1, waits]) == expected
        assert faults(traced.tile, [x, torch.zeros(384)], [waits]) == expected
        assert faults(traced.pipeline, [x, torch.zeros(384)], [waits]) == expected


# ----------------------------------------------------------------------------------------------------------------------
# Headers


def compile_text(text, *flags):
    folders = [f"-I{folder}" for folder in (INCLUDE, LIBRARY_HEADERS)]
    command = [COMPILERS[0], "-std=c++17", "-Wall", "-Wextra", "-Werror", *folders, *flags]
    return subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=text, capture_output=True, text=True)


def test_headers_compile_alone():
    assert len(NAMES) > 25
    failed = {name: run.stderr for name in NAMES if (run := compile_text(f"#include <{name}>\n" * 2)).returncode}
    assert not failed
    assert compile_text("#include <cuda/atomic>\nint f() {}\n").returncode  # -Werror is on


def test_another_name_of_a_header_leads_to_it(monkeypatch):
    monkeypatch.setattr(libraries, "cccl", lambda: INCLUDE)  # there is one
    assert len(libraries.FORWARDED) > 20
    for name, header in libraries.FORWARDED.items():
        assert libraries.directive(name) == f"#include <{header}>"
        there = {
            place for place in (name, header) for folder in (INCLUDE, LIBRARY_HEADERS) if (folder / place).is_file()
        }
        assert there == ({header} if not header.startswith("ATen/cuda/DeviceUtils") else set()), name
    assert libraries.directive("vector") is None


@pytest.mark.skipif(libraries.cccl() is None, reason="needs NVIDIA's headers: pip install nvidia-cuda-cccl")
def test_together_with_the_headers_of_nvidia():
    flags = libraries.compile_flags({Path("k.cu"): "#include <cuda/std/array>"})
    text = "".join(f"#include <{name}>\n" for name in ["cuda_runtime.h", "cuda/std/array", "cuda/std/complex", *NAMES])
    text += "#include <cuda/std/tuple>\n#include <cuda/std/type_traits>\n#include <cuda/functional>\n"
    use = "cuda::atomic<int, cuda::thread_scope_block> a; int f() { return a.load(cuda::std::memory_order_%s); }\n"
    done = compile_text(text + use % "acquire", *flags)
    assert not done.returncode, done.stderr[:2000]
    assert compile_text(text + use % "none", *flags).returncode


@pytest.mark.skipif(libraries.cccl() is None, reason="needs NVIDIA's headers: pip install nvidia-cuda-cccl")
def test_thrust_brings_what_it_does_with_nvcc():
    header = "#include <thrust/%s.h>\n"
    flags = libraries.compile_flags({Path("k.cu"): header})
    used = {"device_vector": "std::cout << 1", "extrema": "thrust::device"}
    used |= dict.fromkeys(("sort", "partition", "set_operations"), "thrust::device")
    for name, use in used.items():
        done = compile_text(f"{header % name}void f() {{ (void)({use}); }}\n", *flags)
        assert not done.returncode, done.stderr[:2000]


REFUSED = {
    "cuda::barrier<cuda::thread_scope_device> b": "a barrier of a scope other than",
    "cuda::barrier<cuda::thread_scope_block> b; b.arrive_and_drop()": "arrive_and_drop",
    "cuda::pipeline_shared_state<cuda::thread_scope_block, 2> s; auto g = cooperative_groups::this_thread_block(); "
    "(void)cuda::make_pipeline(g, &s, cuda::pipeline_role::producer)": "whose threads have roles",
}


def test_refused():
    text = "#include <cooperative_groups.h>\n#include <cuda/barrier>\n#include <cuda/pipeline>\nvoid f() { %s; }\n"
    assert not compile_text(text % "cuda::barrier<cuda::thread_scope_block> b; b.arrive_and_wait()").returncode
    for statement, reason in REFUSED.items():
        said = compile_text(text % statement).stderr
        assert "not supported by the simulator: " in said
        assert reason in said


# ----------------------------------------------------------------------------------------------------------------------
# Libraries that are not there


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="of the simulator")
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("cudnn.h", "cuDNN: use the operators of PyTorch"),
        ("cusparse.h", "cuSPARSE"),
        ("cusolverDn.h", "cuSOLVER"),
        ("nccl.h", "NCCL: copy between devices with cudaMemcpyPeer"),
        ("cublas.h", "the cuBLAS interface of before CUDA 4: include cublas_v2.h"),
        ("nvrtc.h", "NVRTC"),
        ("npp.h", "NPP"),
        ("cutlass/gemm/device/gemm.h", "CUTLASS"),
        ("cub/device/device_for.cuh", "cub/device/device_for.cuh; the simulator has other parts of CUB"),
        ("cuda/semaphore", "waits of libcu"),
    ],
)
def test_includes_of_other_libraries_are_refused(header, reason, tmp_path):
    source = tmp_path / "uses.cu"
    source.write_text(f"#include <vector>\n\n#ifdef NEVER\n#include <{header}>\n#endif\n#include <{header}>\n")
    with pytest.raises(kernel_xray.UnsupportedError) as refusal:
        kernel_xray.load("simt_refused_library", source, is_python_module=False)
    assert f"uses.cu:6: not supported by the simulator: {reason}" in str(refusal.value)


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="of the simulator")
def test_products_of_cublaslt_are_refused_where_they_are_called(tmp_path):
    text = "#include <cublasLt.h>\ncublasLtHandle_t handle;\nvoid begin() { cublasLtCreate(&handle); }\n"
    source = tmp_path / "uses.cu"
    source.write_text(text)
    kernel_xray.load("simt_a_handle", source, is_python_module=False)
    source.write_text(
        text + "void f(cublasLtMatmulDesc_t* d) {\n  cublasLtMatmulDescCreate(d, CUBLAS_COMPUTE_32F);\n}\n"
    )
    with pytest.raises(kernel_xray.UnsupportedError) as refusal:
        kernel_xray.load("simt_a_handle", source, is_python_module=False)
    assert "uses.cu:5: not supported by the simulator: cuBLASLt: cublasGemmEx" in str(refusal.value)


def test_flags_of_cuda_are_not_for_the_simulator():
    given = ["-lcublas", "-l:libcurand.so.10", "-lcudart", "-L/opt/lib", "-lmine", "-lcufft_static", "-lcusolver"]
    assert libraries.linking({}, given) == ["-L/opt/lib", "-lmine"]
    for header in ("cublas_v2.h", "curand_philox4x32_x.h"):
        text = {Path("k.cu"): f"#include <{header}>\n"}
        assert any("simt-libraries" in flag for flag in libraries.linking(text, []))
