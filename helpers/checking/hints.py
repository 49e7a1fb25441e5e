"""From the pattern of the wrong elements to its usual cause.

A hint is a guess, phrased as one: it names the pattern, then asks the question that an experienced reader of the kernel
would ask. No hint is better than a vague one.
"""

import math

import torch

TAIL = 256  # fewer wrong elements than this at the end suggest a partial block, warp or vector


def hints_for(got, want, wrong, shape=(), inputs=(), poisoned=False) -> list[str]:
    """Up to two hints on the wrong elements of a result: one on their place, one on their values.

    `got` and `want` are flat tensors of one dtype, `wrong` the ascending flat indices where they differ too much,
    `shape` the unflattened shape, `inputs` the input tensors of the function, `poisoned` whether fresh memory held NaN
    (integers: the largest value) before the run.
    """
    seen = [_place(wrong, got.numel()), _value(got, want, wrong, shape, inputs, poisoned)]
    return [sentence for sentence in seen if sentence]


def _place(wrong: torch.Tensor, n: int) -> str:
    """The hint on the places of the wrong elements, or ""."""
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
            wrong_ones = (
                "Only the first element is wrong" if count == 1 else f"Only the first {count:,} elements are wrong"
            )
            return f"{wrong_ones}: does indexing start at 0?"
        return ""
    steps = wrong.diff()
    step = int(steps[0])
    if count > 2 and step > 1 and bool((steps == step).all()):
        ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step % 100 not in (11, 12, 13) else 0, "th")
        return f"Every {step}{ending} element is wrong, from index {first}: is a stride or boundary of {step} wrong?"
    return ""


def _value(got, want, wrong, shape, inputs, poisoned) -> str:
    """The hint on the values of the wrong elements, or ""."""
    g, w = got[wrong], want[wrong]
    one = len(wrong) == 1
    hold, were = ("It holds", "it was") if one else ("They hold", "they were")
    if poisoned and bool(_is_poison(g).all()):
        return (
            f"{hold} the value that filled fresh memory before the run: {were} never written, "
            "or computed from memory that was never written."
        )
    if g.is_floating_point() and bool(g.isnan().any()) and not bool(w.isnan().any()):
        count = int(g.isnan().sum())
        some = "It is" if one else "1 is" if count == 1 else f"{count:,} are"
        return f"{some} NaN where a number is expected: 0/0, inf - inf, or memory not written?"
    if bool((g == 0).all()):
        return f"{'It is' if one else 'They are all'} 0: was the kernel launched, and did it write its result?"
    for i, tensor in enumerate(inputs):
        if tensor.shape == torch.Size(shape) and tensor.dtype == got.dtype and _same(tensor.flatten()[wrong], g):
            return f"{hold} the {'value' if one else 'values'} of input {i}: was the other operand left out?"
    if len(shape) == 2 and shape[0] == shape[1] and _same(got.view(*shape).T, want.view(*shape)):
        return "The result is transposed: are row and column swapped?"
    if got.numel() > 2 and len(wrong) > 1:
        for by, text in ((1, "small"), (-1, "large")):
            rolled = want.roll(by)
            inner = wrong[(wrong >= max(by, 0)) & (wrong < got.numel() + min(by, 0))]
            if len(inner) and _same(got[inner], rolled[inner]):
                return f"Each holds the expected value of its neighbour: is the index that was read one too {text}?"
    return _ratio(g.double(), w.double())


def _ratio(g: torch.Tensor, w: torch.Tensor) -> str:
    """The hint on a constant factor between got and expected, or on an error as small as rounding, or ""."""
    usable = (w != 0) & w.isfinite() & g.isfinite()
    if not bool(usable.all()):
        return ""
    each = "It" if len(g) == 1 else "Each"
    ratio = g / w
    middle = ratio.median().item()
    if middle != 0 and bool(((ratio - middle).abs() <= 1e-3 * abs(middle)).all()) and abs(middle - 1) > 1e-2:
        nearest = round(middle)
        if nearest and math.isclose(middle, nearest, rel_tol=1e-3):
            why = "is the sign right?" if nearest == -1 else "is something added more than once?"
            return f"{each} is {nearest} times the expected value: {why}"
        return f"{each} is {middle:.4g} times the expected value: is a factor missing?"
    if bool(((ratio - 1).abs() < 2e-2).all()):
        close = "It is close" if len(g) == 1 else "They are close"
        return f"{close}: is an intermediate result rounded to a narrower dtype, or is `accumulation` too small?"
    return ""


def _is_poison(values: torch.Tensor) -> torch.Tensor:
    """Which elements hold the value that torch fills fresh memory with in deterministic mode."""
    if values.is_floating_point():
        return values.isnan()
    if values.dtype == torch.bool:
        return torch.zeros_like(values)
    return values == torch.iinfo(values.dtype).max


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal up to rounding; False if there is nothing to compare, or a NaN."""
    return a.shape == b.shape and a.numel() > 0 and torch.allclose(a.double(), b.double(), rtol=1e-3)
