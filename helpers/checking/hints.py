"""From the pattern of the wrong elements to what usually causes it.

A hint is a guess, phrased as one: it names what was seen in the numbers, then asks the question that an experienced
reader of the kernel would ask. No hint is better than a vague one.
"""

from __future__ import annotations

import math

import torch

TAIL = 256  # wrong elements at the end, fewer than this: a partial block, warp or vector


def hints_for(got, want, wrong, shape=(), inputs=(), poisoned=False) -> list[str]:
    """Up to two hints on the wrong elements of a result: one on where they are, one on what they hold.

    `got` and `want` are flat tensors of one dtype, `wrong` the ascending flat indices where they differ too much,
    `shape` the unflattened shape, `inputs` the tensors that the function was given, `poisoned` whether fresh memory
    held NaN (integers: the largest value) before the run.
    """
    seen = [_place(wrong, got.numel()), _value(got, want, wrong, shape, inputs, poisoned)]
    return [sentence for sentence in seen if sentence]


def _place(wrong: torch.Tensor, n: int) -> str:
    """Where the wrong elements lie."""
    count, first, last = len(wrong), wrong[0].item(), wrong[-1].item()
    if count == n:
        return ""
    if last - first + 1 == count:  # one unbroken run
        if count == 1 and last == n - 1:
            return "Only the last element is wrong: is the bounds check off by one?"
        if last == n - 1 and count < TAIL:
            return f"Only the last {count} elements are wrong: is the tail, a partial block or vector, handled?"
        if last == n - 1:
            return (
                f"Every element from index {first:,} on is wrong, none before: does the grid cover all {n:,} elements, "
                "or does each thread loop over them with a grid stride?"
            )
        if first == 0:
            return f"The first {count:,} elements are wrong, none after: does indexing start at 0?"
        return ""
    steps = wrong.diff()
    step = steps[0].item()
    if count > 2 and step > 1 and bool((steps == step).all()):
        return f"Every {step}th element is wrong, from index {first}: does a stride or a boundary of {step} go wrong?"
    return ""


def _value(got, want, wrong, shape, inputs, poisoned) -> str:
    """What the wrong elements hold."""
    g, w = got[wrong], want[wrong]
    if poisoned and bool(_is_poison(g).all()):
        return (
            "What they hold is what fresh memory was filled with before the run: they were never written, "
            "or computed from something that was not."
        )
    if g.is_floating_point() and bool(g.isnan().any()) and not bool(w.isnan().any()):
        return f"{int(g.isnan().sum()):,} are NaN where a number is expected: 0/0, inf - inf, or memory not written?"
    if bool((g == 0).all()):
        return "They are all 0: was the kernel launched at all, and did it write its result?"
    for i, tensor in enumerate(inputs):
        if tensor.shape == torch.Size(shape) and tensor.dtype == got.dtype and _same(tensor.flatten()[wrong], g):
            return f"They hold the values of input {i}: was the other operand left out?"
    if len(shape) == 2 and shape[0] == shape[1] and _same(got.view(*shape).T, want.view(*shape)):
        return "The result is transposed: are row and column exchanged?"
    if got.numel() > 2 and len(wrong) > 1:
        for by, text in ((1, "small"), (-1, "large")):
            rolled = want.roll(by)
            inner = wrong[(wrong >= max(by, 0)) & (wrong < got.numel() + min(by, 0))]
            if len(inner) and _same(got[inner], rolled[inner]):
                return f"Each holds what its neighbour should: is the index it was read from one too {text}?"
    return _ratio(g.double(), w.double())


def _ratio(g: torch.Tensor, w: torch.Tensor) -> str:
    """A constant factor between got and expected, or an error small enough to be one of precision."""
    usable = (w != 0) & w.isfinite() & g.isfinite()
    if not bool(usable.all()):
        return ""
    ratio = g / w
    middle = ratio.median().item()
    if middle != 0 and bool(((ratio - middle).abs() <= 1e-3 * abs(middle)).all()) and abs(middle - 1) > 1e-2:
        nearest = round(middle)
        if nearest and math.isclose(middle, nearest, rel_tol=1e-3):
            why = "is the sign right?" if nearest == -1 else "is something added more than once?"
            return f"Each is {nearest} times what is expected: {why}"
        return f"Each is {middle:.4g} times what is expected: is a factor missing?"
    if bool(((ratio - 1).abs() < 2e-2).all()):
        return "They are close: is an intermediate result rounded to a narrower dtype, or is `accumulation` too small?"
    return ""


def _is_poison(values: torch.Tensor) -> torch.Tensor:
    """Which elements hold what torch puts into fresh memory in deterministic mode."""
    if values.is_floating_point():
        return values.isnan()
    if values.dtype == torch.bool:
        return torch.zeros_like(values)
    return values == torch.iinfo(values.dtype).max


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal up to rounding; not if nothing is there to compare, and not if a NaN is."""
    return a.shape == b.shape and a.numel() > 0 and torch.allclose(a.double(), b.double(), rtol=1e-3)
