// atomics.cu: threads update memory that they share: compare-and-swap loops, histograms, lists, graphs, queues.
#include "idiom.h"

#include <cuda_fp16.h>

constexpr int kThreads = 64;

// ---------------------------------------------------------------------------------------------------------------------
// Compare and swap: the first read is a plain one; if it is out of date, the swap fails and gives the newer value.

template <bool kBug>
__device__ void add_double(double* address, double value) {  // as before compute capability 6.0
  auto* word = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *word, assumed;
  do {
    assumed = old;
    const unsigned long long sum = __double_as_longlong(__longlong_as_double(assumed) + value);
    if (kBug)
      *word = sum;
    else
      old = atomicCAS(word, assumed, sum);
  } while (old != assumed);
}

template <bool kBug>
__global__ void cas_sum_kernel(const double* a, double* sum, int n) {
  for (int i = thread_index(); i < n; i += gridDim.x * blockDim.x) add_double<kBug>(sum, a[i]);
}

IDIOM_OF(cas_sum, 2, kThreads)

__global__ void fill_kernel(float* out, float value) { out[threadIdx.x] = value; }

__global__ void largest_kernel(const float* a, float* largest, int n) {
  float mine = -INFINITY;
  for (int i = thread_index(); i < n; i += gridDim.x * blockDim.x) mine = fmaxf(mine, a[i]);
  int *word = reinterpret_cast<int*>(largest), old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(fmaxf(mine, __int_as_float(assumed))));
  } while (old != assumed);
}

IDIOM(largest) {
  if (!kBug) fill_kernel<<<1, 1>>>(call.floats(1), -INFINITY);
  largest_kernel<<<3, kThreads>>>(call.floats(0), call.floats(1), call.n(0));
}

// The loop ends without a swap if what is there is large enough: for most threads on the plain first read.
template <bool kBug>
__device__ void raise_to(double* address, double value) {
  auto* word = reinterpret_cast<unsigned long long*>(address);
  unsigned long long found = *word, before = ~found;
  while (found != before && __longlong_as_double(found) < value) {
    before = found;
    if (kBug)
      *word = __double_as_longlong(value);
    else
      found = atomicCAS(word, before, __double_as_longlong(value));
  }
}

template <bool kBug>
__global__ void raised_kernel(const double* a, double* largest, int n) {
  const int i = thread_index();
  if (i < n) raise_to<kBug>(largest, a[i]);
}

IDIOM_OF(raised, ceil_div(call.n(0), kThreads), kThreads)

// 16-bit numbers are added through the aligned word that holds them.
template <bool kBug>
__device__ void add_half(__half* address, __half value) {
  const size_t place = reinterpret_cast<size_t>(address);
  auto* word = reinterpret_cast<unsigned*>(kBug ? place : place & ~size_t{2});
  const int shift = place & 2 ? 16 : 0;
  unsigned old = *word, assumed;
  do {
    assumed = old;
    const __half before = __ushort_as_half(static_cast<unsigned short>(assumed >> shift));
    const __half sum = __float2half(__half2float(before) + __half2float(value));
    const unsigned bits = static_cast<unsigned>(__half_as_ushort(sum)) << shift;
    old = atomicCAS(word, assumed, (assumed & ~(0xffffu << shift)) | bits);
  } while (old != assumed);
}

template <bool kBug>
__global__ void half_bins_kernel(const int* keys, const __half* values, __half* bins, int n) {
  const int i = thread_index();
  if (i < n) add_half<kBug>(&bins[keys[i]], values[i]);
}

IDIOM_OF(half_bins, ceil_div(call.n(0), kThreads), kThreads)

template <bool kBug>
__global__ void product_kernel(const float* a, float* out) {
  __shared__ float product;
  if (threadIdx.x == 0) product = 1.0f;
  if (!kBug) __syncthreads();
  int *word = reinterpret_cast<int*>(&product), old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(__int_as_float(assumed) * a[thread_index()]));
  } while (old != assumed);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = product;
}

IDIOM_OF(product, call.size(0) / kThreads, kThreads)

// ---------------------------------------------------------------------------------------------------------------------
// Sums, counts, largest values

template <bool kBug>
__global__ void histogram_kernel(const int* a, int* bins, int n) {
  __shared__ int counts[16];
  if (threadIdx.x < 16) counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = thread_index(); i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[a[i]], 1);
  if (!kBug) __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], counts[threadIdx.x]);
}

IDIOM_OF(histogram, 3, kThreads)

template <bool kBug>
__global__ void signed_bins_kernel(const int* a, int* bins, int n) {  // from -128 to 127
  const int i = thread_index();
  if (i < n) atomicAdd(&bins[a[i] + (kBug ? 0 : 128)], 1);
}

IDIOM_OF(signed_bins, ceil_div(call.n(0), kThreads), kThreads)

template <bool kBug>
__global__ void dot_kernel(const double* a, const double* b, double* dot, int n) {
  double sum = 0.0;
  for (int i = thread_index(); i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  if (kBug)
    *dot += sum;
  else
    atomicAdd(dot, sum);
}

IDIOM_OF(dot, 2, 40)

// The place of the largest of some non-negative numbers: value and index in one word, so that one atomic moves both.
template <bool kBug>
__global__ void argmax_kernel(const float* a, unsigned long long* best, int n) {
  const int i = thread_index();
  if (i >= n) return;
  const auto packed = static_cast<unsigned long long>(__float_as_uint(a[i])) << 32 | static_cast<unsigned>(i);
  if (kBug)
    *best = packed > *best ? packed : *best;
  else
    atomicMax(best, packed);
}

__global__ void unpack_kernel(const unsigned long long* best, int* index) { *index = static_cast<int>(*best); }

IDIOM(argmax) {
  const int n = call.n(0);
  auto* best = call.data<unsigned long long>(1);
  argmax_kernel<kBug><<<ceil_div(n, kThreads), kThreads>>>(call.floats(0), best, n);
  unpack_kernel<<<1, 1>>>(best, call.ints(2));
}

// The gradient of an embedding: rows are added where their words say; -1 is padding.
template <bool kBug>
__global__ void embedding_kernel(const int* words, const float* gradients, float* out, int n, int width) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || x >= width) return;
  if (!kBug && words[i] < 0) return;
  atomicAdd(&out[words[i] * width + x], gradients[i * width + x]);
}

IDIOM_OF(embedding, dim3(ceil_div(call.n(1), 8), ceil_div(call.n(0), 8)), dim3(8, 8))

// How many of the points that each thread draws lie in a quarter of a circle. A thread keeps its generator's state.
template <bool kBug>
__global__ void monte_carlo_kernel(unsigned* states, int* hits, int draws) {
  const int id = kBug ? threadIdx.x : thread_index();
  unsigned state = states[id];
  int mine = 0;
  for (int draw = 0; draw < draws; ++draw) {
    state = state * 1664525u + 1013904223u;
    const unsigned x = state >> 17;
    state = state * 1664525u + 1013904223u;
    const unsigned y = state >> 17;
    mine += x * x + y * y < 1u << 30;
  }
  states[id] = state;
  atomicAdd(hits, mine);
}

IDIOM_OF(monte_carlo, call.size(0) / 32, 32)

// The k largest of each row, in order: a value's rank is the number of values before it.
template <bool kBug>
__global__ void top_k_kernel(const float* a, float* out, int n, int k) {
  __shared__ float values[kThreads];
  const int i = threadIdx.x;
  if (i < n) values[i] = a[blockIdx.x * n + i];
  __syncthreads();
  if (i >= n) return;
  int rank = 0;
  for (int other = 0; other < n; ++other)
    rank += values[other] > values[i] || (values[other] == values[i] && other < i);
  if (kBug || rank < k) out[blockIdx.x * k + rank] = values[i];
}

IDIOM_OF(top_k, call.n(2), kThreads)

// Where each run of equal numbers starts, and its number; one block.
template <bool kBug>
__global__ void run_starts_kernel(const int* a, int* starts, int* symbols, int n) {
  __shared__ int flags[kThreads];
  const int i = threadIdx.x;
  const bool first = i < n && ((!kBug && i == 0) || a[i] != a[i - 1]);
  flags[i] = first;
  __syncthreads();
  if (!first) return;
  int place = 0;
  for (int k = 0; k < i; ++k) place += flags[k];
  starts[place] = i;
  symbols[place] = a[i];
}

IDIOM(run_starts) {
  int* starts = call.ints(1);
  run_starts_kernel<kBug><<<1, kThreads>>>(call.ints(0), starts, starts + call.size(1) / 2, call.n(0));
}

// ---------------------------------------------------------------------------------------------------------------------
// Lists and queues

// Each value is pushed to the front of its bucket's list; -1 ends a list.
__global__ void push_kernel(const int* values, int* heads, int* next, int n) {
  const int i = thread_index();
  if (i < n) next[i] = atomicExch(&heads[values[i] % 8], i);
}

template <bool kBug>
__global__ void walk_kernel(const int* values, const int* heads, const int* next, int* sums) {
  int sum = 0;
  for (int i = heads[threadIdx.x]; i >= (kBug ? -1 : 0); i = next[i]) sum += values[i];
  sums[threadIdx.x] = sum;
}

IDIOM(linked_lists) {
  const int n = call.n(0);
  push_kernel<<<ceil_div(n, kThreads), kThreads>>>(call.ints(0), call.ints(1), call.ints(2), n);
  walk_kernel<kBug><<<1, 8>>>(call.ints(0), call.ints(1), call.ints(2), call.ints(3));
}

// A ring of 64 slots, in which `tail` counts all that was ever pushed.
template <bool kBug>
__global__ void ring_push_kernel(const int* a, int* ring, unsigned* tail, int n) {
  const int i = thread_index();
  if (i >= n) return;
  const unsigned slot = atomicAdd(tail, 1u);
  ring[kBug ? slot : slot % 64] = a[i];
}

__global__ void ring_pop_kernel(const int* ring, int* out, unsigned head, int n) {
  const int i = thread_index();
  if (i < n) out[i] = ring[(head + i) % 64];
}

IDIOM(ring) {
  const int n = call.n(0), head = call.n(1);
  ring_push_kernel<kBug><<<ceil_div(n, 32), 32>>>(call.ints(0), call.ints(1), call.data<unsigned>(2), n);
  ring_pop_kernel<<<ceil_div(n, 32), 32>>>(call.ints(1), call.ints(3), head, n);
}

// Each thread posts a message, and takes its partner's if that is there: state 1 is posted, 2 is taken.
template <bool kBug>
__global__ void mailbox_kernel(const int* a, int* boxes, int* states, int* sum, int n) {
  const int i = thread_index(), partner = n - 1 - i;
  if (i >= n) return;
  boxes[i] = a[i];
  if (!kBug) __threadfence();
  atomicExch(&states[i], 1);
  if (atomicCAS(&states[partner], 1, 2) != 1) return;
  __threadfence();
  atomicAdd(sum, boxes[partner]);
}

__global__ void leftover_kernel(const int* boxes, const int* states, int* sum, int n) {
  const int i = thread_index();
  if (i < n && states[i] == 1) atomicAdd(sum, boxes[i]);
}

IDIOM(mailboxes) {
  const int n = call.n(0);
  mailbox_kernel<kBug><<<ceil_div(n, 32), 32>>>(call.ints(0), call.ints(3), call.ints(1), call.ints(2), n);
  leftover_kernel<<<ceil_div(n, 32), 32>>>(call.ints(3), call.ints(1), call.ints(2), n);
}

// ---------------------------------------------------------------------------------------------------------------------
// Graphs; an edge is a pair of nodes

// The root of a tree of nodes. The reads are atomic, since other threads move roots meanwhile.
__device__ int root_of(int* parents, int node) {
  for (int up; (up = atomicAdd(&parents[node], 0)) != node;) node = up;
  return node;
}

// Union-find: the larger root is hooked below the smaller one, if it is still a root.
template <bool kBug>
__global__ void unite_kernel(const int* edges, int* parents, int n) {
  const int i = thread_index();
  if (i >= n) return;
  int a = edges[2 * i], b = edges[2 * i + 1];
  for (;;) {
    a = root_of(parents, a);
    b = root_of(parents, b);
    if (a == b) return;
    const int high = max(a, b), low = min(a, b);
    if ((kBug ? parents[high] = low, high : atomicCAS(&parents[high], high, low)) == high) return;
  }
}

__global__ void roots_kernel(int* parents, int* out, int n) {
  const int i = thread_index();
  if (i < n) out[i] = root_of(parents, i);
}

IDIOM(union_find) {
  const int edges = call.n(0), nodes = call.n(1);
  unite_kernel<kBug><<<ceil_div(edges, 32), 32>>>(call.ints(0), call.ints(1), edges);
  roots_kernel<<<ceil_div(nodes, 32), 32>>>(call.ints(1), call.ints(2), nodes);
}

// Connected components: labels fall to the neighbours' until none changes.
template <bool kBug>
__global__ void lower_labels_kernel(const int* edges, const int* before, int* after, int* changed, int n) {
  const int i = thread_index();
  if (i >= 2 * n) return;
  const int from = edges[i], to = edges[i ^ 1];
  const int label = kBug ? after[from] : before[from];
  if (label < before[to] && label < atomicMin(&after[to], label)) atomicOr(changed, 1);
}

IDIOM(components) {
  const int edges = call.n(0);
  const size_t bytes = call.size(1) * sizeof(int);
  int *before = call.ints(1), *after = call.ints(2), *changed = call.ints(3);
  do {
    *changed = 0;
    cudaMemcpy(after, before, bytes, cudaMemcpyDeviceToDevice);
    lower_labels_kernel<kBug><<<ceil_div(2 * edges, 32), 32>>>(call.ints(0), before, after, changed, edges);
    cudaMemcpy(before, after, bytes, cudaMemcpyDeviceToDevice);
  } while (*changed);
}

// A level of a breadth-first search. Threads may reach a node together: all of them store the same values.
template <bool kBug>
__global__ void level_kernel(const int* edges, const bool* frontier, bool* visited, bool* next, int* depths, int level,
                             int n) {
  const int i = thread_index();
  if (i >= 2 * n) return;
  const int from = edges[i], to = edges[i ^ 1];
  if (!frontier[from] || visited[to]) return;
  depths[to] = level;
  next[to] = true;
  if (kBug) visited[to] = true;
}

__global__ void advance_kernel(bool* frontier, bool* visited, bool* next, bool* more, int n) {
  const int i = thread_index();
  if (i >= n) return;
  frontier[i] = next[i];
  next[i] = false;
  if (!frontier[i]) return;
  visited[i] = true;
  *more = true;
}

IDIOM(bfs) {  // flags: frontier, visited, next, and whether there is a further level
  const int edges = call.n(0), nodes = call.n(1);
  bool *frontier = call.data<bool>(1), *visited = frontier + nodes, *next = visited + nodes, *more = next + nodes;
  for (int level = 1; *more; ++level) {
    *more = false;
    level_kernel<kBug>
        <<<ceil_div(2 * edges, 32), 32>>>(call.ints(0), frontier, visited, next, call.ints(2), level, edges);
    advance_kernel<<<ceil_div(nodes, 32), 32>>>(frontier, visited, next, more, nodes);
  }
}
