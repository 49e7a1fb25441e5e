"""What PyTorch asks of a registered operator beyond the contract: torch.compile, vmap, a package of its own."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from contract import outputs
from contracted import OPERATORS, as_parameter
from running import python

import helpers
from helpers.ladder.pytorch import operators

REGISTERED = [operator for operator in OPERATORS if operator.overload is not None]
COMPILED_SIZES = (37, 2, 60, 257, 1001)  # 0 and 1 are cases of their own to torch.compile


each_operator = pytest.mark.parametrize("operator", [as_parameter(operator) for operator in REGISTERED])


def same(got, want):
    return all(torch.equal(x, y) for x, y in zip(outputs(got), outputs(want), strict=True))


def test_there_are_registered_operators():
    assert {"vector_add", "elementwise_mult", "fused_muladd"} <= {operator.name for operator in REGISTERED}


# -- torch.compile -----------------------------------------------------------------------------------------------------


def compilations(op, make_inputs, backward=False):
    """How often `op` is compiled, in one graph with work around it, for COMPILED_SIZES; each answer is checked."""

    def work(*inputs):
        return tuple(2 * x for x in outputs(op(*inputs)))

    import torch._dynamo.testing  # takes a second

    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(work, fullgraph=True, dynamic=True, backend=counter)
    for size in COMPILED_SIZES:
        inputs = [x.requires_grad_(backward) for x in make_inputs(size)]
        got, want = compiled(*inputs), work(*inputs)
        assert same(got, want)
        if backward:
            got, want = (torch.autograd.grad([x.sum() for x in results], inputs) for results in (got, want))
            assert same(got, want)
    return counter.frame_count


@pytest.mark.slow
@each_operator
def test_one_compilation_serves_all_sizes(operator):
    op, backward = operator.overload(), operator.differentiable is not None
    assert compilations(op, lambda size: operator.inputs(size, operator.dtypes[0]), backward) == 1


def test_a_fake_that_asks_for_numbers_is_compiled_for_each_size():
    with torch.library._scoped_library("careless_fake", "FRAGMENT") as lib:
        lib.define("double(Tensor x) -> Tensor")
        lib.impl("double", lambda x: 2 * x, "CompositeExplicitAutograd")
        torch.library.register_fake("careless_fake::double", lambda x: x.new_empty(int(x.numel())), lib=lib)
        op = torch.ops.careless_fake.double.default
        assert compilations(op, lambda size: [torch.arange(float(size))]) > 1


# -- vmap --------------------------------------------------------------------------------------------------------------


# Where a row begins, modulo 16 bytes, decides the order of their additions.
BY_ADDRESS = ("softmax", "rms_norm", "rms_norm_backward")


def agrees_with_a_loop(op, batches, in_dims):
    """Whether vmap gives what a loop over the batch gives. Each of `batches` has the batch in dimension 0."""
    count = next(len(x) for x, dim in zip(batches, in_dims, strict=True) if dim is not None)
    each = [[x[0] if dim is None else x[i] for x, dim in zip(batches, in_dims, strict=True)] for i in range(count)]
    want = [torch.stack(results) for results in zip(*(outputs(op(*inputs)) for inputs in each), strict=True)]
    moved = [x[0] if dim is None else x.movedim(0, dim).contiguous() for x, dim in zip(batches, in_dims, strict=True)]
    return same(torch.vmap(op, in_dims=tuple(in_dims))(*moved), want)


@each_operator
def test_vmap_is_a_loop(operator):
    dtype, count = operator.dtypes[0], len(operator.arguments)
    size = 32 if operator.name in BY_ADDRESS else 33
    batches = [torch.stack([x, x.flip(0), 2 * x]) for x in operator.inputs(size, dtype)]
    for dims in ([0] * count, [0] + [None] * (count - 1), [None] * (count - 1) + [0], [1] + [0] * (count - 1)):
        assert agrees_with_a_loop(operator.overload(), batches, dims), dims


def test_a_batching_rule_that_ignores_the_dimension_is_seen():
    mult = operators.elementwise_mult()
    with torch.library._scoped_library("careless_vmap", "FRAGMENT") as lib:
        lib.define("mult(Tensor a, Tensor b) -> Tensor")
        lib.impl("mult", mult, "CPU" if helpers.device.type == "cpu" else "CUDA")
        torch.library.register_vmap("careless_vmap::mult", lambda info, dims, a, b: (mult(a, b), 0), lib=lib)
        op = torch.ops.careless_vmap.mult.default
        batches = torch.randn(2, 3, 3, device=helpers.device).unbind(0)
        assert agrees_with_a_loop(op, batches, [0, 0])
        assert not agrees_with_a_loop(op, batches, [1, 1])


def test_vmap_nests():
    a, b, c = torch.randn(3, 2, 3, 5, device=helpers.device).unbind(0)
    muladd = operators.fused_muladd()
    got = torch.vmap(torch.vmap(muladd, in_dims=(0, None, 0)), in_dims=(0, None, 1))(a, b[0, 0], c.movedim(0, 1))
    assert same(got, muladd(a, b[0, 0].expand_as(a).contiguous(), c))


# -- A package for a process without Python code of ours ---------------------------------------------------------------


class Scaled(torch.nn.Module):
    """relu(x * scale + scale), a row at a time."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5, 3.0], device=helpers.device))

    def forward(self, x):
        scale = self.scale.expand_as(x).contiguous()
        return operators.fused_muladd()(x, scale, scale).relu()


FRESH = """
import sys, torch
package, library, file = sys.argv[1:]
if library:
    torch.ops.load_library(library)
model = torch._inductor.aoti_load_package(package)
inputs, answers = torch.load(file)
print([torch.equal(model(x), y) for x, y in zip(inputs, answers)])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A compiled package of Scaled, made with 5 rows, and its answers for other numbers of rows, the last one wrong."""
    folder = tmp_path_factory.mktemp("package")
    model = Scaled().eval()
    with torch.no_grad():
        example = torch.randn(5, 4, device=helpers.device)
        program = torch.export.export(model, (example,), dynamic_shapes=({0: torch.export.Dim("rows")},))
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "scaled.pt2"))
        inputs = [torch.randn(rows, 4, device=helpers.device) for rows in (5, 2, 77, 3)]
        answers = [model(x) for x in inputs]
    answers[-1] = answers[-1] + 1
    torch.save((inputs, answers), folder / "answers.pt")
    library = next(path for path in torch.ops.loaded_libraries if Path(path).stem == "fused_muladd")
    return SimpleNamespace(path=path, library=library, answers=str(folder / "answers.pt"))


@pytest.mark.slow
def test_a_compiled_package_gives_the_same_answers_in_a_fresh_process(package):
    done = python("-c", FRESH, package.path, package.library, package.answers)
    assert done.stdout.strip() == "[True, True, True, False]", done.stderr


@pytest.mark.slow
def test_a_compiled_package_needs_the_operators_library(package):
    assert "fused_muladd" in python("-c", FRESH, package.path, "", package.answers, status=1).stderr


@pytest.mark.parametrize("name", ["vector_add", "fused_muladd"])
def test_a_meta_tensor_among_others_is_refused(name):
    op = operators.registered(name)
    count = len(op._schema.arguments)
    for odd in range(count):
        devices = ["meta" if i == odd else helpers.device for i in range(count)]
        with pytest.raises(RuntimeError, match=r"(b|c) must be on the device of a, "):
            op(*(torch.ones(3, device=device) for device in devices))
    assert op(*(torch.ones(3, device="meta") for _ in range(count))).is_meta
