"""The course's operators as PyTorch's own: built, and registered with what their C++ files leave out.

Lesson 12 explains what is registered; registration.py does it. Each function builds at its first call.

    from helpers.ladder.pytorch import operators
    mult = operators.elementwise_mult()   # torch.ops.elementwise_mult_stable.elementwise_mult.default
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload as Overload

from helpers.ladder.catalogue import CONTRACTED
from helpers.ladder.catalogue import matmul as ladder
from helpers.ladder.catalogue.attention import ATTENTION_HOPPER, ATTENTION_HOPPER_BACKWARD
from helpers.ladder.catalogue.bias_gelu import BIAS_GELU as BIAS_GELU_ENTRY
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.pytorch.registration import batched_elementwise, first_class, looped
from helpers.paths import KERNELS as KERNELS

_KERNELS = {kernel.name: kernel for _, kernel in CONTRACTED}
NAMES = {name: kernel.library_name for name, kernel in _KERNELS.items() if not kernel.not_registered}  # -> namespace


def library(name: str, *files: str) -> Any:
    """The namespace of torch.ops that the files in kernels/ register, built under `name`. Raises as helpers.load."""
    return extension(name, files)


def _overload(name: str) -> Overload:
    """The operator that a kernel of the catalogue registers, built."""
    return getattr(_KERNELS[name].extension(), name).default


def _like_first(first: torch.Tensor, *rest: Any) -> torch.Tensor:
    return torch.empty_like(first)


def _inputs(inputs: tuple, output: Any) -> tuple:
    """Saves all inputs for backward."""
    return inputs


def _tensors(inputs: tuple, output: Any) -> tuple:
    """Saves all inputs that are tensors."""
    return tuple(x for x in inputs if isinstance(x, torch.Tensor))


def registered(name: str) -> Overload:
    """A kernel of the catalogue as PyTorch's own operator, by its name. Raises KeyError if it is not under contract."""
    if name in MATMUL:
        return matmul(name)
    if name in BIAS_GELU:
        return bias_gelu(name)
    backwards = {backward: forward for forward, backward in BIAS_GELU.items()}
    if name in backwards:
        return bias_gelu_backward(backwards[name])
    return _OTHERS[name]()


# ----------------------------------------------------------------------------------------------------------------------
# Lessons 01 to 03


@functools.cache
def vector_add() -> Overload:
    """vector_add(a, b): float32, forward only."""
    op = _overload("vector_add")
    return first_class(op, fake=_like_first, vmap=batched_elementwise(op))


@functools.cache
def elementwise_mult() -> Overload:
    """elementwise_mult(a, b): float32 and float64. Its backward is two more products, so it needs no other operator."""
    op = _overload("elementwise_mult")

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad = grad.contiguous()
        return op(grad, b) if ctx.needs_input_grad[0] else None, op(grad, a) if ctx.needs_input_grad[1] else None

    return first_class(op, fake=_like_first, backward=backward, save=_inputs, vmap=batched_elementwise(op))


@functools.cache
def fused_muladd() -> Overload:
    """fused_muladd(a, b, c): every floating dtype. Where both gradients are due, backward is fused_muladd_backward."""
    op, op_backward = _overload("fused_muladd"), fused_muladd_backward()

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        needs_a, needs_b, needs_c = ctx.needs_input_grad
        if needs_a and needs_b:
            grad_a, grad_b = op_backward(grad.contiguous(), a, b)
        else:
            grad_a, grad_b = grad * b if needs_a else None, grad * a if needs_b else None
        return grad_a, grad_b, grad if needs_c else None

    return first_class(
        op, fake=_like_first, backward=backward, save=lambda inputs, output: inputs[:2], vmap=batched_elementwise(op)
    )


@functools.cache
def fused_muladd_backward() -> Overload:
    """fused_muladd_backward(grad, a, b) -> grad_a, grad_b; itself differentiable, in plain PyTorch."""
    op = _overload("fused_muladd_backward")

    def backward(ctx, to_a, to_b):
        grad, a, b = ctx.saved_tensors
        return to_a * b + to_b * a, to_b * grad, to_a * grad

    return first_class(
        op,
        fake=lambda grad, a, b: (torch.empty_like(a), torch.empty_like(b)),
        backward=backward,
        save=_inputs,
        vmap=batched_elementwise(op),
    )


# ----------------------------------------------------------------------------------------------------------------------
# Lessons 04 to 06

BIAS_GELU = {kernel.name: kernel.backward for kernel in BIAS_GELU_ENTRY.kernels if kernel.backward}


def bias_gelu(variant: str = "bias_gelu") -> Overload:
    """bias_gelu(x, bias): every floating dtype. `variant` is a name in BIAS_GELU."""
    return _bias_gelu_pair(variant)[0]


def bias_gelu_backward(variant: str = "bias_gelu") -> Overload:
    """bias_gelu_backward(grad, x, bias) -> grad_x, grad_bias; itself differentiable."""
    return _bias_gelu_pair(variant)[1]


@functools.cache
def bias_gelu_pairs() -> Overload:
    """bias_gelu_pairs(x, bias): every floating dtype, forward only."""
    op = _overload("bias_gelu_pairs")
    return first_class(op, fake=_like_first, vmap=_batched_rows(op))


@functools.cache
def _bias_gelu_pair(variant: str) -> tuple[Overload, Overload]:
    op, op_backward = _overload(variant), _overload(BIAS_GELU[variant])

    def first(ctx, grad):
        return op_backward(grad.contiguous(), *ctx.saved_tensors)

    def second(ctx, to_x, to_bias):
        grad, x, bias = ctx.saved_tensors
        both = (to_x + to_bias).contiguous()  # what each element of grad_x is worth, through either output
        grad_z = both * grad * gelu_curvature(x + bias)
        return op_backward(both, x, bias)[0], grad_z, grad_z.reshape(-1, bias.numel()).sum(0)

    first_class(op, fake=_like_first, backward=first, save=_inputs, vmap=_batched_rows(op))
    first_class(
        op_backward,
        fake=lambda grad, x, bias: (torch.empty_like(x), torch.empty_like(bias)),
        backward=second,
        save=_inputs,
        vmap=looped(op_backward),
    )
    return op, op_backward


def _batched_rows(op: Overload) -> Callable:
    """The vmap rule of op(x, bias, *scalars): with one bias for the whole batch, the batch only adds rows."""
    one_by_one = looped(op)

    def rule(info: Any, in_dims: Sequence[int | None], x: torch.Tensor, bias: torch.Tensor, *scalars: float):
        if in_dims[1] is None:
            return op(x.movedim(in_dims[0], 0).contiguous(), bias, *scalars), 0
        return one_by_one(info, in_dims, x, bias, *scalars)

    return rule


# ----------------------------------------------------------------------------------------------------------------------
# Lessons 08 and 09

_RUNGS = [kernel for operator, kernel in CONTRACTED if operator is ladder.MATMUL]
_ROW_MAJOR = [kernel for kernel in _RUNGS if not kernel.any_layout]
MATMUL = {kernel.name: ladder.RUNGS[kernel.name] for kernel in _RUNGS}
MATMUL_WITH_GRADIENTS = tuple(kernel.name for kernel in _RUNGS if kernel.any_layout)  # take every floating dtype too
MATMUL_FLOAT = tuple(kernel.name for kernel in _ROW_MAJOR if "float32" in kernel.dtypes)
MATMUL_TENSOR_CORES = tuple(kernel.name for kernel in _ROW_MAJOR if "float32" not in kernel.dtypes)


@functools.cache
def matmul(rung: str) -> Overload:
    """a @ b by a rung of the ladder, a name in MATMUL. Those in MATMUL_WITH_GRADIENTS are differentiable."""
    op = _overload(rung)

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        return op(grad, b.t()) if needs_a else None, op(a.t(), grad) if needs_b else None

    differentiable: dict[str, Any] = {"backward": backward, "save": _inputs}
    return first_class(
        op,
        fake=lambda a, b: a.new_empty(a.shape[0], b.shape[1]),
        vmap=looped(op),
        **(differentiable if rung in MATMUL_WITH_GRADIENTS else {}),
    )


def gelu_curvature(z: torch.Tensor) -> torch.Tensor:
    """The second derivative of GELU in its tanh form."""
    c, k = (2 / torch.pi) ** 0.5, 0.044715
    t = torch.tanh(c * (z + k * z**3))
    inner, inner_slope = c * (1 + 3 * k * z * z), 6 * c * k * z
    return (1 - t * t) * (inner + z * inner_slope / 2 - z * t * inner * inner)


# ----------------------------------------------------------------------------------------------------------------------
# Lesson 07


@functools.cache
def softmax() -> Overload:
    """softmax(x) over the last dimension: every floating dtype. Its backward is in plain PyTorch."""
    op = _overload("softmax")

    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        weighted = grad * out
        return weighted - out * weighted.sum(-1, keepdim=True)

    return first_class(
        op,
        fake=_like_first,
        backward=backward,
        save=lambda inputs, output: (output,),
        vmap=batched_elementwise(op),  # more rows
    )


@functools.cache
def rms_norm() -> Overload:
    """rms_norm(x, weight, eps=1e-6) over the last dimension: every floating dtype."""
    return _rms_norm_pair()[0]


@functools.cache
def rms_norm_backward() -> Overload:
    """rms_norm_backward(grad, x, weight, eps=1e-6) -> grad_x, grad_weight; differentiable, in plain PyTorch."""
    return _rms_norm_pair()[1]


@functools.cache
def _rms_norm_pair() -> tuple[Overload, Overload]:
    op, op_backward = _overload("rms_norm"), _overload("rms_norm_backward")

    def first(ctx, grad):
        return *op_backward(grad.contiguous(), *ctx.saved_tensors, *ctx.scalars), None

    def second(ctx, to_x, to_weight):
        grad, x, weight = ctx.saved_tensors
        (eps,) = ctx.scalars
        n = weight.numel()
        r = (x * x).mean(-1, keepdim=True).add(eps).rsqrt()
        weighted, c = grad * weight, r**3 / n * (to_x * x).sum(-1, keepdim=True)
        m = (weighted * x).sum(-1, keepdim=True)
        to_r = (to_x * weighted + to_weight * grad * x).sum(-1, keepdim=True) - 3 * c / r * m
        to_grad = r * (to_x * weight + to_weight * x) - c * weight * x
        back_to_x = r * to_weight * grad - c * weighted - r**3 / n * (m * to_x + to_r * x)
        return to_grad, back_to_x, ((r * to_x - c * x) * grad).reshape(-1, n).sum(0), None

    first_class(op, fake=_like_first, backward=first, save=_tensors, vmap=_batched_rows(op))
    first_class(
        op_backward,
        fake=lambda grad, x, weight, eps=None: (torch.empty_like(x), torch.empty_like(weight)),
        backward=second,
        save=_tensors,
        vmap=looped(op_backward),
    )
    return op, op_backward


# ----------------------------------------------------------------------------------------------------------------------
# Lesson 17


@functools.cache
def attention() -> Overload:
    """attention(q, k, v, causal=False, scale=None) -> out, logsumexp: every floating dtype.

    q: [batch, heads, tokens, d]; k, v: [batch, kv_heads, tokens_kv, d]; scale: 1 / sqrt(d) if None.
    """
    return _attention(_overload("attention"), attention_backward())


@functools.cache
def attention_hopper() -> Overload:
    """The same for bfloat16 with 64, 72 ... 128 columns, on compute capability 9.0. q, k and v may be strided views.

    window_left, window_right: how many keys a query sees on each side of its own, all if None. The last query's own key
    is the last one, so window_right=0 is a causal mask aligned to the end; `causal` is aligned to the start, as
    PyTorch's is_causal is. deterministic: the gradient of q has the same bits each time; else its last bits vary.
    softcap: scores are softcap * tanh(scores / softcap), unless it is 0. It has no second derivative.
    starts, starts_kv: int32, for a batch of 1 that is sequences one after the other. Sequence i has rows starts[i] to
    starts[i + 1] of q and of the results; what lies outside of all is not written. A window is aligned to each one's
    end, and `causal` must be False. No second derivative either.
    """
    return _attention(ATTENTION_HOPPER.extension().attention_hopper.default, attention_hopper_backward(), views=True)


@functools.cache
def attention_decode() -> Overload:
    """attention_decode(q, k, v, causal=False, scale=None, lengths=None) -> out, logsumexp: float16 and bfloat16.

    q: [batch, heads, queries, d], the last queries of each sequence, at most 16, d = 64, 96 or 128; k, v: [batch,
    kv_heads, tokens, d], a cache. All three may be strided views. lengths: int32 [batch], the tokens of each sequence,
    all if None. causal: query i is token length - queries + i, and sees no later one. No gradients.
    """
    op = _overload("attention_decode")
    return first_class(op, fake=_attention_fake, vmap=looped(op))


@functools.cache
def scaled_dot_product_attention() -> Callable[..., torch.Tensor]:
    """PyTorch's function of this name, by the course's operators; it takes neither a mask nor dropout.

    query: [batch, heads, tokens, d]; key, value: [batch, kv_heads, tokens_kv, d], of one shape. is_causal is aligned to
    the start. Up to 16 queries without a gradient and without is_causal are decoded; on compute capability 9.0 bfloat16
    with 64, 72 ... 128 columns has that GPU's own kernel, deterministic as torch.use_deterministic_algorithms says. All
    others, copied where they are views, have the readable one. Raises ValueError.
    """
    readable, decode = attention(), attention_decode()
    hopper = attention_hopper() if ATTENTION_HOPPER.runs_here else None

    def call(
        query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ) -> torch.Tensor:
        if attn_mask is not None or dropout_p:
            raise ValueError("attn_mask must be None and dropout_p 0; PyTorch's own function takes them")
        _check_heads(query, key, enable_gqa)
        narrow, d = query.dtype in (torch.float16, torch.bfloat16), query.shape[-1]
        learns = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
        if narrow and d in (64, 96, 128) and query.shape[2] <= 16 and not (learns or is_causal):
            return decode(query, key, value, False, scale)[0]
        if hopper and query.dtype == torch.bfloat16 and d in range(64, 129, 8):
            same_bits = torch.are_deterministic_algorithms_enabled()
            return hopper(query, key, value, is_causal, scale, deterministic=same_bits)[0]
        return readable(query.contiguous(), key.contiguous(), value.contiguous(), is_causal, scale)[0]

    return call


@functools.cache
def varlen_attn() -> Callable[..., torch.Tensor]:
    """torch.nn.attention.varlen.varlen_attn by attention_hopper(): sequences of any lengths, one after the other.

    query: [tokens, heads, d]; key, value: [tokens_kv, kv_heads, d], bfloat16, d 64 to 128; cu_seq_q, cu_seq_k: int32,
    where each sequence begins, and the last one ends. max_q and max_k change nothing. Raises ValueError.
    """
    op = attention_hopper()

    def call(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, scale=None, window_size=(-1, -1), enable_gqa=False
    ) -> torch.Tensor:
        _check_heads(query, key, enable_gqa)
        q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
        window = [None if keys < 0 else keys for keys in window_size]
        same_bits = torch.are_deterministic_algorithms_enabled()
        out, _ = op(q, k, v, False, scale, *window, same_bits, 0.0, cu_seq_q, cu_seq_k)
        return out[0].transpose(0, 1)

    return call


def _check_heads(query: torch.Tensor, key: torch.Tensor, enable_gqa: bool) -> None:
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"key must have the {query.shape[1]} heads of query, got {key.shape[1]}; or pass enable_gqa=True"
        )


def _attention_fake(q, k, v, *rest):
    wide = torch.promote_types(q.dtype, torch.float32)
    return torch.empty_like(q), q.new_empty(q.shape[:3], dtype=wide)


def _attention(op: Overload, op_backward: Overload, views: bool = False) -> Overload:
    def backward(ctx, grad, grad_logsumexp):
        given, starts = (grad, grad_logsumexp.contiguous(), *ctx.saved_tensors[:5]), ctx.saved_tensors[5:]
        given = given if views else tuple(x.contiguous() for x in given)
        return *op_backward(*given, *ctx.scalars, *starts), *(None for _ in (*ctx.scalars, *starts))

    return first_class(
        op,
        fake=_attention_fake,
        backward=backward,
        save=lambda inputs, output: (*inputs[:3], *output, *_tensors(inputs[3:], output)),
        vmap=looped(op),
    )


@functools.cache
def attention_backward() -> Overload:
    """attention_backward(grad, grad_logsumexp, q, k, v, out, logsumexp, causal=False, scale=None) -> three gradients.

    It is itself differentiable, in plain PyTorch, which keeps the matrix of scores.
    """
    return _attention_backward(library("attention_backward", "attention_backward.cu").attention_backward.default)


@functools.cache
def attention_hopper_backward() -> Overload:
    """The same for bfloat16 with 64, 72 ... 128 columns, on compute capability 9.0; see there for deterministic."""
    return _attention_backward(ATTENTION_HOPPER_BACKWARD.extension().attention_hopper_backward.default)


def _attention_backward(op: Overload) -> Overload:
    def backward(ctx, *to_gradients):
        if starts := ctx.saved_tensors[7:]:
            raise NotImplementedError(f"starts must be None for a second derivative, got a tensor {starts[0].shape}")
        second = attention_second(*to_gradients, *ctx.saved_tensors, *ctx.scalars[:6])
        return *second, *(None for _ in ctx.scalars)

    return first_class(
        op,
        fake=lambda grad, grad_logsumexp, q, k, v, *rest: tuple(map(torch.empty_like, (q, k, v))),
        backward=backward,
        save=_tensors,
        vmap=looped(op),
    )


def attention_second(
    to_q,
    to_k,
    to_v,
    grad,
    grad_logsumexp,
    q,
    k,
    v,
    out,
    logsumexp,
    causal,
    scale,
    left=None,
    right=None,
    deterministic=False,
    softcap=0.0,
) -> tuple:
    """The gradients of all tensors that attention_backward takes, for those of its three results.

    With P the probabilities and E = grad @ v^T - delta, its results are scale * (P * E) @ k, scale * (P * E)^T @ q and
    P^T @ grad.
    """
    if softcap:
        raise NotImplementedError(f"softcap must be 0 for a second derivative, got {softcap}")
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    group = q.shape[1] // max(1, k.shape[1])
    k, v, to_k, to_v = (x.repeat_interleave(group, 1) for x in (k, v, to_k, to_v))
    p = (scale * (q @ k.mT) - logsumexp[..., None]).exp().to(q.dtype)
    last = k.shape[2] - q.shape[2]
    p = p.tril() if causal else p if right is None else p.tril(last + right)
    p = p if left is None else p.triu(last - left)
    e = grad @ v.mT - ((grad * out).sum(-1) - grad_logsumexp)[..., None].to(q.dtype)
    to_pe = scale * (to_q @ k.mT + q @ to_k.mT)
    to_e = to_pe * p
    to_scores = p * (to_pe * e + grad @ to_v.mT)
    to_delta = -to_e.sum(-1)
    of_q = scale * (to_scores @ k + (p * e) @ to_k)
    of_keys = (scale * (to_scores.mT @ q + (p * e).mT @ to_q), to_e.mT @ grad)
    of_k, of_v = (x.unflatten(1, (-1, group)).sum(2) for x in of_keys)
    of_grad = to_e @ v + p @ to_v + to_delta[..., None] * out
    wide = logsumexp.dtype
    return of_grad, -to_delta.to(wide), of_q, of_k, of_v, to_delta[..., None] * grad, -to_scores.sum(-1).to(wide)


_OTHERS = {
    "vector_add": vector_add,
    "elementwise_mult": elementwise_mult,
    "fused_muladd": fused_muladd,
    "fused_muladd_backward": fused_muladd_backward,
    "bias_gelu_pairs": bias_gelu_pairs,
    "softmax": softmax,
    "rms_norm": rms_norm,
    "rms_norm_backward": rms_norm_backward,
    "attention": attention,
    "attention_decode": attention_decode,
}
