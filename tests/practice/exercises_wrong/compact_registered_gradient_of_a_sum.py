# Takes the gradient that comes in to be 1.
# expect: n = 1, grad_x: 1 of 1 elements are wrong
def fake(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return (x > 0).to(grad.dtype)
