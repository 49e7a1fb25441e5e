// reductions.cu: sums of rows, and who keeps what. Each kernel shows one way in which
// threads exchange values.
//
//   row_sum_one_kernel      a thread per row adds up alone: lanes read different rows,
//                           32 sectors per request
//   row_sum_tree_kernel     a block per row: a tree in shared memory halves the terms
//                           eight times, a barrier each time
//   row_sum_warp_kernel     a warp per row: five shuffles between registers; no shared
//                           memory, no barrier
//   row_sum_block_kernel    a block per row: shuffles, then one value per warp through
//                           shared memory and one barrier
//   row_sum_cluster_kernel  a cluster of 4 blocks per row: rank 0 reads the others'
//                           sums from their shared memory. Needs compute capability
//                           9.0; older GPUs write the 4 sums to global memory and start
//                           a second kernel, which adds them
//   places_kernel           a ballot: how many earlier lanes keep their element
//   running_max_kernel      a scan: the largest of all elements up to each lane's own
//
// Sums of rows read 4 bytes per element, places and running_max also write 4: memory
// bandwidth limits all of them, once a warp's requests are coalesced. The order of
// additions depends on the number of columns alone.

#include <cooperative_groups.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

#include "launch.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Per block, per warp; warps per block.
constexpr int kThreads = 256, kWarp = 32, kWarps = kThreads / kWarp;
constexpr int kSlices = 4;              // of a row: blocks of a cluster
constexpr unsigned kAll = 0xffffffffu;  // every lane of a warp

// -------------------------------------------------------------------------------------
// Kernels. x: rows x columns floats, sums: rows floats.

__global__ void row_sum_one_kernel(const float* x, float* sums, int64_t rows,
                                   int64_t columns) {
  int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += x[row * columns + c];
  sums[row] = sum;
}

// A block has kThreads = 256 threads and one row.
__global__ void row_sum_tree_kernel(const float* x, float* sums, int64_t columns) {
  __shared__ float parts[kThreads];
  float sum = 0;
  for (int64_t c = threadIdx.x; c < columns; c += kThreads)
    sum += x[blockIdx.x * columns + c];
  parts[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();  // the parts of the step before are written
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

// Every lane gets the sum over the warp; all 32 lanes must call it.
__device__ float sum_over_warp(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

// A warp has one row.
__global__ void row_sum_warp_kernel(const float* x, float* sums, int64_t rows,
                                    int64_t columns) {
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  int lane = threadIdx.x % kWarp;
  if (row >= rows) return;  // the whole warp leaves
  float sum = 0;
  for (int64_t c = lane; c < columns; c += kWarp) sum += x[row * columns + c];
  sum = sum_over_warp(sum);
  if (lane == 0) sums[row] = sum;
}

// Every thread gets the sum over the block's kThreads threads; all of them must call
// it.
__device__ float sum_over_block(float value) {
  __shared__ float of_warp[kWarps];
  int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  value = sum_over_warp(value);
  __syncthreads();  // the sums of an earlier call have been read
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();  // the sums of this call are written
  return sum_over_warp(lane < kWarps ? of_warp[lane] : 0);
}

// `slices` neighbouring blocks share a row. parts: rows x slices, the sum of each
// block.
__global__ void row_sum_block_kernel(const float* x, float* parts, int64_t columns,
                                     int slices) {
  int64_t row = blockIdx.x / slices, slice = blockIdx.x % slices;
  float sum = 0;
  for (int64_t c = slice * kThreads + threadIdx.x; c < columns; c += slices * kThreads)
    sum += x[row * columns + c];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// The kSlices blocks of a cluster have one row. The launch makes the clusters.
__global__ void row_sum_cluster_kernel(const float* x, float* sums, int64_t columns) {
// Built for older GPUs, it does nothing.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)
  namespace cg = cooperative_groups;
  __shared__ float mine;
  cg::cluster_group cluster = cg::this_cluster();
  int64_t row = blockIdx.x / kSlices, first = cluster.block_rank() * kThreads;
  float sum = 0;
  for (int64_t c = first + threadIdx.x; c < columns; c += kSlices * kThreads)
    sum += x[row * columns + c];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) mine = sum;
  cluster.sync();  // every block's sum is written
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    for (int rank = 1; rank < kSlices; ++rank)
      sum += *cluster.map_shared_rank(&mine, rank);
    sums[row] = sum;
  }
  cluster.sync();  // no block ends while its shared memory is being read
#endif
}

// places[i] = how many of the elements before i in its warp are positive, or -1 if x[i]
// is not positive.
__global__ void places_kernel(const float* x, int* places, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % kWarp;
  bool keep = i < n && x[i] > 0;
  // Bit l is lane l's answer; lanes past the end answer, too.
  unsigned kept = __ballot_sync(kAll, keep);
  int before = __popc(kept & ((1u << lane) - 1));
  if (i < n) places[i] = keep ? before : -1;
}

// out[i] = the largest of x[i] and the elements before it in its warp; NaN from the
// first NaN on.
__global__ void running_max_kernel(const float* x, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  float largest = i < n ? x[i] : -INFINITY;
  for (int distance = 1; distance < kWarp; distance *= 2) {
    // Lanes 0 to distance - 1 get their own value back.
    float before = __shfl_up_sync(kAll, largest, distance);
    if (before > largest || isnan(before)) largest = before;
  }
  if (i < n) out[i] = largest;
}

// -------------------------------------------------------------------------------------
// Launchers

// Calls launch(x, sums, rows, columns, stream) with pointers, for x of shape [rows,
// columns]. Returns the sums, [rows].
template <typename Launch>
Tensor sums_of(const Tensor& x, Launch launch) {
  ladder::check_input(x, "x", ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2, "x must be a matrix, got shape ", ladder::shape_of(x),
                  "; pass x.view(rows, -1)");
  auto guard = ladder::on_device_of(x);
  Tensor sums = torch::stable::new_empty(x, {x.size(0)});
  if (x.size(0) == 0) return sums;
  launch(x.const_data_ptr<float>(), sums.mutable_data_ptr<float>(), x.size(0),
         x.size(1), ladder::current_stream(x));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return sums;
}

Tensor row_sum_one(const Tensor& x) {
  return sums_of(x, [](auto x, auto sums, auto rows, auto columns, auto stream) {
    row_sum_one_kernel<<<ceil_div(rows, kThreads), kThreads, 0, stream>>>(x, sums, rows,
                                                                          columns);
  });
}

Tensor row_sum_tree(const Tensor& x) {
  return sums_of(x, [](auto x, auto sums, auto rows, auto columns, auto stream) {
    row_sum_tree_kernel<<<rows, kThreads, 0, stream>>>(x, sums, columns);
  });
}

Tensor row_sum_warp(const Tensor& x) {
  return sums_of(x, [](auto x, auto sums, auto rows, auto columns, auto stream) {
    row_sum_warp_kernel<<<ceil_div(rows, kWarps), kThreads, 0, stream>>>(x, sums, rows,
                                                                         columns);
  });
}

Tensor row_sum_block(const Tensor& x) {
  return sums_of(x, [](auto x, auto sums, auto rows, auto columns, auto stream) {
    row_sum_block_kernel<<<rows, kThreads, 0, stream>>>(x, sums, columns, 1);
  });
}

// For GPUs without clusters: the end of the first kernel makes all of its sums visible
// to the second.
Tensor row_sum_slices(const Tensor& x) {
  return sums_of(x, [&](auto pointer, auto sums, auto rows, auto columns, auto stream) {
    Tensor parts = torch::stable::new_empty(x, {rows, kSlices});
    float* p = parts.mutable_data_ptr<float>();
    row_sum_block_kernel<<<rows * kSlices, kThreads, 0, stream>>>(pointer, p, columns,
                                                                  kSlices);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    row_sum_warp_kernel<<<ceil_div(rows, kWarps), kThreads, 0, stream>>>(p, sums, rows,
                                                                         kSlices);
  });
}

Tensor row_sum_cluster(const Tensor& x) {
#ifndef __SIMT__  // it has clusters, though its device is that of an older GPU
  ladder::check_input(x, "x", ScalarType::Float);
  int has_clusters = 0;
  STD_CUDA_CHECK(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch,
                                        x.get_device_index()));
  if (!has_clusters) return row_sum_slices(x);
#endif
  return sums_of(x, [](auto x, auto sums, auto rows, auto columns, auto stream) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {kSlices, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(rows * kSlices);
    config.blockDim = dim3(kThreads);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    STD_CUDA_CHECK(
        cudaLaunchKernelEx(&config, row_sum_cluster_kernel, x, sums, columns));
  });
}

// x: a float32 tensor. Returns an int32 tensor of its shape.
Tensor places(const Tensor& x) {
  ladder::check_input(x, "x", ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::new_empty(x, x.sizes(), ScalarType::Int);
  int64_t n = x.numel();
  if (n == 0) return out;
  places_kernel<<<ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<int>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// x: a float32 tensor. Returns a tensor like it.
Tensor running_max(const Tensor& x) {
  ladder::check_input(x, "x", ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  int64_t n = x.numel();
  if (n == 0) return out;
  running_max_kernel<<<ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  for (const char* schema :
       {"row_sum_one(Tensor x) -> Tensor", "row_sum_tree(Tensor x) -> Tensor",
        "row_sum_warp(Tensor x) -> Tensor", "row_sum_block(Tensor x) -> Tensor",
        "row_sum_slices(Tensor x) -> Tensor", "row_sum_cluster(Tensor x) -> Tensor",
        "places(Tensor x) -> Tensor", "running_max(Tensor x) -> Tensor"}) {
    m.def(schema);
  }
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("row_sum_one", TORCH_BOX(&row_sum_one));
  m.impl("row_sum_tree", TORCH_BOX(&row_sum_tree));
  m.impl("row_sum_warp", TORCH_BOX(&row_sum_warp));
  m.impl("row_sum_block", TORCH_BOX(&row_sum_block));
  m.impl("row_sum_slices", TORCH_BOX(&row_sum_slices));
  m.impl("row_sum_cluster", TORCH_BOX(&row_sum_cluster));
  m.impl("places", TORCH_BOX(&places));
  m.impl("running_max", TORCH_BOX(&running_max));
}
