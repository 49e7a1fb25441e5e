# compact_registered.py: A size that depends on the values. Exercise 3 of lesson 12, about 20 minutes.
#
# `compact(x)` returns the positive elements of x in their order; its kernel is an exercise of its own. Write the fake
# that a compiler calls, and the gradient. The fake gets no values, so it cannot know how many are positive: its size is
# a `new_dynamic_size()` of `torch.library.get_ctx()`. An element that was kept gets its gradient; all others get 0.
#
# Check this file with: python -m helpers check compact_registered
#
# [hints]
# - torch.library.get_ctx().new_dynamic_size() is a size that is known only after the kernel has run. Each call returns
#   a new one.
# - setup_context gets the inputs as a tuple. ctx.save_for_backward(tensor) keeps a tensor, and backward finds it in the
#   tuple ctx.saved_tensors.
# - Start from zeros and write grad where x > 0: torch.zeros_like(x).masked_scatter(x > 0, grad).
# [end]

from pathlib import Path

import torch

import helpers

kernel = Path(helpers.__file__).parent.parent / "kernels" / "solutions" / "compact.cu"
compact_registered = helpers.load("compact_registered", [kernel], is_python_module=False).compact


# [cell]
def fake(x):
    """Like the result of compact(x), without values: of the dtype and on the device of x."""
    count = x.numel()  # not true
    # [solution: about 1 line]
    count = torch.library.get_ctx().new_dynamic_size()
    # [end]
    return x.new_empty(count)


def setup_context(ctx, inputs, output):
    """Saves in ctx what backward needs. inputs: the tuple (x,)."""
    # [solution: about 1 line]
    ctx.save_for_backward(inputs[0])
    # [end]


def backward(ctx, grad):
    """The gradient of x, where grad is the gradient of compact(x)."""
    # [solution: about 2 lines]
    (x,) = ctx.saved_tensors
    return torch.zeros_like(x).masked_scatter(x > 0, grad)
    # [end]


# [end]
torch.library.register_fake(compact_registered.default.name(), fake)
torch.library.register_autograd(compact_registered.default.name(), backward, setup_context=setup_context)
