"""Attention against float64 and beside PyTorch's own: masks, shared heads, tails, gradients, X-rays, mistakes."""

import functools

import pytest
import torch
from inputs import FLOATING, load, pytorch_attention, randn, with_mistake

import helpers
from helpers.ladder.catalogue.attention import attention as reference
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS

pytestmark = pytest.mark.slow
# heads, kv_heads, tokens, tokens_kv, d: on both sides of a warp's and a block's tiles; then for the simple kernels
TILES = ((2, 1, 1, 1, 64), (1, 1, 31, 33, 64), (2, 2, 64, 65, 64), (3, 1, 33, 129, 128), (2, 1, 129, 127, 64))
SIMPLE = ((2, 1, 1, 1, 3), (4, 2, 9, 7, 33), (1, 1, 7, 9, 256), (3, 3, 40, 40, 16))
# Beside PyTorch's error. Where one key is visible, the gradients of q and k are 0, and so is PyTorch's error.
FLOOR = {torch.float64: 1e-14, torch.float32: 1e-7, torch.float16: 1e-6, torch.bfloat16: 1e-6}


def arguments(shape, dtype, batch=1):
    """q, k, v and the gradients of both results."""
    heads, kv_heads, tokens, tokens_kv, d = shape
    of_q, of_k = (batch, heads, tokens, d), (batch, kv_heads, tokens_kv, d)
    tensors = [randn(*x, dtype=dtype, seed=i) for i, x in enumerate((of_q, of_k, of_k, of_q))]
    return *tensors, randn(batch, heads, tokens, dtype=torch.promote_types(dtype, torch.float32), seed=4)


def results(function, q, k, v, *grads, **options):
    """The results of a function of q, k and v, and the gradients of these three."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    found = function(*leaves, **options)
    found = (found,) if isinstance(found, torch.Tensor) else found
    return *(x.detach() for x in found), *torch.autograd.grad(found, leaves, grads)


def error(got, exact):
    """The root mean square of the error."""
    return (got.double() - exact).square().mean().sqrt().item()


def agrees(op, shape=(2, 1, 129, 127, 64), dtype=torch.bfloat16, causal=True):
    """Whether both results and all gradients have the errors of rounding."""
    given = arguments(shape, dtype)
    got = results(op, *given, causal=causal)
    exact = results(reference, *(x.double() for x in given), causal=causal)
    limits = [8 * torch.finfo(x.dtype).eps * (1 if x.dtype == dtype else 8) for x in got]
    return all(error(x, y) < limit for x, y, limit in zip(got, exact, limits, strict=True))


# -- Right -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", TILES + SIMPLE, ids=str)
@pytest.mark.parametrize("dtype", FLOATING)
def test_its_error_is_that_of_pytorch(dtype, shape, causal):
    q, k, v, grad, _ = arguments(shape, dtype, batch=2)
    exact = results(lambda *x, causal: reference(*x, causal)[0], *(x.double() for x in (q, k, v, grad)), causal=causal)
    ours = results(lambda *x, causal: operators.attention()(*x, causal)[0], q, k, v, grad, causal=causal)
    theirs = results(pytorch_attention, q, k, v, grad, is_causal=causal)
    for x, y, z in zip(ours, theirs, exact, strict=True):  # PyTorch's kernel, and what it rounds, depend on the machine
        assert error(x, z) <= (2 if dtype != torch.float64 else 4) * error(y, z) + FLOOR[dtype]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", FLOATING)
def test_logsumexp_has_a_value_and_a_gradient(dtype, causal):
    assert agrees(operators.attention(), dtype=dtype, causal=causal)


def test_a_causal_first_row_sees_itself_alone_and_nothing_sees_a_later_key():
    q, k, v, *_ = arguments((2, 2, 130, 130, 64), torch.float16)
    out, logsumexp = operators.attention()(q, k, v, True)
    assert torch.equal(out[:, :, 0], v[:, :, 0]) and logsumexp.isfinite().all()
    for last in (0, 31, 63, 64, 129):
        k[:, :, last + 1 :], v[:, :, last + 1 :] = 100, 1e4
        assert torch.equal(operators.attention()(q, k, v, True)[0][:, :, : last + 1], out[:, :, : last + 1])
        q, k, v, *_ = arguments((2, 2, 130, 130, 64), torch.float16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_large_scores_do_not_overflow(dtype):
    q, k, v, *_ = arguments((1, 1, 40, 200, 64), dtype)
    k[:, :, 150] = 20 * q[:, :, 7]  # the maximum of a late block: all that was added up before counts for nothing
    q = 40 * q
    out, logsumexp = operators.attention()(q, k, v)
    wanted, wanted_sum = reference(q.double(), k.double(), v.double())
    assert wanted_sum.max() > 5000
    torch.testing.assert_close(out.double(), wanted, rtol=1e-3, atol=5e-3)
    torch.testing.assert_close(logsumexp.double(), wanted_sum, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scale(dtype):
    q, k, v, *_ = arguments((2, 1, 33, 40, 64), dtype)
    exact = reference(q.double(), k.double(), v.double(), scale=0.3)
    for got, wanted in zip(operators.attention()(q, k, v, scale=0.3), exact, strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nothing_to_do(dtype):
    op = operators.attention()
    for shape in ((0, 0, 5, 5, 64), (2, 1, 0, 5, 64), (2, 1, 5, 0, 64)):
        q, k, v, grad, grad_logsumexp = arguments(shape, dtype)
        out, logsumexp, *gradients = results(op, q, k, v, grad, grad_logsumexp)
        assert out.shape == q.shape and logsumexp.shape == q.shape[:3]
        assert (out == 0).all() and (logsumexp == -torch.inf).all()  # of no keys
        assert all((x == 0).all() and x.shape == y.shape for x, y in zip(gradients, (q, k, v), strict=True))
    assert op(*(x[:0] for x in arguments((2, 1, 5, 5, 64), dtype)[:3]))[0].shape == (0, 2, 5, 64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_have_the_same_bits_each_time(dtype):
    given = arguments((4, 2, 70, 90, 64), dtype)
    first = results(operators.attention(), *given)
    for _ in range(3):
        assert all(torch.equal(x, y) for x, y in zip(first, results(operators.attention(), *given), strict=True))


def test_tensors_that_do_not_begin_at_16_bytes():
    given = arguments((2, 1, 33, 20, 64), torch.float16)
    shifted = [torch.cat([x.new_zeros(3), x.flatten()])[3:].view(x.shape) for x in given]
    for x, y in zip(results(operators.attention(), *given), results(operators.attention(), *shifted), strict=True):
        assert torch.equal(x, y)


# -- As PyTorch's own operator -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_derivatives(causal):
    q, k, v, *_ = (x.requires_grad_() for x in arguments((4, 2, 3, 4, 2), torch.float64))
    function = functools.partial(operators.attention(), causal=causal, scale=0.8)
    assert torch.autograd.gradcheck(function, (q, k, v))
    assert torch.autograd.gradgradcheck(function, (q, k, v))
    assert torch.autograd.gradcheck(function, (q, k, v), check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize(("dtype", "d"), [(torch.float64, 3), (torch.bfloat16, 64)])
def test_opcheck(dtype, d):
    q, k, v, grad, grad_logsumexp = arguments((2, 1, 5, 4, d), dtype)
    out, logsumexp = operators.attention()(q, k, v, True)
    given = [x.requires_grad_() for x in (grad, grad_logsumexp, q, k, v, out, logsumexp)]
    torch.library.opcheck(operators.attention(), (q, k, v, True, 0.5))
    torch.library.opcheck(operators.attention_backward(), (*given, True))


def test_compile_and_vmap():
    op = operators.attention()
    q, k, v, *_ = arguments((2, 1, 9, 8, 64), torch.float16, batch=3)
    wanted = op(q, k, v, True)
    compiled = torch.compile(lambda *x: op(*x, causal=True), backend="aot_eager", fullgraph=True)
    batched = torch.func.vmap(lambda *x: op(*x, True))(*(x[:, None] for x in (q, k, v)))
    for x, y, z in zip(wanted, compiled(q, k, v), batched, strict=True):
        assert torch.equal(x, y) and torch.equal(x, z.flatten(0, 1))


def test_what_is_refused():
    op = operators.attention()
    q, k, v, *_ = arguments((4, 2, 5, 6, 64), torch.float32)
    for given, message in (
        ((q[0], k, v), r"q must have four dimensions, .* got shape \[4, 5, 64\]"),
        ((q, k[0], v[0]), r"k must have four dimensions"),
        ((q, k, v[:, :, :5].contiguous()), "k and v must have the same shape"),
        ((q, k[:, :, :, :32].contiguous(), v[:, :, :, :32].contiguous()), "q and k must have the same batch and d"),
        ((q[:, :3].contiguous(), k, v), "q must have a multiple of k's heads"),
        ((q, k[:, :0], v[:, :0]), "q must have a multiple of k's heads"),
        ((q.transpose(1, 2), k, v), "q must be contiguous"),
        ((q, k.half(), v), "k must be float32, got float16"),
        ((q.int(), k, v), "q must be float64, float32, float16 or bfloat16, got int32"),
        ((q, k, v, False, 0.0), "scale must be a positive number, got 0"),
        ((q, k, v, False, float("nan")), "scale must be a positive number, got nan"),
        (tuple(torch.zeros(1, 1, 2, 257, device=q.device) for _ in range(3)), "q must have 1 to 256 columns"),
    ):
        with pytest.raises(RuntimeError, match=message):
            op(*given)


# -- The X-ray ---------------------------------------------------------------------------------------------------------

TRACED = (  # shape, dtype, causal
    ((2, 1, 130, 70, 64), torch.bfloat16, True),
    ((1, 1, 65, 33, 128), torch.float16, False),
    ((2, 1, 5, 7, 3), torch.float32, True),
)


@pytest.mark.parametrize(("shape", "dtype", "causal"), TRACED, ids=str)
def test_the_xray_reports_nothing_under_any_seed(shape, dtype, causal):
    forward, backward = (
        getattr(extension(f"{name}_traced", (f"{name}.cu",), traced=True), name)
        for name in ("attention", "attention_backward")
    )
    q, k, v, grad, grad_logsumexp = (x.cpu() for x in arguments(shape, dtype))
    for seed in range(5):
        report = helpers.xray(forward, q, k, v, causal, seed=seed)
        assert report.faults == []
        given = (grad, grad_logsumexp, q, k, v, *report.result, causal)
        back = helpers.xray(backward, *given, seed=100 + seed)
        assert back.faults == []
        reads = [line for line in (*report.lines, *back.lines) if line.space == "shared"]
        assert bool(reads) == (dtype != torch.float32)
        assert all(line.cost == line.ideal for line in reads)  # no bank conflicts


# -- Mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES = {
    "output not rescaled": ("out[y][x][2 * half] *= correction;", ""),
    "sum not rescaled": ("sum[y][half] *= correction;", ""),
    "k filled while it is read": ("__syncthreads();  // v is here, and every warp has multiplied by k", ""),
    "v filled while it is read": ("may be filled.\n    __syncthreads();", "may be filled."),
    "v not waited for": ("copies.wait<0>();\n    __syncthreads();  // v", "__syncthreads();  // v"),
    "a query does not see its own key": ("key <= query", "key < query"),
    "a query sees the next key": ("key <= query", "key <= query + 1"),
    "no mask within a block": ("if (!mask.visible(first + row", "if (false && !mask.visible(first + row"),
    "halves of k exchanged": ("left[y], right[0], right[1]);\n        multiply_add<T>(sum[y][x + 1], left[y], "
                              "right[2], right[3]);\n      }\n    }\n  }\n}\n\n// sum += a @ b. a: in registers",
                              "left[y], right[1], right[0]);\n        multiply_add<T>(sum[y][x + 1], left[y], "
                              "right[2], right[3]);\n      }\n    }\n  }\n}\n\n// sum += a @ b. a: in registers"),
    "rows of P exchanged": ("a[y][i + j / 2][j % 2 * 2], a[y]", "a[y][i + j / 2][2 - j % 2 * 2], a[y]"),
    "delta left out": ("(ds[0][x][j] - mean)", "ds[0][x][j]"),
    "one head of the group left out": ("per_head * size.group", "per_head * (size.group - 1)"),
    "stage filled while it is read": ("__syncthreads();  // this stage is complete", "//"),
    "logsumexp's gradient added": ("sum - grad_logsumexp[row]", "sum + grad_logsumexp[row]"),
}  # fmt: skip


@pytest.mark.skipif(helpers.target != "simulator", reason="a race need not show on a GPU")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_result(mistake, tmp_path):
    forward, backward = (
        getattr(load(f"mistaken_{name}", with_mistake(KERNELS / f"{name}.cu", *MISTAKES[mistake], tmp_path)), name)
        for name in ("attention", "attention_backward")
    )

    def results_of(q, k, v, grad, grad_logsumexp, causal):
        out, logsumexp = forward(q, k, v, causal)
        return out, logsumexp, *backward(grad, grad_logsumexp, q, k, v, out, logsumexp, causal)

    given = arguments((2, 1, 129, 127, 64), torch.bfloat16)
    exact = results(reference, *(x.double() for x in given), causal=True)
    assert any(not error(x, y) < 0.02 for x, y in zip(results_of(*given, True), exact, strict=True))
