"""`python -m helpers bench --build`: how long an edit takes to become a result.

Two ways, in one run on one machine. The course's way builds an edited kernel, bound through PyTorch's stable ABI, with
`helpers.load_inline`. The stock way builds the same operator, bound with `torch/extension.h` and pybind11, with
PyTorch's own `load_inline`; without a GPU its body is a loop, since PyTorch alone cannot run a kernel there.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from helpers.upkeep.benchmarks.tools import Benchmark, positive
from kernel_xray.build import loader
from kernel_xray.machine import toolchain

STABLE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <cuda_runtime.h>
using torch::stable::Tensor;
__global__ void scale_kernel(const float* x, float* y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = FACTOR * x[i];
}
Tensor scale(const Tensor& x) {
  Tensor y = torch::stable::empty_like(x);
  int64_t n = x.numel();
  scale_kernel<<<(n + 255) / 256, 256>>>(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), n);
  return y;
}
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("scale(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("scale", TORCH_BOX(&scale)); }
"""
_STOCK_CPP = """
torch::Tensor scale(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = FACTOR * from[i];
  return y;
}
"""
_STOCK_CUDA = """
__global__ void scale_kernel(const float* x, float* y, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = FACTOR * x[i];
}
torch::Tensor scale(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int64_t n = x.numel();
  scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""


def measure(repeat: int) -> tuple[float, float, int]:
    """Seconds from an edited source to a checked result: the course's way (median of `repeat` edits), the stock way.

    A first edit warms up: the runtime is built, and the headers are in the file cache.
    """
    unique = time.time() % 1000  # a factor that no earlier run has built
    edits = [_edit_to_result(round(unique + 0.5 + i, 3)) for i in range(repeat + 1)]
    return statistics.median(edits[1:]), _stock_edit_to_result(round(unique, 3)), repeat


def _edit_to_result(factor: float) -> float:
    source = STABLE.replace("FACTOR", f"{factor}f")
    start = time.perf_counter()
    ops = loader.load_inline("bench_scale", "", cuda_sources=source, no_implicit_headers=True, is_python_module=False)
    return _checked(ops.scale, factor, start)


def _stock_edit_to_result(factor: float) -> float:
    from torch.utils import cpp_extension

    kind: dict[str, Any] = {"cpp_sources": _STOCK_CPP}
    if toolchain.target == "gpu":
        kind = {"cpp_sources": "torch::Tensor scale(torch::Tensor x);", "cuda_sources": _STOCK_CUDA}
    kind = {k: v.replace("FACTOR", f"{factor}f") for k, v in kind.items()}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        module = cpp_extension.load_inline("bench_stock", functions=["scale"], build_directory=folder, **kind)
        return _checked(module.scale, factor, start)


def _checked(scale: Callable[[torch.Tensor], torch.Tensor], factor: float, start: float) -> float:
    x = torch.randn(1000, device=toolchain.device)
    y = scale(x).cpu()
    seconds = time.perf_counter() - start
    torch.testing.assert_close(y, factor * x.cpu())
    return seconds


def table(found: tuple[float, float, int]) -> str:
    """The two times, in seconds, as text."""
    ours, stock, repeat = found
    return (
        f"target {toolchain.target}, PyTorch {torch.__version__}\n"
        f"  helpers.load_inline, stable ABI   {ours:6.2f} s  (median of {repeat} edits)\n"
        f"  PyTorch's load_inline, stock      {stock:6.2f} s\n"
        f"  ratio                             {stock / ours:6.1f} x"
    )


BENCHMARK = Benchmark(
    "--build",
    __doc__,
    lambda options: measure(options.repeat),
    table,
    {"--repeat": {"type": positive, "default": 3, "help": "edits of the course's kernel (3)"}},
)
