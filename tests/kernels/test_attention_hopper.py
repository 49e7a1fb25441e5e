"""attention_hopper.cu: its error beside PyTorch's, masks and tails, X-rays, planted mistakes, the compiler's report."""

import pytest
import torch
from inputs import load, mistaken, pytorch_attention
from test_attention import FLOOR, arguments, error, reference, results
from test_hopper import assert_no_spills, for_hopper, in_the_simulator, report, wrong_or_fault  # noqa: F401  a fixture

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS

SOURCE = KERNELS / "attention_hopper.cu"
pytestmark = [pytest.mark.slow, for_hopper]
# heads, kv_heads, tokens, tokens_kv, d: on both sides of a warp group's, a block's and the ring's tiles
SHAPES = ((2, 1, 1, 1, 64), (1, 1, 63, 129, 128), (2, 2, 65, 128, 64), (3, 1, 129, 127, 128), (4, 2, 300, 700, 64))
SHAPES += ((2, 1, 700, 300, 64), (1, 1, 130, 640, 128))
SHAPES += ((2, 1, 150, 300, 96), (2, 2, 70, 200, 72), (1, 1, 130, 140, 120))  # columns that TMA adds are zeros
SHAPES += ((1, 1, 3, 33000, 64), (520, 1, 65, 3, 64))  # keys and rows that 16 bits cannot count


def changed(good, bad, tmp_path, header=""):
    """The extension with a piece of its source, or of a header, exchanged."""
    return load("mistaken", mistaken(SOURCE, good, bad, tmp_path, header)).attention_hopper


def few_blocks(sms, tmp_path, source=SOURCE, **options):
    """The extension on a GPU of as few SMs, so that a block has several work tiles."""
    real = "return device_attribute(cudaDevAttrMultiProcessorCount);"
    return load("few_blocks", mistaken(source, real, f"return {sms};", tmp_path), **options)


def agrees(function, shape, causal):
    """Whether out and logsumexp have the errors of rounding."""
    q, k, v, *_ = arguments(shape, torch.bfloat16)
    out, logsumexp = function(q, k, v, causal)
    exact = reference(*(x.double() for x in (q, k, v)), causal)
    return error(out, exact[0]) < 0.01 and error(logsumexp, exact[1]) < 1e-5


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_its_error_is_that_of_pytorch(shape, causal):
    q, k, v, *_ = arguments(shape, torch.bfloat16, batch=2)
    exact = reference(*(x.double() for x in (q, k, v)), causal)
    out, logsumexp = operators.attention_hopper()(q, k, v, causal)
    theirs = pytorch_attention(q, k, v, is_causal=causal)
    assert error(out, exact[0]) <= 1.5 * error(theirs, exact[0]) + FLOOR[torch.bfloat16]
    torch.testing.assert_close(logsumexp.double(), exact[1], rtol=1e-6, atol=1e-5)


def test_large_scores_do_not_overflow_and_scale_counts():
    q, k, v, *_ = arguments((1, 1, 40, 700, 64), torch.bfloat16)
    k[:, :, 600] = 20 * q[:, :, 7]  # the maximum of a late tile: all that was added up before counts for nothing
    out, logsumexp = operators.attention_hopper()(40 * q, k, v, scale=0.2)
    wanted, wanted_sum = reference((40 * q).double(), k.double(), v.double(), scale=0.2)
    assert wanted_sum.max() > 5000
    torch.testing.assert_close(out.double(), wanted, rtol=1e-2, atol=2e-2)
    torch.testing.assert_close(logsumexp.double(), wanted_sum, rtol=1e-6, atol=1e-5)


def test_nothing_sees_a_later_key():
    q, k, v, *_ = arguments((2, 2, 300, 300, 64), torch.bfloat16)
    out, _ = operators.attention_hopper()(q, k, v, True)
    assert torch.equal(out[:, :, 0], v[:, :, 0])
    for last in (0, 63, 64, 127, 128, 298):
        changed_k, changed_v = k.clone(), v.clone()
        changed_k[:, :, last + 1 :], changed_v[:, :, last + 1 :] = 100, 1e4
        again, _ = operators.attention_hopper()(q, changed_k, changed_v, True)
        assert torch.equal(again[:, :, : last + 1], out[:, :, : last + 1])


@pytest.mark.parametrize("d", [64, 80, 96, 128])
def test_views_as_models_have_them(d):
    """Heads behind tokens, all in one tensor, or behind an odd element: the same bits as from contiguous tensors."""
    given = torch.randn(2, 150, 3, 4, d, generator=torch.Generator().manual_seed(d)).to(helpers.device, torch.bfloat16)
    views = tuple(x.transpose(1, 2) for x in given.unbind(2))
    q, k, v = (x.contiguous() for x in views)
    odd = torch.cat((q.flatten()[:1], q.flatten()))[1:].view_as(q)
    expanded = k[:, :1].expand(2, 4, 150, d)
    op = operators.attention_hopper()
    for causal in (False, True):
        out, logsumexp = op(q, k, v, causal)
        for again in (op(*views, causal), op(odd, views[1], v, causal)):
            assert torch.equal(again[0], out)
            assert torch.equal(again[1], logsumexp)
        assert torch.equal(op(q, expanded, v, causal)[0], op(q, expanded.contiguous(), v, causal)[0])
    dense = q.transpose(1, 2).contiguous().transpose(1, 2)
    assert op(dense, k, v)[0].stride() == dense.stride()  # as PyTorch's own attention


def test_nothing_to_do():
    op = operators.attention_hopper()
    for shape in ((0, 0, 5, 5, 64), (2, 1, 0, 5, 64), (2, 1, 5, 0, 64)):
        q, k, v, *_ = arguments(shape, torch.bfloat16)
        out, logsumexp = op(q, k, v)
        assert (out == 0).all() and (logsumexp == -torch.inf).all()  # of no keys


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal):
    given = arguments((4, 2, 70, 90, 64), torch.bfloat16)
    exact = results(reference, *(x.double() for x in given), causal=causal)
    got = results(operators.attention_hopper(), *given, causal=causal)
    readable = results(operators.attention(), *given, causal=causal)
    for x, y, z in zip(got, readable, exact, strict=True):
        assert error(x, z) <= 1.5 * error(y, z) + FLOOR[torch.bfloat16]


def in_window(q, k, v, left=None, right=None, softcap=0):
    """In plain PyTorch: the output and the logsumexp of each row; 0 and -inf for one that sees no key."""
    shared = [x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v)]
    scores, last = q.shape[-1] ** -0.5 * (q @ shared[0].mT), k.shape[2] - q.shape[2]
    scores = softcap * (scores / softcap).tanh() if softcap else scores
    seen = torch.ones_like(scores, dtype=torch.bool)
    seen = seen if right is None else seen.tril(last + right)
    seen = seen if left is None else seen.triu(last - left)
    largest = scores.detach().amax(-1, keepdim=True)
    weights = (scores - largest).exp() * seen
    sums = weights.sum(-1, keepdim=True)
    return weights / sums.clamp(min=1e-300) @ shared[1], (sums.log() + largest)[..., 0]


WINDOWS = ((None, 0), (0, 0), (0, None), (20, 0), (5, 150), (130, None))
LENGTHS = ((2, 1, 65, 300, 64), (1, 1, 300, 130, 128), (2, 2, 129, 129, 64), (1, 1, 3, 700, 64), (1, 1, 700, 3, 64))
LENGTHS += ((1, 1, 65, 130, 80),)


def window_agrees(function, shape, window):
    given = arguments(shape, torch.bfloat16)
    exact = in_window(*(x.double() for x in given[:3]), *window)
    out, logsumexp = function(*given[:3], False, None, *window)
    same = torch.nan_to_num(logsumexp.double() - exact[1])  # of no keys both are -infinity
    return error(out, exact[0]) < 0.01 and same.abs().max() < 1e-4 and torch.equal(logsumexp.isinf(), exact[1].isinf())


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("shape", LENGTHS, ids=str)
def test_windows_and_their_gradients(shape, window):
    op = operators.attention_hopper()
    assert window_agrees(op, shape, window)
    given = arguments(shape, torch.bfloat16)[:4]
    exact = results(lambda *x: in_window(*x, *window)[0], *(x.double() for x in given))
    got = results(lambda *x: op(*x, False, None, *window)[0], *given)
    assert all(error(x, y) < 0.02 * y.square().mean().sqrt() + 1e-6 for x, y in zip(got, exact, strict=True))


def capped_agrees(op, shape, window, softcap, gradients=True):
    q, k, v, grad, _ = arguments(shape, torch.bfloat16)
    given, options = (4 * q, 4 * k, v, grad), (False, None, *window, False, softcap)  # scores of up to some 60
    exact = results(lambda *x: in_window(*x, *window, softcap)[0], *(x.double() for x in given))
    got = results(lambda *x: op(*x, *options)[0], *given) if gradients else (op(*given[:3], *options)[0],)
    return all(error(x, y) < 0.02 * y.square().mean().sqrt() + 1e-6 for x, y in zip(got, exact, strict=gradients))


@pytest.mark.parametrize("softcap", [0.5, 20.0])
@pytest.mark.parametrize("window", [(None, None), (20, 0)], ids=str)
@pytest.mark.parametrize("shape", [*LENGTHS[:3], LENGTHS[-1]], ids=str)
def test_a_soft_cap_and_its_gradients(shape, window, softcap):
    assert capped_agrees(operators.attention_hopper(), shape, window, softcap)


def test_a_soft_cap_has_no_second_derivative():
    q, k, v, *_ = (x.requires_grad_() for x in arguments((1, 1, 3, 5, 64), torch.bfloat16))
    out, _ = operators.attention_hopper()(q, k, v, softcap=5.0)
    (of_q,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="softcap must be 0 for a second derivative, got 5"):
        of_q.sum().backward()


def test_the_second_derivative_knows_the_window():
    q, k, v, *_ = (x.double().requires_grad_() for x in arguments((2, 1, 3, 5, 4), torch.bfloat16))
    grad, zero = torch.randn_like(q), torch.zeros(1, 2, 3, dtype=torch.float64, device=q.device)
    out, logsumexp = in_window(q, k, v, 1, 0)
    of_q, of_k, of_v = torch.autograd.grad(out, (q, k, v), grad, create_graph=True)
    wanted = torch.autograd.grad((of_q.sum(), of_k.sum(), of_v.sum()), (q, k, v), retain_graph=True)
    ones = (torch.ones_like(x) for x in (q, k, v))
    given = (grad, zero, q, k, v, out, logsumexp)
    direct = operators.attention_second(*ones, *given, False, None, 1, 0)
    through = torch.autograd.grad((out, logsumexp), (q, k, v), (direct[5], direct[6]))
    for x, y, z in zip(direct[2:5], through, wanted, strict=True):
        torch.testing.assert_close(x + y, z)


def test_it_is_pytorchs_own_operator():
    q, k, v, *_ = (x.requires_grad_() for x in arguments((2, 1, 5, 4, 64), torch.bfloat16))
    torch.library.opcheck(operators.attention_hopper(), (q, k, v, True, 0.5))
    torch.library.opcheck(operators.attention_hopper(), (q, k, v, False, 0.5, 2, 0))
    views = (x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in (q, k, v))
    torch.library.opcheck(operators.attention_hopper(), (*views, True, 0.5))


def test_what_is_refused():
    q, k, v, *_ = arguments((4, 2, 5, 6, 64), torch.bfloat16)
    for given, message in (
        ((q.half(), k.half(), v.half()), "q must be bfloat16, got float16"),
        (
            (*(x[..., :32].contiguous() for x in (q, k, v)),),
            "q must have 64 to 128 columns, a multiple of 8, got 32; use attention",
        ),
        ((q[:, :3].contiguous(), k, v), "q must have a multiple of k's heads"),
        ((q, k, v, False, 0.0), "scale must be a positive number, got 0"),
        ((q, k, v, True, None, 3), "causal must be False with a window or starts, got True"),
        ((q, k, v, False, None, None, None, False, -2.0), "softcap must be 0, for none, or a positive number, got -2"),
        ((q, k, v, False, None, None, -1), "window_left and window_right must be 0 or more, or None, got 0 and -1"),
    ):
        with pytest.raises(RuntimeError, match=message):
            operators.attention_hopper()(*given)


@pytest.mark.parametrize("bytes_at_once", ["1", "2 * 150 * 64 * 4", "5 * 150 * 64 * 4"])
def test_heads_in_sections(bytes_at_once, tmp_path):
    """5 groups of 2 heads: one, two or all of them at once."""
    function = changed("kL2Bytes = 32 << 20", f"kL2Bytes = {bytes_at_once}", tmp_path)
    assert agrees(function, (10, 5, 260, 150, 64), True)


@pytest.mark.parametrize("sms", [1, 3])
@pytest.mark.parametrize(
    "shape", [(2, 1, 385, 260, 64), (2, 1, 385, 130, 72), (3, 3, 130, 400, 64), (4, 2, 257, 129, 128)], ids=str
)
def test_blocks_with_many_work_tiles(shape, sms, tmp_path):
    """Three consumers at (2, ..., 64) alone, where 3 tiles of 192 queries are less work than 4 of 128."""
    function = few_blocks(sms, tmp_path).attention_hopper
    assert agrees(function, shape, False)
    assert agrees(function, shape, True)
    assert window_agrees(function, shape, (40, 0))  # some tiles see no key


# -- The X-ray ---------------------------------------------------------------------------------------------------------


@in_the_simulator
@pytest.mark.parametrize(
    ("shape", "causal"),
    [
        ((2, 1, 130, 400, 64), False),
        ((1, 1, 200, 300, 128), True),
        ((1, 1, 130, 200, 96), True),
        ((1, 1, 70, 70, 72), True),
    ],
    ids=str,
)
def test_the_xray_reports_nothing_under_any_seed(shape, causal):
    ops = extension("attention_hopper_traced", ("attention_hopper.cu",), traced=True)
    q, k, v, *_ = arguments(shape, torch.bfloat16)
    for seed in range(3):
        assert helpers.xray(ops.attention_hopper, q, k, v, causal, seed=seed).faults == []
        assert helpers.xray(ops.attention_hopper, q, k, v, False, None, 30, 0, seed=seed).faults == []


# What a right result can hide, in a block of several work tiles: good, bad, and a header's name.
TILES = "work_tiles.h"
RACES = {
    "q not waited for": ("    hopper::wait(shared.q_full[n % S::q_stages], n / S::q_stages % 2);\n", ""),
    "q filled too soon": ("    hopper::wait(shared.q_empty[stage], n / S::q_stages % 2 ^ 1);\n", ""),
    "k filled too soon": ("      hopper::wait(shared.k_empty[stage], at.parity ^ 1);", ""),
    "v released too soon": ("wait_for<0>(out);\n    if (leader)", "wait_for<1>(out);\n    if (leader)"),
    "barriers not there yet": ("  __syncthreads();  // no thread waits", "  // no thread waits"),
    "a work tile not waited for": ("    hopper::wait(full[n % stages], n / stages % 2);\n", "", TILES),
    "a work tile overwritten": ("        hopper::wait(empty[n % stages], n / stages % 2 ^ 1);\n", "", TILES),
    "a work tile released too soon": ("    __syncwarp();\n", "", TILES),
}


def with_mistake(mistake, tmp_path, **options):
    source = mistaken(SOURCE, *mistake[:2], tmp_path, *mistake[2:])
    return few_blocks(1, tmp_path, source, **options).attention_hopper


@in_the_simulator
@pytest.mark.parametrize("mistake", RACES)
def test_the_xray_finds_a_race(mistake, tmp_path):
    function = with_mistake(RACES[mistake], tmp_path, traced=True)
    faults = []
    for shape in ((6, 6, 65, 100, 64), (1, 1, 130, 700, 64)):
        given = arguments(shape, torch.bfloat16)[:3]
        faults += [fault.kind for seed in range(3) for fault in helpers.xray(function, *given, seed=seed).faults]
    assert {"race", "deadlock"} & {*faults}  # who misses a work tile waits for ever


# -- Mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES = {
    "no mask": ("if (unmasked.begin <= key && key + kKeysOfTile <= unmasked.end) return;", "return;"),
    "a query does not see its own key": ("column >= visible.end - key", "column >= visible.end - key - 1"),
    "the mask of the other row": ("(thread_row + 8 * half, thread_row + 8 * half)", "(thread_row, thread_row)"),
    "output not rescaled": ("out[i] *= correction[i / 2 % 2];", ";"),
    "sum not rescaled": ("sum[half] *= correction[half];", ""),
    "exponentials left out": ("exponentiate<early, kKeysOfTile / 2>", "exponentiate<early + 4, kKeysOfTile / 2>"),
    "a head's neighbour left out": ("number = from + number % neighbours;", "number = from;", TILES),
    "wrong parity of k": ("k_full[at.stage], at.parity)", "k_full[at.stage], at.parity ^ 1)"),
    "v of the next tile": ("probabilities, shared, before.stage", "probabilities, shared, at.stage"),
    "panel of v too near": ("sizeof(shared.v[stage][0])", "64"),
    "a stage never released": ("if (leader) hopper::arrive(shared.v_empty[before.stage]);", ""),
    "ping without pong": ("    turn.pass_on();\n", ""),
    "nobody begins": ("if (consumer == S::consumers - 1) turn.pass_on();", ""),
    "rows of the other consumer": ("row_of_block = consumer * kRowsOfGroup;", "row_of_block = 0;"),
    "another swizzle of q": ("(i % 64 / 8 + lane / 16) ^ lane % 8", "(i % 64 / 8 + lane / 16) ^ lane % 4"),
    "sums of the work tile before": ("    state = RowState();\n", ""),
    "out of the work tile before": ("add = work.end > work.begin + kKeysOfTile;", "add = true;"),
    "rows of the next work tile": (
        "[&] { write<S>(rows,",
        "[&] { rows = complete<Lengths>(results, work, thread_row, state, scale.scale); write<S>(rows,",
    ),
    "q never released": ("if (t % 32 == 0) hopper::arrive(shared.q_empty[n % S::q_stages]);", ""),
    "a work tile left out": ("return int64_t(gridDim.x) + ", "return int64_t(gridDim.x) + 1 + ", TILES),
    "a work tile never released": ("if (threadIdx.x % 32 == 0) hopper::arrive(empty[n % stages]);", "", TILES),
}  # fmt: skip


@in_the_simulator
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_result_or_a_fault(mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    function = with_mistake(MISTAKES[mistake], tmp_path)
    assert wrong_or_fault(lambda: agrees(function, (1, 1, 500, 700, 128), True))


@in_the_simulator
@pytest.mark.parametrize(
    ("good", "bad"), [(" + within < columns)", " + within < columns - 8)"), ("if (mask.causal) after = 0;", "")]
)
def test_a_mistake_with_72_columns_is_found(good, bad, tmp_path):
    assert not agrees(changed(good, bad, tmp_path), (2, 2, 70, 80, 72), True)


HEADER = "attention.h"
WINDOW_MISTAKES = {
    "a row that sees no key": ("factor[half] = sum == 0 ? 0 : 1 / sum;", "factor[half] = 1 / sum;"),
    "a block that sees no key": ("if (tile.begin == tile.end)", "if (false)", TILES),
    "one key less before": ("first - before)", "first - before + 1)", HEADER),
    "one key more behind": ("min(tokens_kv, last + after + 1)", "min(tokens_kv, last + after + 2)", HEADER),
    "aligned to the start": ("shift = tokens_kv - tokens", "shift = 0", HEADER),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", WINDOW_MISTAKES)
def test_a_mistake_in_a_window_is_found(mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    good, bad, *header = WINDOW_MISTAKES[mistake]
    function = changed(good, bad, tmp_path, *header)
    shape = (1, 1, 300, 130, 128)
    assert wrong_or_fault(lambda: all(window_agrees(function, shape, window) for window in ((20, 0), (None, 0))))


@in_the_simulator
@pytest.mark.parametrize("bad", ["return tanh_of_log2(product)", "return tanh_of_log2(product * inside / 2)"])
def test_a_mistake_in_a_soft_cap_is_found(bad, tmp_path):
    function = changed("return tanh_of_log2(product * inside)", bad, tmp_path, HEADER)
    assert not capped_agrees(function, (1, 1, 65, 65, 64), (None, None), 5.0, gradients=False)


@pytest.mark.skipif(helpers.target != "gpu", reason="needs a GPU, whose profiler names the kernel")
def test_three_consumers_where_they_are_faster():
    """nvcc's host compiler decides which kernel is launched, so a build may hold one that never is."""
    sms = torch.cuda.get_device_properties(helpers.device).multi_processor_count
    q, k, v, *_ = arguments((sms, sms, 192, 128, 64), torch.bfloat16)  # a tile for each SM, or two of 128 queries
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        operators.attention_hopper()(q, k, v)
        torch.cuda.synchronize()
    assert any("Shape<64, 3, " in event.name for event in profile.events())


def test_no_spills_and_no_serialised_products(report):  # noqa: F811
    assert_no_spills(report(SOURCE), kernels=18, with_roles=17)  # and one has 512 threads of 128 registers
