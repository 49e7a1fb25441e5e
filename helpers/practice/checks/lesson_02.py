"""The checks of lesson 02: bindings that check their arguments, and gradients."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import each, each_element
from helpers.practice.calls import Calls, on_vectors
from helpers.practice.case_inputs import EXACT, INF, NAN, ROWS_AND_COLUMNS, far, normal
from helpers.practice.cases import Case, Check, Far, Refusal

CLAMPED = Calls("x[n], low, high -> out[n]", low=-0.5, high=0.75, tolerance=EXACT)
ENDS = torch.tensor([NAN, -INF, -3.0, -0.5, -0.25, -0.0, 0.0, 0.75, 3.0, INF])
LIMITS = ((-0.5, 0.75), (0.75, -0.5), (-INF, INF), (1.0, 1.0))
RELU = Calls("grad[n], x[n] -> grad_x[n]")
GRADIENTS = torch.tensor([1.5, -2.0, 0.0, INF, -INF, NAN])
VALUES = (0.0, -0.0, 1e-40, -1e-40, INF, -INF, -3.0, NAN)
SCALED_ROWS = Calls(
    "grad[rows, columns], x[rows, columns], scale[rows] -> grad_x[rows, columns], grad_scale[rows]",
    label=ROWS_AND_COLUMNS,
    sums="columns",
)


def checked_mul_cases() -> Iterator[Case]:
    for shape in ((0,), (1,), (257,), (0, 5), (3, 5), (2, 3, 4)):
        yield Case(f"shape {list(shape)}", (normal(*shape), normal(*shape, seed=1)))


# The argument a, which English has as an article too: 'a must be', `'a'`, 'for a, got', 'a's dtype'.
NAMED_A = r"(?:^|[\s('\"`])a(?:$|[)'\"`,:;.=]| (?:must|should|is|has|was|are|and|needs|to|of|dtype|shape|type)\b)"

# The argument at fault, and not as one of both: 'a and b must be float32' does not say which of them is not.
_AND = r"['\"`]? (?:and|or|&) ['\"`]?"
ALONE_A = rf"(?<!b and )(?<!b or )(?!\s?['\"`]?a{_AND}b\b)(?:{NAMED_A})"
ALONE_B = rf"(?<!a and )(?<!a or )(?<!a['\"`] and ['\"`])(?<!a['\"`] or ['\"`])\bb\b(?!{_AND}a\b)"


def checked_mul_refusals(device: torch.device) -> Iterator[Refusal]:
    a, b = normal(6).to(device), normal(6, seed=1).to(device)
    names_a, names_b = {"name a alone": ALONE_A}, {"name b alone": ALONE_B}
    double = {"say that float64 was got": r"float64|double"}
    yield Refusal("b is float64", (a, b.double()), names_b | double)
    yield Refusal("a is float64", (a.double(), b), names_a | double)
    yield Refusal("a and b are float64", (a.double(), b.double()), {"name a": NAMED_A} | double)
    yield Refusal("b is int32", (a, b.int()), names_b | {"say that int32 was got": r"\bint"})
    every_other, contiguous = normal(12).to(device)[::2], {"say contiguous": "contig"}
    yield Refusal("a is every other element of a tensor", (every_other, b), names_a | contiguous)
    c, d = normal(5, 3).to(device), normal(3, 5).to(device)
    yield Refusal("b is a transposed matrix", (c, d.T), names_b | contiguous)
    shapes = {"name both": f"{NAMED_A}.*\\bb\\b|\\bb\\b.*{NAMED_A}", "give both shapes": r"\b6\b.*2, ?3"}
    yield Refusal("a has shape [6], b [2, 3]", (a, b.view(2, 3)), shapes)
    yield Refusal("a has shape [6], b [5]", (a, b[:5]), shapes | {"give both shapes": r"\b6\b.*\b5\b"})
    if device.type == "cuda":
        yield Refusal("b is on the CPU", (a, b.cpu()), names_b | {"say CUDA": "cuda"})
    if torch.cuda.device_count() > 1:
        yield Refusal("a is on cuda:0, b on cuda:1", (a, b.to("cuda:1")), {"name a": NAMED_A, "name b": r"\bb\b"})


CHECKS = {
    "clamp_nan": on_vectors(
        torch.clamp,
        CLAMPED,
        *(CLAMPED.given(f"x = {ENDS.tolist()}, low = {low}, high = {high}", ENDS, low, high) for low, high in LIMITS),
    ),
    "relu_backward": on_vectors(
        lambda grad, x: torch.where(x <= 0, 0.0, grad),
        RELU,
        *(
            RELU.given(
                f"x = {x} everywhere, grad = {GRADIENTS.tolist()}", GRADIENTS, torch.full_like(GRADIENTS, x)
            )
            for x in VALUES
        ),
        asked=each_element,
    ),
    "checked_mul": Check(
        torch.mul,
        checked_mul_cases,
        checked_mul_refusals,
        asked=each_element,
        second_device="that tensors on two devices are refused",
        far=Far(lambda n: Case(f"shape [{n:,}]", (far(n), far(n)))),
    ),
    "row_scale_backward": Check(
        lambda grad, x, scale: (grad * scale[:, None], (grad * x).sum(1)),
        lambda: SCALED_ROWS.at(
            (0, 0), (0, 5), (3, 0), (1, 1), (3, 5), (16, 16), (1, 257), (257, 1), (255, 33), (1000, 7), (33_000, 1),
            (2, 40_003),
        ),
        asked=lambda grad, x, scale: each(x.numel()) + each(len(x)),
        rounds=True,
        far=Far(lambda rows: SCALED_ROWS.far(rows, 5, sure=(4, 5)), 2**34 + 7, least=2**20 + 1031),
    ),
}  # fmt: skip
