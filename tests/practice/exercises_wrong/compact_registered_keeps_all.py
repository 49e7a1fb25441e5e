# Says that all elements are kept.
# expect: the fake of 9 numbers has 9 elements, whatever the numbers are
def fake(x):
    return x.new_empty(x.numel())


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.zeros_like(x).masked_scatter(x > 0, grad)
