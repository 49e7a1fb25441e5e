# Bias + GELU as in lesson 04 and as in lesson 06, one launch each: what does ncu say about the two?
import torch

from helpers.ladder.pytorch import operators

x, bias = torch.randn(8192, 8192, device="cuda"), torch.randn(8192, device="cuda")
for version in ("bias_gelu_simple", "bias_gelu"):
    operators.bias_gelu(version)(x, bias)
torch.cuda.synchronize()
