// agreement.cu: one program for two compilers. Built by nvcc it runs on a GPU, built by the host's compiler it runs on
// the simulator's headers; test_simt_headers.py compares their outputs, value by value. Intrinsics for integers are in
// test_ptx_values.py, which runs on both.
//
// Usage: agreement FILE. Writes kSamples 32-bit results per function to FILE and the functions' names to stdout.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kSamples = 65536;

__host__ __device__ inline unsigned scrambled(unsigned x) {  // pseudo-random, the same everywhere
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

struct Inputs {
  unsigned i, u, v;  // the sample's index and two random words
  __half h, g, k;    // h runs through all values, g and k are random
  __half2 h2, g2;
  __nv_bfloat16 b, c, e;
  __nv_bfloat162 b2, c2;
  float x, y;  // random bits, often near integers and ties
  double d;
};

__device__ inline Inputs inputs(unsigned i) {
  Inputs in;
  in.i = i;
  in.u = scrambled(3 * i);
  in.v = scrambled(3 * i + 1);
  in.h = __ushort_as_half(static_cast<unsigned short>(i));
  in.g = __ushort_as_half(static_cast<unsigned short>(in.u));
  in.k = __ushort_as_half(static_cast<unsigned short>(in.v));
  in.h2 = __halves2half2(in.h, in.g);
  in.g2 = __halves2half2(in.g, in.k);
  in.b = __ushort_as_bfloat16(static_cast<unsigned short>(i));
  in.c = __ushort_as_bfloat16(static_cast<unsigned short>(in.u));
  in.e = __ushort_as_bfloat16(static_cast<unsigned short>(in.v));
  in.b2 = __halves2bfloat162(in.b, in.c);
  in.c2 = __halves2bfloat162(in.c, in.e);
  in.x = i % 2 ? __uint_as_float(in.u) : static_cast<float>(static_cast<int>(in.u) >> in.v % 32) * 0.25f;
  in.y = i % 3 ? __uint_as_float(in.v) : static_cast<float>(static_cast<int>(in.v) >> in.u % 32) * 0.125f;
  in.d = i % 5 ? __hiloint2double(static_cast<int>(in.u), static_cast<int>(in.v)) : in.x * 1.0000000001;
  return in;
}

__device__ inline unsigned bits(unsigned x) { return x; }
__device__ inline unsigned bits(int x) { return static_cast<unsigned>(x); }
__device__ inline unsigned bits(bool x) { return x; }
__device__ inline unsigned bits(unsigned long long x) { return static_cast<unsigned>(x ^ x >> 32); }
__device__ inline unsigned bits(long long x) { return bits(static_cast<unsigned long long>(x)); }
__device__ inline unsigned bits(short x) { return static_cast<unsigned>(x); }
__device__ inline unsigned bits(float x) { return x != x ? 0x7fc00000u : __float_as_uint(x); }
__device__ inline unsigned bits(double x) { return x != x ? 1u : bits(__double_as_longlong(x)); }
__device__ inline unsigned bits(__half x) { return __hisnan(x) ? 0x7fff : __half_as_ushort(x); }
__device__ inline unsigned bits(__nv_bfloat16 x) { return __hisnan(x) ? 0x7fff : __bfloat16_as_ushort(x); }
__device__ inline unsigned bits(__half2 x) { return bits(x.x) | bits(x.y) << 16; }
__device__ inline unsigned bits(__nv_bfloat162 x) { return bits(x.x) | bits(x.y) << 16; }

// "~" before a name: the GPU's result is approximate; a 16-bit one may differ in its last place.
#define FUNCTIONS(F)                                                                                            \
  F("__float2ll_rd", __float2ll_rd(n.x))                                                                        \
  F("__double2ull_ru", __double2ull_ru(n.d))                                                                    \
  F("__ull2float_ru", __ull2float_ru(static_cast<unsigned long long>(n.u) << 32 | n.v))                         \
  F("__ll2double_rd", __ll2double_rd(static_cast<long long>(static_cast<unsigned long long>(n.u) << 32 | n.v))) \
  F("__fdiv_rd", __fdiv_rd(n.x, n.y))                                                                           \
  F("__fsqrt_ru", __fsqrt_ru(n.x))                                                                              \
  F("__frcp_rd", __frcp_rd(n.x))                                                                                \
  F("__frsqrt_rn", __frsqrt_rn(n.x))                                                                            \
  F("__dadd_rd", __dadd_rd(n.d, 1e10))                                                                          \
  F("__fma_ru", __fma_ru(n.d, 1.1, 3.0))                                                                        \
  F("__half2float", __half2float(n.h))                                                                          \
  F("__float2half_rn", __float2half_rn(n.x))                                                                    \
  F("__float2half_rz", __float2half_rz(n.x))                                                                    \
  F("__float2half_ru", __float2half_ru(n.x))                                                                    \
  F("__float2half_rd", __float2half_rd(n.y))                                                                    \
  F("__double2half", __double2half(n.d))                                                                        \
  F("__int2half_rz", __int2half_rz(static_cast<int>(n.u) >> n.v % 32))                                          \
  F("__half2int_rn", __half2int_rn(n.h))                                                                        \
  F("__half2short_ru", __half2short_ru(n.h))                                                                    \
  F("__half2ull_rd", __half2ull_rd(n.h))                                                                        \
  F("__half2ll_rz", __half2ll_rz(n.h))                                                                          \
  F("__hadd2", __hadd2(n.h2, n.g2))                                                                             \
  F("__hsub2_sat", __hsub2_sat(n.h2, n.g2))                                                                     \
  F("__hmul2", __hmul2(n.h2, n.g2))                                                                             \
  F("~__h2div", __h2div(n.h2, n.g2))                                                                            \
  F("__hfma2", __hfma2(n.h2, n.g2, n.h2))                                                                       \
  F("__hfma2_relu", __hfma2_relu(n.h2, n.g2, n.h2))                                                             \
  F("__hfma2_sat", __hfma2_sat(n.h2, n.g2, n.g2))                                                               \
  F("__hmin2", __hmin2(n.h2, n.g2))                                                                             \
  F("__hmax_nan", __hmax_nan(n.h, n.g))                                                                         \
  F("__hcmadd", __hcmadd(n.h2, n.g2, n.h2))                                                                     \
  F("__hlt2_mask", __hlt2_mask(n.h2, n.g2))                                                                     \
  F("__hneu2", __hneu2(n.h2, n.g2))                                                                             \
  F("__hisinf", __hisinf(n.h))                                                                                  \
  F("hrint", hrint(n.h))                                                                                        \
  F("hceil", hceil(n.h))                                                                                        \
  F("~hexp", hexp(n.h))                                                                                         \
  F("~hexp2", hexp2(n.h))                                                                                       \
  F("~hlog", hlog(n.h))                                                                                         \
  F("~hlog10", hlog10(n.h))                                                                                     \
  F("~hsqrt", hsqrt(n.h))                                                                                       \
  F("~hrsqrt", hrsqrt(n.h))                                                                                     \
  F("~hrcp", hrcp(n.h))                                                                                         \
  F("~hsin", hsin(n.h))                                                                                         \
  F("~hcos", hcos(n.h))                                                                                         \
  F("~htanh", htanh(n.h))                                                                                       \
  F("__float2bfloat16_rn", __float2bfloat16_rn(n.x))                                                            \
  F("__float2bfloat16_ru", __float2bfloat16_ru(n.x))                                                            \
  F("__float2bfloat16_rz", __float2bfloat16_rz(n.x))                                                            \
  F("__double2bfloat16", __double2bfloat16(n.d))                                                                \
  F("__int2bfloat16_rn", __int2bfloat16_rn(static_cast<int>(n.u)))                                              \
  F("__ull2bfloat16_rd", __ull2bfloat16_rd(static_cast<unsigned long long>(n.u) << 32 | n.v))                   \
  F("__bfloat162int_rz", __bfloat162int_rz(n.b))                                                                \
  F("__bfloat162uint_rn", __bfloat162uint_rn(n.b))                                                              \
  F("bfloat16 __hadd2", __hadd2(n.b2, n.c2))                                                                    \
  F("bfloat16 __hmul2", __hmul2(n.b2, n.c2))                                                                    \
  F("~bfloat16 __h2div", __h2div(n.b2, n.c2))                                                                   \
  F("bfloat16 __hfma2", __hfma2(n.b2, n.c2, __halves2bfloat162(n.e, n.b)))                                      \
  F("bfloat16 __hfma on ties",                                                                                  \
    __hfma(__float2bfloat16(1 + n.u % 64 / 64.0f), __float2bfloat16(1 + n.v % 64 / 64.0f), n.b))                \
  F("bfloat16 __hmax2", __hmax2(n.b2, n.c2))                                                                    \
  F("~bfloat16 hexp", hexp(n.b))                                                                                \
  F("~bfloat16 hlog2", hlog2(n.b))                                                                              \
  F("~bfloat16 hrsqrt", hrsqrt(n.b))

#define NAME(name, expression) name,
static const char* const kNames[] = {FUNCTIONS(NAME)};
constexpr int kCount = sizeof(kNames) / sizeof(kNames[0]);

__device__ inline void evaluate(unsigned i, unsigned* out) {
  const Inputs n = inputs(i);
#define STORE(name, expression) *out = bits(expression), out += kSamples;
  out += i;
  FUNCTIONS(STORE)
}

#if defined(__CUDACC__)
__global__ void evaluate_kernel(unsigned* out) { evaluate(blockIdx.x * blockDim.x + threadIdx.x, out); }

static void run(std::vector<unsigned>& results) {
  unsigned* device;
  cudaMalloc(&device, results.size() * sizeof(unsigned));
  evaluate_kernel<<<kSamples / 256, 256>>>(device);
  cudaMemcpy(results.data(), device, results.size() * sizeof(unsigned), cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess) std::exit(2);
}
#else
static void run(std::vector<unsigned>& results) {
  for (unsigned i = 0; i < kSamples; ++i) evaluate(i, results.data());
}
#endif

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::vector<unsigned> results(static_cast<size_t>(kCount) * kSamples);
  run(results);
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 2;
  std::fwrite(results.data(), sizeof(unsigned), results.size(), file);
  std::fclose(file);
  for (const char* name : kNames) std::puts(name);
}
