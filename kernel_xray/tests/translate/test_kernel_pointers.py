"""Kernels as pointers in a source: which names are marked, and which are left alone."""

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


def test_a_name_that_is_no_kernel_is_not_marked():
    source = "__global__ void __cluster_dims__(2, 1, 1) k(int*);\nvoid* f = (void*)k;\nvoid* g = (void*)j;"
    assert rewrite(source) == source.replace("(void*)k", f"(void*){marked('k')}")


HELD = "struct S { void (*member)(float*); };\n"
HELD += KERNEL + "void f(S s) { auto held = k<float, 2>; auto [x, part] = pair(); %s }"


@pytest.mark.parametrize(
    ("launch", "pointer"),
    [
        ("held<<<1, 32>>>(p);", True),
        ("member<<<1, 32>>>(p);", True),
        ("part<<<1, 32>>>(p);", True),
        ("s.member<<<1, 32>>>(p);", True),
        ("held[2]<<<1, 32>>>(p);", True),
        ("next()<<<1, 32>>>(p);", True),
        ("(*held)<<<1, 32>>>(p);", True),
        ("(x ? k<int, 1> : k<int, 2>)<<<1, 32>>>(p);", True),
        ("static_cast<void (*)(float*)>(k)<<<1, 32>>>(p);", True),
        ("if (x) (unknown)<<<1, 32>>>(p);", False),
        ("unknown<<<1, 32>>>(p);", False),
        ("(&ns::unknown<int>)<<<1, 32>>>(p);", False),
        ("cudaLaunchKernelEx(&config, held, p);", True),
        ("set((void const*)held, (void*)x);", True),
        ("cudaLaunchKernelEx(&config, unknown, p);", False),
    ],
)
def test_the_host_reads_a_pointer_once_and_the_runtime_names_its_kernel(launch, pointer):
    text = rewrite(HELD % launch).partition("pair")[2]
    assert ("::simt::launcher_of(" in text or "::simt::known(nullptr, held)" in text) == pointer


def test_a_variable_may_have_the_name_of_a_kernel():
    text = rewrite(
        "__global__ void a() {}\n__global__ void b() {}\nvoid f(void (*a)()) { a<<<1, 2>>>(), b<<<1, 2>>>(); }"
    )
    assert [f"site_of(reinterpret_cast<const void*>(+{name})" in text for name in "ab"] == [True, False]


def test_in_a_macro_a_kernel_has_the_name_that_is_given():
    source = KERNEL + "#define L(kernel, T) cudaLaunchKernel((void*)kernel##_k<T>, g, b, a)\n"
    assert 'known("" #kernel "_k<" #T ">", kernel##_k<T>)' in rewrite(source)


def test_members_are_told_from_built_in_variables():
    source = "config.gridDim = dim3(1); p->blockDim.x = gridDim.x * blockDim.x;"
    expected = "config.gridDim = dim3(1); p->blockDim.x = simt_gD.x * simt_bDm.x;"
    assert rewrite(source) == expected
