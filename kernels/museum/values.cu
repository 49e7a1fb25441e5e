// museum/values.cu: kernels that break no rule of memory and give wrong values; each
// bug has a fixed twin.
//
//   capped_grid         the number of blocks is capped, and no loop covers the rest
//   vector_tail         n / 4 vectors of four; the n % 4 elements after them are never
//                       written
//   truncated_block     a block of columns / 4 threads, rounded down
//   power_of_two        a tree of sums that is right for 64, 128 or 256 threads only
//   half_exp            e^x in half, whose largest value is 65,504
//   clamped_input       the input is clamped so that e^x cannot overflow; results for
//                       large x come out flat
//   half_accumulator    a sum kept in half stops growing at 2,048
//   maximum_from_tiny   a running maximum that starts at 1e-30
//
// No memory checker finds these: it takes a reference, and inputs that reach the bug.

#include <cuda_fp16.h>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 128;
constexpr int64_t kMaxBlocks = 64;

// -------------------------------------------------------------------------------------
// capped_grid, vector_tail: out[i] = 2 * a[i], n floats

__global__ void double_kernel(const float* a, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * a[i];
}

__global__ void double_grid_stride_kernel(const float* a, float* out, int64_t n) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
    out[i] = 2 * a[i];
}

__global__ void vector_tail_kernel(const float* a, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 v = reinterpret_cast<const float4*>(a)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
  }
}

__global__ void vector_tail_fixed_kernel(const float* a, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 v = reinterpret_cast<const float4*>(a)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
  } else if (int64_t j = n / 4 * 3 + i; j < n) {
    // Thread n / 4 + k takes element n / 4 * 4 + k.
    out[j] = 2 * a[j];
  }
}

// -------------------------------------------------------------------------------------
// truncated_block: out = 2 * a for [rows, columns] floats; a block computes a row, a
// thread four of its columns

__global__ void double_rows_kernel(const float* a, float* out, int64_t columns) {
  const float* from = a + blockIdx.x * columns;
  float* to = out + blockIdx.x * columns;
  for (int64_t c = 4 * threadIdx.x; c < columns && c < 4 * (threadIdx.x + 1); ++c)
    to[c] = 2 * from[c];
}

// -------------------------------------------------------------------------------------
// power_of_two: out[0] = sum of n <= 1024 floats, by one block of n threads

__global__ void power_of_two_kernel(const float* a, float* out) {
  __shared__ float cell[1024];
  cell[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) cell[threadIdx.x] += cell[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = cell[0];
}

__global__ void power_of_two_fixed_kernel(const float* a, float* out) {
  __shared__ float cell[1024];
  cell[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  for (unsigned live = blockDim.x; live > 1;) {  // cells still to be added
    unsigned half = (live + 1) / 2;
    if (threadIdx.x + half < live) cell[threadIdx.x] += cell[threadIdx.x + half];
    live = half;
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = cell[0];
}

// -------------------------------------------------------------------------------------
// half_exp: out = gelu(a), in its tanh form, for n halves. tanh(z) = (e^2z - 1) / (e^2z
// + 1).

__device__ inline float gelu_argument(float x) {
  return 0.79788456f * (x + 0.044715f * x * x * x);
}

__global__ void half_exp_kernel(const __half* a, __half* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // Infinite from x = 4.05.
  __half e = hexp(__float2half(2 * gelu_argument(__half2float(a[i]))));
  float power = __half2float(e), x = __half2float(a[i]);
  out[i] = __float2half(0.5f * x * (1 + (power - 1) / (power + 1)));
}

__global__ void half_exp_fixed_kernel(const __half* a, __half* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = __half2float(a[i]);
  out[i] = __float2half(0.5f * x * (1 + tanhf(gelu_argument(x))));
}

// -------------------------------------------------------------------------------------
// clamped_input: out = a * sigmoid(a), n floats

__global__ void clamped_input_kernel(const float* a, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = fminf(fmaxf(a[i], -10.0f), 10.0f);
  out[i] = x / (1 + expf(-x));
}

__global__ void clamped_input_fixed_kernel(const float* a, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i];
  out[i] = x / (1 + expf(-x));  // e^-x may be infinite: x / inf is 0, which is right
}

// -------------------------------------------------------------------------------------
// half_accumulator, maximum_from_tiny: the sum or the maximum of each row of [rows,
// columns], one thread per row

__global__ void half_accumulator_kernel(const __half* a, __half* out, int64_t columns) {
  const __half* row = a + blockIdx.x * columns;
  __half sum = __float2half(0.0f);
  for (int64_t c = 0; c < columns; ++c) sum = __hadd(sum, row[c]);
  out[blockIdx.x] = sum;
}

__global__ void half_accumulator_fixed_kernel(const __half* a, __half* out,
                                              int64_t columns) {
  const __half* row = a + blockIdx.x * columns;
  float sum = 0.0f;
  for (int64_t c = 0; c < columns; ++c) sum += __half2float(row[c]);
  out[blockIdx.x] = __float2half(sum);
}

__global__ void maximum_from_tiny_kernel(const float* a, float* out, int64_t columns) {
  float largest = 1e-30f;
  for (int64_t c = 0; c < columns; ++c)
    largest = fmaxf(largest, a[blockIdx.x * columns + c]);
  out[blockIdx.x] = largest;
}

__global__ void maximum_from_tiny_fixed_kernel(const float* a, float* out,
                                               int64_t columns) {
  float largest = -INFINITY;
  for (int64_t c = 0; c < columns; ++c)
    largest = fmaxf(largest, a[blockIdx.x * columns + c]);
  out[blockIdx.x] = largest;
}

// -------------------------------------------------------------------------------------
// Launchers

template <typename Kernel>
Tensor elementwise(Kernel kernel, const Tensor& a, int64_t blocks) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  kernel<<<blocks, kThreads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

int64_t capped_blocks(const Tensor& a) {
  int64_t blocks = ceil_div(a.numel(), kThreads);
  return blocks < kMaxBlocks ? blocks : kMaxBlocks;
}

Tensor capped_grid(const Tensor& a) {
  return elementwise(double_kernel, a, capped_blocks(a));
}
Tensor capped_grid_fixed(const Tensor& a) {
  return elementwise(double_grid_stride_kernel, a, capped_blocks(a));
}
Tensor vector_tail(const Tensor& a) {
  return elementwise(vector_tail_kernel, a, ceil_div(a.numel() / 4, kThreads));
}
Tensor vector_tail_fixed(const Tensor& a) {
  return elementwise(vector_tail_fixed_kernel, a,
                     ceil_div(a.numel() / 4 + a.numel() % 4, kThreads));
}
Tensor clamped_input(const Tensor& a) {
  return elementwise(clamped_input_kernel, a, ceil_div(a.numel(), kThreads));
}
Tensor clamped_input_fixed(const Tensor& a) {
  return elementwise(clamped_input_fixed_kernel, a, ceil_div(a.numel(), kThreads));
}

Tensor double_rows(const Tensor& a, int64_t threads) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  double_rows_kernel<<<a.size(0), threads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<float>(), out.mutable_data_ptr<float>(), a.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor truncated_block(const Tensor& a) { return double_rows(a, a.size(1) / 4); }
Tensor truncated_block_fixed(const Tensor& a) {
  return double_rows(a, ceil_div(a.size(1), 4));
}

template <typename Kernel>
Tensor sum_of(Kernel kernel, const Tensor& a) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, {1});
  kernel<<<1, a.numel(), 0, ladder::current_stream(a)>>>(a.const_data_ptr<float>(),
                                                         out.mutable_data_ptr<float>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor power_of_two(const Tensor& a) { return sum_of(power_of_two_kernel, a); }
Tensor power_of_two_fixed(const Tensor& a) {
  return sum_of(power_of_two_fixed_kernel, a);
}

template <typename Kernel>
Tensor elementwise_half(Kernel kernel, const Tensor& a) {
  ladder::check_input(a, "a", ScalarType::Half);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  kernel<<<ceil_div(a.numel(), kThreads), kThreads, 0, ladder::current_stream(a)>>>(
      static_cast<const __half*>(a.data_ptr()), static_cast<__half*>(out.data_ptr()),
      a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor half_exp(const Tensor& a) { return elementwise_half(half_exp_kernel, a); }
Tensor half_exp_fixed(const Tensor& a) {
  return elementwise_half(half_exp_fixed_kernel, a);
}

template <typename T, typename Kernel>
Tensor by_rows(Kernel kernel, const Tensor& a, ScalarType dtype) {
  ladder::check_input(a, "a", dtype);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, {a.size(0)});
  kernel<<<a.size(0), 1, 0, ladder::current_stream(a)>>>(
      static_cast<const T*>(a.data_ptr()), static_cast<T*>(out.data_ptr()), a.size(1));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor half_accumulator(const Tensor& a) {
  return by_rows<__half>(half_accumulator_kernel, a, ScalarType::Half);
}
Tensor half_accumulator_fixed(const Tensor& a) {
  return by_rows<__half>(half_accumulator_fixed_kernel, a, ScalarType::Half);
}
Tensor maximum_from_tiny(const Tensor& a) {
  return by_rows<float>(maximum_from_tiny_kernel, a, ScalarType::Float);
}
Tensor maximum_from_tiny_fixed(const Tensor& a) {
  return by_rows<float>(maximum_from_tiny_fixed_kernel, a, ScalarType::Float);
}

// -------------------------------------------------------------------------------------
// Registration: all take one tensor and return one

#define EXHIBITS(each)                                                         \
  each(capped_grid) each(vector_tail) each(truncated_block) each(power_of_two) \
      each(half_exp) each(clamped_input) each(half_accumulator)                \
          each(maximum_from_tiny)
#define DEFINE(name)                   \
  m.def(#name "(Tensor a) -> Tensor"); \
  m.def(#name "_fixed(Tensor a) -> Tensor");
#define IMPLEMENT(name)            \
  m.impl(#name, TORCH_BOX(&name)); \
  m.impl(#name "_fixed", TORCH_BOX(&name##_fixed));

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { EXHIBITS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { EXHIBITS(IMPLEMENT); }
