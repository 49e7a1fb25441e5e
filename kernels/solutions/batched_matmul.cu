// batched_matmul.cu: Many products through tiles. Exercise 4 of lesson 08, about 30 minutes.
//
// `c[z] = a[z] @ b[z]` for each z of a batch: `a[z]` has m x k elements, `b[z]` k x n.
// The grid has three dimensions. Blocks with the same blockIdx.z compute one product,
// each block a tile of 16 x 16 elements. It copies a tile of a and a tile of b to
// shared memory, each thread adds up 16 products, and the block goes on to the next
// pair of tiles. Sizes need not be multiples of 16.
//
// Check this file with: python -m helpers check batched_matmul
//
// [hints]
// - First move the three pointers to the matrices of this batch. How many elements come
//   before a[z]?
// - Thread (tx, ty) copies a[row, first + tx] and b[first + ty, column] for tiles that
//   begin at `first`. An element outside a matrix becomes 0, which adds nothing to a
//   sum.
// - The loop needs two barriers: the tiles must be complete before any thread reads
//   them, and every thread must have finished reading before the next tiles are
//   written.
// - Threads outside c copy elements and reach the barriers like the others. They only
//   skip writing a result.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kTile = 16;  // rows and columns of a tile, and of a block's threads

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// a: m x k, b: k x n, c: m x n floats for each blockIdx.z, one after the other. A block
// has kTile x kTile threads.
__global__ void batched_matmul_kernel(const float* a, const float* b, float* c,
                                      int64_t m, int64_t n, int64_t k) {
  // [solution: about 16 lines]
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  a += blockIdx.z * m * k;
  b += blockIdx.z * k * n;
  c += blockIdx.z * m * n;
  int tx = threadIdx.x, ty = threadIdx.y;
  int64_t row = int64_t(blockIdx.y) * kTile + ty,
          column = int64_t(blockIdx.x) * kTile + tx;
  float sum = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    tile_a[ty][tx] = row < m && first + tx < k ? a[row * k + first + tx] : 0;
    tile_b[ty][tx] = first + ty < k && column < n ? b[(first + ty) * n + column] : 0;
    __syncthreads();  // both tiles are complete
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();  // no thread reads them any more
  }
  if (row < m && column < n) c[row * n + column] = sum;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void batched_matmul(const Tensor& a, const Tensor& b, Tensor c) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Float);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Float);
  ladder::check_input(c, "c", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(
      a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1),
      "a and b must have the shapes [batch, m, k] and [batch, k, n], got ",
      ladder::shape_of(a), " and ", ladder::shape_of(b));
  int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  STD_TORCH_CHECK(
      c.dim() == 3 && c.size(0) == batch && c.size(1) == m && c.size(2) == n,
      "c must have the shape [batch, m, n], got ", ladder::shape_of(c));
  auto guard = ladder::on_device_of(a);
  if (c.numel() == 0) return;
  dim3 blocks(ceil_div(n, kTile), ceil_div(m, kTile), batch);
  STD_TORCH_CHECK(
      blocks.y <= 65535 && batch <= 65535,
      "c must fit a grid, which has at most 65,535 blocks in y and z, got shape ",
      ladder::shape_of(c));
  batched_matmul_kernel<<<blocks, dim3(kTile, kTile), 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(),
      m, n, k);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("batched_matmul(Tensor a, Tensor b, Tensor(a!) c) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("batched_matmul", TORCH_BOX(&batched_matmul));
}
