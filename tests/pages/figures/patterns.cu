// patterns.cu: loads in the patterns of the figure 'What does a load cost?'. Lane i of one warp loads element
// offset + i / across * pitch + i % across * stride, from global memory or from 32 KB of shared memory.

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

struct Pattern {
  int across, stride, pitch, offset;
  __device__ int at(int lane) const { return offset + lane / across * pitch + lane % across * stride; }
};

__device__ bool is_set(char v) { return v; }
__device__ bool is_set(short v) { return v; }
__device__ bool is_set(int v) { return v; }
__device__ bool is_set(int2 v) { return v.x | v.y; }
__device__ bool is_set(int4 v) { return v.x | v.y | v.z | v.w; }

template <typename T>
__global__ void global_kernel(const T* data, int* sink, Pattern p) {
  T v = data[p.at(threadIdx.x)];
  if (is_set(v)) *sink = 1;
}

constexpr int kPieces = 2048;  // of 16 bytes

template <typename T>
__global__ void shared_kernel(int* sink, Pattern p) {
  __shared__ int4 pieces[kPieces];
  for (int i = threadIdx.x; i < kPieces; i += 32) pieces[i] = make_int4(0, 0, 0, 0);
  __syncthreads();
  T v = reinterpret_cast<T*>(pieces)[p.at(threadIdx.x)];
  if (is_set(v)) *sink = 1;
}

template <typename T>
void launch(bool shared, const Tensor& data, Tensor& sink, Pattern p) {
  auto stream = ladder::current_stream(data);
  int* to = sink.mutable_data_ptr<int>();
  if (shared) {
    shared_kernel<T><<<1, 32, 0, stream>>>(to, p);
  } else {
    global_kernel<T><<<1, 32, 0, stream>>>(reinterpret_cast<const T*>(data.const_data_ptr()), to, p);
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void pattern(const Tensor& data, Tensor sink, bool shared, int64_t size, int64_t across, int64_t stride, int64_t pitch,
             int64_t offset) {
  Pattern p = {int(across), int(stride), int(pitch), int(offset)};
  if (size == 1) launch<char>(shared, data, sink, p);
  if (size == 2) launch<short>(shared, data, sink, p);
  if (size == 4) launch<int>(shared, data, sink, p);
  if (size == 8) launch<int2>(shared, data, sink, p);
  if (size == 16) launch<int4>(shared, data, sink, p);
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "pattern(Tensor data, Tensor(a!) sink, bool shared, int size, int across, int stride, int pitch, int offset) -> "
      "()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("pattern", TORCH_BOX(&pattern)); }
