// causal_rows.cu: The right rows of a rank. Exercise 1 of lesson 16, about 10 minutes.
//
// A matrix of scores is divided by rows among `ranks` processes, as `Shard(0)` does:
// each holds `ceil(rows / ranks)` rows, the last ones fewer or none. The operator masks
// the future: it keeps element `(r, c)` of the whole matrix where `c <= r`, and writes
// -inf elsewhere. A process gets its own rows, its rank and the size of the whole. In
// which row of the whole does its first row lie?
//
// Check this file with: python -m helpers check causal_rows
//
// [hints]
// - The ranks before this one hold rank * ceil(rows / ranks) rows. ladder::ceil_div(n,
//   size) rounds up.
// - The number of rows that this process holds is the wrong unit for the offset: the
//   last process may hold fewer.
// - Columns are not divided: i % columns is the column in the whole matrix, too.
// [end]

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cmath>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// scores, out: this process's part, n floats in rows of `columns`. The whole matrix has
// `rows` rows.
__global__ void causal_rows_kernel(const float* scores, float* out, int64_t n,
                                   int64_t columns, int64_t rank, int64_t ranks,
                                   int64_t rows) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [solution: about 3 lines]
  int64_t first = rank * ceil_div(rows, ranks);
  int64_t row = first + i / columns, column = i % columns;
  out[i] = column <= row ? scores[i] : -INFINITY;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void causal_rows(const Tensor& scores, int64_t rank, int64_t ranks, int64_t rows,
                 Tensor out) {
  ladder::check_input(scores, "scores", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(scores, "scores", out, "out");
  STD_TORCH_CHECK(0 <= rank && rank < ranks, "rank must be 0 to ranks - 1, got ", rank,
                  " of ", ranks);
  int64_t each = ceil_div(rows, ranks),
          held = std::clamp(rows - rank * each, int64_t(0), each);
  STD_TORCH_CHECK(scores.dim() == 2 && scores.size(0) == held, "scores must have the ",
                  held, " rows of rank ", rank, ", got shape ",
                  ladder::shape_of(scores));
  auto guard = ladder::on_device_of(scores);
  int64_t n = scores.numel();
  if (n == 0) return;
  causal_rows_kernel<<<ceil_div(n, kThreads), kThreads, 0,
                       ladder::current_stream(scores)>>>(
      scores.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n, scores.size(1),
      rank, ranks, rows);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "causal_rows(Tensor scores, int rank, int ranks, int rows, Tensor(a!) out) -> "
      "()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("causal_rows", TORCH_BOX(&causal_rows));
}
