# Backward needs x, and nobody has kept it.
# expect: cell:\d+: ValueError: not enough values to unpack
def fake(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


def setup_context(ctx, inputs, output):
    pass


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.zeros_like(x).masked_scatter(x > 0, grad)
