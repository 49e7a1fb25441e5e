"""Hopper's attention of packed sequences: as a call for each, whatever its neighbours hold; planted mistakes."""

import itertools

import pytest
import torch
from inputs import load, mistaken, randn
from test_attention import error, results
from test_attention_hopper import in_window
from test_hopper import for_hopper, in_the_simulator, wrong_or_fault

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS

pytestmark = [pytest.mark.slow, for_hopper]
WINDOWS = [(None, None), (None, 0), (20, 0)]
# Tokens of each sequence of q, and of k and v: none, one, around a tile; more sequences than a warp has lanes.
BATCHES = {
    "one": ([130], [300]),
    "around tiles": ([127, 1, 129, 256, 64], [129, 3, 1, 128, 300]),
    "none of some": ([0, 5, 0, 0, 300, 7, 0], [3, 0, 0, 4, 260, 7, 0]),
    "many": ([i * 37 % 11 for i in range(75)], [i * 23 % 13 for i in range(75)]),
}


def starts_of(lengths):
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=helpers.device)


def arguments(lengths, lengths_kv, d=64, heads=2, kv_heads=1):
    """q, k, v and the gradient of the output, [tokens, heads, d]."""
    of_q, of_k = (sum(lengths), heads, d), (sum(lengths_kv), kv_heads, d)
    return tuple(randn(*x, dtype=torch.bfloat16, seed=i) for i, x in enumerate((of_q, of_k, of_k, of_q)))


def called(op, lengths, lengths_kv, *window, **options):
    """A function of packed tensors."""
    starts = starts_of(lengths), starts_of(lengths_kv)

    def call(q, k, v):
        given = (x.transpose(0, 1)[None] for x in (q, k, v))
        out, logsumexp = op(*given, False, None, *window, starts=starts[0], starts_kv=starts[1], **options)
        return out[0].transpose(0, 1), logsumexp[0].T

    return call


def one_by_one(function, lengths, lengths_kv, *options, **more):
    """The same, by a call of `function` for each sequence that has rows."""

    def call(q, k, v):
        parts = zip(q.split(lengths), k.split(lengths_kv), v.split(lengths_kv), strict=True)
        found = [function(*(x.transpose(0, 1)[None] for x in part), *options, **more) for part in parts]
        return torch.cat([x[0].transpose(0, 1) for x, _ in found]), torch.cat([x[0].T for _, x in found])

    return call


def agrees(op, lengths, lengths_kv, window, d=64):
    """Whether the output is that of plain PyTorch in float64, for each sequence, and the rows without a key are 0."""
    q, k, v, _ = arguments(lengths, lengths_kv, d)
    out, logsumexp = called(op, lengths, lengths_kv, *window)(q, k, v)
    exact, sums = one_by_one(in_window_or_none, lengths, lengths_kv, *window)(*(x.double() for x in (q, k, v)))
    same = torch.nan_to_num(logsumexp.double() - sums)
    return error(out, exact.nan_to_num()) < 0.01 and same.abs().max() < 1e-4 and bool(out.isfinite().all())


def in_window_or_none(q, k, v, *window):
    return in_window(q, k, v, *window) if k.shape[2] else (0 * q, torch.full_like(q[..., 0], -torch.inf))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("d", [64, 72, 128])
def test_each_sequence_has_the_bits_of_a_call_of_its_own(batch, window, d):
    lengths = BATCHES[batch]
    *given, grad = arguments(*lengths, d, heads=4, kv_heads=2)
    op = operators.attention_hopper()
    got = results(lambda *x: called(op, *lengths, *window, deterministic=True)(*x)[0], *given, grad)
    alone = one_by_one(op, *lengths, False, None, *window, deterministic=True)
    wanted = results(lambda *x: alone(*x)[0], *given, grad)
    assert all(torch.equal(x, y) for x, y in zip(got, wanted, strict=True))
    assert torch.equal(called(op, *lengths, *window)(*given)[1], alone(*given)[1])
    faster = results(lambda *x: called(op, *lengths, *window)(*x)[0], *given, grad)
    assert all(error(x, y.double()) < 1e-4 for x, y in zip(faster, wanted, strict=True))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_the_results_are_those_of_plain_pytorch(window):
    assert agrees(operators.attention_hopper(), [127, 1, 129, 64], [129, 3, 140, 300], window)


def test_what_neighbours_hold_does_not_matter():
    lengths = [70, 129, 100], [130, 140, 129]
    *given, grad = arguments(*lengths)
    call = called(operators.attention_hopper(), *lengths, deterministic=True)
    wanted = results(lambda *x: call(*x)[0], *given, grad)
    for x, of in zip((*given, grad), (0, 1, 1, 0), strict=True):
        for part in (0, 2):
            x.split(lengths[of])[part].fill_(torch.nan)
    got = results(lambda *x: call(*x)[0], *given, grad)
    for x, y, of in zip(got, wanted, (0, 0, 1, 1), strict=True):
        assert torch.equal(x.split(lengths[of])[1], y.split(lengths[of])[1])


def test_starts_that_are_none_write_nothing_outside():
    q, k, v, _ = (x.transpose(0, 1)[None] for x in arguments([130], [130]))
    for wrong in ([-5, 2**30], [2**31 - 1, -(2**31)], [100, 50], [5, 7]):
        starts = torch.tensor(wrong, dtype=torch.int32, device=helpers.device)
        given = [x.detach().requires_grad_() for x in (q, k, v)]
        out, _ = operators.attention_hopper()(*given, starts=starts, starts_kv=starts)
        torch.autograd.grad(out.sum(), given)
    q, k, v = (x[0].transpose(0, 1)[5:7] for x in (q, k, v))
    alone, _ = called(operators.attention_hopper(), [2], [2])(q, k, v)
    assert torch.equal(out[0].transpose(0, 1)[5:7], alone)  # of the last of these starts


def test_it_is_pytorchs_own_operator():
    q, k, v, _ = (x.transpose(0, 1)[None].requires_grad_() for x in arguments([3, 5], [4, 2]))
    starts = starts_of([3, 5]), starts_of([4, 2])
    torch.library.opcheck(operators.attention_hopper(), (q, k, v, False, 0.5, 2, 0, True, 0.0, *starts))
    out, _ = operators.attention_hopper()(q, k, v, starts=starts[0], starts_kv=starts[1])
    (of_q,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="starts must be None for a second derivative"):
        of_q.sum().backward()


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (9, 0)], ids=str)
def test_pytorchs_function_of_packed_sequences(window):
    lengths = [20, 130, 1], [40, 129, 1]
    q, k, v, _ = arguments(*lengths)
    starts = [starts_of(x) for x in lengths]
    ours = operators.varlen_attn()(q, k, v, *starts, 130, 129, window_size=window, enable_gqa=True)
    exact = one_by_one(in_window, *lengths, *(None if x < 0 else x for x in window))
    exact, _ = exact(*(x.double() for x in (q, k, v)))
    assert ours.shape == q.shape and error(ours, exact) < 0.01
    with pytest.raises(ValueError, match="key must have the 2 heads of query, got 1; or pass enable_gqa=True"):
        operators.varlen_attn()(q, k, v, *starts, 130, 129)


def test_what_is_refused():
    q, k, v, _ = (x.transpose(0, 1)[None] for x in arguments([5], [6]))
    one, two = starts_of([5]), starts_of([3, 3])
    pair = [x.expand(2, -1, -1, -1) for x in (q, k, v)]
    for given, options, message in (
        ((q, k, v), (one, None), "starts_kv must be given with the other one's starts, got None"),
        ((q, k, v), (one, two), "starts and starts_kv must have one length, got 2 and 3"),
        ((q, k, v), (one.long(), one), "starts must be int32, got int64"),
        ((q, k, v), (one[None], one), r"starts must have an element for each sequence and one more, got shape \[1"),
        (pair, (one, one), "q must have a batch of 1 with starts, got shape"),
        ((q, k, v, True), (one, one), "causal must be False with a window or starts, got True; window_right=0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            operators.attention_hopper()(*given, starts=options[0], starts_kv=options[1])


@in_the_simulator
@pytest.mark.parametrize("d", [64, 128])
def test_the_xray_reports_nothing_under_any_seed(d):
    lengths = [3, 130, 0, 70], [129, 200, 0, 5]
    q, k, v, grad = (x.transpose(0, 1)[None] for x in arguments(*lengths, d))
    starts = dict(zip(("starts", "starts_kv"), map(starts_of, lengths), strict=True))
    forward = extension("attention_hopper_traced", ("attention_hopper.cu",), traced=True).attention_hopper
    backward = extension("attention_hopper_backward_traced", ("attention_hopper_backward.cu",), traced=True)
    out, logsumexp = operators.attention_hopper()(q, k, v, **starts)
    given = (grad, torch.zeros_like(logsumexp), q, k, v, out, logsumexp)
    for seed in range(2):
        assert helpers.xray(forward, q, k, v, seed=seed, **starts).faults == []
        for same_bits in (False, True):
            options = {"window_right": 0, "deterministic": same_bits, **starts}
            assert helpers.xray(backward.attention_hopper_backward, *given, seed=seed, **options).faults == []


MISTAKES = {
    "numbers without the sequences before": ("/ rows + sequence;", "/ rows;"),
    "a lane too early": ("(31 - __clz(", "(30 - __clz("),
    "the search ends early": ("while (end - begin > 1)", "while (end - begin > 32)"),
    "a row too early": ("kFar - (end - first)}", "kFar - (end - first) - 1}"),
    "a row too few": ("start(i + 1));", "start(i + 1) - 1);"),
    "results of other sequences": ("(s.batch - s.length) * strides.token", "(s.batch - s.length) * strides.head"),
    "rows too many": ("short_of - token}", "short_of}"),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    source = mistaken(KERNELS / "attention_hopper.cu", *MISTAKES[mistake], tmp_path, "sequences.h")
    op = load("mistaken", source).attention_hopper
    lengths = [70, 129, *[i % 3 for i in range(40)]], [130, 140, *[1 + i % 2 for i in range(40)]]
    assert wrong_or_fault(lambda: agrees(op, *lengths, (None, 0)))
