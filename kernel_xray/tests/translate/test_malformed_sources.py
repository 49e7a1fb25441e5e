"""Sources that do not build and calls of the loader with bad arguments: the error names the line or the argument."""

import time
from pathlib import Path

import pytest
import torch
from simt_programs import assert_matches, load_cases, side_by_side

import kernel_xray
from kernel_xray.runtime.libsimt import is_clang

TESTS = Path(__file__).parent
SIMULATOR = kernel_xray.target == "simulator"
SLOWEST = 60.0  # seconds within which the simulator must report each error

# ----------------------------------------------------------------------------------------------------------------------
# Sources that do not compile: the line and the text of the error, on either target

HEAD = "#include <cuda_runtime.h>\n__global__ void k(int* p, int n) { p[0] = n; }\n"  # two lines


def inside(function, statement):
    """The source with a statement on line 4, alone in a function that begins on line 3."""
    return f"{HEAD}{function} {{\n  {statement}\n}}\n"


def host(statement):
    return inside("void f(int* p, void** a, cudaStream_t s)", statement)


def device(statement):
    return inside("__global__ void g(int* p)", statement)


CONFIGURATION = "Config|configuration|match|argument"
LEFT_OPEN = "terminat|quote|never ends" + ("|expected" if is_clang() else "")  # clang++ warns of the quote
BROKEN = {
    "a missing semicolon": (host("int i = 1\n  k<<<1, 1>>>(p, i);"), (4, 5), "expected"),
    "an unknown name": (host("k<<<1, 1>>>(p, undeclared_name);"), 4, "undeclared_name"),
    "an unknown name in a kernel": (device("p[undeclared_name] = 1;"), 4, "undeclared_name"),
    "an unknown kernel": (host("no_such_kernel<<<1, 1>>>(p);"), 4, "no_such_kernel"),
    "an unknown type": (HEAD + "__global__ void g(flaot* p) {}\n", 3, "flaot"),
    "an argument too few": (host("k<<<1, 1>>>(p);"), 4, "few|match"),
    "an argument too many": (host("k<<<1, 1>>>(p, 1, 2);"), 4, "many|match"),
    "an argument of another type": (host('k<<<1, 1>>>(p, "text");'), 4, "char|convert|match"),
    "a parenthesis left open": (host("k<<<1, 1>>>(p, (1 + 2);"), (4, 5), r"[()]|expected"),
    "a launch left open": (host("k<<<1, 1(p, 1);"), (4, 5), ">>>|expect|expression"),
    "a launch without arguments": (host("k<<<1, 1>>>;"), 4, r"\(|expected"),
    "a launch with five numbers": (host("k<<<1, 1, 0, 0, 0>>>(p, 1);"), 4, CONFIGURATION),
    "a launch with a text as grid": (host('k<<<"one", 1>>>(p, 1);'), 4, "conver|match"),
    "a comment left open": (host("/* k<<<1, 1>>>(p, 1);"), (3, 6), "comment|expected"),
    "a string left open": (HEAD + 'const char* s = "k<<<1, 1>>>;\nint i;\n', 3, LEFT_OPEN),
    "inline PTX with a string left open": (device('asm("add.u32 %0, %0,\n 1;" : "+r"(p[0]));'), (4, 6), "expected|asm"),
    "a header that is not there": ('#include "no_such_header.cuh"\n', 1, "no_such_header.cuh"),
    "an #error": (HEAD + "#error give the size\n", 3, "give the size"),
    "a failed static_assert": (HEAD + 'static_assert(sizeof(float4) == 12, "a tile of 12");\n', 3, "a tile of 12"),
    "endless templates": (
        HEAD + "template <int N> struct T { static const int v = T<N + 1>::v; };\nint i = T<0>::v;\n",
        (3, 4),
        "depth|T<",
    ),
    "shared memory with a value": (device("__shared__ int s = 4;"), 4, "shared|initial"),
}

# What the simulator refuses: the line and a word of the sentence.
REFUSED = {
    "a kernel that waits for its children": (device("cudaDeviceSynchronize();"), 4, "cudaStreamTailLaunch"),
    "a texture reference": (HEAD + "texture<float, 2> t;\n", 3, "create a texture object"),
    "a surface reference": (HEAD + "static surface<void, cudaSurfaceType2D> s;\n", 3, "create a surface object"),
    "a cube map": (device("cudaTextureObject_t t = 0; texCubemap<float>(t, 0, 0, 1);"), 4, "cube maps"),
    "a bound texture": (host("cudaBindTexture(nullptr, p, p, 4);"), 4, "create a texture object"),
    "a node that allocates": (host("cudaGraphAddMemAllocNode(nullptr, nullptr, nullptr, 0, a);"), 4, "graph"),
}  # fmt: skip

# One of each kind is quick: of the compiler's errors in a launch and about a header, of the translator's errors, and of
# the refusals. test_loader.py and test_xray_command.py have the compiler's errors in host code and in a kernel.
QUICK = (
    "an argument too few",
    "a comment left open",
    "a header that is not there",
    "a cube map",
)

# nvcc accepts this, though CUDA's language has no such launch.
if SIMULATOR:
    BROKEN["a launch with a grid alone"] = (host("k<<<1>>>(p, 1);"), 4, CONFIGURATION)


def build_error(folder, text):
    """The error from building the text as `broken.cu`, and the seconds it took; None if it builds."""
    source = folder / "broken.cu"
    source.write_text(text)
    started = time.monotonic()
    try:
        kernel_xray.load("broken", [str(source)], build_directory=str(folder / "build"), is_python_module=False)
    except kernel_xray.BuildError as error:
        return error, time.monotonic() - started
    return None, time.monotonic() - started


@pytest.fixture(scope="module")
def build_errors(request, tmp_path_factory):
    """A function from a name in BROKEN or REFUSED to the result of its build. Those of the chosen tests are built."""
    every = BROKEN | (REFUSED if SIMULATOR else {})
    chosen = [item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")]
    rows = {name: row for name, row in every.items() if name in chosen}
    with side_by_side(lambda name: build_error(tmp_path_factory.mktemp("broken"), rows[name][0]), rows) as errors:
        yield errors


ON_SIMULATOR = pytest.mark.skipif(not SIMULATOR, reason="a GPU has these")
MARKS = {name: [] if name in QUICK else [pytest.mark.slow] for name in BROKEN | REFUSED}
EXPECTED = [
    pytest.param(name, *row[1:], kernel_xray.BuildError, id=name, marks=MARKS[name]) for name, row in BROKEN.items()
]
EXPECTED += [
    pytest.param(name, *row[1:], kernel_xray.UnsupportedError, id=name, marks=[ON_SIMULATOR, *MARKS[name]])
    for name, row in REFUSED.items()
]


@pytest.mark.parametrize(("name", "line", "words", "kind"), EXPECTED)
def test_broken_or_refused_source(build_errors, name, line, words, kind):
    error, seconds = build_errors(name)
    assert type(error) is kind
    first, last = line if isinstance(line, tuple) else (line, line)
    where = "|".join(str(n) for n in range(first, last + 1))
    message = str(error)
    assert_matches(rf"\A\S*broken\.cu:({where}): ", message)
    assert_matches(words, message.split("broken.cu:", 1)[1])
    assert seconds < SLOWEST or not SIMULATOR


@pytest.mark.slow  # test_programs.py has a program with them
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


@pytest.mark.slow
def test_too_much_static_shared_memory():
    """A kernel may declare 49,152 bytes. nvcc refuses more at compile time, the simulator at run time."""

    def answer(elements):
        source, flags = TESTS.parent / "runtime" / "hostile" / "shared_limit.cu", [f"-DELEMENTS={elements}"]
        operators = load_cases(source, "shared_limit", flags, extra_cflags=flags)
        out = torch.zeros(1, dtype=torch.int32, device=kernel_xray.device)
        operators.large([out], [])
        return out.item()

    assert answer(48 * 1024 // 4) == 5
    # nvcc's limit depends on the architecture: 48 KB for most, all of an SM's memory for sm_90a.
    with pytest.raises(RuntimeError, match="shared"):
        answer(48 * 1024 // 4 + 1 if SIMULATOR else 256 * 1024 // 4)
    assert answer(48 * 1024 // 4) == 5


# ----------------------------------------------------------------------------------------------------------------------
# Calls of `load` and `load_inline` with bad arguments


def load(name, sources, **options):
    """A call of `load` with these arguments, where paths are relative to a folder."""

    def call(folder):
        paths = [folder / s if isinstance(s, Path) else s for s in sources] if isinstance(sources, list) else sources
        kernel_xray.load(name, paths, is_python_module=False, **options)

    return call


SOURCE = [Path("k.cu")]
CALLS = {
    "sources of another type": (load("name", 7), TypeError, "sources is 7"),
    "a source of another type": (load("name", [*SOURCE, None]), TypeError, "sources is"),
    "no sources": (load("name", []), ValueError, "sources is empty"),
    "a missing file": (load("name", [Path("no.cu")]), FileNotFoundError, r"no\.cu, which does not exist"),
    "a folder": (load("name", [Path()]), IsADirectoryError, "which is a folder"),
    "a name that is not an identifier": (load("my-op", SOURCE), ValueError, "name is 'my-op'"),
    "a name of another type": (load(None, SOURCE), ValueError, "name is None"),
    "a name of PyTorch's": (load("aten", SOURCE), ValueError, "name is 'aten', which PyTorch uses itself"),
    "flags in one string": (load("name", SOURCE, extra_cflags="-O3"), TypeError, "extra_cflags is '-O3'"),
    "a flag that is not a string": (
        load("name", SOURCE, extra_cuda_cflags=[3]), TypeError, r"extra_cuda_cflags is \[3\]",
    ),
    "a standalone program": (load("name", SOURCE, is_standalone=True), ValueError, "is_standalone"),
    "inline sources of another type": (lambda _: kernel_xray.load_inline("name", 3), TypeError, "cpp_sources is int"),
    "inline sources of bytes": (
        lambda _: kernel_xray.load_inline("name", "", b"int i;"), TypeError, "cuda_sources is bytes",
    ),
    "empty inline sources": (lambda _: kernel_xray.load_inline("name", "", " \n"), ValueError, "are empty"),
    "a function that is defined nowhere": (
        load("undefined", [Path("undefined.cu")]), kernel_xray.BuildError, "missing_function",
    ),
    "bytes that are no text": (load("bytes", [Path("bytes.cu")]), kernel_xray.BuildError, r"bytes\.cu"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_bad_call(tmp_path, name):
    (tmp_path / "k.cu").write_text(HEAD)
    (tmp_path / "undefined.cu").write_text('void missing_function();\nextern "C" void f() { missing_function(); }\n')
    (tmp_path / "bytes.cu").write_bytes(bytes(range(128, 256)) * 4 + b"\0\1\2")
    call, kind, words = CALLS[name]
    with pytest.raises(kind, match=words):
        call(tmp_path)
