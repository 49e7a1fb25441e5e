"""The Triton kernels, if Triton is installed: on a GPU, or else in Triton's own interpreter."""

import importlib.util

import pytest
from running import python

from helpers.paths import KERNELS

CHECKS = {
    "softmax_triton": """
for columns in (1, 31, 1000):
    x = (3 * torch.randn(7, columns, device=device)).to(dtype)
    agree(module.softmax(x), torch.softmax(x.double(), -1))
assert module.softmax(torch.full((1, 3), float("nan"), device=device)).isnan().all()
""",
    "bias_gelu_triton": """
for rows, columns in ((1, 1), (70, 300)):
    grad, x = torch.randn(2, rows, columns, device=device).to(dtype).unbind(0)
    bias = torch.randn(columns, device=device).to(dtype)
    leaves = [t.double().requires_grad_() for t in (x, bias)]
    y = torch.nn.functional.gelu(leaves[0] + leaves[1], approximate="tanh")
    agree(module.bias_gelu(x, bias), y.detach())
    for got, wanted in zip(module.bias_gelu_backward(grad, x, bias), torch.autograd.grad(y, leaves, grad.double())):
        agree(got, wanted, rows)
""",
}
PROGRAM = """
import sys, torch
sys.path.insert(0, {kernels!r})
import {module} as module
device = "cuda" if torch.cuda.is_available() else "cpu"
def agree(got, wanted, terms=1):
    eps = torch.finfo(got.dtype).eps + 8 * torch.finfo(torch.float32).eps  # stored in its dtype, computed in float32
    torch.testing.assert_close(got.double(), wanted, rtol=2 * eps, atol=2 * eps * terms ** 0.5)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    torch.manual_seed(0)
{check}
print("agreed")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed: pip install triton")
@pytest.mark.parametrize("module", CHECKS)
def test_it_agrees_with_pytorch(module):
    import torch

    check = "\n".join("    " + line for line in CHECKS[module].strip().splitlines())
    program = PROGRAM.format(kernels=str(KERNELS), module=module, check=check)
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    done = python("-c", program, status=None, **interpreted)
    if interpreted and "only 0-dimensional arrays can be converted" in done.stderr:  # Triton 3.6 with NumPy 2.5
        pytest.skip("this NumPy refuses what this Triton's interpreter does: pip install -U triton")
    assert (done.stdout, done.returncode) == ("agreed\n", 0), done.stderr


def test_every_triton_kernel_is_checked():
    assert {path.stem for path in KERNELS.glob("*_triton.py")} == set(CHECKS)
