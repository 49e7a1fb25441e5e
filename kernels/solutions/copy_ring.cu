// copy_ring.cu: A ring of stages. Exercise 2 of lesson 09, about 15 minutes.
//
// `c = a @ b`, in steps of 16 along k. Step i copies its tiles to stage `i % kStages`
// and multiplies them there. What a thread copies, multiplies and writes is given; you
// write in which order, and where it waits. While a step is multiplied, the copies of
// the next two must be in flight, if there are two more; one barrier per step is
// enough. The check compares `c`, and `in_flight`: for each block, the fewest groups of
// copies that were in flight while it multiplied.
//
// Check this file with: python -m helpers check copy_ring
//
// [hints]
// - Before the loop, start the copies of steps 0 to kStages - 2, each a group of its
//   own.
// - Step i: wait for its copies; barrier; start those of step i + kStages - 1;
//   multiply. After the barrier no thread reads the stage of step i - 1 any more, and
//   that is the stage to fill: (i + kStages - 1) % kStages.
// - wait<N>() leaves the latest N groups in flight. When step i waits, the groups after
//   its own are those of steps i + 1 to i + kStages - 2.
// - The last steps have nothing to start. Close an empty group for each all the same,
//   so that wait counts right.
// [end]

#include <torch/csrc/stable/library.h>

#include "async_copy.h"
#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kTile = 16;   // rows and columns of a tile, and of a block's threads
constexpr int kStages = 4;  // pairs of tiles in shared memory

struct Stage {
  float a[kTile][kTile], b[kTile][kTile];
};

// One thread's part of the work. a: m x k, b: k x n, c: m x n floats, row by row.
struct Work {
  const float *a, *b;
  // row and column: this thread's element of c; steps along k.
  int64_t m, n, k, row, column, steps;
  ladder::AsyncCopies copies;
  // groups in flight now; the fewest in a multiplication.
  int groups = 0, fewest = kStages - 2;
  int64_t multiplied = 0;  // steps
  float sum = 0;

  __device__ Work(const float* a, const float* b, int64_t m, int64_t n, int64_t k)
      : a(a),
        b(b),
        m(m),
        n(n),
        k(k),
        row(int64_t(blockIdx.y) * kTile + threadIdx.y),
        column(int64_t(blockIdx.x) * kTile + threadIdx.x),
        steps((k + kTile - 1) / kTile) {}

  // Starts this thread's copies of the tiles of `step` into a stage; none if there is
  // no such step.
  __device__ void start(Stage& stage, int64_t step) {
    if (step >= steps) return;
    int tx = threadIdx.x, ty = threadIdx.y;
    int64_t from = step * kTile + tx, from_row = step * kTile + ty;
    copies.start<4>(&stage.a[ty][tx], a + row * k + from, row < m && from < k);
    copies.start<4>(&stage.b[ty][tx], b + from_row * n + column,
                    from_row < k && column < n);
  }

  // Closes the group of copies started since the last commit. It may be empty.
  __device__ void commit() {
    copies.commit();
    ++groups;
  }

  // Returns when all groups of this thread but the latest `pending` have arrived.
  template <int pending>
  __device__ void wait() {
    copies.wait<pending>();
    if (groups > pending) groups = pending;
  }

  // Adds the 16 products of a stage to this thread's sum.
  __device__ void multiply(const Stage& stage) {
    for (int i = 0; i < kTile; ++i)
      sum += stage.a[threadIdx.y][i] * stage.b[i][threadIdx.x];
    ++multiplied;
    if (multiplied + kStages - 2 <= steps && groups < fewest) fewest = groups;
  }

  __device__ void write(float* c, int* in_flight) const {
    if (row < m && column < n) c[row * n + column] = sum;
    if (threadIdx.x + threadIdx.y == 0)
      in_flight[int64_t(blockIdx.y) * gridDim.x + blockIdx.x] = fewest;
  }
};

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// work.steps                 how many steps there are
// work.start(stages[s], i)   starts this thread's copies of step i into stage s; of a
//                            step past the last, none
// work.commit()              closes the group of copies started since the last commit,
//                            which may be none
// work.wait<N>()             returns when all groups of this thread but the latest N
//                            have arrived
// work.multiply(stages[s])   adds the products of stage s to this thread's sum
// kStages = 4
__global__ void copy_ring_kernel(const float* a, const float* b, float* c,
                                 int* in_flight, int64_t m, int64_t n, int64_t k) {
  __shared__ Stage stages[kStages];
  Work work(a, b, m, n, k);
  // [solution: about 11 lines]
  for (int64_t i = 0; i < kStages - 1; ++i) {
    work.start(stages[i], i);
    work.commit();
  }
  for (int64_t i = 0; i < work.steps; ++i) {
    work.wait<kStages - 2>();
    __syncthreads();  // step i has arrived, and no thread still reads step i - 1
    work.start(stages[(i + kStages - 1) % kStages], i + kStages - 1);
    work.commit();
    work.multiply(stages[i % kStages]);
  }
  // [end]
  work.write(c, in_flight);
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void copy_ring(const Tensor& a, const Tensor& b, Tensor c, Tensor in_flight) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Float);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Float);
  ladder::check_input(c, "c", torch::headeronly::ScalarType::Float);
  ladder::check_input(in_flight, "in_flight", torch::headeronly::ScalarType::Int);
  STD_TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
                  "a and b must have the shapes [m, k] and [k, n], got ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  STD_TORCH_CHECK(c.dim() == 2 && c.size(0) == m && c.size(1) == n,
                  "c must have the shape [m, n], got ", ladder::shape_of(c));
  dim3 blocks(ceil_div(n, kTile), ceil_div(m, kTile));
  STD_TORCH_CHECK(in_flight.dim() == 2 && in_flight.size(0) == ceil_div(m, kTile) &&
                      in_flight.size(1) == ceil_div(n, kTile),
                  "in_flight must have an element per tile of c, got shape ",
                  ladder::shape_of(in_flight));
  auto guard = ladder::on_device_of(a);
  if (c.numel() == 0) return;
  STD_TORCH_CHECK(blocks.y <= 65535, "c must have at most ", 65535 * kTile,
                  " rows, got ", m);
  copy_ring_kernel<<<blocks, dim3(kTile, kTile), 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(),
      in_flight.mutable_data_ptr<int>(), m, n, k);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("copy_ring(Tensor a, Tensor b, Tensor(a!) c, Tensor(b!) in_flight) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("copy_ring", TORCH_BOX(&copy_ring));
}
