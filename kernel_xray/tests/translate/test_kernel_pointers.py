"""Kernels as pointers in a source: which names are marked, and which are left alone."""

import re

import pytest

from kernel_xray.translate.rewriter import rewrite

KERNEL = "template <typename T, int N> __global__ void __launch_bounds__(64) k(T*);\n"


def marked(name, spelled=None):
    return f'::simt::known("{spelled or name}", {name})'


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("cudaLaunchKernel((void*)k, g, b, a);", "k"),
        ("cudaLaunchKernel(k, g, b, a);", "k"),
        ("cudaLaunchKernel((const void *)&k<float, 4>, g, b, a);", "&k<float, 4>"),
        ("cudaLaunchKernel((void*)other::kernel<A<B<2>>, 3>, g, b, a);", "other::kernel<A<B<2>>, 3>"),
        ("cudaLaunchCooperativeKernel(reinterpret_cast<void*>(k<int, 1>), g, b, a);", "k<int, 1>"),
        ("cudaLaunchCooperativeKernel((void*)pointer, g, b, a);", "pointer"),
        ("cudaLaunchKernelEx(&config, k<float, 2>, p);", "k<float, 2>"),
        ("cudaLaunchKernelExC(make(1, 2), (void*)k<float, 2>, p);", "k<float, 2>"),
        ("params.func = (void*)k<float, 2>;", "k<float, 2>"),
        ("void* f = reinterpret_cast<void*>(&ns::k<float, 2>);", "&ns::k<float, 2>"),
        ("void* all[] = {(void*)k<float, 2>, other};", "k<float, 2>"),
    ],
)
def test_marked(source, name):
    spelled = name.removeprefix("&")
    assert rewrite(KERNEL + source) == KERNEL + source.replace(name, marked(name, spelled))


@pytest.mark.parametrize(
    "source",
    [
        "cudaMalloc((void**)&p, n);",
        "free((void*)p);",
        "void f(void*, void*);",
        "x = (void*)(k2);",
        "x = (char*)k;",
        "cudaLaunchKernel(config.kernel, g, b, a);",
        "cudaLaunchKernel(kernels[0], g, b, a);",
        "cudaLaunchKernel(find(name), g, b, a);",
        "#define cudaLaunchKernel other\n",
    ],
)
def test_left_alone(source):
    assert rewrite(KERNEL + source) == KERNEL + source


def test_a_marked_kernel_brings_its_clusters():
    source = "__global__ void __cluster_dims__(2, 1, 1) k(int*);\nvoid* f = (void*)k;\nvoid* g = (void*)j;"
    assert rewrite(source) == source.replace("(void*)k", '(void*)::simt::known("k", k, ::dim3(2, 1, 1))')


HELD = KERNEL + "void f() { auto kernel = k<float, 2>; auto* other = pick ? k<int, 1> : k<int, 2>; %s }"


@pytest.mark.parametrize(
    ("launch", "name"),
    [
        ("cudaLaunchKernelEx(&config, kernel, p);", "k<float, 2>"),
        ("cudaLaunchKernelEx(&config, other, p);", "other"),  # one of two
        ("kernel = k<int, 3>; cudaLaunchKernelEx(&config, kernel, p);", "k<int, 3>"),
        ("kernel<<<1, 32>>>(p);", "k<float, 2>"),
        ("other<<<1, 32>>>(p);", "other"),
        ("unknown<<<1, 32>>>(p);", "unknown"),
    ],
)
def test_a_variable_has_the_name_of_the_kernel_that_it_holds(launch, name):
    held = rewrite(HELD % launch).partition("pick")[2]
    assert re.findall(r'known\("([^"]*)"|launcher\(\{"([^"]*)"', held) in ([(name, "")], [("", name)])


def test_a_cast_of_a_variable_that_holds_a_kernel_marks_it():
    source = (
        KERNEL + "void f() { auto* held = &k<float, 2>; const void* other = 0; set((void const*)held, (void*)other); }"
    )
    assert rewrite(source) == source.replace(")held", ')::simt::known("k<float, 2>", held)')


def test_a_held_kernel_brings_its_clusters():
    source = "__global__ void __cluster_dims__(2, 1, 1) k(int*);\nvoid f() { auto* held = &k; held<<<2, 32>>>(p); }"
    assert '{"k", __FILE__, __LINE__, nullptr, ::dim3(2, 1, 1)}' in rewrite(source)


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        ("template <typename K> void f(int n, K kernel, float* p) { kernel<<<1, 32>>>(p); }", True),
        (
            "void f(void (*kernel)(float*), float* p) { auto kernel = first; kernel<<<1, 32>>>(p); }",
            False,
        ),
        ("void f(float* p) { kernel<<<1, 32>>>(p); }", False),
    ],
)
def test_the_runtime_names_a_kernel_that_is_a_parameter(function, asked):
    assert ('launcher({::simt::kernel_at(kernel, "kernel")' in rewrite(function)) == asked


def test_members_are_told_from_built_in_variables():
    source = "config.gridDim = dim3(1); p->blockDim.x = gridDim.x * blockDim.x;"
    expected = "config.gridDim = dim3(1); p->blockDim.x = simt_gD.x * simt_bDm.x;"
    assert rewrite(source) == expected
