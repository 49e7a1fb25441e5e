"""The rewriter: what it changes, what it leaves alone, and an independent parser that must find the same launches."""

import re
import time
from pathlib import Path

import pytest
from translations import assert_launches_as_by_grammar, assert_lines_stay

from kernel_xray.translate.lexer import LexError
from kernel_xray.translate.refusals import REFUSAL
from kernel_xray.translate.rewriter import RewriteError, defined_kernels, registers_cuda, rewrite

SOURCES = sorted(Path(__file__).parents[1].rglob("*.cu"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_tokens_join_to_the_source_and_lines_stay(path):
    assert_lines_stay(path)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_an_independent_grammar_finds_the_same_launches(path):
    assert_launches_as_by_grammar(path)


@pytest.mark.parametrize(
    ("source", "callee", "arguments"),
    [
        ("k<<<1, 2>>>(x);", "k", "(x);"),
        ("k<<<grid(a, b), dim3(1, 2), 0, s>>>(x, y);", "k", "(x, y);"),
        ("ns::k<T, 4><<<1, 2>>>();", "ns::k<T, 4>", "();"),
        ("k<(3 > 2) ? 4 : 5><<<1, 2>>>(x);", "k<(3 > 2) ? 4 : 5>", "(x);"),
        ("k<A<B<int>>><<<1, 2>>>(x);", "k<A<B<int>>>", "(x);"),
        ("Op<T>::template run<2><<<1, 2>>>(x);", "Op<T>::template run<2>", "(x);"),
        ("::k<<<1, 2>>>(x);", "::k", "(x);"),
        ("if (n) k<<<1, 2>>>(x);", "k", "(x);"),
        ("else k<<<1, 2>>>(x);", "k", "(x);"),
        ("return k<<<1, 2>>>(x);", "k", "(x);"),
        ("k<<<a >> 1, 2>>>(f(x) >> 3);", "k", "(f(x) >> 3);"),
        ("k<<<size<int>(n), sizeof(A<B<int>>)>>>(x);", "k", "(x);"),
        ("k << <1, 2 >> > (x);", "k", " (x);"),  # as formatters that do not know CUDA write it
        ("k<T> << <f(1 << 2), 2 >> >(x);", "k<T>", "(x);"),
        ("n::k<T>  // a\n  /* b */ <<<1, 2>>>(x);", "n::k<T>", "(x);"),
        ("k<<<1,  // a\n  2>>>  //\n  (x);", "k", "  //\n  (x);"),
    ],
)
def test_launches(source, callee, arguments):
    result = rewrite(source)
    call = f"if constexpr (simt_pass.plain) {callee}(simt_arguments...); else simt_pass({callee}, simt_arguments...);"
    assert f"{{ {call} }}){arguments}" in result
    assert "<<<" not in result and "<< <" not in result


@pytest.mark.parametrize("name", ["__NVCC__", "__CUDACC__"])
def test_the_text_sees_nvcc_for_a_hopper_gpu(name):
    asked = f"#if defined({name}) && __CUDACC_VER_MAJOR__ >= 12 && defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
    twins = "#if defined(__SIMTCC__) && __SIMTCC_VER_MAJOR__ >= 12 && defined(__SIMT_ARCH_FEAT_SM90_ALL)\n"
    assert rewrite(asked + f"int x = {name}2;\n#endif") == twins + f"int x = {name}2;\n#endif"


def test_a_launch_in_a_macro_names_the_kernel_that_the_macro_is_given():
    result = rewrite("#define RUN(type, T) add_##type##_kernel<T, 2><<<1, 2>>>(x)\n")
    assert '{"add_" #type "_kernel<" #T ", 2>", ' in result
    assert "add_##type##_kernel<T, 2>(simt_arguments...)" in result
    assert '{"k<T>", ' in rewrite("#define RUN(kernel) k<T><<<1, 2>>>(x)\n")
    assert '{"" #size "2d_k", ' in rewrite("#define RUN(size) size##2d_k<<<1, 2>>>(x)\n")


REJECTED = "a host function call cannot be configured: k is not declared __global__"


@pytest.mark.parametrize(
    ("refused", "source"),
    [
        (True, "void k(int* p) { } void f() { k<<<1, 2>>>(p); }"),
        (True, "static inline void k() {} void f() { k << <1, 2 >> >(); }"),
        (True, "template <typename T> __device__ void k(T) {} void f() { k<int><<<1, 2>>>(3); }"),
        (False, "__global__ void k(int* p) { } void f() { k<<<1, 2>>>(p); }"),
        (False, "__global__ void k(); void f() { k<<<1, 2>>>(); } __global__ void k() {}"),
        (False, "void k(int) {} __global__ void k() {} void f() { k<<<1, 2>>>(); }"),
        (False, "KERNEL void k() {} void f() { k<<<1, 2>>>(); }"),
        (False, "void k() {} void f(void (*k)()) { (*k)<<<1, 2>>>(); n::k<<<1, 2>>>(); }"),
    ],
)
def test_a_launch_of_a_function_that_is_not_a_kernel_is_an_error(refused, source):
    assert (REJECTED in rewrite(source)) == refused


def test_the_kernels_of_other_files():
    header = (
        "template <int n> __global__ void __launch_bounds__(f(n) * 2) k(int a) {}\n__global__ __maxnreg__(9) void m();"
    )
    assert defined_kernels(header + "void host(int) {}") == {"k": 1, "m": 0}
    source = "void k() { k<2><<<1, 2>>>(p); }"
    assert REJECTED in rewrite(source)
    assert REJECTED not in rewrite(source, kernels=defined_kernels(header))
    source = "__global__ void m() {}\nvoid f() { m<<<1, 2>>>(); }"
    assert "(&m)" in rewrite(source, kernels=defined_kernels(source + header))
    overload = "__global__ void m(int) {}"
    assert "(&m)" not in rewrite(source, kernels=defined_kernels(source + overload))
    pointer = "void* p = (void*)m;"
    assert '::simt::known("m", m)' in rewrite(pointer, kernels=defined_kernels(header))
    assert rewrite(pointer, kernels=defined_kernels("void m();")) == pointer


@pytest.mark.parametrize(
    "source",
    [
        "#if 0\nwhich don't compile (really { yet\n#endif\n__global__ void k() {}\nvoid f() { k<<<1, 2>>>(); }\n",
        "__device__ void g() {\n#ifdef A\n  if (a) {\n#endif\n#ifndef B\n  }\n#endif\n#if C\n{\n#endif\n}\n"
        "void f() { k<<<1, 2>>>(); }\n",
    ],
)
def test_text_that_is_not_compiled_may_be_anything(source):
    result = rewrite(source)
    assert "::simt::launcher(" in result
    assert result.partition("void f()")[0] == source.partition("void f()")[0]


@pytest.mark.parametrize(
    ("plain", "source"),
    [
        (True, "__global__ void k(int*) {} void f() { k<<<1, 2>>>(p); }"),
        (True, "__global__ void k(int*); __global__ void k(int*) {} void f() { k<<<1, 2>>>(p); }"),
        (False, "__global__ void k(int*) {} float k(float x) { return x; } void f() { k<<<1, 2>>>(p); }"),
        (False, "float k(float); __global__ void k(int*) {} void f() { k<<<1, 2>>>(p); }"),
        (False, "__global__ void k(int*) {} __global__ void k(float*) {} void f() { k<<<1, 2>>>(p); }"),
        (False, "template <class T> LIMIT(2) __global__ void k(T) {} void f() { k<<<1, 2>>>(p); }"),
    ],
)
def test_the_address_is_taken_of_a_kernel_that_is_not_overloaded(plain, source):
    assert ("(&k)" in rewrite(source)) == plain
    assert "(&div)" not in rewrite(source.replace("k(", "div(").replace("k<<<", "div<<<"))  # the C library has others


def test_launch_over_several_lines_and_in_a_macro_keeps_the_lines():
    source = "#define RUN(T) \\\n  k<T> \\\n  <<<1, \\\n  2>>>(x)\nf();\n"
    result = rewrite(source)
    assert result.count("\n") == source.count("\n")
    assert result.splitlines()[-1] == "f();"
    assert all(line.endswith("\\") for line in result.splitlines()[:3])


@pytest.mark.parametrize(
    "source",
    [
        '"k<<<1, 2>>>(x)";',
        "// k<<<1, 2>>>(x);\n",
        "/* __shared__ int a; */",
        'R"(k<<<1, 2>>>(x))";',
        "#error don't use <<< here\n",
        "#include <assert.h>\n",
        "x = a << b >> c;",
        "int assert_count = 1'000;",
        "'<'; '\\''; x<y;",
        "#ifdef X\n#define __shared__\n#endif\nint f(int a);",
        "#undef __shared__\n",
        "#define assert(x) check(x)\nvoid f() { assert(1); }",
        "std::operator<< <char>(out, x);",
    ],
)
def test_what_is_left_alone(source):
    assert rewrite(source) == source


def test_a_conversion_that_is_called_by_its_name_is_a_cast():
    assert rewrite("f(x.operator __half(), y. operator __nv_bfloat16 ());\n") == (
        "f(static_cast<__half>(x), static_cast<__nv_bfloat16>(y));\n"
    )
    for source in (
        "struct S { operator __half() const; };\n",
        "f(a.b.operator __half());\n",
        "p->operator __half();\n",
    ):
        assert rewrite(source) == source


def test_null_as_an_argument_stays_a_pointer():
    assert rewrite("k<<<1, 2>>>(NULL, n);").endswith("(nullptr, n);")
    assert "NULL" in rewrite("k<<<1, 2>>>(f(NULL) + 1, n);")
    assert rewrite("k<<<1, 2>>>(0, n, 0);").endswith("(::simt::Zero{}, n, ::simt::Zero{});")
    assert "Zero" not in rewrite("k<<<1, 2>>>(f(0), 0 + n, 10, {0});")


def rewritten(source):
    """The text with all generated type names, which contain their offset in the source, renamed to N."""
    return re.sub(r"simt_shared_\d+_t", "simt_shared_N_t", rewrite(source))


def test_a_launch_has_the_clusters_of_its_kernel():
    kernel = "__global__ void {} k(int* p) {{}}\n"
    kernel += "void f() {{ k<<<2, 32>>>(p); ns::k<4><<<2, 32>>>(p); other<<<2, 32>>>(p); }}"
    for declared, dimensions in (
        ("", ""),
        ("__cluster_dims__(2)", "2"),
        ("__launch_bounds__(32, 1) __cluster_dims__(kTwo, 1, 1)", "kTwo, 1, 1"),
        ("__cluster_dims__(2, f(1)) __launch_bounds__(32)", "2, f(1)"),
    ):
        result = rewrite(kernel.format(declared))
        assert result.count(f"::dim3({dimensions})") == (2 if declared else 3)
        assert result.count("::dim3()") == (1 if declared else 3)


def test_a_kernel_with_a_parameter_of_any_type_is_a_template():
    for parameter, address in (("int*", "reinterpret_cast<const void*>(&k)"), ("auto*", "nullptr")):
        launch = rewrite(f"__global__ void k({parameter} p) {{}}\nvoid f() {{ k<<<1, 2>>>(p); }}")
        assert f"__LINE__, {address}, " in launch


def test_macros_of_a_launch_and_of_clusters_are_expanded():
    assert "a_k(simt_arguments...)" in rewrite("#define LAUNCH(tag) tag##_k<<<1, 2>>>\nLAUNCH(a)(x);")
    assert "::simt::Config( 1 , 2 )" in rewrite("#define WITH(k, given) k<<<1, 2>>> given\nWITH(a, (x));")
    pairs, kernel = "#define PAIRS __cluster_dims__(2)\n", "__global__ void PAIRS k() {}\n"
    assert "cluster_dims(2);" in rewrite(pairs + kernel)
    branches = rewrite(f"#if X\n{pairs}#else\n#define PAIRS\n#endif\n#ifdef PAIRS\n#endif\n{kernel}")
    assert "cluster_dims(2);" not in branches and "{ ::simt::cluster_dims(simt_clusters_of_PAIRS);}" in branches
    for definition, line, clusters in ((pairs[:-1], 3, 2), ("#define PAIRS", 5, 1)):
        name = "simt_clusters_of_PAIRS"
        assert f"{definition}\n#undef {name}\n#define {name} {clusters}\n#line {line}\n" in branches
    assert "\n#ifdef PAIRS\n" in branches
    assert "cluster_dims(2);" in rewrite("#define KERNEL(name) __global__ void __cluster_dims__(2) name() {}\n")


@pytest.mark.parametrize(
    ("bounds", "call"),
    [
        ("__launch_bounds__(384, 1)", "launch_bounds(384, 1)"),
        ("__launch_bounds__(T::kThreads,\n  T::kBlocks)", "launch_bounds(T::kThreads, T::kBlocks)"),
        ("__launch_bounds__(256, 2, 4)", "launch_bounds(256, 2, 4)"),
        ("__maxnreg__(168)", "max_registers(168)"),
        ("__cluster_dims__(T::kBlocks, 1, 1)", "cluster_dims(T::kBlocks, 1, 1)"),
        ("__attribute__((cluster_dims(2, 1, 1)))", "cluster_dims(2, 1, 1)"),
        ("__launch_bounds__(384)", ""),
        ("__launch_bounds__(size(1, 2))", ""),
    ],
)
def test_a_kernel_tells_its_registers_and_its_clusters(bounds, call):
    kernel = f"template <class T> __global__ void {bounds} k(int* x, int n)"
    assert "simt::" not in rewrite(f"{kernel};")  # a declaration
    assert ("simt::" in rewrite(f"{kernel} {{}}")) == bool(call)
    assert rewrite(f"{kernel} {{ *x = 1; }}").endswith(f"{{ ::simt::{call}; *x = 1; }}" if call else "{ *x = 1; }")


def test_a_header_of_macros_takes_no_time():
    macros = "".join(f"#define __attribute_{i}__(a, b) __declspec(__is_{i}(a)) (b)\n" for i in range(300))
    begun = time.perf_counter()
    assert not defined_kernels(f"#define __global__ __location__(global)\n{macros}")
    assert time.perf_counter() - begun < 10
    assert defined_kernels("__global__ void __launch_bounds__(f(g(1)), 2) k(int (*x)(int)) {}") == {"k": 1}


def test_shared_declarations():
    result = rewritten("void k() { __shared__ __align__(32) float a[T][T + 1], *b, c; }")
    assert "typedef float simt_shared_N_t[T][T + 1], *simt_shared_N_t, simt_shared_N_t;" in result
    for name in ("a", "b", "c"):
        assert f"auto& {name} = *static_cast<" in result
    assert "(32)" in result


def test_dynamic_shared_memory():
    assert "auto& s = *reinterpret_cast<simt_shared_N_t*>(::simt::shared_dynamic());" in rewritten(
        "__global__ void k() { extern __shared__ float s[]; }"
    )
    assert "::simt::DynamicShared<simt_shared_N_t> s{};" in rewritten("extern __shared__ float s[];")
    for form in (
        "extern float __shared__ s[]",
        "__align__(16) extern __shared__ float s[]",
        "extern __shared__ float s[]",
    ):
        result = rewritten(f"__global__ void k() {{ int n; {form}; }}")
        assert re.search(r"int n; typedef float +simt_shared_N_t\[\]; auto& s = \*reinterpret_cast", result)


def test_shared_memory_outside_functions():
    result = rewritten(
        "namespace n { __shared__ __align__(8) int a, b[4]; __global__ void k() { a = b[1]; x.a = 2; } }"
    )
    assert "typedef int simt_shared_N_t, simt_shared_N_t[4];" in result
    assert "static const ::simt::StaticShared<simt_shared_N_t, (8)> b{};" in result
    assert "{ ::simt::here(a) = ::simt::here(b)[1]; x.a = 2; }" in result


def test_a_brace_in_each_branch_of_an_if_is_one_brace():
    branches = "#ifdef X\nvoid k(int n) {\n#else\nvoid k() {\n#endif\n{} }\n__shared__ int a;"
    assert "StaticShared" in rewrite(branches)
    assert "StaticShared" not in rewrite(branches.replace("{} }", "{}"))


def test_shared_memory_in_macros():
    result = rewrite("#define TILE(T, name) __shared__ \\\n  T name[32]\nvoid k() { TILE(int, a); }")
    assert "T simt_shared_##name[32]; static ::simt::SharedSite simt_site_##name; auto& name = " in result
    assert result.split("\n")[0].endswith("\\") and result.count("\n") == 2
    alias = "#define SHARED __shared__\nvoid k() { SHARED int a; }"
    assert "auto& a = *static_cast<" in rewrite(alias)
    assert "__shared__" in rewrite(alias.split("\n")[0]) and REFUSAL in rewrite(alias.split("\n")[0])


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("int i = blockDim.x;", 1),
        ("f(blockDim, a); g(a, blockDim); return blockDim;", 3),
        ("dim3 b = n ? blockDim : x, c(blockDim); auto d{blockDim};", 3),
        ("k[blockDim.x] = a * blockDim.y + (int)blockDim.z;", 3),
        ("if (a && blockDim.x > 2) g(&blockDim);", 2),
        ("dim3 blockDim(2), gridDim(3); const int blockDim = 3; unsigned blockDim{4};", 0),
        ("struct L { dim3 a, blockDim; L(dim3 b) : blockDim(b) {} };", 0),
        ("struct L { dim3 a; L(dim3 b) : a(b), blockDim(b) {} };", 0),
        ("void f(const dim3& blockDim, dim3* blockDim); template <int blockDim> T g();", 0),
        ("x.blockDim = y->blockDim; T z{.blockDim = n::blockDim};", 0),
        ("[blockDim](int) {}; [&blockDim] {}; [=, &blockDim] {}; f([a, blockDim, b] {});", 0),
        ("enum { blockDim = 2 }; enum E { a, blockDim };", 0),
        ("#define RUN(blockDim, x) x + blockDim\n", 0),
        ("#define RUN(x) x + blockDim.x\n", 1),
    ],
)
def test_uses_of_a_built_in_variable(source, uses):
    assert rewrite(source).count("simt_bDm") == uses
    assert len(rewrite(source)) == len(source)


def test_names_keep_their_columns():
    source = "TORCH_CHECK(x.is_cuda(), y.device().type() == at::kCUDA, z);"
    result = rewrite(source)
    assert result == source.replace("is_cuda", "is_cpu ").replace("kCUDA", "kCPU ")
    assert result.index(", z") == source.index(", z")


def test_registrations():
    cuda = "TORCH_LIBRARY_IMPL(ns, CUDA, m) {}"
    cpu = "TORCH_LIBRARY_IMPL(ns, CPU, m) {}"
    assert rewrite(cuda) == "TORCH_LIBRARY_IMPL(ns, CPU , m) {}"
    assert rewrite(cpu) == cpu
    assert "PrivateUse1" in rewrite(cpu, cuda_registered=True)
    assert registers_cuda(cuda) and not registers_cuda(cpu)


@pytest.mark.parametrize(
    ("refused", "source"),
    [
        (True, 'asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(x));'),
        (False, 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'),
        (True, "texture<float, 2, cudaReadModeElementType> t;"),
        (True, "#include <a.h>\nstatic surface<void, 2> s;"),
        (True, "y = texCubemap<float>(t, u, v, w);"),
        (False, "y = tex2D<float>(t, u, v);"),
        (False, "surf2Dwrite(v, s, x, y);"),
        (False, "bool b = texture < 2 && surface<3;"),
        (True, "__global__ void a() { cudaDeviceSynchronize(); }"),
        (True, "__device__ void a() { if (x) { cudaDeviceSynchronize(); } }"),
        (False, "__global__ void a() { b<<<1, 1>>>(); }"),
        (False, "__global__ void a(); void h() { cudaDeviceSynchronize(); }"),
        (False, "__global__ void a() { } void h() { cudaDeviceSynchronize(); }"),
        (False, "int tex2 = 1; float texture_size;"),
        (False, "__device__ float x; void h() { cudaDeviceSynchronize(); }"),
    ],
)
def test_refused(refused, source):
    assert (REFUSAL in rewrite(source)) == refused


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("\nk<<<1, 2(x);", 2, "no matching"),
        ("\n\n<<<1, 2>>>(x);", 3, "no kernel"),
        ("k<<<1, 2>>>;", 1, "argument list"),
        ("void k() { __shared__ int a = 3; }", 1, "initialiser"),
        ("void k() { __shared__ int a", 1, "never ends"),
    ],
)
def test_errors_name_the_line(source, line, text):
    with pytest.raises(RewriteError, match=text) as caught:
        rewrite(source)
    assert caught.value.line == line


def test_unterminated():
    with pytest.raises(LexError) as caught:
        rewrite("\n/* never")
    assert caught.value.line == 2
    for source in ('\nx = "k<<<1, 2>>>();\n', "\n'"):  # the compiler's error says more
        assert rewrite(source) == source


def test_functions_that_call_each_other_are_not_both_inlined():
    """g++ refuses such a pair of functions that are always inlined, and nvcc compiles it."""
    declared = "H T rotl(T x, int s);\nH T rotr(T x, int s);\n"
    left, right = (
        "H T rotl(T x, int s) {\n  return s ? x : rotr(x, -s);\n}\n",
        "H T rotr(T x, int s) {\n  return rotl(x, s ? (1) : 2);\n}\n",
    )
    text = rewrite(declared + left + right)
    assert "x : [&]() __attribute__((noinline)) -> decltype(auto) { return rotr(x, -s); }();" in text
    assert text.count("noinline") == 1 and text.count("\n") == (declared + left + right).count("\n")
    for apart in (left + right, declared + left + right.replace("rotl", "roll"), declared + right + "  " + left):
        assert "noinline" not in rewrite(apart)
