// validation/rearranged.cu: kernels whose accesses nvcc merges, drops or moves, for comparing corrected counts with ncu's.
//
// Each runs with 2 blocks of 64 threads: t is the thread's number in its block, n is 5, all memory holds ones.

#include <torch/csrc/stable/library.h>

#include <cuda_fp16.h>

#include <cstdint>
#include <iterator>

#include "launch.h"

using torch::stable::Tensor;

struct alignas(8) Pair {
  float x, y;
};
struct alignas(16) Quad {
  float x, y, z, w;
};
struct Three {  // not aligned: no wide access
  float x, y, z;
};

__device__ void fill(float* s, const float* in) {
  for (int i = 0; i < 8; ++i) s[threadIdx.x + 64 * i] = in[threadIdx.x + 64 * i];
  __syncthreads();
}

// past_l1: the copy bypasses the L1 cache, which only copies of 16 bytes can.
template <int bytes, bool past_l1>
__device__ void copy_async(float* to, const float* from) {
  uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (past_l1) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(bytes) : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels

__global__ void shared_pair_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  out[t] = s[2 * t] + s[2 * t + 1];
}

__global__ void shared_quad_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  out[t] = s[4 * t] + s[4 * t + 1] + s[4 * t + 2] + s[4 * t + 3];
}

__global__ void shared_octet_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += s[8 * t + i];
  out[t] = sum;
}

__global__ void shared_odd_pair_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  out[t] = s[2 * t + 1] + s[2 * t + 2];
}

__global__ void shared_broadcast_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += s[i];
  out[t] = sum + t;
}

__global__ void shared_column_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += s[i * 64 + t];
  out[t] = sum;
}

__global__ void shared_row_and_column_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += s[t / 32 * 8 + i] * s[i * 64 + t];
  out[t] = sum;
}

__global__ void shared_two_rows_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
#pragma unroll 2
  for (int i = 0; i < 8; ++i) sum += s[8 * t + i];
  out[t] = sum;
}

__global__ void shared_quads_in_a_loop_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
#pragma unroll 1
  for (int i = t; i < t + n; ++i) sum += s[4 * i] + s[4 * i + 1] + s[4 * i + 2] + s[4 * i + 3];
  out[t] = sum;
}

__global__ void shared_neighbours_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  out[t] = s[t] + s[t + 1] + s[t + 2];
}

__global__ void shared_twice_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float x = s[t] * 2;
  out[t] = x + s[t];
}

__global__ void shared_in_every_round_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += s[i] * s[511];
  out[t] = sum + t;
}

__global__ void shared_store_pair_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  s[2 * t] = in[t];
  s[2 * t + 1] = in[t + 64];
  __syncthreads();
  out[t] = s[t];
}

__global__ void shared_store_quad_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  for (int i = 0; i < 4; ++i) s[4 * t + i] = in[t + 64 * i];
  __syncthreads();
  out[t] = s[t];
}

__global__ void shared_struct_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ Pair s[64];
  s[t] = {in[t], in[t + 64]};
  __syncthreads();
  out[t] = s[63 - t].x + s[63 - t].y;
}

__global__ void shared_shorts_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ unsigned short s[256];
  for (int i = 0; i < 4; ++i) s[t + 64 * i] = static_cast<unsigned short>(in[t + 64 * i]);
  __syncthreads();
  out[t] = float(s[4 * t] + s[4 * t + 1] + s[4 * t + 2] + s[4 * t + 3]);
}

__global__ void shared_half_pairs_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __half s[128];
  s[t] = __float2half(in[t]);
  s[t + 64] = __float2half(in[t + 64]);
  __syncthreads();
  out[t] = __half2float(s[2 * t]) + __half2float(s[2 * t + 1]);
}

__global__ void shared_bytes_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ unsigned char s[256];
  for (int i = 0; i < 4; ++i) s[t + 64 * i] = static_cast<unsigned char>(in[t + 64 * i]);
  __syncthreads();
  out[t] = float(s[4 * t] + s[4 * t + 1] + s[4 * t + 2] + s[4 * t + 3]);
}

__global__ void shared_guarded_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ float s[512];
  fill(s, in);
  float x = s[2 * t] + s[2 * t + 1];
  if (t < n) out[t] = x;
}

__global__ void global_pair_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  const Pair* pairs = reinterpret_cast<const Pair*>(in);
  out[t] = pairs[t].x + pairs[t].y;
}

__global__ void global_quad_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  const Quad* quads = reinterpret_cast<const Quad*>(in);
  out[t] = quads[t].x + quads[t].y + quads[t].z + quads[t].w;
}

__global__ void global_three_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  const Three* threes = reinterpret_cast<const Three*>(in);
  out[t] = threes[t].x + threes[t].y + threes[t].z;
}

__global__ void global_store_pair_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  Pair* pairs = reinterpret_cast<Pair*>(out);
  pairs[t].x = in[t];
  pairs[t].y = in[t + 64];
}

__global__ void global_store_quad_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  Quad* quads = reinterpret_cast<Quad*>(out);
  quads[t].x = in[t];
  quads[t].y = in[t + 64];
  quads[t].z = in[t + 128];
  quads[t].w = in[t + 192];
}

__global__ void global_neighbours_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  out[t] = in[2 * t] + in[2 * t + 1];
}

__global__ void global_in_every_round_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += in[t + 64 * i] * in[511];
  out[t] = sum;
}

__global__ void global_in_both_branches_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  if (t % 2 == 0) {
    out[t] = in[t] + 1;
  } else {
    out[t + 64] = in[t] * 3;
  }
}

__global__ void global_twice_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  out[t] = in[t] + 1;
  out[t + 64] = in[t] * 2;
}

__global__ void global_guarded_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  float x = in[t];
  if (t < n) out[t] = x;
}

__global__ void copy_4_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<4, false>(s + t, in + t);
  out[t] = s[t];
}

__global__ void copy_8_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<8, false>(s + 2 * t, in + 2 * t);
  out[t] = s[t];
}

__global__ void copy_16_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, false>(s + 4 * t, in + 4 * t);
  out[t] = s[t];
}

__global__ void copy_16_past_l1_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, true>(s + 4 * t, in + 4 * t);
  out[t] = s[t];
}

__global__ void copy_16_past_l1_from_the_middle_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, true>(s + 4 * t, in + 4 * t + 4);
  out[t] = s[t];
}

__global__ void copy_16_past_l1_to_the_middle_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, true>(s + 4 * t + 4, in + 4 * t);
  out[t] = s[t + 4];
}

__global__ void copy_16_past_l1_reversed_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, true>(s + 4 * t, in + 4 * (63 - t));
  out[t] = s[t];
}

__global__ void copy_16_past_l1_of_rows_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, true>(s + 4 * t, in + t / 4 * 36 + t % 4 * 4);
  out[t] = s[t];
}

__global__ void copy_16_past_l1_apart_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
  int t = threadIdx.x;
  __shared__ __align__(16) float s[264];
  copy_async<16, true>(s + 4 * t, in + 8 * t);
  out[t] = s[t];
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

// In the order of the file, by which rearranged.py numbers them.
// clang-format off
#define KERNELS(each) \
  each(shared_pair) each(shared_quad) each(shared_octet) each(shared_odd_pair) each(shared_broadcast) \
  each(shared_column) each(shared_row_and_column) each(shared_two_rows) each(shared_quads_in_a_loop) \
  each(shared_neighbours) each(shared_twice) each(shared_in_every_round) each(shared_store_pair) \
  each(shared_store_quad) each(shared_struct) each(shared_shorts) each(shared_half_pairs) each(shared_bytes) \
  each(shared_guarded) each(global_pair) each(global_quad) each(global_three) each(global_store_pair) \
  each(global_store_quad) each(global_neighbours) each(global_in_every_round) each(global_in_both_branches) \
  each(global_twice) each(global_guarded) each(copy_4) each(copy_8) each(copy_16) each(copy_16_past_l1) \
  each(copy_16_past_l1_from_the_middle) each(copy_16_past_l1_to_the_middle) each(copy_16_past_l1_reversed) \
  each(copy_16_past_l1_of_rows) each(copy_16_past_l1_apart)
// clang-format on
#define LAUNCH(name) \
  [](cudaStream_t stream, const float* in, float* out, int n) { name##_kernel<<<2, 64, 0, stream>>>(in, out, n); },
constexpr void (*kLaunches[])(cudaStream_t, const float*, float*, int) = {KERNELS(LAUNCH)};

void rearranged(const Tensor& x, Tensor y, int64_t which, int64_t n) {
  STD_TORCH_CHECK(0 <= which && which < int64_t(std::size(kLaunches)), "which is ", which, "; see rearranged.py");
  auto guard = ladder::on_device_of(x);
  kLaunches[which](ladder::current_stream(x), static_cast<const float*>(x.data_ptr()),
                   static_cast<float*>(y.data_ptr()), static_cast<int>(n));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("rearranged(Tensor x, Tensor(a!) y, int which, int n) -> ()"); }

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("rearranged", TORCH_BOX(&rearranged)); }
