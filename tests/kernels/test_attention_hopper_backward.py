"""attention_hopper_backward.cu: its error beside PyTorch's, masks and tails, X-rays, planted mistakes."""

import pytest
import torch
from inputs import load, mistaken, pytorch_attention
from test_attention import FLOOR, arguments, error, reference, results
from test_attention_hopper import few_blocks, in_window
from test_hopper import assert_no_spills, for_hopper, in_the_simulator, report, wrong_or_fault  # noqa: F401  a fixture

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS

SOURCE = KERNELS / "attention_hopper_backward.cu"
pytestmark = [pytest.mark.slow, for_hopper]
# heads, kv_heads, tokens, tokens_kv, d: on both sides of a warp group's, a block's and the ring's tiles
SHAPES = ((2, 1, 1, 1, 64), (1, 1, 63, 129, 128), (2, 2, 65, 128, 64), (3, 1, 129, 127, 128), (4, 2, 300, 200, 64))
SHAPES += ((2, 1, 600, 65, 64), (1, 1, 450, 300, 128), (1, 1, 40, 300, 128))
SHAPES += ((2, 1, 150, 140, 96), (1, 1, 70, 200, 72))


def given_for(shape, causal, batch=1):
    """The function's tensors, and the gradients of q, k and v in float64."""
    q, k, v, *grads = arguments(shape, torch.bfloat16, batch)
    out, logsumexp, *exact = results(reference, *(x.double() for x in (q, k, v, *grads)), causal=causal)
    return (*grads, q, k, v, out.bfloat16(), logsumexp.float()), exact


def agrees(function, shape, causal, deterministic=False):
    """Whether all three gradients have the errors of rounding."""
    given, exact = given_for(shape, causal)
    got = function(*given, causal, deterministic=deterministic)
    return all(error(x, y) < 0.01 for x, y in zip(got, exact, strict=True))


class Rounds(torch.autograd.Function):
    """x, or its gradient, as the kernel gives it to a product: in bfloat16."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.gradient = gradient
        return x if gradient else x.bfloat16().to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad.bfloat16().to(grad.dtype) if ctx.gradient else grad, None


def rounded(q, k, v, causal):
    """Attention whose only roundings are those that two products need: of the weights and of the scores' gradients."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = Rounds.apply(q @ k.mT * q.shape[-1] ** -0.5, True)
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return Rounds.apply((scores - scores.logsumexp(-1, True)).exp(), False) @ v


# PyTorch's own roundings depend on the processor, so its error is not the only measure.
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_its_error_is_that_of_pytorch_or_of_rounding(shape, causal):
    q, k, v, grad, _ = arguments(shape, torch.bfloat16, batch=2)
    exact = results(lambda *x, causal: reference(*x, causal)[0], *(x.double() for x in (q, k, v, grad)), causal=causal)
    ours = results(lambda *x, causal: operators.attention_hopper()(*x, causal)[0], q, k, v, grad, causal=causal)
    theirs = results(pytorch_attention, q, k, v, grad, is_causal=causal)
    least = [x.bfloat16() for x in results(rounded, *(x.double() for x in (q, k, v, grad)), causal=causal)]
    for x, *measures, z in zip(ours[1:], theirs[1:], least[1:], exact[1:], strict=True):
        assert error(x, z) <= 1.5 * max(error(y, z) for y in measures) + FLOOR[torch.bfloat16]


@pytest.mark.parametrize("causal", [False, True])
def test_logsumexp_has_a_gradient_too(causal):
    assert agrees(operators.attention_hopper_backward(), (2, 1, 129, 127, 64), causal)


def test_scale_and_large_scores():
    q, k, v, grad, _ = arguments((1, 1, 70, 200, 64), torch.bfloat16)
    k[:, :, 150] = 5 * q[:, :, 7]
    wide = [x.double() for x in (q, k, v, grad)]
    out, *exact = results(lambda *x: reference(*x, scale=0.3)[0], *wide)
    _, logsumexp = reference(*wide[:3], scale=0.3)
    assert logsumexp.max() > 60
    given = (grad, torch.zeros_like(logsumexp.float()), q, k, v, out.bfloat16(), logsumexp.float())
    readable = operators.attention_backward()(*given, scale=0.3)
    for x, y, z in zip(operators.attention_hopper_backward()(*given, scale=0.3), readable, exact, strict=True):
        assert error(x, z) <= 1.5 * error(y, z) + FLOOR[torch.bfloat16]


def spares_missing_keys(function):
    """Whether keys beyond the last count for nothing: exp2(0 - logsumexp) is infinite where all scores are negative."""
    q, k, v, *grads = arguments((1, 1, 64, 65, 64), torch.bfloat16)
    q, k = q.abs(), -40 * k.abs()
    out, logsumexp, *exact = results(reference, *(x.double() for x in (q, k, v, *grads)))
    assert logsumexp.max() < -90
    got = function(*grads, q, k, v, out.bfloat16(), logsumexp.float())
    return all(x.isfinite().all() for x in got) and error(got[2], exact[2]) < 0.02


def test_keys_that_are_not_there_count_for_nothing():
    assert spares_missing_keys(operators.attention_hopper_backward())


def test_nothing_sees_a_later_key():
    given, _ = given_for((2, 2, 300, 300, 64), True)
    grads = operators.attention_hopper_backward()(*given, True)
    for query in (0, 63, 64, 127, 128, 298):
        changed = list(given)
        changed[0] = given[0].clone()
        changed[0][:, :, : query + 1] = 7  # the gradients of early queries do not reach later keys
        again = operators.attention_hopper_backward()(*changed, True)
        assert not torch.equal(grads[2], again[2])
        for x, y in zip(grads[1:], again[1:], strict=True):
            assert torch.equal(x[:, :, query + 1 :], y[:, :, query + 1 :])


@pytest.mark.parametrize("options", [(False,), (True,), (False, None, 150, 0), (False, None, 100, 40)], ids=str)
@pytest.mark.parametrize("shape", [(4, 2, 450, 400, 128), (2, 2, 500, 600, 64), (2, 1, 200, 600, 128)], ids=str)
def test_deterministic_gradients_are_right_and_have_the_same_bits(shape, options):
    """Also of keys whose block adds to no tile, or is the first to add to one."""
    op, (given, _) = operators.attention_hopper_backward(), given_for(shape, False)
    out, logsumexp = operators.attention_hopper()(*given[2:5], *options)
    given = (*given[:5], out, logsumexp)
    options = (*options, *(None,) * (4 - len(options)), True)
    first = op(*given, *options)
    for x, y in zip(first, op(*given, *options[:-1]), strict=True):
        assert error(x, y.double()) < 1e-4
    for _ in range(2 if helpers.target == "simulator" else 100):
        assert all(torch.equal(x, y) for x, y in zip(first, op(*given, *options), strict=True))


def test_nothing_to_do():
    for shape in ((0, 0, 5, 5, 64), (2, 1, 0, 5, 64), (2, 1, 5, 0, 64)):
        q, k, v, grad, grad_logsumexp = arguments(shape, torch.bfloat16)
        given = (grad, grad_logsumexp, q, k, v, torch.zeros_like(q), torch.zeros_like(grad_logsumexp))
        for x, y in zip(operators.attention_hopper_backward()(*given), (q, k, v), strict=True):
            assert x.shape == y.shape and (x == 0).all()


def test_tensors_that_do_not_begin_at_16_bytes():
    given, exact = given_for((2, 1, 33, 20, 64), False)
    shifted = [torch.cat([x.new_zeros(3), x.flatten()])[3:].view(x.shape) for x in given]
    got = operators.attention_hopper_backward()(*shifted)
    assert all(error(x, y) < 0.01 for x, y in zip(got, exact, strict=True))


@pytest.mark.parametrize("d", [64, 128])
def test_views_as_models_have_them(d):
    """Heads behind tokens, all in one tensor, or behind an odd element: the same bits as from contiguous tensors."""
    (grad, grad_logsumexp, q, k, v, out, logsumexp), _ = given_for((4, 4, 150, 150, d), True, batch=2)
    packed = torch.stack([x.transpose(1, 2) for x in (q, k, v, grad, out)], 2)
    views = [x.transpose(1, 2) for x in packed.unbind(2)]
    odd = torch.cat((grad.flatten()[:1], grad.flatten()))[1:].view_as(grad)
    op, end = operators.attention_hopper_backward(), (True, None, None, None, True)
    wanted = op(grad, grad_logsumexp, q, k, v, out, logsumexp, *end)
    for to, of_q, of_k, of_v, result in ((views[3], *views[:3], views[4]), (odd, q, views[1], v, out)):
        got = op(to, grad_logsumexp, of_q, of_k, of_v, result, logsumexp, *end)
        assert all(torch.equal(x, y) for x, y in zip(got, wanted, strict=True))
        assert [x.stride() for x in got] == [torch.empty_like(x).stride() for x in (of_q, of_k, of_v)]
    grad_expanded = grad[:, :, :1].expand_as(grad)  # as of a sum
    got = op(grad_expanded, grad_logsumexp, q, k, v, out, logsumexp, *end)
    wanted = op(grad_expanded.contiguous(), grad_logsumexp, q, k, v, out, logsumexp, *end)
    assert all(torch.equal(x, y) for x, y in zip(got, wanted, strict=True))


def test_it_is_pytorchs_own_operator():
    given, _ = given_for((2, 1, 5, 4, 64), True)
    torch.library.opcheck(operators.attention_hopper_backward(), (*(x.requires_grad_() for x in given), True))
    views = (x.detach().transpose(1, 2).contiguous().transpose(1, 2) if x.dim() == 4 else x for x in given)
    torch.library.opcheck(operators.attention_hopper_backward(), (*views, False, None, 2, 0, True))


def test_what_is_refused():
    given, _ = given_for((4, 2, 5, 6, 64), False)
    narrow = [x[..., :32].contiguous() if x.dim() == 4 else x for x in given]
    for wrong, message in (
        ([x.half() if x.dim() == 4 else x for x in given], "q must be bfloat16, got float16"),
        (narrow, "q must have 64 to 128 columns, a multiple of 8, got 32; use attention_backward"),
        ([*given[:5], given[5][:, :3].contiguous(), given[6]], "out and q must have the same shape"),
        ([*given[:6], given[6][:, :3].contiguous()], "grad_logsumexp and logsumexp must have the same shape"),
        ([given[0].float(), *given[1:]], "grad must be bfloat16, got float32"),
        ([*given, False, 0.0], "scale must be a positive number, got 0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            operators.attention_hopper_backward()(*wrong)


@pytest.mark.parametrize("sms", [1, 3])
@pytest.mark.parametrize("shape", [(4, 2, 300, 260, 64), (3, 3, 129, 400, 128)], ids=str)
def test_blocks_with_many_work_tiles(shape, sms, tmp_path):
    function = few_blocks(sms, tmp_path, SOURCE).attention_hopper_backward
    for causal in (False, True):
        assert agrees(function, shape, causal)
        assert agrees(function, shape, causal, deterministic=True)
    assert spares_missing_keys(function)


# -- The X-ray ---------------------------------------------------------------------------------------------------------


@in_the_simulator
@pytest.mark.parametrize(("shape", "causal"), [((2, 1, 300, 140, 64), False), ((1, 1, 260, 200, 128), True)], ids=str)
def test_the_xray_reports_nothing_under_any_seed(shape, causal):
    ops = extension("attention_hopper_backward_traced", ("attention_hopper_backward.cu",), traced=True)
    given, _ = given_for(shape, causal)
    for seed in range(3):
        assert helpers.xray(ops.attention_hopper_backward, *given, causal, seed=seed).faults == []
        options = (False, None, 30, 0, True)
        assert helpers.xray(ops.attention_hopper_backward, *given, *options, seed=seed).faults == []


# What a right result can hide: good, bad
RACES = {
    "keys not waited for": ("  hopper::wait(shared.keys_full, parity);\n", ""),
    "keys overwritten": ("      hopper::wait(shared.keys_empty, i % 2 ^ 1);\n", ""),
    "a work tile not waited for": ("      hopper::wait(work_full[i % 2], i / 2 % 2);\n", ""),
    "a work tile overwritten": ("      hopper::wait(shared.work_empty[i % 2], i / 2 % 2 ^ 1);\n", ""),
    "stage filled too soon": ("    hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);", ""),
    "dS not visible to wgmma": ("    hopper::fence_before_store();  // for wgmma as for TMA\n", ""),
    "dS read too soon": ("hopper::wait(shared.ds_full[step % 2], step / 2 % 2);", ""),
    "one buffer of dS": ("shared.ds[step % 2][consumer]", "shared.ds[0][consumer]"),
    "parts overwritten": ("    hopper::wait(shared.grad_q_empty[consumer], step % 2 ^ 1);\n", ""),
    "parts not visible to the copy unit": (
        "    hopper::fence_before_store();\n    __syncwarp();\n    if (lane == 0) hopper::arrive(shared.grad_q_full",
        "    __syncwarp();\n    if (lane == 0) hopper::arrive(shared.grad_q_full",
    ),
    "parts released too soon": ("    hopper::store_wait<1>();\n", ""),
    "stage released too soon": ("hopper::wgmma_wait_for<0>(grad_k);", "hopper::wgmma_wait_for<1>(grad_k);"),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", RACES)
def test_the_xray_finds_a_race(mistake, tmp_path):
    ops = few_blocks(1, tmp_path, mistaken(SOURCE, *RACES[mistake], tmp_path), traced=True)
    function, faults = ops.attention_hopper_backward, []
    for shape in ((1, 1, 450, 300, 128), (1, 1, 60, 600, 128)):
        given, _ = given_for(shape, False)
        faults += [fault for seed in range(3) for fault in helpers.xray(function, *given, seed=seed).faults]
    assert any(fault.kind == "race" for fault in faults)


# -- Mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES = {  # good, bad, and d where it is not 128
    "no turn is passed": ("      turn.fetch_add(1, cuda::memory_order_release);\n", ""),
    "a turn too late": ("!= before)", "!= before + 1)"),
    "nobody has the first turn": ("    if (turn.consumer == kConsumers - 1) turn.pass_on();", ""),
    "a turn that nobody passes on": ("      turn.pass_on();\n      if constexpr", "      if constexpr"),
    "the same adder each time": ("if (step % kAdders != adder) continue;", "if (adder > 0) continue;"),
    "no mask": ("if (query < unmasked.begin || query + kSubtile > unmasked.end) {", "if (false) {"),
    "a query does not see its own key": ("at < visible.begin ||", "at <= visible.begin ||"),
    "the mask of the other key": ("(thread_key + 8 * half, thread_key + 8 * half)", "(thread_key, thread_key)"),
    "missing keys are seen": ("if (last >= mask.tokens_kv) return {0, 0};", ""),
    "delta left out": ("dp[i] += delta[i / 4].x, ", ""),
    "delta left out of the first sums": ("load(delta, stage.delta, 0, kSubtile / 8);\n#pragma", "\n#pragma", 64),
    "delta of other queries": ("i % 2 ? delta[i / 4].y", "i / 2 % 2 ? delta[i / 4].y", 64),
    "logsumexp's gradient added": ("? grad_logsumexp[row] - sum", "? -grad_logsumexp[row] - sum"),
    "columns left out": ("2 * j + first_of_four() < columns", "2 * j + first_of_four() < columns - 8", 72),
    "columns of delta left out": ("% threads * 8) < columns)", "% threads * 8) < columns - 8)", 72),
    "dS not swizzled": (" ^ lane % 8) * 16", ") * 16"),
    "dS of 8 keys twice": ("(t / 32 * 2 + lane / 8 % 2)", "(t / 32 * 2)"),
    "dS of 8 queries twice": ("[from + lane / 16 * 8 + lane % 8]", "[from + lane % 8]"),
    "rows of other queries": ("rows[from + 8 * i + column]", "rows[from + i / 2 * 16 + column]"),
    "the other consumer's half": ("advanced(of_k, consumer * ", "advanced(of_k, (1 - consumer) * "),
    "one head of the group left out": ("max(end - begin, 0) * size.group", "max(end - begin, 0) * (size.group - 1)"),
    "the same head again": ("(first_head + head)", "(first_head)"),
    "the same tile again": ("      --tile;\n", ""),
    "each work tile twice": ("atomicAdd(taken, 1)", "atomicAdd(taken, 1) / 2"),
    "the last work tile left out": ("if (number >= numbers())", "if (number >= numbers() - 1)"),
    "the mask of another tile": ("iterator.tile * queries + from", "work.iterator.tile * queries + from"),
    "a stage never released": ("if (lane == 0) hopper::arrive(shared.empty[step % kStages]);", ""),
    "wrong parity of a stage": ("step / kStages % 2);", "step / kStages % 2 ^ 1);"),
}  # fmt: skip


@in_the_simulator
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_result_or_a_fault(mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    good, bad, d = (*MISTAKES[mistake], 128)[:3]
    function = load("mistaken", mistaken(SOURCE, good, bad, tmp_path)).attention_hopper_backward
    assert wrong_or_fault(lambda: agrees(function, (2, 1, 450, 300, d), True, True) and spares_missing_keys(function))


@in_the_simulator
@pytest.mark.parametrize(
    ("good", "bad"), [("first * scale.slope(s[i])", "first"), ("score, float(scale));", "score, float(scale * 2));")]
)
def test_a_mistake_in_a_soft_cap_is_found(good, bad, tmp_path):
    q, k, v, grad, grad_logsumexp = arguments((1, 1, 65, 65, 64), torch.bfloat16)
    exact = results(lambda *x: in_window(*x, softcap=5.0), *(x.double() for x in (4 * q, k, v, grad, grad_logsumexp)))
    given = (grad, grad_logsumexp, 4 * q, k, v, exact[0].bfloat16(), exact[1].float())
    for source, right in ((SOURCE, True), (mistaken(SOURCE, good, bad, tmp_path), False)):
        got = load("capped", source).attention_hopper_backward(*given, softcap=5.0)
        assert right == all(error(x, y) < 0.01 for x, y in zip(got, exact[2:], strict=True))


def test_no_spills_and_no_serialised_products(report):  # noqa: F811
    assert_no_spills(report(SOURCE), kernels=24, with_roles=16)
