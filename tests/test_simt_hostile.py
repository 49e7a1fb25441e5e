"""Malformed and hostile kernels and calls: each ends in the error that is documented, and the process lives on.

Faults of kernels are run twice: all of them in a process of their own, which goes through the list, runs a correct
kernel after each and reports as JSON (`python test_simt_hostile.py` is that process); and a share of them right here.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import helpers

TESTS = Path(__file__).parent
SIMULATOR = helpers.target == "simulator"
on_simulator = pytest.mark.skipif(not SIMULATOR, reason="on a GPU this ends the process's use of the device")
SLOWEST = 10.0  # seconds in which each error must come

# ----------------------------------------------------------------------------------------------------------------------
# Kernels that fault: what the message says, the kernel, the block and the thread (None: any).

ILLEGAL, STACK, TIME, ZERO = "illegal memory access", "stack overflow", "time limit", "integer division by zero"
ORIGIN = (0, 0, 0)
FAULTS = {
    "null_write": (ILLEGAL, "null_write_kernel", ORIGIN, ORIGIN),
    "null_read": (ILLEGAL, "null_read_kernel", ORIGIN, ORIGIN),
    "wild_pointer": (ILLEGAL, "store_kernel", ORIGIN, ORIGIN),
    "impossible_pointer": (ILLEGAL, "store_kernel", ORIGIN, ORIGIN),
    "code_is_read_only": (ILLEGAL, "store_kernel", ORIGIN, ORIGIN),
    "far_behind": (ILLEGAL, "far_kernel", ORIGIN, (1, 0, 0)),
    "far_before": (ILLEGAL, "far_kernel", ORIGIN, (1, 0, 0)),
    "second_block": (ILLEGAL, "second_block_kernel", (1, 2, 0), (3, 1, 1)),
    "after_barrier": (ILLEGAL, "after_barrier_kernel", ORIGIN, (40, 0, 0)),
    "null_function": (ILLEGAL, "null_function_kernel", ORIGIN, ORIGIN),
    "null_kernel": (ILLEGAL, "kernel", ORIGIN, ORIGIN),
    "in_a_template": (ILLEGAL, "template_fault_kernel", ORIGIN, ORIGIN),
    "in_a_lambda": (ILLEGAL, "apply_kernel", ORIGIN, ORIGIN),
    "endless_recursion": (STACK, "recursion_kernel", ORIGIN, ORIGIN),
    "endless_recursion_after_barrier": (STACK, "recursion_after_barrier_kernel", ORIGIN, (5, 0, 0)),
    "huge_local_array": (STACK, "huge_array_kernel", ORIGIN, ORIGIN),
    "endless_loop": (TIME, "endless_kernel", ORIGIN, ORIGIN),
    "endless_loop_in_all": (TIME, "empty_loop_kernel", None, ORIGIN),
    "endless_in_one_thread": (TIME, "endless_in_one_kernel", (2, 0, 0), (7, 0, 0)),
    "endless_with_barrier": (TIME, "endless_barrier_kernel", ORIGIN, None),
    "endless_with_shuffle": (TIME, "endless_shuffle_kernel", ORIGIN, None),
    "endless_spin_on_atomic": (TIME, "spin_kernel", None, None),
    "endless_sleep": (TIME, "sleep_kernel", ORIGIN, None),
    "assertion": (r"assertion failed: int\(threadIdx.x\) < limit", "assert_kernel", None, (5, 0, 0)),
    "assertion_with_text": ("the index is within the row", "assert_text_kernel", ORIGIN, (2, 0, 0)),
    "trap": ("trap", "trap_kernel", ORIGIN, (9, 0, 0)),
    "exception": ("exception was thrown in the kernel: thrown in a kernel", "throw_kernel", ORIGIN, (2, 0, 0)),
    "exception_after_barrier": ("thrown behind a barrier", "throw_after_barrier_kernel", ORIGIN, (2, 0, 0)),
    "exception_of_no_class": ("exception was thrown in the kernel", "throw_int_kernel", ORIGIN, ORIGIN),
    "exception_of_the_library": ("exception was thrown .*range", "vector_at_kernel", ORIGIN, ORIGIN),
    "bad_alloc": ("bad_alloc|out of memory|bad_array", "allocate_kernel", ORIGIN, ORIGIN),
    "division_by_zero": (ZERO, "divide_kernel", ORIGIN, ORIGIN),
    "remainder_by_zero": (ZERO, "remainder_kernel", ORIGIN, ORIGIN),
    "deadlock": ("deadlock", "half_and_half_kernel", ORIGIN, None),
    "crossed_masks": ("deadlock|mask", "crossed_masks_kernel", ORIGIN, None),
    "lane_not_in_its_mask": ("mask", "not_in_mask_kernel", ORIGIN, (16, 0, 0)),
    "mask_names_exited_lane": ("mask|deadlock", "exited_kernel", ORIGIN, None),
    "mask_names_lane_beyond_block": ("mask|deadlock", "beyond_block_kernel", ORIGIN, None),
    "syncwarp_in_a_branch": ("mask|deadlock", "tree_kernel", ORIGIN, None),
    "fault_in_a_thread": (ILLEGAL, "null_write_kernel", ORIGIN, ORIGIN),
    "fault_beside_good_launches": (ILLEGAL, "null_write_kernel", ORIGIN, ORIGIN),
}
QUICK = [name for name, (kind, *_) in FAULTS.items() if kind != TIME]
HERE = ["null_write", "second_block", "endless_recursion", "assertion", "exception", "division_by_zero", "deadlock"]


def load_cases(name):
    return helpers.load(
        f"hostile_{name}",
        [str(TESTS / "hostile" / f"{name}.cu")],
        extra_include_paths=[str(TESTS / "simt_cases")],
        extra_cuda_cflags=["--extended-lambda"] if helpers.target == "gpu" else None,
        is_python_module=False,
    )


def fault_of(operators, name):
    """The error that a case ends with: its type, its message, the seconds it took; type "none" if it ends with none."""
    started = time.monotonic()
    try:
        getattr(operators, name)([torch.zeros(256, dtype=torch.int32)], [0])
    except BaseException as error:
        kind = "KernelFault" if isinstance(error, helpers.KernelFault) else type(error).__name__
        return {"type": kind, "message": str(error), "seconds": time.monotonic() - started}
    return {"type": "none", "message": "", "seconds": time.monotonic() - started}


def correct_answer(operators) -> bool:
    out = torch.zeros(192, dtype=torch.int32)
    operators.correct([out], [])
    sums = 31 * 32 // 2 + (32 + 63) * 32 // 2
    return out.view(3, 64).tolist() == [[sums + block] * 64 for block in range(3)]


def interrupted(operators):
    """An endless kernel, while another thread sends this process Ctrl-C."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    return fault_of(operators, "endless_loop")


def report():
    """What the process of its own does: all faults, a correct kernel after each, JSON on the last line."""
    operators = load_cases("faults")
    seen = {}
    for name in FAULTS:
        seen[name] = fault_of(operators, name) | {"correct_afterwards": correct_answer(operators)}
        print(name, seen[name], file=sys.stderr, flush=True)
    seen["interrupt"] = interrupted(operators) | {"correct_afterwards": correct_answer(operators)}
    print(json.dumps(seen), flush=True)


@pytest.fixture(scope="module")
def reported():
    environment = os.environ | {"KERNEL_LADDER_BLOCK_SECONDS": "1", "PYTHONPATH": str(TESTS.parent)}
    process = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert process.returncode == 0, f"the process ended with {process.returncode}:\n{process.stderr[-3000:]}"
    return json.loads(process.stdout.splitlines()[-1])


def check_fault(seen, name):
    kind, kernel, block, thread = FAULTS[name]
    assert seen["type"] == "KernelFault", seen
    first = seen["message"]
    assert_matches(kind, first)
    place = rf"kernel '[^']*{kernel}[^']*', block {as_text(block)}, thread {as_text(thread)}"
    assert_matches(place, first)
    assert seen["seconds"] < SLOWEST


def as_text(index):
    return r"\(\d+, \d+, \d+\)" if index is None else r"\({}, {}, {}\)".format(*index)


def assert_matches(pattern, text):
    with pytest.raises(RuntimeError, match=pattern):
        raise RuntimeError(text)


@on_simulator
@pytest.mark.parametrize("name", FAULTS)
def test_fault(reported, name):
    check_fault(reported[name], name)
    assert reported[name]["correct_afterwards"]


@on_simulator
def test_interrupt(reported):
    assert reported["interrupt"]["type"] == "KeyboardInterrupt"
    assert reported["interrupt"]["seconds"] < SLOWEST
    assert reported["interrupt"]["correct_afterwards"]


@pytest.fixture(scope="module")
def faults():
    return load_cases("faults")


@on_simulator
@pytest.mark.parametrize("name", HERE)
def test_fault_in_this_process(faults, name):
    check_fault(fault_of(faults, name), name)
    assert correct_answer(faults)


@on_simulator
def test_no_fault_where_there_is_none(faults):
    assert fault_of(faults, "correct")["type"] == "none"


@on_simulator
def test_faults_again_and_again(faults):
    """Nothing is used up: neither stacks nor handlers nor threads."""
    for _ in range(100):
        for name in ("null_write", "after_barrier", "exception_after_barrier"):
            assert fault_of(faults, name)["type"] == "KernelFault"
    assert correct_answer(faults)


# ----------------------------------------------------------------------------------------------------------------------
# Calls of the host API with bad arguments

API = ["double_free", "free_of_host_memory", "free_inside_allocation", "bad_device", "bad_copies", "huge_allocation"]
API += ["unused_events", "copy_beyond_symbol"]


@pytest.fixture(scope="module")
def misuse():
    return load_cases("api_misuse")


@pytest.mark.parametrize("case", API)
def test_api_misuse(misuse, case):
    getattr(misuse, case)([], [])  # raises unless each call gave the error that is expected there


@on_simulator
def test_destroyed_handles(misuse):
    misuse.destroyed_handles([], [])
    out = torch.zeros(1, dtype=torch.int32)
    misuse.launch_on_destroyed_stream([out], [])
    assert out.item() == 0


# ----------------------------------------------------------------------------------------------------------------------
# Sources that do not compile: the line of the error and what the message says, on either target

HEAD = "#include <cuda_runtime.h>\n__global__ void k(int* p, int n) { p[0] = n; }\n"  # two lines
BROKEN = {
    "a missing semicolon": (HEAD + "void f(int* p) {\n  int i = 1\n  k<<<1, 1>>>(p, i);\n}\n", (4, 5), "expected"),
    "an unknown name": (HEAD + "void f(int* p) {\n  k<<<1, 1>>>(p, undeclared_name);\n}\n", 4, "undeclared_name"),
    "an unknown kernel": (HEAD + "void f(int* p) {\n  no_such_kernel<<<1, 1>>>(p);\n}\n", 4, "no_such_kernel"),
    "an unknown type in a kernel": (HEAD + "__global__ void g(flaot* p) {}\n", 3, "flaot"),
    "an argument too few": (HEAD + "void f(int* p) {\n  k<<<1, 1>>>(p);\n}\n", 4, "few|match"),
    "an argument too many": (HEAD + "void f(int* p) {\n  k<<<1, 1>>>(p, 1, 2);\n}\n", 4, "many|match"),
    "an argument of another type": (HEAD + 'void f(int* p) {\n  k<<<1, 1>>>(p, "text");\n}\n', 4, "char|convert|match"),
    "a parenthesis left open": (HEAD + "void f(int* p) {\n  k<<<1, 1>>>(p, (1 + 2);\n}\n", (4, 5), r"[()]|expected"),
    "a launch left open": (HEAD + "void f(int* p) {\n  k<<<1, 1(p, 1);\n}\n", (4, 5), ">>>|expected"),
    "a launch without arguments": (HEAD + "void f(int* p) {\n  k<<<1, 1>>>;\n}\n", 4, r"\(|expected"),
    "a launch with a grid alone": (HEAD + "void f(int* p) {\n  k<<<1>>>(p, 1);\n}\n", 4, "Config|configuration|match|argument"),
    "a launch with five numbers": (
        HEAD + "void f(int* p) {\n  k<<<1, 1, 0, 0, 0>>>(p, 1);\n}\n", 4, "Config|configuration|match|argument",
    ),
    "a comment left open": (HEAD + "void f(int* p) {\n  /* k<<<1, 1>>>(p, 1);\n}\n", (3, 6), "comment|expected"),
    "a string left open": (HEAD + 'const char* s = "k<<<1, 1>>>;\nint i;\n', 3, "terminat|quote"),
    "a header that is not there": ('#include "no_such_header.cuh"\n', 1, "no_such_header.cuh"),
    "an #error": (HEAD + "#error give the size\n", 3, "give the size"),
    "a failed static_assert": (HEAD + 'static_assert(sizeof(float4) == 12, "a tile of 12");\n', 3, "a tile of 12"),
    "endless templates": (
        HEAD + "template <int N> struct T { static const int v = T<N + 1>::v; };\nint i = T<0>::v;\n", (3, 4), "depth|T<",
    ),
    "shared memory with a value": (HEAD + "__global__ void g(int* p) {\n  __shared__ int s = 4;\n}\n", 4, "shared|initial"),
}  # fmt: skip

# What the simulator refuses: the line and a word of the sentence.
REFUSED = {
    "inline PTX": ('__global__ void g(int* p) {\n  asm("mov.u32 %0, 1;" : "=r"(p[0]));\n}\n', 2, "PTX|asm"),
    "inline PTX, volatile": ('__device__ void g() {\n\n  asm volatile ("bar.sync 0;");\n}\n', 3, "PTX|asm"),
    "dynamic parallelism": (HEAD + "__global__ void g(int* p) {\n  k<<<1, 1>>>(p, 1);\n}\n", 4, "parallelism|kernel"),
    "a texture object": (
        "__global__ void g(cudaTextureObject_t t, float* p) {\n  p[0] = tex1Dfetch<float>(t, 0);\n}\n", (1, 2), "texture",
    ),
    "a texture created": ("void f(cudaTextureObject_t* t) {\n  cudaCreateTextureObject(t, 0, 0, 0);\n}\n", 2, "texture"),
    "a surface": (
        "__global__ void g(cudaSurfaceObject_t s) {\n  surf2Dwrite(1.0f, s, 0, 0);\n}\n", (1, 2), "surface|texture",
    ),
    "a graph": ("void f(cudaStream_t s) {\n  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);\n}\n", 2, "graph"),
    "a grid-wide barrier": (
        "#include <cooperative_groups.h>\n__global__ void g() {\n  cooperative_groups::this_grid().sync();\n}\n", 3, "grid|block",
    ),
    "a cooperative launch": (
        HEAD + "void f(void** a) {\n  cudaLaunchCooperativeKernel((void*)k, dim3(1), dim3(1), a, 0, 0);\n}\n", 4, "launch|block",
    ),
}  # fmt: skip


def build_error(folder, text):
    """The error from building the text as `broken.cu`, and the seconds it took; None if it builds."""
    source = folder / "broken.cu"
    source.write_text(text)
    started = time.monotonic()
    try:
        helpers.load("hostile_broken", [str(source)], is_python_module=False)
    except helpers.BuildError as error:
        return error, time.monotonic() - started
    return None, time.monotonic() - started


@pytest.fixture(scope="module")
def build_errors(tmp_path_factory):
    """A function from a name in BROKEN or REFUSED to what building it gave; all are tried, two at a time."""
    texts = {name: row[0] for name, row in (BROKEN | (REFUSED if SIMULATOR else {})).items()}
    with ThreadPoolExecutor(max_workers=2) as pool:
        tries = {
            name: pool.submit(build_error, tmp_path_factory.mktemp("broken"), text) for name, text in texts.items()
        }
        yield lambda name: tries[name].result()


def check_build_error(error, line, words):
    first, last = line if isinstance(line, tuple) else (line, line)
    where = "|".join(str(n) for n in range(first, last + 1))
    message = str(error)
    assert_matches(rf"\A\S*broken\.cu:({where}): ", message)
    assert_matches(words, message.split("broken.cu:", 1)[1])


@pytest.mark.parametrize("name", BROKEN)
def test_broken_source(build_errors, name):
    _, line, words = BROKEN[name]
    error, seconds = build_errors(name)
    assert type(error) is helpers.BuildError
    check_build_error(error, line, words)
    assert seconds < SLOWEST or not SIMULATOR


@pytest.mark.skipif(not SIMULATOR, reason="a GPU has these")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_source(build_errors, name):
    _, line, words = REFUSED[name]
    error, seconds = build_errors(name)
    assert type(error) is helpers.UnsupportedError
    check_build_error(error, line, words)
    assert seconds < SLOWEST


def test_sources_that_only_look_broken(tmp_path):
    """Launches, PTX and open brackets in comments and strings are text; the source builds."""
    harmless = HEAD + (
        '// k<<<1, 1>>>(p, 1; asm("x"); /*\n'
        'const char* a = "k<<<1, 1(((";\n'
        'const char* b = "asm(\\"mov\\") // /* \\\\";\n'
        'const char* c = R"x(k<<<)" tex2D)x";\n'
        "/* surf2Dwrite( <<< */ int shifted = 1 << 2 >> 1;\n"
        'extern "C" void f(int* p) { k<<<1, 1>>>(p, shifted); }\n'
    )
    error, _ = build_error(tmp_path, harmless)
    assert error is None, error


def test_too_much_static_shared_memory(tmp_path):
    """49,152 bytes is the most that a kernel may declare; nvcc refuses more when it builds."""
    source = tmp_path / "large.cu"
    text = '#include "case.h"\n__global__ void g(int* p) { __shared__ int s[%d]; s[0] = 5; __syncthreads(); p[0] = s[0]; }\n'
    text += "CASE(large) { g<<<1, 1>>>(call.data<int>(0)); }\n"

    def answer(elements):
        source.write_text(text % elements)
        include = [str(TESTS / "simt_cases")]
        operators = helpers.load("hostile_large", [str(source)], extra_include_paths=include, is_python_module=False)
        out = torch.zeros(1, dtype=torch.int32, device=helpers.device)
        operators.large([out], [])
        return out.item()

    assert answer(48 * 1024 // 4) == 5
    with pytest.raises(RuntimeError, match="shared"):
        answer(48 * 1024 // 4 + 1)
    assert answer(48 * 1024 // 4) == 5


# ----------------------------------------------------------------------------------------------------------------------
# Calls of `load` and `load_inline` with bad arguments

CALLS = {
    "sources of another type": (lambda d: helpers.load("name", 7), TypeError, "sources is 7"),
    "a source of another type": (lambda d: helpers.load("name", [str(d / "k.cu"), None]), TypeError, "sources is"),
    "no sources": (lambda d: helpers.load("name", []), ValueError, "sources is empty"),
    "a missing file": (lambda d: helpers.load("name", [str(d / "no.cu")]), FileNotFoundError, r"no\.cu, which does not exist"),
    "a folder": (lambda d: helpers.load("name", [str(d)]), IsADirectoryError, "which is a folder"),
    "a name that is no name": (lambda d: helpers.load("my-op", [str(d / "k.cu")]), ValueError, "name is 'my-op'"),
    "a name of another type": (lambda d: helpers.load(None, [str(d / "k.cu")]), ValueError, "name is None"),
    "flags in one string": (
        lambda d: helpers.load("name", [str(d / "k.cu")], extra_cflags="-O3"), TypeError, "extra_cflags is '-O3'",
    ),
    "CUDA flags of another type": (
        lambda d: helpers.load("name", [str(d / "k.cu")], extra_cuda_cflags=[3]), TypeError, r"extra_cuda_cflags is \[3\]",
    ),
    "inline sources of another type": (lambda d: helpers.load_inline("name", 3), TypeError, "cpp_sources is int"),
    "inline sources of bytes": (lambda d: helpers.load_inline("name", "", b"x"), TypeError, "cuda_sources is bytes"),
    "empty inline sources": (lambda d: helpers.load_inline("name", "", ""), ValueError, "are empty"),
    "an empty file as a module": (lambda d: helpers.load("hostile_empty", [str(d / "empty.cu")]), helpers.BuildError, "cannot be loaded"),
    "a function that is defined nowhere": (
        lambda d: helpers.load("hostile_undefined", [str(d / "undefined.cu")], is_python_module=False),
        helpers.BuildError, "missing_function",
    ),
    "bytes that are no text": (
        lambda d: helpers.load("hostile_bytes", [str(d / "bytes.cu")], is_python_module=False),
        helpers.BuildError, r"bytes\.cu:1: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_bad_call(tmp_path, name):
    (tmp_path / "k.cu").write_text(HEAD)
    (tmp_path / "empty.cu").write_text("")
    (tmp_path / "undefined.cu").write_text('void missing_function();\nextern "C" void f() { missing_function(); }\n')
    (tmp_path / "bytes.cu").write_bytes(bytes(range(128, 256)) * 4 + b"\0\1\2")
    call, kind, words = CALLS[name]
    with pytest.raises(kind, match=words):
        call(tmp_path)


if __name__ == "__main__":
    report()
