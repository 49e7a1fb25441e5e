// split_k.cu: A product in parts. Exercise 3 of lesson 09, about 20 minutes.
//
// `c = a @ b` where c is small and k is long: c has too few tiles to keep a GPU busy.
// So k is cut into `splits` ranges of about the same length, and blockIdx.z says which
// range a block adds up. Each range has its own part, a matrix like c, for its sums; a
// second kernel adds the parts in order. The same input must always give the same bits.
// A range may be empty.
//
// Check this file with: python -m helpers check split_k
//
// [hints]
// - Range z begins at z * length, with length = k / splits rounded up. The last ranges
//   end at k, or are empty.
// - Each thread inside c writes one element of its part, at index row * n + column of
//   the part. For an empty range it writes 0: the memory is not initialised.
// - In the second kernel thread i owns element i of c: in a loop it reads element i of
//   each part, `count` elements apart.
// - atomicAdd would need no second kernel. But blocks run in any order, and float sums
//   depend on the order.
// [end]

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kX = 32, kY = 8;  // threads of a block, one per element of a part
constexpr int kThreads = 256;   // per block that adds parts

// -------------------------------------------------------------------------------------
// Kernels

// [cell]
// a: m x k, b: k x n; parts: splits matrices of m x n floats, one after the other. A
// block has kX x kY threads.
__global__ void split_k_kernel(const float* a, const float* b, float* parts, int64_t m,
                               int64_t n, int64_t k, int64_t splits) {
  int64_t row = int64_t(blockIdx.y) * kY + threadIdx.y,
          column = int64_t(blockIdx.x) * kX + threadIdx.x;
  // [solution: about 6 lines]
  if (row >= m || column >= n) return;
  int64_t length = (k + splits - 1) / splits, begin = blockIdx.z * length;
  int64_t end = begin + length < k ? begin + length : k;
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += a[row * k + i] * b[i * n + column];
  parts[(blockIdx.z * m + row) * n + column] = sum;
  // [end]
}

// count: how many elements c and each part have.
__global__ void add_parts_kernel(const float* parts, float* c, int64_t count,
                                 int64_t splits) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  // [solution: about 4 lines]
  if (i >= count) return;
  float sum = 0;
  for (int64_t z = 0; z < splits; ++z) sum += parts[z * count + i];
  c[i] = sum;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void split_k(const Tensor& a, const Tensor& b, int64_t splits, Tensor c) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Float);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Float);
  ladder::check_input(c, "c", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
                  "a and b must have the shapes [m, k] and [k, n], got ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  STD_TORCH_CHECK(c.dim() == 2 && c.size(0) == m && c.size(1) == n,
                  "c must have the shape [m, n], got ", ladder::shape_of(c));
  STD_TORCH_CHECK(1 <= splits && splits <= 65535, "splits must be 1 to 65,535, got ",
                  splits);
  auto guard = ladder::on_device_of(a);
  int64_t count = c.numel();
  if (count == 0) return;
  dim3 blocks(ceil_div(n, kX), ceil_div(m, kY), splits);
  STD_TORCH_CHECK(blocks.y <= 65535,
                  "c must fit a grid, which has at most 65,535 blocks in y, got shape ",
                  ladder::shape_of(c));
  Tensor parts = torch::stable::new_empty(a, {splits, m, n});
  cudaStream_t stream = ladder::current_stream(a);
  split_k_kernel<<<blocks, dim3(kX, kY), 0, stream>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(),
      parts.mutable_data_ptr<float>(), m, n, k, splits);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  add_parts_kernel<<<ceil_div(count, kThreads), kThreads, 0, stream>>>(
      parts.const_data_ptr<float>(), c.mutable_data_ptr<float>(), count, splits);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("split_k(Tensor a, Tensor b, int splits, Tensor(a!) c) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("split_k", TORCH_BOX(&split_k));
}
