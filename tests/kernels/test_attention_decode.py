"""attention_decode.cu: its error beside PyTorch's, lengths, shares of the line, views, X-rays, planted mistakes."""

import functools

import pytest
import torch
from inputs import load, mistaken, pytorch_attention, randn
from test_attention import error

import helpers
from helpers.ladder.catalogue.attention import ATTENTION_HOPPER
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS

SOURCE = KERNELS / "attention_decode.cu"
HALF, BFLOAT16 = torch.float16, torch.bfloat16
pytestmark = pytest.mark.slow
in_the_simulator = pytest.mark.skipif(helpers.target != "simulator", reason="an X-ray, or a race that a GPU may hide")
# batch, heads, kv_heads, queries, tokens, d: on both sides of a warp's and a block's tiles, and of 16 rows
SHAPES = (
    (1, 1, 1, 1, 1, 64), (2, 4, 2, 1, 127, 64), (1, 8, 1, 2, 129, 64), (1, 3, 1, 1, 63, 128), (2, 8, 2, 1, 65, 128),
    (1, 2, 2, 16, 700, 128), (1, 10, 2, 4, 300, 64), (3, 5, 5, 1, 64, 96), (1, 17, 1, 1, 400, 96),
)  # fmt: skip


def given_for(shape, dtype):
    """q, k and v as views of (batch, tokens, heads, d)."""
    batch, heads, kv_heads, queries, tokens, d = shape
    sizes = ((queries, heads), (tokens, kv_heads), (tokens, kv_heads))
    return [randn(batch, *size, d, dtype=dtype, seed=i).transpose(1, 2) for i, size in enumerate(sizes)]


def reference(q, k, v, causal=False, scale=None, lengths=None):
    """Sequence by sequence, in plain PyTorch: the mask is aligned to the end, and without a key out is 0."""
    found = []
    for i, length in enumerate([k.shape[2]] * len(q) if lengths is None else lengths.clamp(0, k.shape[2]).tolist()):
        shared = [x[i, :, :length].repeat_interleave(q.shape[1] // k.shape[1], 0) for x in (k, v)]
        scores = (q.shape[-1] ** -0.5 if scale is None else scale) * (q[i] @ shared[0].mT)
        if causal:
            seen = torch.ones_like(scores, dtype=torch.bool).tril(length - q.shape[2])
            scores = scores.masked_fill(~seen, -torch.inf)
        logsumexp = scores.logsumexp(-1)
        found.append(((scores - logsumexp[..., None]).exp().nan_to_num() @ shared[1], logsumexp))
    return tuple(map(torch.stack, zip(*found, strict=True)))


def exact_for(given, **options):
    return reference(*(x.double() for x in given), **options)


def integers(*values):
    return torch.tensor(values, dtype=torch.int32, device=helpers.device)


def changed(tmp_path, good="", bad="", blocks=7, **options):
    """The operator with a piece of its source exchanged and few blocks; for bfloat16 with 128 columns: soon built."""
    text = (mistaken(SOURCE, good, bad, tmp_path) if good else SOURCE).read_text()
    others = ("run(type, Constant<64>())", "run(type, Constant<96>())", "with_d(static_cast<__half*>(nullptr))")
    for piece, by in (*((x, "") for x in others), ("device_attribute(cudaDevAttrMultiProcessorCount)", str(blocks))):
        assert text.count(piece) == 1
        text = text.replace(piece, by)
    source = tmp_path / "changed.cu"
    source.write_text(text)
    return load("changed", source, **options).attention_decode


def agrees(function, shape=(3, 8, 2, 3, 500, 128), dtype=BFLOAT16, lengths=(500, 0, 130), causal=True):
    """Whether out and logsumexp have the errors of rounding."""
    given, options = given_for(shape, dtype), {"causal": causal, "lengths": lengths and integers(*lengths)}
    out, logsumexp = function(*given, **options)
    exact, exact_sum = exact_for(given, **options)
    sums = torch.nan_to_num(logsumexp.double() - exact_sum)  # of no keys both are -infinity
    return error(out, exact) < 0.01 and sums.abs().max() < 1e-5 and torch.equal(logsumexp.isinf(), exact_sum.isinf())


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_its_error_is_that_of_pytorch(shape, dtype):
    given = given_for(shape, dtype)
    out, logsumexp = operators.attention_decode()(*given)
    exact, exact_sum = exact_for(given)
    assert error(out, exact) <= 1.5 * error(pytorch_attention(*given), exact) + 1e-6
    torch.testing.assert_close(logsumexp.double(), exact_sum, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("d", [64, 96, 128])
def test_lengths_and_a_mask_that_ends_with_the_sequence(d):
    op, lengths = operators.attention_decode(), (300, 0, 1, 128, 2**31 - 1, -5, 17)
    for causal in (False, True):
        assert agrees(op, (7, 4, 2, 5, 300, d), lengths=lengths, causal=causal)
        assert agrees(op, (2, 4, 2, 5, 3, d), lengths=None, causal=causal)  # fewer tokens than queries


def test_tokens_behind_the_length_are_not_read():
    given, lengths = given_for((2, 4, 2, 2, 200, 64), HALF), integers(150, 64)
    wanted = operators.attention_decode()(*given, lengths=lengths)
    for x in given[1:]:
        x[0, :, 150:] = x[1, :, 64:] = torch.nan
    torch.testing.assert_close(operators.attention_decode()(*given, lengths=lengths), wanted, rtol=0, atol=0)


@pytest.mark.parametrize("blocks", [1, 3, 16, 64])
def test_any_number_of_blocks_shares_the_line(blocks, tmp_path):
    """Heads that end in the block in which they began, in the next, and many blocks later."""
    function = changed(tmp_path, blocks=blocks)
    assert agrees(function, (3, 4, 2, 1, 500, 128), lengths=(500, 0, 130))
    assert agrees(function, (2, 18, 1, 2, 700, 128), lengths=None)


def test_large_scores_do_not_overflow_and_scale_counts():
    q, k, v = given_for((1, 2, 1, 1, 700, 64), HALF)
    k[:, :, 600] = 20 * q[:, 0]
    out, logsumexp = operators.attention_decode()(40 * q, k, v, scale=0.2)
    wanted, wanted_sum = exact_for((40 * q, k, v), scale=0.2)
    assert wanted_sum.max() > 5000
    torch.testing.assert_close(out.double(), wanted, rtol=1e-3, atol=5e-3)
    torch.testing.assert_close(logsumexp.double(), wanted_sum, rtol=1e-6, atol=1e-5)


def test_views_have_the_same_bits_each_time():
    op, given = operators.attention_decode(), given_for((2, 8, 2, 1, 900, 128), BFLOAT16)
    wanted = op(*given)
    assert wanted[0].stride() == given[0].stride()
    odd = [torch.cat((x.flatten()[:1], x.flatten()))[1:].view(x.shape) for x in given]
    for again in (op(*given), op(*(x.contiguous() for x in given)), op(*odd)):
        assert all(torch.equal(x, y) for x, y in zip(wanted, again, strict=True))


def test_nothing_to_do():
    for shape in ((0, 2, 1, 1, 5, 64), (2, 2, 1, 0, 5, 64), (2, 2, 1, 1, 0, 64)):
        given = given_for(shape, HALF)
        out, logsumexp = operators.attention_decode()(*given)
        assert out.shape == given[0].shape
        assert (out == 0).all() and (logsumexp == -torch.inf).all()  # of no keys


def test_opcheck_and_compile():
    op, given = operators.attention_decode(), given_for((2, 4, 2, 1, 70, 64), HALF)
    torch.library.opcheck(op, (*given, True, 0.5, integers(70, 3)))
    torch.library.opcheck(op, tuple(given))
    compiled = torch.compile(functools.partial(op, lengths=integers(70, 3)), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*given), op(*given, lengths=integers(70, 3)), rtol=0, atol=0)


def test_what_is_refused():
    q, k, v = given_for((2, 4, 2, 1, 6, 64), HALF)
    cases = {
        "q must be float16 or bfloat16, got float32; use attention": (q.float(), k.float(), v.float()),
        "q must have 64, 96 or 128 columns, got 32": tuple(x[..., :32] for x in (q, k, v)),
        "q must have at most 16 tokens, got 17; use attention": (q.expand(2, 4, 17, 64), k, v),
        "q must have a multiple of k's heads": (q[:, :3], k, v),
        "scale must be a positive number, got -1": (q, k, v, False, -1.0),
        "lengths must be int32, got int64": (q, k, v, False, None, integers(1, 2).long()),
        "lengths must have one element for each sequence of q": (q, k, v, False, None, integers(1)),
        "lengths must be contiguous": (q, k, v, False, None, integers(1, 2, 3, 4)[::2]),
    }
    for message, given in cases.items():
        with pytest.raises(RuntimeError, match=message):
            operators.attention_decode()(*given)


# -- As PyTorch's function ---------------------------------------------------------------------------------------------


def kernels_of(function, *given, **options):
    """The names of the course's operators that a call reaches."""
    with torch.profiler.profile() as profile:
        function(*given, **options)
    names = (event.name for event in profile.events() if "(" not in event.name)  # a kernel's has its arguments
    return {name.split("::")[-1] for name in names if "attention" in name}


@pytest.mark.parametrize(
    ("shape", "dtype", "options", "wanted"),
    [
        ((2, 4, 2, 3, 200, 96), HALF, {}, "attention_decode"),
        ((2, 4, 2, 3, 200, 64), BFLOAT16, {"is_causal": True}, "attention_hopper"),
        ((2, 4, 2, 17, 200, 128), BFLOAT16, {"scale": 0.3}, "attention_hopper"),
        ((2, 4, 2, 17, 20, 64), HALF, {"is_causal": True}, "attention"),
        ((1, 2, 1, 3, 9, 5), torch.float32, {}, "attention"),
    ],
)
def test_pytorchs_signature_chooses_an_operator(shape, dtype, options, wanted):
    torch.compiler.reset()  # compile specialises for each case
    given, sdpa = given_for(shape, dtype), operators.scaled_dot_product_attention()
    if wanted == "attention_hopper" and not ATTENTION_HOPPER.runs_here:
        wanted = "attention"
    assert kernels_of(sdpa, *given, enable_gqa=True, **options) == {wanted}
    exact = pytorch_attention(*(x.double() for x in given), **options)
    compiled = torch.compile(functools.partial(sdpa, enable_gqa=True, **options), backend="aot_eager", fullgraph=True)
    leaves = [x.detach().requires_grad_() for x in given]
    for out in (sdpa(*given, enable_gqa=True, **options), compiled(*given), compiled(*leaves)):
        assert error(out, exact) < 0.01
    out.sum().backward()
    doubles = [x.detach().double().requires_grad_() for x in given]
    pytorch_attention(*doubles, **options).sum().backward()
    assert all(error(x.grad, y.grad) < 0.02 for x, y in zip(leaves, doubles, strict=True))


def test_pytorchs_signature_refuses_what_it_would_leave_out():
    (q, k, v), sdpa = given_for((1, 4, 2, 1, 9, 64), HALF), operators.scaled_dot_product_attention()
    for options, message in (
        ({"dropout_p": 0.1, "enable_gqa": True}, "attn_mask must be None and dropout_p 0"),
        ({"attn_mask": q, "enable_gqa": True}, "attn_mask must be None and dropout_p 0"),
        ({}, "key must have the 4 heads of query, got 2; or pass enable_gqa=True"),
    ):
        with pytest.raises(ValueError, match=message):
            sdpa(q, k, v, **options)


# -- The X-ray, and mistakes -------------------------------------------------------------------------------------------


@in_the_simulator
@pytest.mark.parametrize("d", [64, 96, 128])
def test_the_xray_reports_nothing_under_any_seed(d):
    op = extension("attention_decode_traced", ("attention_decode.cu",), traced=True).attention_decode
    given = given_for((2, 8, 2, 1, 400, d), BFLOAT16)
    for seed in range(5):
        report = helpers.xray(op, *given, seed=seed, lengths=integers(400, 130))
        assert report.faults == []
        reads = [x for x in report.lines if (x.space, x.kind) == ("shared", "load") and "decode" in x.kernel]
        assert reads and all(line.cost == line.ideal for line in reads)  # no bank conflicts


RACES = {
    "parts in a ring that others read": ("  __syncthreads();  // every warp has finished with its ring", "  //"),
    "parts read before they are there": ("      __syncthreads();  // every warp has written its part\n", ""),
    "parts overwritten by the next head": ("      __syncthreads();  // the next head's tiles may", "      //"),
    "states read before they are there": ("  __syncthreads();  // all states are there\n", ""),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", RACES)
def test_the_xray_finds_a_race(mistake, tmp_path):
    op = changed(tmp_path, *RACES[mistake], traced=True)
    given = given_for((2, 8, 2, 1, 400, 128), BFLOAT16)
    faults = [fault for seed in range(3) for fault in helpers.xray(op, *given, seed=seed).faults]
    assert any(fault.kind == "race" for fault in faults)


MISTAKES = {
    "copies not waited for": ("copies.wait<kStages - 1>();", "copies.wait<kStages>();"),
    "out not rescaled": ("out[i / 2][2 * half + i % 2] *= correction;", ";"),
    "sum not rescaled": ("sum[half] *= correction;", ";"),
    "the last key is not seen": (">= visible[half]", ">= visible[half] - 1"),
    "the key behind the last is seen": (">= visible[half]", "> visible[half]"),
    "aligned to the start": ("length - (queries - 1 - row % queries)", "row % queries + 1"),
    "tokens behind the length": ("max(0, min(lengths[batch], tokens))", "tokens"),
    "the other row": ("o.visible(row + 8, length)", "o.visible(row, length)"),
    "halves of k exchanged": (
        "multiply_add<T>(scores[x], q[i], right[0], right[1]);",
        "multiply_add<T>(scores[x], q[i], right[1], right[0]);",
    ),
    "the first part again": ("i > part)", "false)"),
    "a part left out": ("for (int i = part + y;", "for (int i = part + y + 1;"),
    "a merger left out": ("for (int i = 1; i < kMergers; ++i)", "for (int i = 2; i < kMergers; ++i)"),
    "parts added as they are": ("sum = sum * mine + other.sum * theirs;", "sum += other.sum;"),
    "the wrong head": ("head_kv * group + row / queries", "head_kv * group + row % group"),
}  # fmt: skip


@in_the_simulator
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_result(mistake, tmp_path):
    function = changed(tmp_path, *MISTAKES[mistake])
    assert not (agrees(function) and agrees(function, (1, 4, 2, 16, 700, 128), lengths=None))
