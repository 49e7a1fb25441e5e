"""Lesson 17: attention, softmax(scale * q @ k^T) @ v with its logsumexp, and the gradients.

The shape is (heads, kv_heads, tokens, d), of a batch of 1: q has `heads` heads, k and v have `kv_heads`.
"""

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from helpers.ladder.catalogue.entry import FLOATING, THREE_STREAMS, Kernel, Launch, Operator, Shape

Tensors = tuple[torch.Tensor, ...]


def scores(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float | None) -> torch.Tensor:
    """scale * q @ k^T for each head of q; -inf where a causal mask hides the key."""
    shared = k.repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1)
    products = (q.shape[-1] ** -0.5 if scale is None else scale) * (q @ shared.mT)
    if not causal:
        return products
    return products.masked_fill(
        products.new_ones(products.shape[-2:], dtype=torch.bool).tril().logical_not(), -torch.inf
    )


def by_heads(function: Callable[..., Tensors]) -> Callable[..., Tensors]:
    """The same function, which takes wide tensors a head of k at a time: the truth at 16,384 tokens has to fit too."""

    @functools.wraps(function)
    def call(*given, **options):
        tensors = [x for x in given if isinstance(x, torch.Tensor)]
        heads = min(x.shape[1] for x in tensors)
        if tensors[0].dtype.itemsize < 4 or heads < 2:
            return function(*given, **options)
        rest = given[len(tensors) :]
        parts = zip(*(x.chunk(heads, 1) for x in tensors), strict=True)
        found = zip(*(function(*part, *rest, **options) for part in parts), strict=True)
        return tuple(torch.cat(x, 1) for x in found)

    return call


@by_heads
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None
) -> Tensors:
    """In plain PyTorch, with the whole matrix of scores: the output and the logsumexp of each row."""
    found = scores(q, k, causal, scale)
    shared = v.repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1)
    return found.softmax(-1) @ shared, found.logsumexp(-1)


@by_heads
def gradients(
    grad: torch.Tensor,
    grad_logsumexp: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
) -> Tensors:
    """The gradients of q, k and v, as the kernels compute them, but with the whole matrix of scores."""
    group, scale = q.shape[1] // max(1, k.shape[1]), q.shape[-1] ** -0.5 if scale is None else scale
    p = (scores(q, k, causal, scale) - logsumexp[..., None]).exp().to(q.dtype)
    delta = ((grad * out).sum(-1) - grad_logsumexp)[..., None].to(q.dtype)
    ds = scale * p * (grad @ v.repeat_interleave(group, 1).mT - delta)
    of_k, of_v = (x.unflatten(1, (-1, group)).sum(2) for x in (ds.mT @ q, p.mT @ grad))
    return ds @ k.repeat_interleave(group, 1), of_k, of_v


def flops(shape: Shape) -> int:
    """Two products of tokens x tokens x d for each head, without a mask."""
    heads, _, tokens, d = shape
    return 4 * heads * tokens**2 * d


def backward_flops(shape: Shape) -> int:
    """Five products; the readable kernels compute two of them twice."""
    return 5 * flops(shape) // 2


def terms(shape: Shape) -> int:
    """Terms of float32 whose error is that of 16-bit probabilities, which are rounded before they are multiplied by v.

    The sum that divides them is of probabilities that are not rounded, so the two errors do not cancel: hence twice.
    Errors are compared with a typical output. With a mask the first rows are means of few rows of v, and their error
    stays, while outputs shrink with the square root of the tokens.
    """
    return 2**31 * max(1, shape[2] // 256)


def gradients_terms(causal: bool, shape: Shape) -> int:
    """The same for gradients of many heads, of whose millions of elements some are 3 times as far off (1.4 unmasked).

    Of exact arithmetic but for the roundings of probabilities, of their gradients, and of the results, at 128 tokens.
    """
    return (16 if causal else 4) * terms(shape)


def causal_terms(shape: Shape) -> int:
    """The same for outputs of many heads: of 33 million, rounded probabilities alone put some 1.1 times as far off."""
    return 4 * terms(shape)


def queries(shape: Shape) -> Shape:
    return (1, shape[0], *shape[2:])


def keys(shape: Shape) -> Shape:
    return (1, *shape[1:])


def rows(shape: Shape) -> Shape:
    return (1, shape[0], shape[2])


def one_query(shape: Shape) -> Shape:
    return (1, shape[0], 1, shape[3])


def one_row(shape: Shape) -> Shape:
    return (1, shape[0], 1)


def normal(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str) -> Tensors:
    """Normally distributed arguments, the same at every call."""
    torch.manual_seed(0)
    return tuple(torch.randn(shape, device=device).to(dtype) for shape in shapes)


def for_backward(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device | str) -> Tensors:
    """grad, grad_logsumexp, q, k, v, and the results for these; the gradient of logsumexp is 0, as in training."""
    grad, _, q, k, v, *_ = normal(shapes, dtype, device)
    out, logsumexp = attention(*(x.float() if dtype.itemsize == 2 else x for x in (q, k, v)))
    return grad, torch.zeros_like(logsumexp), q, k, v, out.to(dtype), logsumexp


def at_size(size: int) -> Shape:
    """`size` tokens, or its square root from 100 up; a few columns for few tokens, and otherwise 64."""
    return (2, 1, size if size < 100 else math.isqrt(size), 3 if size < 8 else 64)


on_hopper = functools.partial(Kernel, dtypes=("bfloat16",), capability=(9, 0))

ATTENTION_HOPPER = on_hopper(
    name="attention_hopper",
    files=("attention_hopper.cu",),
    not_contracted="bfloat16, 64 to 128 columns: tests/kernels/test_attention_hopper.py has its own shapes",
    launches=(Launch((2, 1, 200, 64)), Launch((1, 1, 200, 128))),
)

ATTENTION_HOPPER_BACKWARD = on_hopper(
    name="attention_hopper_backward",
    files=("attention_hopper_backward.cu",),
    not_contracted="as attention_hopper: tests/kernels/test_attention_hopper_backward.py has its own shapes",
    launches=(
        Launch((2, 1, 200, 64)),
        Launch((1, 1, 200, 128)),
        Launch((1, 1, 200, 128), kernel="attention_hopper_rows_kernel", note="rows"),
        Launch((1, 1, 200, 128), kernel="attention_hopper_round_kernel", note="rounded"),
    ),
)


def with_sdpa(name: str, causal: bool, backward: bool = False) -> Callable[[], Callable[..., Tensors]]:
    """Makes the call of a backend of scaled_dot_product_attention, which returns what our kernels return.

    name: flash or cudnn. A head of k for each head of q only.
    """

    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
        if name == "flash":
            out, logsumexp, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
        else:
            out, logsumexp, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)
        return out, logsumexp.view(q.shape[:3])

    def of_gradients(grad, grad_logsumexp, q, k, v, out, logsumexp) -> Tensors:
        tokens, seed = (q.shape[2], k.shape[2]), torch.zeros((), dtype=torch.int64, device=q.device)
        if name == "flash":
            return torch.ops.aten._scaled_dot_product_flash_attention_backward(
                grad, q, k, v, out, logsumexp, None, None, *tokens, 0.0, causal, seed, seed
            )
        return torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            grad, q, k, v, out, logsumexp[..., None], seed, seed, None, None, None, *tokens, 0.0, causal
        )

    return lambda: of_gradients if backward else forward


def with_fa4(causal: bool, backward: bool = False) -> Callable[[], Callable[..., Tensors]]:
    """Makes the call of FlashAttention-4, whose tensors are (batch, tokens, heads, d): it takes and returns views."""

    def make() -> Callable[..., Tensors]:
        functions = importlib.import_module("flash_attn.cute.interface")

        def turned(*tensors: torch.Tensor) -> Tensors:
            return tuple(x.transpose(1, 2) for x in tensors)

        def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
            out, logsumexp, *_ = functions.flash_attn_func(*turned(q, k, v), causal=causal, return_lse=True)
            return *turned(out), logsumexp

        def of_gradients(grad, grad_logsumexp, q, k, v, out, logsumexp) -> Tensors:
            given = turned(q, k, v, out, grad)
            return turned(*functions._flash_attn_bwd(*given, logsumexp, causal=causal)[:3])

        return of_gradients if backward else forward

    return make


def peers(causal: bool, backward: bool = False) -> dict[str, Callable[[], Callable[..., Tensors]]]:
    """All that attention is measured beside."""
    return {name: with_sdpa(name, causal, backward) for name in BACKENDS} | {"fa4": with_fa4(causal, backward)}


def decode_with_sdpa(name: str) -> Callable[[], Callable[..., Tensors]]:
    """Makes the call of a backend for one query of each head; those that share a head of k are tokens for flash."""

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
        given = q.view(len(q), k.shape[1], -1, q.shape[-1]) if name == "flash" else q
        out, logsumexp = with_sdpa(name, causal=False)()(given, k, v)
        return out.reshape(q.shape), logsumexp.view(q.shape[:3])

    return lambda: call


def causal_function(name: str) -> Callable[..., Callable]:
    """From an extension to its function with causal=True."""
    return lambda ops: functools.partial(getattr(ops, name).default, causal=True)


def masked(function: Callable[..., Tensors]) -> Callable[..., Tensors]:
    """A reference with causal=True."""

    @functools.wraps(function)
    def call(*tensors):
        return function(*tensors, causal=True)

    return call


def half(count: Callable[[Shape], int]) -> Callable[[Shape], int]:
    """FLOPs with a causal mask, by the usual count."""
    return lambda shape: count(shape) // 2


BACKENDS = ("flash", "cudnn")
SHAPES = ((16, 16, 16384, 128),)
SWEEP = ((16, 16, 4096, 128), (16, 16, 16384, 64))
CAUSAL = "an entry of the same kernel without the mask is under contract and counted"

ATTENTION = Operator(
    name="attention",
    arguments={"q": queries, "k": keys, "v": keys},
    results=(queries, rows),
    widened=(1,),
    reference=attention,
    flops=flops,
    limit="cudnn",
    peers=peers(causal=False),
    dtypes=("float16", "bfloat16"),
    shapes=SHAPES,
    sweep=SWEEP,
    sample=normal,
    accumulation=terms,
    at_size=at_size,
    sizes=(0, 1, 7, 8, 31, 32, 33, 64, 65, 1001),
    spread=1.0,
    kernels=(
        Kernel(
            name="attention",
            files=("attention.cu",),
            dtypes=FLOATING,
            slow_to_build=True,
            launches=(
                Launch((2, 1, 70, 64), "float16"),
                Launch((2, 1, 70, 128), "bfloat16"),
                Launch((2, 1, 33, 64), "float32", kernel="attention_simple_kernel"),
            ),
        ),
        ATTENTION_HOPPER,
    ),
)

ATTENTION_DECODE = Operator(
    name="attention_decode",
    arguments={"q": one_query, "k": keys, "v": keys},
    results=(one_query, one_row),
    widened=(1,),
    reference=attention,
    flops=lambda shape: flops(shape) // shape[2],
    peers={name: decode_with_sdpa(name) for name in BACKENDS},
    dtypes=("float16", "bfloat16"),
    shapes=((512, 128, 8192, 128), (32, 8, 65536, 128)),  # batches of 16 and 1, with 32 heads of q and 8 of k and v
    sweep=((512, 128, 8192, 64), (32, 8, 8192, 128)),
    sample=normal,
    accumulation=terms,
    at_size=lambda size: (*at_size(size)[:3], 64),
    sizes=(0, 1, 7, 8, 31, 32, 33, 64, 65, 1001, 100_003),
    spread=1.0,
    above_copy=THREE_STREAMS,
    kernels=(
        Kernel(
            name="attention_decode",
            files=("attention_decode.cu",),
            dtypes=("float16", "bfloat16"),
            slow_to_build=True,
            not_differentiable="for a model that writes; attention is differentiable",
            launches=(
                Launch((8, 2, 700, 64), "float16"),
                Launch((8, 2, 700, 128), "bfloat16"),
                Launch((8, 2, 700, 96), "float16", kernel="merge_parts_kernel", note="merge"),
            ),
        ),
    ),
)

ATTENTION_BACKWARD = Operator(
    name="attention_backward",
    arguments={
        "grad": queries,
        "grad_logsumexp": rows,
        "q": queries,
        "k": keys,
        "v": keys,
        "out": queries,
        "logsumexp": rows,
    },
    results=(queries, keys, keys),
    reference=gradients,
    flops=backward_flops,
    limit="cudnn",
    peers=peers(causal=False, backward=True),
    dtypes=("float16", "bfloat16"),
    shapes=SHAPES,
    sweep=SWEEP,
    sample=for_backward,
    accumulation=terms,
    accumulation_timed=functools.partial(gradients_terms, False),
    peer_sums=8,  # the first keys' gradients, of many rounded terms, are larger than a typical element
    at_size=at_size,
    kernels=(
        Kernel(
            name="attention_backward",
            files=("attention_backward.cu",),
            dtypes=FLOATING,
            slow_to_build=True,
            not_contracted="two arguments are float32 where the others have 16 bits; autograd calls it in the contract",
            launches=(
                Launch((2, 1, 70, 64), "float16"),
                Launch((2, 1, 70, 128), "bfloat16"),
                Launch((2, 1, 33, 64), "float16", kernel="delta_kernel", note="delta"),
                Launch((2, 1, 33, 64), "float32", kernel="attention_backward_simple_kernel"),
            ),
        ),
        ATTENTION_HOPPER_BACKWARD,
    ),
)


def with_mask(operator: Operator, backward: bool) -> Operator:
    """The same computation with a causal mask, to be measured."""
    assert operator.reference is not None
    return replace(
        operator,
        name=f"{operator.name}_causal",
        reference=masked(operator.reference),
        flops=half(operator.flops),
        peers=peers(causal=True, backward=backward),
        accumulation_timed=functools.partial(gradients_terms, True) if backward else causal_terms,
        kernels=tuple(
            replace(k, function=causal_function(k.name), not_contracted=CAUSAL, launches=()) for k in operator.kernels
        ),
    )


CAUSAL_OPERATORS = (with_mask(ATTENTION, False), with_mask(ATTENTION_BACKWARD, True))
OPERATORS = (ATTENTION, ATTENTION_DECODE, ATTENTION_BACKWARD, *CAUSAL_OPERATORS)
