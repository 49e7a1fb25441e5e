// tiles.cu: the threads of a block share memory: tiles, halos, double buffers, scans, sorts.
#include "idiom.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

namespace cg = cooperative_groups;

constexpr int kTile = 8, kThreads = 64;

// ---------------------------------------------------------------------------------------------------------------------
// Tiles

template <bool kBug>
__global__ void transpose_kernel(const float* a, float* out, int rows, int columns) {
  __shared__ float tile[kTile][kTile + 1];  // padded: the elements of a column lie in different banks
  int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = a[y * columns + x];
  if (!kBug) __syncthreads();
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

IDIOM_OF(transpose, dim3(ceil_div(call.n(1), kTile), ceil_div(call.n(0), kTile)), dim3(kTile, kTile))

template <bool kBug>
__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += kTile) {
    const int from_a = start + threadIdx.x, from_b = start + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < m && from_a < k ? a[row * k + from_a] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = from_b < k && column < n ? b[from_b * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    if (!kBug) __syncthreads();  // the tiles may be overwritten
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

IDIOM_OF(matmul, dim3(ceil_div(call.n(1), kTile), ceil_div(call.n(0), kTile)), dim3(kTile, kTile))

// n x n, a multiple of the tile: the next tiles are loaded while these are multiplied, with one barrier a step.
template <bool kBug>
__global__ void double_buffer_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tiles[2][kTile][kTile], b_tiles[2][kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  const auto load = [&](int stage, int step) {
    a_tiles[stage][y][x] = a[row * n + step * kTile + x];
    b_tiles[stage][y][x] = b[(step * kTile + y) * n + column];
  };
  float sum = 0.0f;
  load(0, 0);
  for (int step = 0; step < n / kTile; ++step) {
    __syncthreads();  // the tiles of this step are complete, and the others may be overwritten
    if (step + 1 < n / kTile) load((kBug ? step : step + 1) % 2, step + 1);
    for (int i = 0; i < kTile; ++i) sum += a_tiles[step % 2][y][i] * b_tiles[step % 2][i][x];
  }
  c[row * n + column] = sum;
}

IDIOM_OF(double_buffer, dim3(call.n(0) / kTile, call.n(0) / kTile), dim3(kTile, kTile))

// out[i] = sum over the tiles t of a[t, 63 - i]; the copy of the next tile is started before this one is used.
template <bool kBug>
__global__ void staged_copy_kernel(const float* a, float* out, int tiles) {
  __shared__ float stages[2][kThreads];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, stages[0], a, sizeof(stages[0]));
  float sum = 0.0f;
  for (int t = 0; t < tiles; ++t) {
    if (!kBug) cg::wait(block);  // tile t has arrived
    if (t + 1 < tiles) cg::memcpy_async(block, stages[(t + 1) % 2], a + (t + 1) * kThreads, sizeof(stages[0]));
    sum += stages[t % 2][kThreads - 1 - threadIdx.x];
  }
  out[threadIdx.x] = sum;
}

IDIOM_OF(staged_copy, 1, kThreads)

// One thread per row; x is staged in shared memory, and rows of `a` are `pitch` floats apart.
template <bool kBug>
__global__ void matvec_kernel(const float* a, const float* x, float* y, int rows, int columns, int pitch) {
  __shared__ float chunk[kThreads];
  const int row = blockIdx.x * kThreads + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < columns; start += kThreads) {
    if (start + threadIdx.x < columns) chunk[threadIdx.x] = x[start + threadIdx.x];
    __syncthreads();
    const int here = kBug ? kThreads : min(kThreads, columns - start);
    for (int k = 0; row < rows && k < here; ++k) sum += a[row * pitch + start + k] * chunk[k];
    __syncthreads();
  }
  if (row < rows) y[row] = sum;
}

IDIOM_OF(matvec, ceil_div(call.n(0), kThreads), kThreads)

// out[i] = a[order[i]], where `order` stays within the block; both are staged in one piece of dynamic shared memory.
template <bool kBug>
__global__ void two_arrays_kernel(const float* a, const int* order, float* out) {
  extern __shared__ float memory[];
  float* values = memory;
  int* places = reinterpret_cast<int*>(memory + blockDim.x + (kBug ? 1 : 0));
  const int first = blockIdx.x * blockDim.x;
  values[threadIdx.x] = a[first + threadIdx.x];
  places[threadIdx.x] = order[first + threadIdx.x];
  __syncthreads();
  out[first + threadIdx.x] = values[places[threadIdx.x]];
}

IDIOM_OF(two_arrays, call.size(0) / call.n(0), call.n(0), call.n(0) * (sizeof(float) + sizeof(int)))

// Each body feels the gravity of all others. A body is (x, y, z, mass), read 16 bytes at a time.
template <bool kBug>
__global__ void nbody_kernel(const float* bodies, float* accelerations, int n) {
  __shared__ float4 tile[32];
  const float4* body = reinterpret_cast<const float4*>(bodies + (kBug ? 2 : 0));
  const int i = blockIdx.x * 32 + threadIdx.x;
  const float4 me = body[min(i, n - 1)];
  float3 sum = make_float3(0.0f, 0.0f, 0.0f);
  for (int start = 0; start < n; start += 32) {
    if (start + threadIdx.x < n) tile[threadIdx.x] = body[start + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < min(32, n - start); ++k) {
      const float4 other = tile[k];
      const float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
      const float inverse = rsqrtf(x * x + y * y + z * z + 0.01f), scale = other.w * inverse * inverse * inverse;
      sum.x += x * scale, sum.y += y * scale, sum.z += z * scale;
    }
    __syncthreads();
  }
  if (i < n) accelerations[3 * i] = sum.x, accelerations[3 * i + 1] = sum.y, accelerations[3 * i + 2] = sum.z;
}

IDIOM_OF(nbody, ceil_div(call.n(0), 32), 32)

// ---------------------------------------------------------------------------------------------------------------------
// Neighbours

constexpr int kRadius = 3;

template <bool kBug>
__global__ void stencil_kernel(const float* a, float* out, int n) {
  __shared__ float window[kThreads + 2 * kRadius];
  const int i = blockIdx.x * kThreads + threadIdx.x, at = threadIdx.x + kRadius;
  const auto value = [&](int k) { return 0 <= k && k < n ? a[k] : 0.0f; };
  window[at] = value(i);
  if (threadIdx.x < (kBug ? kRadius - 1 : kRadius)) {  // the halo
    window[at - kRadius] = value(i - kRadius);
    window[at + kThreads] = value(i + kThreads);
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = -kRadius; k <= kRadius; ++k) sum += window[at + k];
  out[i] = sum;
}

IDIOM_OF(stencil, ceil_div(call.n(0), kThreads), kThreads)

__constant__ float weights[5];

template <bool kBug>
__global__ void convolution_kernel(const float* a, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = -2; k <= 2; ++k)
    if (i + k >= 0 && i + k < (kBug ? n + 1 : n)) sum += weights[k + 2] * a[i + k];
  out[i] = sum;
}

IDIOM(convolution) {
  const int n = call.n(0);
  cudaMemcpyToSymbol(weights, call.floats(1), sizeof(weights));
  convolution_kernel<kBug><<<ceil_div(n, 48), 48>>>(call.floats(0), call.floats(2), n);
}

// Two rounds of averaging with the right neighbour, within a block of 64; the last element has none.
template <bool kBug>
__global__ void smooth_twice_kernel(const float* a, float* out, int n) {
  __shared__ float values[kThreads + 1];
  const int i = threadIdx.x;
  if (i < n) values[i] = a[i];
  if (i == 0) values[n] = 0.0f;
  if (!kBug || i < n) __syncthreads();
  const float once = i < n ? (values[i] + values[i + 1]) / 2 : 0.0f;
  __syncthreads();
  values[i] = once;
  __syncthreads();
  if (i < n) out[i] = (values[i] + (i + 1 < n ? values[i + 1] : 0.0f)) / 2;
}

IDIOM_OF(smooth_twice, 1, kThreads)

// The Game of Life on a torus.
template <bool kBug>
__global__ void life_kernel(unsigned char* cells, unsigned char* next, int rows, int columns) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const int self = y * columns + x;
  int alive = -cells[self];
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) alive += cells[(y + dy + rows) % rows * columns + (x + dx + columns) % columns];
  (kBug ? cells : next)[self] = alive == 3 || (alive == 2 && cells[self]);
}

IDIOM_OF(life, dim3(ceil_div(call.n(1), 16), ceil_div(call.n(0), 4)), dim3(16, 4))

// ---------------------------------------------------------------------------------------------------------------------
// Scans

// Inclusive sums within a block. Each round reads one buffer and writes the other, so it needs one barrier.
template <bool kBug>
__global__ void hillis_steele_kernel(const int* a, int* out) {
  __shared__ int buffers[2][kThreads];
  const int i = threadIdx.x, place = blockIdx.x * kThreads + i;
  int from = 0;
  buffers[from][i] = a[place];
  for (int offset = 1; offset < kThreads; offset *= 2) {
    __syncthreads();
    const int to = kBug ? from : 1 - from;
    buffers[to][i] = buffers[from][i] + (i >= offset ? buffers[from][i - offset] : 0);
    from = to;
  }
  out[place] = buffers[from][i];
}

IDIOM_OF(hillis_steele, call.size(0) / kThreads, kThreads)

// Exclusive sums within a block, two elements a thread: up the tree, then down.
template <bool kBug>
__global__ void blelloch_kernel(const int* a, int* out) {
  __shared__ int tree[2 * kThreads];
  const int i = threadIdx.x, first = blockIdx.x * 2 * kThreads;
  tree[2 * i] = a[first + 2 * i];
  tree[2 * i + 1] = a[first + 2 * i + 1];
  int step = 1;
  for (int pairs = kThreads; pairs > 0; pairs /= 2, step *= 2) {
    __syncthreads();
    if (i < pairs) tree[step * (2 * i + 2) - 1] += tree[step * (2 * i + 1) - 1];
  }
  if (i == 0) tree[2 * kThreads - 1] = 0;
  for (int pairs = 1; pairs <= kThreads; pairs *= 2) {
    step /= 2;
    if (!kBug) __syncthreads();
    if (i >= pairs) continue;
    const int left = step * (2 * i + 1) - 1, right = step * (2 * i + 2) - 1, sum = tree[left];
    tree[left] = tree[right];
    tree[right] += sum;
  }
  __syncthreads();
  out[first + 2 * i] = tree[2 * i];
  out[first + 2 * i + 1] = tree[2 * i + 1];
}

IDIOM_OF(blelloch, call.size(0) / (2 * kThreads), kThreads)

// ---------------------------------------------------------------------------------------------------------------------
// Sorts and merges

template <bool kBug>
__global__ void bitonic_sort_kernel(const int* a, int* out) {
  __shared__ int keys[kThreads];
  const int i = threadIdx.x, place = blockIdx.x * kThreads + i;
  keys[i] = a[place];
  for (int size = 2; size <= kThreads; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int other = kBug ? i + stride : i ^ stride;
      if (other <= i || (keys[i] > keys[other]) != ((i & size) == 0)) continue;
      const int key = keys[i];
      keys[i] = keys[other];
      keys[other] = key;
    }
  }
  __syncthreads();
  out[place] = keys[i];
}

IDIOM_OF(bitonic_sort, call.size(0) / kThreads, kThreads)

constexpr int kKeys = 50;

template <bool kBug>
__global__ void odd_even_sort_kernel(const int* a, int* out) {  // 25 threads, two elements each
  __shared__ int keys[kKeys];
  for (int i = threadIdx.x; i < kKeys; i += blockDim.x) keys[i] = a[i];
  for (int phase = 0; phase < kKeys; ++phase) {
    __syncthreads();
    const int i = 2 * threadIdx.x + phase % 2;
    if (i + (kBug ? 0 : 1) >= kKeys || keys[i] <= keys[i + 1]) continue;
    const int key = keys[i];
    keys[i] = keys[i + 1];
    keys[i + 1] = key;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kKeys; i += blockDim.x) out[i] = keys[i];
}

IDIOM_OF(odd_even_sort, 1, kKeys / 2)

// Sorts 64 keys by their lowest four bits, a bit at a time: the ones go behind the zeros.
template <bool kBug>
__global__ void radix_sort_kernel(const int* a, int* out) {
  __shared__ int keys[kThreads], ones[kThreads];
  const int i = threadIdx.x;
  keys[i] = a[i];
  for (int bit = 0; bit < 4; ++bit) {
    const int key = keys[i], one = key >> bit & 1;
    ones[i] = one;
    __syncthreads();
    for (int offset = 1; offset < kThreads; offset *= 2) {
      const int before = i >= offset ? ones[i - offset] : 0;
      __syncthreads();
      ones[i] += before;
      __syncthreads();
    }
    const int zeros = kThreads - ones[kThreads - 1];
    keys[one ? zeros + ones[i] - 1 : i - ones[i]] = key;
    if (!kBug) __syncthreads();
  }
  out[i] = keys[i];
}

IDIOM_OF(radix_sort, 1, kThreads)

// Merges two sorted arrays. Each thread searches its diagonal of the merge path and then merges four elements.
template <bool kBug>
__global__ void merge_path_kernel(const int* a, const int* b, int* out, int a_size, int b_size) {
  const int size = a_size + b_size, diagonal = min(4 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), size);
  int low = max(0, diagonal - b_size), high = min(diagonal, a_size);
  while (low < high) {  // how many of the elements before the diagonal come from a
    const int middle = (low + high) / 2;
    if (a[middle] <= b[diagonal - middle - (kBug ? 0 : 1)])
      low = middle + 1;
    else
      high = middle;
  }
  int i = low, k = diagonal - low;
  for (int o = diagonal; o < min(diagonal + 4, size); ++o)
    out[o] = k == b_size || (i < a_size && a[i] <= b[k]) ? a[i++] : b[k++];
}

IDIOM(merge_path) {
  const int a_size = call.size(0), b_size = call.size(1);
  merge_path_kernel<kBug>
      <<<ceil_div(a_size + b_size, 4 * 8), 8>>>(call.ints(0), call.ints(1), call.ints(2), a_size, b_size);
}

// The Fourier transform of 64 real numbers by a block of 32 threads: reversed bits, then six rounds of butterflies.
template <bool kBug>
__global__ void fft_kernel(const float* a, float2* out) {
  __shared__ float2 points[64];
  for (int i = threadIdx.x; i < 64; i += 32) points[__brev(i) >> 26] = make_float2(a[blockIdx.x * 64 + i], 0.0f);
  for (int half = 1; half < 64; half *= 2) {
    if (!kBug) __syncthreads();
    const int k = threadIdx.x % half, upper = threadIdx.x / half * 2 * half + k, lower = upper + half;
    const float angle = -3.14159265f * k / half, c = cosf(angle), s = sinf(angle);
    const float2 p = points[upper], q = points[lower];
    const float2 turned = make_float2(c * q.x - s * q.y, s * q.x + c * q.y);
    points[upper] = make_float2(p.x + turned.x, p.y + turned.y);
    points[lower] = make_float2(p.x - turned.x, p.y - turned.y);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += 32) out[blockIdx.x * 64 + i] = points[i];
}

IDIOM_OF(fft, call.size(0) / 64, 32)
