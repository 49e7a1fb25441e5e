"""The checks of lesson 17: attention with a window."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import Launched
from helpers.practice.case_inputs import counted, normal, short
from helpers.practice.cases import Case, Check
from helpers.practice.demands import at_most

TOLERANCE = {"rtol": 0.03, "atol": 0.03}  # probabilities are rounded to 16 bits before they are multiplied
COUNTED = (100, 10)  # tokens and window of the case whose reads are counted
FEW_READS = at_most(18_000, "load", "the ranges hold too much")


def sliding_window_reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor, window: int
) -> tuple[torch.Tensor, ...]:
    """The output and the gradients of q, k and v."""
    at = torch.arange(q.shape[2], device=q.device)
    hidden = (at[:, None] < at) | (at[:, None] - at >= window)
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        scores = leaves[0] @ leaves[1].mT * q.shape[3] ** -0.5
        hidden_scores = scores.masked_fill(hidden, -torch.inf)
        out = (hidden_scores - hidden_scores.logsumexp(-1, keepdim=True)).exp() @ leaves[2]
    return out.detach(), *torch.autograd.grad(out, leaves, grad)


def sliding_window_cases() -> Iterator[Case]:
    sizes = ((1, 1), (5, 2), (33, 1), (40, 100), (70, 7), (130, 64), (150, 33), (300, 20))  # tokens, window
    settings = [(torch.float16, *size, 64) for size in sizes]
    settings.append((torch.float32, *COUNTED, 4))  # the simple kernels, which visit exactly the keys of the ranges
    settings.append((torch.bfloat16, 150, 33, 128))
    for dtype, tokens, window, d in settings:
        given = tuple(normal(1, 1, tokens, d, seed=i).to(dtype) for i in range(4))
        label = f"{short(dtype)}, {counted(tokens, 'token')}, window = {window}"
        demand = FEW_READS if d == 4 else None
        yield Case(label, (*given, window), {}, TOLERANCE, demand=demand, results=("out", "grad_q", "grad_k", "grad_v"))


CHECKS = {
    "sliding_window": Check(
        sliding_window_reference,
        sliding_window_cases,
        asked=lambda *inputs: [Launched()] * 4,
        further=False,
        repeatable=True,
        why_not={"far": "the kernels are given, and their tokens are counted with an int"},
    ),
}
