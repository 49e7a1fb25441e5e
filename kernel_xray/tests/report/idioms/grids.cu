// grids.cu: threads that share nothing on purpose: grid-stride loops, early exits, vectors, rows, pictures.
#include "idiom.h"

template <bool kBug>
__global__ void saxpy_kernel(float scale, const float* x, float* y, int n) {
  for (int i = thread_index(); i < (kBug ? n + 1 : n); i += gridDim.x * blockDim.x) y[i] = scale * x[i] + y[i];
}

IDIOM(saxpy) { saxpy_kernel<kBug><<<2, 96>>>(3.0f, call.floats(0), call.floats(1), call.n(0)); }

// Four at a time; the last thread takes what is left.
template <bool kBug>
__global__ void vector_copy_kernel(const float* a, float* out, int n) {
  const int first = 4 * thread_index();
  if (first + (kBug ? 0 : 3) < n)
    *reinterpret_cast<float4*>(out + first) = *reinterpret_cast<const float4*>(a + first);
  else
    for (int i = first; i < n; ++i) out[i] = a[i];
}

IDIOM_OF(vector_copy, ceil_div(call.n(0), 4 * 16), 16)

// How many steps each number takes to 1; threads leave early, and their loops differ in length.
template <bool kBug>
__global__ void collatz_kernel(const int* a, int* steps, int n) {
  const int i = thread_index();
  if (!kBug && i >= n) return;
  int count = 0;
  for (int value = a[i]; value > 1; value = value % 2 ? 3 * value + 1 : value / 2) ++count;
  steps[i] = count;
}

IDIOM_OF(collatz, ceil_div(call.n(0), 48), 48)

// Threads without an element leave before the block's barriers.
template <bool kBug>
__global__ void early_exit_kernel(const float* a, float* out, int n) {
  __shared__ float values[64];
  const int i = thread_index();
  if (i >= n) return;
  values[threadIdx.x] = a[i];
  if (!kBug) __syncthreads();
  out[i] = values[threadIdx.x] + (threadIdx.x > 0 ? values[threadIdx.x - 1] : 0.0f);
}

IDIOM_OF(early_exit, ceil_div(call.n(0), 64), 64)

// A sparse matrix (CSR) times a vector, a thread per row.
template <bool kBug>
__global__ void csr_kernel(const int* starts, const int* columns, const float* values, const float* x, float* y,
                           int rows) {
  const int row = thread_index();
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k] - (kBug ? 1 : 0)];
  y[row] = sum;
}

IDIOM_OF(csr, ceil_div(call.n(0), 32), 32)

template <bool kBug>
__global__ void row_sums_kernel(const float* a, float* out, int rows, int columns) {
  const int row = thread_index();
  if (row >= rows) return;
  if (!kBug) out[row] = 0.0f;
  for (int c = 0; c < columns; ++c) out[row] += a[row * columns + c];
}

IDIOM_OF(row_sums, ceil_div(call.n(0), 32), 32)

template <bool kBug>
__global__ void mandelbrot_kernel(int* out, int rows, int columns, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const float real = 3.0f * x / columns - 2.0f, imaginary = 2.0f * y / rows - 1.0f;
  float re = 0.0f, im = 0.0f;
  int count = 0;
  for (; count < most && re * re + im * im <= 4.0f; ++count) {
    const float next = re * re - im * im + real;
    im = 2.0f * re * im + imaginary;
    re = next;
  }
  out[kBug ? x * columns + y : y * columns + x] = count;
}

IDIOM_OF(mandelbrot, dim3(ceil_div(call.n(1), 8), ceil_div(call.n(0), 8)), dim3(8, 8))

// A step of heat flow; beyond the edges it is cold.
template <bool kBug>
__global__ void heat_kernel(const float* a, float* out, int rows, int columns) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const float* here = a + y * columns + x;
  const float left = x > 0 ? here[-1] : 0.0f, right = x < columns - 1 ? here[1] : 0.0f;
  const float up = kBug || y > 0 ? here[-columns] : 0.0f, down = y < rows - 1 ? here[columns] : 0.0f;
  out[y * columns + x] = *here + 0.1f * (left + right + up + down - 4 * *here);
}

IDIOM_OF(heat, dim3(ceil_div(call.n(1), 16), ceil_div(call.n(0), 4)), dim3(16, 4))

// Neighbouring threads write neighbouring bytes.
template <bool kBug>
__global__ void brighten_kernel(const unsigned char* a, unsigned char* out, int n) {
  const int i = thread_index();
  if (i < n) out[kBug ? i / 2 : i] = min(a[i] + 40, 255);
}

IDIOM_OF(brighten, ceil_div(call.n(0), 64), 64)

// In place: each thread swaps two elements.
template <bool kBug>
__global__ void flip_kernel(float* a, int n) {
  const int i = thread_index();
  if (i >= (kBug ? n : n / 2)) return;
  const float value = a[i];
  a[i] = a[n - 1 - i];
  a[n - 1 - i] = value;
}

IDIOM_OF(flip, ceil_div(call.n(0), 32), 32)

__global__ void jacobi_kernel(const float* from, float* to, int n) {
  const int i = thread_index();
  if (i < n) to[i] = i == 0 || i == n - 1 ? from[i] : (from[i - 1] + from[i + 1]) / 2;
}

IDIOM(jacobi) {  // an even number of steps, so that the result is in the first of the two buffers again
  const int n = call.n(0);
  float *from = call.floats(0), *to = call.floats(1);
  for (int step = 0; step < 4; ++step, std::swap(from, to))
    jacobi_kernel<<<ceil_div(n, 32), 32>>>(from, kBug ? from : to, n);
}
