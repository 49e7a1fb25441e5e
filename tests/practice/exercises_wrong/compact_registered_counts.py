# Counts numbers that are not there.
# expect: cell:\d+: GuardOnDataDependentSymNode: Could not extract .*
def fake(x):
    return x.new_empty(int((x > 0).sum()))


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.zeros_like(x).masked_scatter(x > 0, grad)
