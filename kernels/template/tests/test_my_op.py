"""my_op: every size and layout, its gradients, and its registration with the rest of PyTorch."""

import pytest
import torch

import my_op as package
from my_op import my_op

# The library is built for a GPU, or for the simulator, which works on CPU tensors.
DEVICE = "cuda" if torch._C._dispatch_has_kernel_for_dispatch_key("my_op::my_op", "CUDA") else "cpu"
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("built for a GPU, but there is none: try KERNEL_LADDER_TARGET=simulator", allow_module_level=True)


def reference(a, b):
    return (a.double() - b.double()) ** 2


def pair(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 255, 256, 257, 1001])
def test_sizes_on_both_sides_of_a_warp_and_a_block(size, dtype):
    a, b = pair(size, dtype=dtype)
    torch.testing.assert_close(my_op(a, b), reference(a, b).to(dtype))


def test_a_slice_that_begins_inside_its_storage():
    a, b = (x[3:] for x in pair(100))
    torch.testing.assert_close(my_op(a, b), reference(a, b).float())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda a, b: (a.t(), b), "a must be contiguous"),
        (lambda a, b: (a, b.double()), "b must be float32"),
        (lambda a, b: (a.half(), b.half()), "a must be float32"),
        (lambda a, b: (a, b[:1].clone()), "a and b must have the same shape"),
    ],
)
def test_what_it_cannot_do_it_refuses(spoil, message):
    with pytest.raises(RuntimeError, match=message):
        my_op(*spoil(*pair(4, 5)))


def test_gradients():
    inputs = [x.requires_grad_() for x in pair(5, dtype=torch.float64)]
    assert torch.autograd.gradcheck(my_op, inputs)
    assert torch.autograd.gradgradcheck(my_op, inputs)


def test_registration():
    torch.library.opcheck(my_op, tuple(x.requires_grad_() for x in pair(7)))


def test_vmap():
    a, b = pair(3, 7)
    torch.testing.assert_close(torch.vmap(my_op, in_dims=(0, None))(a, b[0]), reference(a, b[0]).float())
    torch.testing.assert_close(torch.vmap(my_op, in_dims=(1, 1))(a, b), reference(a, b).t().float())


def test_one_graph_and_one_compilation_for_all_sizes():
    compiled = torch.compile(lambda a, b: my_op(a, b) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    compiled(*pair(17))
    with torch.compiler.set_stance("fail_on_recompile"):
        for size in (2, 100, 257):
            a, b = pair(size)
            torch.testing.assert_close(compiled(a, b), my_op(a, b) + 1)


def test_an_old_pytorch_is_refused_with_a_sentence():
    package.check_version("2.11.0+cu130")
    package.check_version("3.0.0")
    with pytest.raises(ImportError, match=r"needs PyTorch 2\.11 or newer and found 2\.10\.1"):
        package.check_version("2.10.1")


def test_a_missing_library_is_named(tmp_path):
    with pytest.raises(ImportError, match="not built"):
        package.find_library(tmp_path)
