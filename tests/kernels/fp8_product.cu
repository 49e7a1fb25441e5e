// fp8_product.cu: wgmma_e4m3<256> alone, for tests: c += a @ b.T with a of 64 x 128 and b of 256 x 128 elements of e4m3.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include "case.h"
#include "hopper_fp8.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"

struct Factors {
  uint8_t a[64][hopper::kRowBytes], b[256][hopper::kRowBytes];
};

// A warp group. instructions: how many, of 32 elements along k each.
__global__ void fp8_product_kernel(const uint8_t* a, const uint8_t* b, float* c, int instructions) {
  extern __shared__ __align__(1024) char memory[];
  Factors& factors = hopper::aligned<Factors>(memory);
  int t = threadIdx.x;
  auto copy = [&](void* to, const uint8_t* from, int bytes) {
    for (int i = t; i < bytes; i += blockDim.x) static_cast<uint8_t*>(to)[hopper::swizzled(i)] = from[i];
  };
  copy(factors.a, a, sizeof factors.a);
  copy(factors.b, b, sizeof factors.b);
  auto element = [&](int i) -> float& {  // of c, which d[i] of this thread is
    return c[(16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 % 2)) * 256 + 8 * (i / 4) + t % 4 * 2 + i % 2];
  };
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = element(i);
  hopper::fence_before_store();  // wgmma reads as TMA does
  __syncthreads();
  hopper::wgmma_fence();
  for (int k = 0; k < instructions; ++k)
    hopper::wgmma_e4m3<256>(d, hopper::descriptor(factors.a, 16) + k * (32 >> 4),
                            hopper::descriptor(factors.b, 16) + k * (32 >> 4), 1);
  hopper::wgmma_commit();
  hopper::wgmma_wait_for(d);
#pragma unroll
  for (int i = 0; i < 128; ++i) element(i) = d[i];
}

// a and b: float8_e4m3fn, contiguous; c: float32, 64 x 256, contiguous.
CASE(add_product) {
  constexpr int bytes = hopper::kSharedBytes<Factors>;
  STD_CUDA_CHECK(cudaFuncSetAttribute(fp8_product_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  fp8_product_kernel<<<1, 128, bytes>>>(call.data<uint8_t>(0), call.data<uint8_t>(1), call.data<float>(2),
                                        int(call.number(0)));
}
