// patterns.cu: loads in the patterns of the figure 'What does a load cost?'. Lane i of one warp loads element
// offset + i / across * pitch + i % across * stride, from global memory or from 32 KB of shared memory.

#include "case.h"

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
void launch(const Call& call, Pattern p) {
  if (call.number(0)) {
    shared_kernel<T><<<1, 32>>>(call.data<int>(1), p);
  } else {
    global_kernel<T><<<1, 32>>>(call.data<T>(0), call.data<int>(1), p);
  }
}

// data and sink; whether shared memory is read, the size of an element, and the pattern.
CASE(pattern) {
  const auto n = [&](int i) { return int(call.number(i)); };
  Pattern p = {n(2), n(3), n(4), n(5)};
  if (n(1) == 1) launch<char>(call, p);
  if (n(1) == 2) launch<short>(call, p);
  if (n(1) == 4) launch<int>(call, p);
  if (n(1) == 8) launch<int2>(call, p);
  if (n(1) == 16) launch<int4>(call, p);
}
