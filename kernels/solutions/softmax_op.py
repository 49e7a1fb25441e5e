# softmax_op.py: An operator in Python around a kernel. Exercise 1 of lesson 15, about 15 minutes.
#
# `forward` is this lesson's softmax kernel, over the last dimension. Around it, `torch.library.custom_op` makes an
# operator without any C++: below, it is registered with your three functions. Write the fake, which says what the
# result looks like; what to save for the gradient; and the gradient `grad_x = y * (grad - sum(grad * y))`, where y is
# the result and the sum runs over the last dimension.
#
# Check this file with: python -m helpers check softmax_op
#
# [hints]
# - A fake must not compute: torch.empty_like(x) has shape, dtype and device, and no values.
# - The formula needs y, not x. setup_context gets y as `output`; ctx.save_for_backward keeps it, and backward finds it
#   in the tuple ctx.saved_tensors.
# - keepdim=True keeps the summed dimension with size 1, so that the subtraction broadcasts along rows.
# [end]

from pathlib import Path

import torch

import helpers

kernel = Path(helpers.__file__).parent.parent / "kernels" / "softmax.cu"
forward = helpers.load("softmax", [kernel], is_python_module=False).softmax


# [cell]
def fake(x):
    """Like the result of the operator: no values, and none are computed."""
    # [solution: about 1 line]
    return torch.empty_like(x)
    # [end]


def setup_context(ctx, inputs, output):
    """Saves in ctx what backward needs. inputs: the tuple (x,); output: the result y."""
    # [solution: about 1 line]
    ctx.save_for_backward(output)
    # [end]


def backward(ctx, grad):
    """The gradient of x, where grad is the gradient of y."""
    # [solution: about 2 lines]
    (y,) = ctx.saved_tensors
    return y * (grad - (grad * y).sum(-1, keepdim=True))
    # [end]


# [end]
@torch.library.custom_op("kernel_ladder_answer::softmax_op", mutates_args=())
def softmax_op(x: torch.Tensor) -> torch.Tensor:
    return forward(x)


softmax_op.register_fake(fake)
softmax_op.fake = fake
softmax_op.register_autograd(backward, setup_context=setup_context)
