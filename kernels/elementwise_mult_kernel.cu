// elementwise_mult_kernel.cu: out = a * b for float32 or float64, without PyTorch's
// headers. nvcc takes a second.
//
// It moves three times the element size per multiplication, and memory bandwidth limits
// it. A thread takes one vector of 16 bytes, 4 floats or 2 doubles, from each input: a
// quarter or half of the requests that single elements need. elementwise_mult.cpp and
// elementwise_mult_stable.cu bind it to PyTorch.

#include "elementwise_mult_kernel.h"

#include "vector.h"

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel. a, b, out: n elements each. The first `vectors` threads take a vector each,
// for which the pointers must be multiples of 16 bytes; the next threads take the
// elements that are left, one each.

template <typename T>
__global__ void elementwise_mult_kernel(const T* __restrict__ a,
                                        const T* __restrict__ b, T* __restrict__ out,
                                        int64_t n, int64_t vectors) {
  using Vector = ladder::Vector<T, 16>;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < vectors) {
    Vector x = Vector::load(a, i), y = Vector::load(b, i);
    for (int k = 0; k < Vector::size; ++k) x.at[k] *= y.at[k];
    x.store(out, i);
    return;
  }
  int64_t j = Vector::size * vectors + (i - vectors);
  if (j < n) {
    out[j] = a[j] * b[j];
  }
}

// -------------------------------------------------------------------------------------
// Launchers

template <typename T>
void launch(const T* a, const T* b, T* out, int64_t n, cudaStream_t stream) {
  constexpr int size = ladder::Vector<T, 16>::size;
  int64_t vectors = ladder::all_aligned_to(16, a, b, out) ? n / size : 0;
  int64_t threads = vectors + (n - size * vectors);
  elementwise_mult_kernel<<<(threads + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      a, b, out, n, vectors);
}

void launch_elementwise_mult(const float* a, const float* b, float* out, int64_t n,
                             cudaStream_t stream) {
  launch(a, b, out, n, stream);
}

void launch_elementwise_mult(const double* a, const double* b, double* out, int64_t n,
                             cudaStream_t stream) {
  launch(a, b, out, n, stream);
}
