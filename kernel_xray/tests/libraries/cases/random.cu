// random.cu: cuRAND in kernels and on the host; the values go into tensors, to be compared with their definition.
#include <curand.h>
#include <curand_kernel.h>

#include "case.h"

namespace {

enum Kind { kBits, kUniform, kUniformDouble, kNormal, kNormalDouble, kLogNormal, kLogNormalDouble, kPoisson };

template <typename State>
__device__ void draw(State* state, int64_t kind, double parameter, unsigned* bits, double* value) {
  *bits = 0;
  *value = 0;
  if (kind == kBits) *bits = curand(state);
  if (kind == kUniform) *value = curand_uniform(state);
  if (kind == kUniformDouble) *value = curand_uniform_double(state);
  if (kind == kNormal) *value = curand_normal(state);
  if (kind == kNormalDouble) *value = curand_normal_double(state);
  if (kind == kLogNormal) *value = curand_log_normal(state, 0.25f, static_cast<float>(parameter));
  if (kind == kLogNormalDouble) *value = curand_log_normal_double(state, 0.25, parameter);
  if (kind == kPoisson) *value = curand_poisson(state, parameter);
}

// One thread draws a sequence.
template <typename State>
__global__ void sequence_kernel(int64_t seed, int64_t sequence, int64_t offset, int64_t kind, int n, unsigned* bits,
                                double* values) {
  State state;
  curand_init(static_cast<unsigned long long>(seed), static_cast<unsigned long long>(sequence),
              static_cast<unsigned long long>(offset), &state);
  for (int i = 0; i < n; ++i) draw(&state, kind, 2.0, bits + i, values + i);
}

// Each thread keeps its state in global memory between two launches, as programs do.
template <typename State>
__global__ void init_kernel(State* states, int n, int64_t seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) curand_init(static_cast<unsigned long long>(seed), i, 0, &states[i]);
}
template <typename State>
__global__ void draw_kernel(State* states, int n, int64_t kind, double parameter, int each, double* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  State state = states[i];
  unsigned bits;
  for (int k = 0; k < each; ++k) draw(&state, kind, parameter, &bits, values + k * n + i);
  states[i] = state;
}

template <typename Body>
void with_state(int64_t number, Body body) {
  if (number == 0) body(curandState());
  if (number == 1) body(curandStatePhilox4_32_10_t());
  if (number == 2) body(curandStateMRG32k3a_t());
}

}  // namespace

CASE(sequence) {  // engine, seed, sequence, offset, kind; bits, values
  with_state(call.number(0), [&](auto state) {
    sequence_kernel<decltype(state)><<<1, 1>>>(call.number(1), call.number(2), call.number(3), call.number(4),
                                               call.size(0), call.data<unsigned>(0), call.data<double>(1));
  });
}

CASE(grid) {  // engine, seed, kind, threads, draws of each, the parameter in hundredths; values
  with_state(call.number(0), [&](auto state) {
    using State = decltype(state);
    const int n = static_cast<int>(call.number(3)), each = static_cast<int>(call.number(4));
    State* states;
    EXPECT_SUCCESS(cudaMalloc(&states, n * sizeof(State)));
    init_kernel<<<(n + 127) / 128, 128>>>(states, n, call.number(1));
    for (int k = 0; k < each; k += each / 2)
      draw_kernel<<<(n + 127) / 128, 128>>>(states, n, call.number(2), static_cast<double>(call.number(5)) / 100,
                                            each / 2, call.data<double>(0) + k * n);
    EXPECT_SUCCESS(cudaFree(states));
  });
}

// Skips in several steps, then draws: for the known answers of Philox, whose counters no offset reaches.
__global__ void philox_kernel(unsigned long long seed, unsigned long long sequence, unsigned long long low,
                              unsigned* out) {
  curandStatePhilox4_32_10_t state;
  curand_init(seed, sequence, 0, &state);
  for (int i = 0; i < 4; ++i) skipahead(low, &state);  // the counter moves on by `low`
  for (int i = 0; i < 4; ++i) out[i] = curand(&state);
}
CASE_OF(philox, 1, 1)

__device__ void store(double* out, float4 four) { store_all(out, four.x, four.y, four.z, four.w); }
__device__ void store(double* out, double2 two) { store_all(out, two.x, two.y); }
__device__ void store(double* out, float2 two) { store_all(out, two.x, two.y); }

// Four at once, after `before` single numbers.
__global__ void fours_kernel(unsigned long long seed, int before, int64_t kind, unsigned* bits, double* out) {
  curandStatePhilox4_32_10_t state;
  curand_init(seed, 0, 0, &state);
  for (int i = 0; i < before; ++i) curand(&state);
  if (kind == 0) {
    const uint4 four = curand4(&state);
    store_all(bits, four.x, four.y, four.z, four.w);
  }
  if (kind == 1) store(out, curand_uniform4(&state));
  if (kind == 2) store(out, curand_uniform2_double(&state));
  if (kind == 3) store(out, curand_normal4(&state));
  if (kind == 4) store(out, curand_normal2_double(&state));
  if (kind == 5) store(out, curand_normal2(&state));
  if (kind == 6) store(out, curand_log_normal4(&state, 0.25f, 2.0f));
}
CASE_OF(fours, 1, 1)

// ------------------------------------------------------------------------------------------------------------------
// The host's interface

namespace {

void expect_random(curandStatus_t status, int line) {
  if (status == CURAND_STATUS_SUCCESS) return;
  throw std::runtime_error("line " + std::to_string(line) + ": cuRAND returned " + std::to_string(status));
}
#define EXPECT_RANDOM(call) expect_random((call), __LINE__)

constexpr curandRngType_t kTypes[] = {CURAND_RNG_PSEUDO_DEFAULT, CURAND_RNG_PSEUDO_PHILOX4_32_10,
                                      CURAND_RNG_PSEUDO_MRG32K3A};

struct Generator {
  curandGenerator_t generator;
  explicit Generator(curandRngType_t type) { EXPECT_RANDOM(curandCreateGenerator(&generator, type)); }
  ~Generator() { curandDestroyGenerator(generator); }
};

}  // namespace

// engine, seed, offset, ordering, kind, the parameter in hundredths; out, filled by two calls, of which the first takes
// the given number
CASE(generate) {
  const Generator made(kTypes[call.number(0)]);
  curandGenerator_t g = made.generator;
  EXPECT_RANDOM(curandSetPseudoRandomGeneratorSeed(g, static_cast<unsigned long long>(call.number(1))));
  EXPECT_RANDOM(curandSetGeneratorOffset(g, static_cast<unsigned long long>(call.number(2))));
  EXPECT_RANDOM(curandSetGeneratorOrdering(g, static_cast<curandOrdering_t>(call.number(3))));
  const double parameter = static_cast<double>(call.number(5)) / 100;
  const size_t sizes[] = {static_cast<size_t>(call.number(6)), call.size(0) - static_cast<size_t>(call.number(6))};
  size_t done = 0;
  for (size_t n : sizes) {
    unsigned* bits = call.data<unsigned>(0) + done;
    float* floats = call.data<float>(0) + done;
    double* doubles = call.data<double>(0) + done;
    done += n;
    if (n == 0) continue;
    const float spread = static_cast<float>(parameter);
    if (call.number(4) == kBits) EXPECT_RANDOM(curandGenerate(g, bits, n));
    if (call.number(4) == kUniform) EXPECT_RANDOM(curandGenerateUniform(g, floats, n));
    if (call.number(4) == kUniformDouble) EXPECT_RANDOM(curandGenerateUniformDouble(g, doubles, n));
    if (call.number(4) == kNormal) EXPECT_RANDOM(curandGenerateNormal(g, floats, n, 0.25f, spread));
    if (call.number(4) == kNormalDouble) EXPECT_RANDOM(curandGenerateNormalDouble(g, doubles, n, 0.25, parameter));
    if (call.number(4) == kLogNormal) EXPECT_RANDOM(curandGenerateLogNormal(g, floats, n, 0.25f, spread));
    if (call.number(4) == kLogNormalDouble)
      EXPECT_RANDOM(curandGenerateLogNormalDouble(g, doubles, n, 0.25, parameter));
    if (call.number(4) == kPoisson) EXPECT_RANDOM(curandGeneratePoisson(g, bits, n, parameter));
  }
}

CASE(statuses) {
  const Generator made(CURAND_RNG_PSEUDO_DEFAULT);
  float* x = call.data<float>(0);
  EXPECT(curandGenerateNormal(made.generator, x, 3, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  EXPECT(curandGenerateUniform(nullptr, x, 4) == CURAND_STATUS_NOT_INITIALIZED);
  curandGenerator_t none;
  EXPECT(curandCreateGenerator(&none, static_cast<curandRngType_t>(7)) == CURAND_STATUS_TYPE_ERROR);
  EXPECT(curandGenerateLongLong(made.generator, nullptr, 2) == CURAND_STATUS_TYPE_ERROR);
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_RANDOM(curandSetStream(made.generator, stream));
  EXPECT_RANDOM(curandGenerateSeeds(made.generator));
  EXPECT_RANDOM(curandGenerateUniform(made.generator, x, 4));
  EXPECT_RANDOM(curandSetStream(made.generator, nullptr));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  int version = 0;
  EXPECT_RANDOM(curandGetVersion(&version));
  EXPECT(version >= 10000);
}

#ifdef __SIMT__
CASE(refused) {
  curandGenerator_t generator;
  if (call.number(0) == 0) curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_MTGP32);
  if (call.number(0) == 1) {
    const Generator made(CURAND_RNG_PSEUDO_DEFAULT);
    float* x;
    EXPECT_SUCCESS(cudaMalloc(&x, 16));
    curandGenerateUniform(made.generator, x, 5);
  }
}
#endif
