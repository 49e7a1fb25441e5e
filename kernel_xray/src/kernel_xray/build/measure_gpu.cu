// measure_gpu.cu: what a GPU does at most in a second, and the least time of what it waits for, by micro-kernels.
//
// Prints a line `NAME VALUE` for each figure, in bytes, operations, seconds and hertz. Each is the best of several
// runs: no kernel should be faster. The first argument divides all sizes; with more than 1 the figures mean nothing.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t error_ = (call);                                     \
    if (error_ != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

constexpr int kThreads = 256, kRuns = 12;

// ---------------------------------------------------------------------------------------------------------------------
// Bandwidth: each thread has four accesses of 16 bytes in flight

__global__ void read_kernel(const float4* in, size_t count, int rounds, float* out) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i + 3 * step < count; i += 4 * step) {
      float4 values[4];
      for (int k = 0; k < 4; ++k) values[k] = __ldcg(in + i + k * step);  // past the L1 cache
      for (int k = 0; k < 4; ++k) sum += values[k].x + values[k].y + values[k].z + values[k].w;
    }
  if (sum == 12345.0f) *out = sum;  // never: the memory is zero
}

__global__ void copy_kernel(const float4* in, size_t count, float4* out) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i + 3 * step < count; i += 4 * step) {
    float4 values[4];
    for (int k = 0; k < 4; ++k) values[k] = in[i + k * step];
    for (int k = 0; k < 4; ++k) out[i + k * step] = values[k];
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Arithmetic: eight independent chains a thread

template <typename T>
__global__ void multiply_add_kernel(int rounds, T factor, T* out) {
  T sums[8];
  for (int k = 0; k < 8; ++k) sums[k] = T(threadIdx.x + k);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll 16
    for (int turn = 0; turn < 16; ++turn)
#pragma unroll
      for (int k = 0; k < 8; ++k) sums[k] = sums[k] * factor + factor;
  }
  T sum = 0;
  for (int k = 0; k < 8; ++k) sum += sums[k];
  if (sum == T(-1)) *out = sum;  // never
}

// ---------------------------------------------------------------------------------------------------------------------
// Latency: one thread, each of whose loads gives the next one's index

enum class Level { none, l1, l2 };

template <Level level>
__device__ uint32_t loaded(const uint32_t* from) {
  uint32_t value = 0;
  if (level == Level::l1) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  if (level == Level::l2) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

__global__ void link_kernel(uint32_t* next, uint32_t count, uint32_t stride) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    next[i] = (i + stride) % count;
}

// The fewest cycles from before a load until its value has been stored to shared memory.
template <Level level>
__global__ void chase_kernel(const uint32_t* next, int steps, unsigned long long* cycles) {
  __shared__ volatile uint32_t sink;
  unsigned long long least = ~0ull;
  uint32_t at = 0;
  for (int i = 0; i < steps; ++i) {
    const long long begin = clock64();
    at = loaded<level>(next + at + (begin == 0));
    sink = at;
    const auto taken = static_cast<unsigned long long>(clock64() - begin);
    if (i > 0 && taken < least) least = taken;
  }
  *cycles = least;
}

__global__ void empty_kernel() {}

// ---------------------------------------------------------------------------------------------------------------------

// The least seconds of what `work` enqueues.
static double best_of(int runs, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  float least = 1e30f;
  for (int run = 0; run < runs; ++run) {
    CHECK(cudaEventRecord(begin));
    work();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaGetLastError());
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (milliseconds > 0) least = std::min(least, milliseconds);
  }
  return least / 1e3;
}

static void print(const char* name, double value) { std::printf("%s %.6g\n", name, value); }

// Seconds of one empty kernel among many, which follow one another in a graph.
static double launch_seconds(int launches) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < launches; ++i) empty_kernel<<<1, 32, 0, stream>>>();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiateWithFlags(&ready, graph, 0));
  return best_of(kRuns, [&] { CHECK(cudaGraphLaunch(ready, 0)); }) / launches;
}

template <Level level>
static double least_cycles(const uint32_t* next, int steps) {
  unsigned long long* cycles = nullptr;
  CHECK(cudaMalloc(&cycles, sizeof *cycles));
  chase_kernel<level><<<1, 1>>>(next, steps, cycles);
  unsigned long long found = 0;
  CHECK(cudaMemcpy(&found, cycles, sizeof found, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(cycles));
  return static_cast<double>(found);
}

int main(int argc, char** argv) {
  const size_t divisor = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  cudaDeviceProp gpu{};
  CHECK(cudaGetDeviceProperties(&gpu, 0));
  int kilohertz = 0, driver = 0, runtime = 0;
  CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  const double hertz = 1e3 * kilohertz;
  std::printf("name %s\ncapability %d.%d\ndriver %d\nruntime %d\n", gpu.name, gpu.major, gpu.minor, driver, runtime);
  print("sms", gpu.multiProcessorCount);
  print("clock_hz", hertz);
  print("l2_bytes", gpu.l2CacheSize);

  const size_t bytes = std::max<size_t>(size_t{1} << 20, std::min(size_t{4} << 30, gpu.totalGlobalMem / 4) / divisor);
  const size_t count = bytes / sizeof(float4);
  float4 *in = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&in, bytes));
  CHECK(cudaMalloc(&out, bytes));
  CHECK(cudaMemset(in, 0, bytes));
  CHECK(cudaMemset(out, 0, bytes));
  const int grid = static_cast<int>(std::max<size_t>(1, gpu.multiProcessorCount * 8 / divisor));
  auto* sink = reinterpret_cast<float*>(out);

  const size_t turn = size_t{4} * grid * kThreads, whole = count / turn * turn;  // a multiple of what a turn reads
  const double read = best_of(kRuns, [&] { read_kernel<<<grid, kThreads>>>(in, whole, 1, sink); });
  const double copied = best_of(kRuns, [&] { copy_kernel<<<grid, kThreads>>>(in, whole, out); });
  const double moved = whole * double{sizeof(float4)};
  print("dram_bytes_per_second", std::max(moved / read, 2 * moved / copied));

  double l2 = 0;
  const int rounds = divisor > 1 ? 2 : 64;
  for (const int part : {8, 4, 2}) {  // of the L2 cache: where it has two halves, a part that fits into one is faster
    const size_t cached = std::min(whole, std::max<size_t>(1, gpu.l2CacheSize / part / sizeof(float4) / turn) * turn);
    const double seconds = best_of(kRuns, [&] { read_kernel<<<grid, kThreads>>>(in, cached, rounds, sink); });
    l2 = std::max(l2, cached * double{sizeof(float4)} * rounds / seconds);
  }
  print("l2_bytes_per_second", l2);

  const int turns = divisor > 1 ? 1 : 4096;
  const double operations = 2.0 * 8 * 16 * turns * grid * kThreads;
  const double singles = best_of(kRuns, [&] { multiply_add_kernel<<<grid, kThreads>>>(turns, 0.5f, sink); });
  const double doubles = best_of(
      kRuns, [&] { multiply_add_kernel<<<grid, kThreads>>>(turns / 16 + 1, 0.5, reinterpret_cast<double*>(out)); });
  print("flops.float32", operations / singles);
  print("flops.float64", operations / turns * (turns / 16 + 1) / doubles);

  auto* next = reinterpret_cast<uint32_t*>(in);
  const auto large = static_cast<uint32_t>(std::min<size_t>(bytes, size_t{1} << 30) / sizeof(uint32_t));
  const int steps = divisor > 1 ? 16 : 4096;
  const double around = least_cycles<Level::none>(next, steps);  // of the measurement itself
  link_kernel<<<grid, kThreads>>>(next, 1024, 32);
  print("latency.l1", (least_cycles<Level::l1>(next, steps) - around) / hertz);
  print("latency.l2", (least_cycles<Level::l2>(next, steps) - around) / hertz);
  link_kernel<<<grid, kThreads>>>(next, large, 2048);  // 8 KB further each time: 32 MB from the start
  CHECK(cudaMemset(out, 0, bytes));                    // drives them out of the L2 cache
  print("latency.dram", (least_cycles<Level::l2>(next, steps) - around) / hertz);

  print("launch_seconds", launch_seconds(divisor > 1 ? 4 : 500));
  double rate = 0;
  const auto blocks = static_cast<unsigned>(std::max<size_t>(16, (size_t{1} << 22) / divisor));
  for (const int threads : {1, 32, 128, 256})
    rate = std::max(rate, blocks / best_of(kRuns, [&] { empty_kernel<<<blocks, threads>>>(); }));
  print("blocks_per_second", rate);
}
