// hopper_wgmma.cu: c = a @ b by each function of hopper_wgmma.h: a 64 x 64, b 64 x n, either of them transposed.
//
// a and b are matrices of a tile_map_3d, so that rows beyond their end are zeros. `wrong` plants a mistake.
#include "case.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"

using hopper::Barrier, hopper::bfloat16, hopper::TileMap;

enum { kNothing, kNoWaitForTile, kPanel, kStep, kTurned, kNoWait, kFlat };

template <int n>
struct Factors {
  bfloat16 a[64][64], b[n / 64][64][64];
  Barrier full;
};

template <int n, bool a_transposed, bool b_transposed, bool registers>
__global__ void product_kernel(const __grid_constant__ TileMap a, const __grid_constant__ TileMap b, float* c,
                               int matrix, int wrong) {
  extern __shared__ __align__(1024) char memory[];
  auto& factors = hopper::aligned<Factors<n>>(memory);
  int t = threadIdx.x;
  if (t == 0) {
    hopper::init(factors.full, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(factors.full, sizeof factors.a + sizeof factors.b);
    if (wrong == kFlat) hopper::load_tile(factors.a, a, factors.full, 0, 0);
    hopper::load_tile(factors.a, a, factors.full, matrix, 0, 0);
    for (int p = 0; p < n / 64; ++p)
      hopper::load_tile(factors.b[p], b, factors.full, matrix, b_transposed ? 0 : 64 * p, b_transposed ? 64 * p : 0);
  }
  __syncthreads();
  if (wrong != kNoWaitForTile) hopper::wait(factors.full, 0);
  uint64_t of_a = hopper::descriptor(factors.a, 16);
  uint64_t of_b = hopper::descriptor(factors.b, wrong == kPanel ? 64 : sizeof(factors.b[0]));
  float d[n / 2];
  uint32_t left[4][4];
  int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  if constexpr (registers) {
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < 4; ++i) {
        int at = (row + i % 2 * 8) * hopper::kRowBytes + (16 * k + column + i / 2 * 8) * 2;
        left[k][i] = *reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(factors.a) + hopper::swizzled(at));
      }
    }
  }
  hopper::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    int step_a = a_transposed ? 16 * hopper::kRowBytes : 32, step_b = b_transposed ? 16 * hopper::kRowBytes : 32;
    if (wrong == kStep) step_b /= 2;
    if constexpr (registers) {
      hopper::wgmma_registers<n, b_transposed>(d, left[k], of_b + k * (step_b >> 4), k > 0);
    } else if (wrong == kTurned) {
      hopper::wgmma_shared<n, !a_transposed, b_transposed>(d, of_a + k * (step_a >> 4), of_b + k * (step_b >> 4), k > 0);
    } else {
      hopper::wgmma_shared<n, a_transposed, b_transposed>(d, of_a + k * (step_a >> 4), of_b + k * (step_b >> 4), k > 0);
    }
  }
  hopper::wgmma_commit();
  if (wrong != kNoWait) hopper::wgmma_wait_for<0>(d);
  __syncthreads();
  if (t == 0) factors.b[0][0][0] = factors.a[0][0];  // <- the factors' memory is free
  hopper::wgmma_wait_for<0>(d);
  for (int j = 0; j < n / 8; ++j)
    for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * n + 8 * j + column + i % 2] = d[4 * j + i];
}

template <int n, bool a_transposed, bool b_transposed, bool registers>
void run(const Call& call) {
  auto map_of = [&](int i) {
    const auto& t = call.tensors[i];
    return hopper::tile_map_3d(t.data_ptr(), t.size(0), t.size(1), t.size(2), 64);
  };
  constexpr int bytes = hopper::kSharedBytes<Factors<n>>;
  product_kernel<n, a_turned, b_turned, registers>
      <<<1, 128, bytes>>>(map_of(0), map_of(1), call.data<float>(2), call.number(3), call.number(4));
}

// a, b: several matrices each; c: 64 x n. Whether a is transposed, b is, a is in registers; which matrices; `wrong`.
CASE(product) {
  bool a_transposed = call.number(0), b_transposed = call.number(1), registers = call.number(2);
  auto with = [&](auto n, auto a_is, auto b_is, auto in_registers) {
    run<n.value, a_is.value, b_is.value, in_registers.value>(call);
  };
  auto with_n = [&](auto n) {
    std::true_type yes;
    std::false_type no;
    if (registers) return b_transposed ? with(n, no, yes, yes) : with(n, no, no, yes);
    if (a_transposed) return b_transposed ? with(n, yes, yes, no) : with(n, yes, no, no);
    return b_transposed ? with(n, no, yes, no) : with(n, no, no, no);
  };
  call.tensors[2].size(1) == 64 ? with_n(std::integral_constant<int, 64>()) : with_n(std::integral_constant<int, 128>());
}
