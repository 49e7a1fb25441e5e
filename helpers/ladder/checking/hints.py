"""From the pattern of the wrong elements to its usual cause.

A hint is a guess, phrased as one: it names the pattern, then asks the question that an experienced reader of the kernel
would ask. It needs evidence: at least EVIDENCE elements and a pattern that fits all of them. No hint is better than a
vague one. Whether memory was written is known for certain, so that is said of a single element, and of a tail of two.
"""

import math

import torch

TAIL = 256  # fewer wrong elements than this at the end, and few of all, suggest a partial block, warp or vector
EVIDENCE = 8  # elements that a guess needs
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # bytes -> an integer of that size


def hints_for(got, want, wrong, shape=(), inputs=(), poison=None) -> list[str]:
    """Up to two hints on the wrong elements of a result: one on their place, one on their values.

    `got` and `want` are flat tensors of one dtype, `wrong` the ascending flat indices where they differ too much,
    `shape` the unflattened shape, `inputs` the input tensors of the function, `poison` the bits that filled the memory
    of the result before the run, or None.
    """
    unwritten = poison is not None and bool((got[wrong].view(BITS[got.element_size()]) == poison).all())
    place = ""
    if len(shape) <= 1 and got.numel() >= 32 and (len(wrong) >= EVIDENCE or (unwritten and len(wrong) > 1)):
        place = _place(wrong, got.numel())
    value = _unwritten(len(wrong)) if unwritten else _value(got, want, wrong, shape, inputs, poison)
    return [sentence for sentence in (place, value) if sentence]


def _unwritten(count: int) -> str:
    hold, were = ("It holds", "it was") if count == 1 else ("They hold", "they were")
    return (
        f"{hold} the value that filled fresh memory before the run: {were} never written, or computed from memory that "
        "was never written."
    )


def _place(wrong: torch.Tensor, n: int) -> str:
    """The hint on the places of the wrong elements of a vector, or ""."""
    count, first, last = len(wrong), wrong[0].item(), wrong[-1].item()
    if count == n:
        return ""
    if last - first + 1 == count:  # one unbroken run
        if last == n - 1 and count < TAIL and 3 * count <= n:
            return f"Only the last {count} elements are wrong: is the tail, a partial block or vector, handled?"
        if last == n - 1 and count >= TAIL:
            return (
                f"Every element from index {first:,} on is wrong, none before: does the grid cover all {n:,} elements, "
                "or does each thread loop over them with a grid stride?"
            )
        if first == 0:
            return f"Only the first {count:,} elements are wrong: does indexing start at 0?"
        return ""
    steps = wrong.diff()
    step = int(steps[0])
    if step > 1 and bool((steps == step).all()):
        ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step % 100 not in (11, 12, 13) else 0, "th")
        return f"Every {step}{ending} element is wrong, from index {first}: is a stride or boundary of {step} wrong?"
    return ""


def _value(got, want, wrong, shape, inputs, poison) -> str:
    """The hint on the values of the wrong elements, or ""."""
    g, w = got[wrong], want[wrong]
    if g.is_floating_point():
        nans = int((g.isnan() & ~w.isnan()).sum())
        if nans:
            some = "It is" if len(wrong) == 1 else "1 is" if nans == 1 else f"{nans:,} are"
            return f"{some} NaN where a number is expected: 0/0, inf - inf, or memory not written?"
        if bool((w.isnan() & ~g.isnan()).all()):
            return "A NaN was lost: comparisons with NaN are false, and fmaxf and fminf return the other number."
    if len(wrong) < EVIDENCE:
        return ""
    if bool((g == 0).all()):
        asked = "was it stored before it was computed?" if poison else "was the kernel launched?"
        return f"They are all 0: {asked}"
    for i, tensor in enumerate(inputs):
        if tensor.shape == torch.Size(shape) and tensor.dtype == got.dtype and _same(tensor.flatten()[wrong], g):
            return f"They hold the values of input {i}, unchanged: was the other operand left out?"
    if len(shape) == 2 and shape[0] == shape[1] and _same(got.view(*shape).T, want.view(*shape)):
        return "The result is transposed: are row and column swapped?"
    for by, text in ((1, "small"), (-1, "large")):
        rolled = want.roll(by)
        inner = wrong[(wrong >= max(by, 0)) & (wrong < got.numel() + min(by, 0))]
        if len(inner) >= EVIDENCE and _same(got[inner], rolled[inner]):
            return f"Each holds the expected value of its neighbour: is the index that was read one too {text}?"
    return _ratio(g.double(), w.double(), got.dtype)


def _ratio(g: torch.Tensor, w: torch.Tensor, dtype: torch.dtype) -> str:
    """The hint on a constant factor between got and expected of `dtype`, or on rounding to a narrower one, or ""."""
    usable = (w != 0) & w.isfinite() & g.isfinite()
    if not bool(usable.all()):
        return ""
    ratio = g / w
    middle = ratio.median().item()
    if middle != 0 and bool(((ratio - middle).abs() <= 1e-3 * abs(middle)).all()) and abs(middle - 1) > 1e-2:
        nearest = round(middle)
        if nearest and math.isclose(middle, nearest, rel_tol=1e-3):
            why = "is the sign right?" if nearest == -1 else "is something added more than once?"
            return f"Each is {nearest} times the expected value: {why}"
        return f"Each is {middle:.4g} times the expected value: is a factor missing?"
    if not dtype.is_floating_point:
        return ""
    narrower = torch.float32 if dtype == torch.float64 else torch.float16
    between = math.sqrt(torch.finfo(dtype).eps * torch.finfo(narrower).eps)  # of a few roundings and a narrower one
    if between < (ratio - 1).abs().max() < 2e-2:
        return "They are close: is an intermediate result rounded to a narrower dtype?"
    return ""


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal up to rounding; False if there is nothing to compare, or a NaN."""
    return a.shape == b.shape and a.numel() > 0 and torch.allclose(a.double(), b.double(), rtol=1e-3)
