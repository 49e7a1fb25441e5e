# Puts the gradients at the beginning.
# expect: n = 31, grad_x: \d+ of 31 elements are wrong
def fake(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.nn.functional.pad(grad, (0, len(x) - len(grad)))
