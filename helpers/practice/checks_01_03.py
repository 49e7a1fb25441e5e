"""The checks of lessons 01 to 03: see checks.py."""

from collections.abc import Iterator

import torch

from helpers.practice.asked import Launched, each
from helpers.practice.case_inputs import (
    DTYPES,
    INF,
    LARGE,
    LEAST,
    NAN,
    SIZES,
    SPECIAL,
    counted,
    far,
    normal,
    roundings,
    short,
)
from helpers.practice.cases import Case, Check, Far, Refusal

# -- lesson 01 ---------------------------------------------------------------------------------------------------------


def vector_scale_cases() -> Iterator[Case]:
    for n in SIZES:
        x = normal(n)
        yield Case(f"n = {n:,}", (x, 2.5 if n % 2 else -0.375), {"out": x})
    special = torch.tensor(SPECIAL)
    yield Case(f"x = {SPECIAL}", (special, -2.0), {"out": special})


def vector_scale_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n), 2.5), {"out": far(n)})


def roll_cases() -> Iterator[Case]:
    shifts = ((0, 3), (1, 0), (1, -5), (5, 2), (256, 1), (257, -1), (257, 300), (257, -1000), (100_003, 2**40 + 1))
    for n, shift in shifts:
        x = normal(n)
        yield Case(f"n = {n:,}, shift = {shift:,}", (x, shift), {"out": x})


def roll_far(n: int) -> Case:
    return Case(f"n = {n:,}, shift = 3", (far(n), 3), {"out": far(n)}, {"edge": 1024})


def moving_average_cases() -> Iterator[Case]:
    settings = (  # n, radius, blocks, threads
        (0, 1, 1, 32), (1, 0, 1, 1), (1, 3, 2, 32), (31, 1, 1, 32), (256, 2, 1, 256), (257, 2, 1, 256),
        (257, 300, 3, 33), (1000, 5, 1, 32), (1000, 0, 2, 1024), (100_003, 20, 7, 96),
        (257, 65_537, 3, 33), (40_003, 1, 33_000, 1),
    )  # fmt: skip
    for n, radius, blocks, threads in settings:
        x = normal(n)
        label = f"n = {n:,}, radius = {radius:,}, {blocks:,} x {counted(threads, 'thread')}"
        tolerance = {"accumulation": max(1, min(n, 2 * radius + 1))}
        yield Case(label, (x, radius, blocks, threads), {"out": x}, tolerance)


def moving_average_asked(x: torch.Tensor, radius: int, blocks: int, threads: int) -> list[Launched]:
    asked = Launched(storing=min(len(x), blocks * threads), grid=(blocks, 1, 1), block=(threads, 1, 1))
    return [asked] if len(x) else []


def moving_average_far(n: int) -> Case:
    blocks = -(-n // 256)
    label = f"n = {n:,}, radius = 2, {blocks:,} x 256 threads"
    return Case(label, (far(n), 2, blocks, 256), {"out": far(n)}, {"edge": 1024, "accumulation": 5})


def moving_average_reference(x: torch.Tensor, radius: int, blocks: int, threads: int) -> torch.Tensor:
    sums = torch.cat([x.new_zeros(1), x.cumsum(0)])
    i = torch.arange(len(x), device=x.device)
    first, after = (i - radius).clamp(min=0), (i + radius + 1).clamp(max=len(x))
    return (sums[after] - sums[first]) / (after - first)


# -- lesson 02 ---------------------------------------------------------------------------------------------------------


def relu_backward_cases() -> Iterator[Case]:
    for n in SIZES:
        yield Case(f"n = {n:,}", (normal(n), normal(n, seed=1)), {"grad_x": normal(n)})
    gradients = torch.tensor([1.5, -2.0, 0.0, INF, -INF, NAN])
    for value in (0.0, -0.0, 1e-40, -1e-40, INF, -INF, -3.0, NAN):
        x = torch.full_like(gradients, value)
        yield Case(f"x = {value} everywhere, grad = {gradients.tolist()}", (gradients, x), {"grad_x": x})


def relu_backward_far(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n), far(n)), {"grad_x": far(n)})


def checked_mul_cases() -> Iterator[Case]:
    for shape in ((0,), (1,), (257,), (0, 5), (3, 5), (2, 3, 4)):
        yield Case(f"shape {list(shape)}", (normal(*shape), normal(*shape, seed=1)))


def checked_mul_far(n: int) -> Case:
    return Case(f"shape [{n:,}]", (far(n), far(n)))


# The argument a, which English has as an article too: 'a must be', `'a'`, 'for a, got', 'a's dtype'.
NAMED_A = r"(?:^|[\s('\"`])a(?:$|[)'\"`,:;.=]| (?:must|should|is|has|was|are|and|needs|to|of|dtype|shape|type)\b)"


def checked_mul_refusals(device: torch.device) -> Iterator[Refusal]:
    a, b = normal(6).to(device), normal(6, seed=1).to(device)
    names_a, names_b = {"name a": NAMED_A}, {"name b": r"\bb\b"}
    double = {"say that float64 was got": r"float64|double"}
    yield Refusal("b is float64", (a, b.double()), names_b | double)
    yield Refusal("a is float64", (a.double(), b), names_a | double)
    yield Refusal("a and b are float64", (a.double(), b.double()), names_a | double)
    yield Refusal("b is int32", (a, b.int()), names_b | {"say that int32 was got": r"\bint"})
    yield Refusal(
        "a is every other element of a tensor", (normal(12).to(device)[::2], b), names_a | {"say contiguous": "contig"}
    )
    c, d = normal(5, 3).to(device), normal(3, 5).to(device)
    yield Refusal("b is a transposed matrix", (c, d.T), names_b | {"say contiguous": "contig"})
    shapes = {"name both": f"{NAMED_A}.*\\bb\\b|\\bb\\b.*{NAMED_A}", "give both shapes": r"\b6\b.*2, ?3"}
    yield Refusal("a has shape [6], b [2, 3]", (a, b.view(2, 3)), shapes)
    yield Refusal("a has shape [6], b [5]", (a, b[:5]), shapes | {"give both shapes": r"\b6\b.*\b5\b"})
    if device.type == "cuda":
        yield Refusal("b is on the CPU", (a, b.cpu()), names_b | {"say CUDA": "cuda"})
    if torch.cuda.device_count() > 1:
        yield Refusal("a is on cuda:0, b on cuda:1", (a, b.to("cuda:1")), names_a | names_b)


def row_scale_backward_cases() -> Iterator[Case]:
    for rows, columns in (
        (0, 0),
        (0, 5),
        (3, 0),
        (1, 1),
        (3, 5),
        (16, 16),
        (1, 257),
        (257, 1),
        (255, 33),
        (1000, 7),
        (33_000, 1),
        (2, 40_003),
    ):
        grad, x, scale = normal(rows, columns), normal(rows, columns, seed=1), normal(rows, seed=2)
        label = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        yield Case(label, (grad, x, scale), {"grad_x": x, "grad_scale": scale}, {"accumulation": max(1, columns)})


def row_scale_backward_far(rows: int) -> Case:
    x, scale = far(rows, 5), far(rows)
    tolerance = {"sure": (4, 5), "accumulation": 5}
    return Case(f"{rows:,} rows, 5 columns", (x, x, scale), {"grad_x": x, "grad_scale": scale}, tolerance)


# -- lesson 03 ---------------------------------------------------------------------------------------------------------


def blend_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        for n in (0, 1, 257, 4099, 40_003):
            a, b = (normal(n, seed=seed).abs().add(0.5).to(dtype) for seed in (0, 1))  # no cancellation
            yield Case(f"{short(dtype)}, n = {n:,}", (a, b, 0.3), {"out": a}, roundings(dtype, 4))
    ends = torch.tensor([-60000.0, 60000.0, -3e4, 1.0], dtype=torch.float16)
    label = "float16, from +-60000 to -+60000"
    yield Case(label, (ends, ends.neg(), 0.25), {"out": ends}, roundings(torch.float16, 4))


def blend_far(n: int) -> Case:
    return Case(f"float32, n = {n:,}", (far(n), far(n), 0.3), {"out": far(n)}, roundings(torch.float32, 4, absolute=8))


def silu_mul_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        for n in (0, 1, 257, 4099, 40_003):
            a, b = (3 * normal(n)).to(dtype), normal(n, seed=1).to(dtype)
            yield Case(f"{short(dtype)}, n = {n:,}", (a, b), {"out": a}, roundings(dtype, 8))
        far = torch.tensor([-12.0, -11.25, -16.0, 12.0, 80.0, 0.0, -0.0, NAN], dtype=dtype)
        label = f"{short(dtype)}, a = {far.tolist()}"
        yield Case(label, (far, torch.full_like(far, 2)), {"out": far}, roundings(dtype, 8))
        large = torch.tensor(LARGE, dtype=dtype)
        label = f"{short(dtype)}, a = {LARGE}"
        yield Case(label, (large, torch.full_like(large, 0.5)), {"out": large}, roundings(dtype, 8))


def silu_mul_far(n: int) -> Case:
    return Case(f"float32, n = {n:,}", (far(n), far(n)), {"out": far(n)}, roundings(torch.float32, 8))


def silu_mul_reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(a) * b


def silu_mul_backward_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        for n in (0, 1, 257, 4099, 40_003):
            grad, a, b = (scale * normal(n, seed=seed) for seed, scale in enumerate((1, 2, 1)))
            tensors = tuple(t.to(dtype) for t in (grad, a, b))
            outputs = {"grad_a": tensors[1], "grad_b": tensors[1]}
            yield Case(f"{short(dtype)}, n = {n:,}", tensors, outputs, roundings(dtype, 16, absolute=64))
        # Terms as large as a cancel in the derivative's other forms.
        for values, absolute in (([-12.0, -11.25, 0.0, NAN], 0.5), ([12.0, 16.0, *LARGE], 64)):
            far = torch.tensor(values, dtype=dtype)
            ones = torch.ones_like(far)
            label = f"{short(dtype)}, a = {values}"
            yield Case(label, (ones, far, ones), {"grad_a": far, "grad_b": far}, roundings(dtype, 16, absolute))


def silu_mul_backward_far(n: int) -> Case:
    outputs = {"grad_a": far(n), "grad_b": far(n)}
    tolerance = roundings(torch.float32, 16, absolute=64)
    return Case(f"float32, n = {n:,}", (far(n), far(n), far(n)), outputs, tolerance)


def silu_mul_backward_reference(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple:
    a, b = a.requires_grad_(), b.requires_grad_()
    return torch.autograd.grad(silu_mul_reference(a, b), (a, b), grad)


CHECKS = {
    "vector_scale": Check(
        lambda x, factor: factor * x,
        vector_scale_cases,
        asked=lambda x, factor: each(len(x), 1),
        far=Far(vector_scale_far, least=LEAST),
    ),
    "roll": Check(
        lambda x, shift: x.roll(shift % len(x)) if len(x) else x,
        roll_cases,
        asked=lambda x, shift: each(len(x)),
        far=Far(roll_far, least=LEAST),
    ),
    "moving_average": Check(
        moving_average_reference,
        moving_average_cases,
        asked=moving_average_asked,
        rounds=True,
        far=Far(moving_average_far, 2**36 + 2**31 + 1031),
    ),
    "relu_backward": Check(
        lambda grad, x: torch.where(x <= 0, 0.0, grad),
        relu_backward_cases,
        asked=lambda grad, x: each(len(x)),
        far=Far(relu_backward_far, least=LEAST),
    ),
    "checked_mul": Check(
        torch.mul,
        checked_mul_cases,
        checked_mul_refusals,
        asked=lambda a, b: each(a.numel()),
        second_device="that tensors on two devices are refused",
        far=Far(checked_mul_far),
    ),
    "row_scale_backward": Check(
        lambda grad, x, scale: (grad * scale[:, None], (grad * x).sum(1)),
        row_scale_backward_cases,
        asked=lambda grad, x, scale: each(x.numel()) + each(len(x)),
        rounds=True,
        far=Far(row_scale_backward_far, 2**34 + 7, least=2**20 + 1031),
    ),
    "blend": Check(
        torch.lerp, blend_cases, asked=lambda a, b, weight: each(len(a)), rounds=True, far=Far(blend_far, least=LEAST)
    ),
    "silu_mul": Check(
        silu_mul_reference,
        silu_mul_cases,
        asked=lambda a, b: each(len(a)),
        rounds=True,
        far=Far(silu_mul_far, least=LEAST),
    ),
    "silu_mul_backward": Check(
        silu_mul_backward_reference,
        silu_mul_backward_cases,
        asked=lambda grad, a, b: each(len(a)),
        rounds=True,
        far=Far(silu_mul_backward_far, least=LEAST),
    ),
}
