// threads_test.cpp: atomics under four threads, and the collectives of a warp, on the stub run-time.
#include <thread>
#include <vector>

#include "check.h"
#include "stub_runtime.h"

// The headers under test come last, as in a kernel.
#include "cooperative_groups.h"
#include "cooperative_groups/memcpy_async.h"
#include "cooperative_groups/scan.h"
#include "cuda_bf16.h"
#include "cuda_runtime.h"

namespace cg = cooperative_groups;
using check::same;

static const int kThreads = 4, kTimes = 20000;

template <typename Body>
static void on_four_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([=] {
      for (int j = 0; j < kTimes; ++j) body(i * kTimes + j);
    });
  for (auto& thread : threads) thread.join();
}

static void atomics() {
  const int total = kThreads * kTimes;
  int sum = 0, difference = 0, smallest = 0, largest = 0, bits_or = 0, bits_and = -1, bits_xor = 0;
  unsigned usum = 0, wrapped = 0, down = 0, largest_u = 0;
  unsigned long long wide = 0;
  long long smallest_wide = 0;
  float fsum = 0;
  double dsum = 0;
  __half hsum = 0.0f;
  __half2 hpair = __floats2half2_rn(0, 0);
  __nv_bfloat16 bsum = 0.0f;
  on_four_threads([&](int i) {
    atomicAdd(&sum, 1);
    atomicAdd(&usum, 3u);
    atomicAdd(&wide, 1ull << 33);
    atomicAdd(&fsum, 1.0f);
    atomicAdd(&dsum, 0.5);
    atomicSub(&difference, 2);
    atomicMin(&smallest, -i);
    atomicMax(&largest, i);
    atomicMax_block(&largest_u, static_cast<unsigned>(i));
    atomicMin_system(&smallest_wide, -(1ll << 40) * i);
    atomicOr(&bits_or, 1 << i % 20);
    atomicAnd(&bits_and, ~(1 << i % 20));
    atomicXor(&bits_xor, 1);
    atomicInc(&wrapped, 9u);
    atomicDec(&down, 6u);
    if (i % 64 == 0) {
      atomicAdd(&hsum, __float2half(1.0f));
      atomicAdd(&hpair, __floats2half2_rn(1.0f, -0.5f));
    }
    if (i % 400 == 0) atomicAdd(&bsum, __float2bfloat16(1.0f));
  });
  same("atomicAdd int", sum, total);
  same("atomicAdd unsigned", usum, 3u * total);
  same("atomicAdd unsigned long long", wide, (1ull << 33) * total);
  same("atomicAdd float", fsum, float(total));
  same("atomicAdd double", dsum, 0.5 * total);
  same("atomicAdd half", __half2float(hsum), total / 64);
  same("atomicAdd half2", __low2float(hpair) + 10 * __high2float(hpair), total / 64 * -4);
  same("atomicAdd bfloat16", __bfloat162float(bsum), total / 400);
  same("atomicSub", difference, -2 * total);
  same("atomicMin", smallest, 1 - total);
  same("atomicMax", largest, total - 1);
  same("atomicMax_block", largest_u, unsigned(total - 1));
  same("atomicMin_system", smallest_wide, -(1ll << 40) * (total - 1));
  same("atomicOr", bits_or, (1 << 20) - 1);
  same("atomicAnd", bits_and, ~((1 << 20) - 1));
  same("atomicXor", bits_xor, total % 2);
  same("atomicInc", wrapped, unsigned(total % 10));
  same("atomicDec", down, unsigned((7 - total % 7) % 7));

  int lock = 0, guarded = 0;  // a lock built from atomicCAS and atomicExch
  on_four_threads([&](int) {
    while (atomicCAS(&lock, 0, 1) != 0) std::this_thread::yield();
    ++guarded;
    atomicExch(&lock, 0);
  });
  same("atomicCAS lock", guarded, total);
  float swapped = 1;
  same("atomicExch returns", atomicExch(&swapped, 2.0f) + 10 * swapped, 21.0f);
  unsigned short narrow = 5;
  same("atomicCAS short", atomicCAS(&narrow, static_cast<unsigned short>(4), static_cast<unsigned short>(9)) + narrow,
       10);
  float not_a_number = NAN;
  same("atomicAdd to NaN ends", atomicAdd(&not_a_number, 1.0f), NAN);
}

// The lane that `lane` reads, as the CUDA guide says: segments of `width`; index modulo width; up and down keep the own
// value past the segment's edge; xor may reach back to an earlier segment, never on to a later one.
static int guide(char kind, int lane, int operand, int width) {
  const int first = lane / width * width, last = first + width - 1;
  if (kind == 'i') return first + ((operand % width) + width) % width;
  if (kind == 'u') return lane - operand < first ? lane : lane - operand;
  if (kind == 'd') return lane + operand > last ? lane : lane + operand;
  return (lane ^ operand) > last ? lane : lane ^ operand;
}

static void shuffles() {
  simt::stub::run_warp([] {
    const int lane = static_cast<int>(simt::thread_index().x);
    for (int width = 1; width <= 32; width *= 2)
      for (int operand = 0; operand < 32; ++operand) {
        same("__shfl_sync", __shfl_sync(~0u, 100 + lane, operand, width), 100 + guide('i', lane, operand, width));
        same("__shfl_up_sync", __shfl_up_sync(~0u, 100 + lane, operand, width), 100 + guide('u', lane, operand, width));
        same("__shfl_down_sync", __shfl_down_sync(~0u, 100 + lane, operand, width),
             100 + guide('d', lane, operand, width));
        same("__shfl_xor_sync", __shfl_xor_sync(~0u, 100 + lane, operand, width),
             100 + guide('x', lane, operand, width));
      }
    same("__shfl_sync wraps", __shfl_sync(~0u, lane, 35), 3);
    same("__shfl_sync negative", __shfl_sync(~0u, lane, -1), 31);
    const int next = (lane + 1) % 32;
    same("shuffle double", __shfl_sync(~0u, lane + 0.25, next), next + 0.25);
    same("shuffle long long", __shfl_sync(~0u, (1ll << 40) * lane, next), (1ll << 40) * next);
    same("shuffle float", __shfl_sync(~0u, -1.5f * lane, next), -1.5f * next);
    same("shuffle half", __half2float(__shfl_xor_sync(~0u, __float2half(lane), 1)), lane ^ 1);
    const __half2 pair = __shfl_down_sync(~0u, __floats2half2_rn(lane, 100 + lane), 1, 2);
    same("shuffle half2", __low2float(pair) + __high2float(pair), 100 + 2 * (lane | 1));
    same("shuffle bfloat16", __bfloat162float(__shfl_up_sync(~0u, __float2bfloat16(lane), 1)),
         lane == 0 ? 0 : lane - 1);

    same("__ballot_sync", __ballot_sync(~0u, lane % 3 == 0), 0x49249249u);
    same("__any_sync", __any_sync(~0u, lane == 7) + 2 * __any_sync(~0u, 0), 1);
    same("__all_sync", __all_sync(~0u, 5) + 2 * __all_sync(~0u, lane != 7), 1);
    same("__match_any_sync", __match_any_sync(~0u, lane / 8), 0xffu << lane / 8 * 8);
    int all_same = -1;
    same("__match_all_sync", __match_all_sync(~0u, 1.5, &all_same) + (all_same == 1), 0u);
    same("__match_all_sync of different", __match_all_sync(~0u, lane, &all_same) + all_same, 0u);
    same("__reduce_add_sync", __reduce_add_sync(~0u, -lane), -496);
    same("__reduce_min_sync", __reduce_min_sync(~0u, lane - 5), -5);
    same("__reduce_max_sync unsigned", __reduce_max_sync(~0u, static_cast<unsigned>(lane - 5)), ~0u);
    same("__reduce_xor_sync", __reduce_xor_sync(~0u, 1u << lane), ~0u);
    same("__syncthreads_count", __syncthreads_count(lane < 5), 5);
    same("__syncthreads_and", __syncthreads_and(lane != 9) + 2 * __syncthreads_and(1), 2);
    same("__syncthreads_or", __syncthreads_or(lane == 9) + 2 * __syncthreads_or(0), 1);
    if (lane < 16) same("half a warp", __shfl_down_sync(0xffffu, lane, 1, 16), lane == 15 ? 15 : lane + 1);
  });
}

static void groups() {
  simt::stub::run_warp([] {
    const int lane = static_cast<int>(simt::thread_index().x);
    cg::thread_block block = cg::this_thread_block();
    same("thread_block", block.thread_rank() + 100 * block.size() + block.group_dim().x, lane + 3232u);
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    same("tile ranks", tile.thread_rank() + 10 * tile.meta_group_rank() + 100 * tile.meta_group_size(),
         unsigned(lane % 8 + lane / 8 * 10 + 400));
    same("tile.shfl", tile.shfl(lane, 3), lane / 8 * 8 + 3);
    same("tile.shfl_up", tile.shfl_up(lane, 2), lane % 8 < 2 ? lane : lane - 2);
    same("tile.shfl_down", tile.shfl_down(lane, 2), lane % 8 > 5 ? lane : lane + 2);
    same("tile.shfl_xor", tile.shfl_xor(lane, 5), lane ^ 5);
    same("tile.ballot", tile.ballot(lane % 8 == 2 || lane == 31), lane >= 24 ? 0x84u : 4u);
    same("tile.any, all", tile.any(lane == 31) + 2 * tile.all(lane >= 8), lane < 8 ? 0 : lane >= 24 ? 3 : 2);
    same("tile.match_any", tile.match_any(lane % 2), lane % 2 ? 0xaau : 0x55u);
    auto inner = cg::tiled_partition<2>(tile);
    same("tile of a tile", inner.meta_group_rank() + 10 * inner.meta_group_size(), unsigned(lane % 8 / 2 + 40));
    struct Pair {
      double value;
      int index;
    };
    const Pair largest = cg::reduce(tile, Pair{double(lane * 7 % 8), lane},
                                    [](const Pair& a, const Pair& b) { return a.value < b.value ? b : a; });
    same("reduce of a struct", largest.index, lane / 8 * 8 + 1);
    same("reduce plus", cg::reduce(tile, lane, cg::plus<int>()), lane / 8 * 64 + 28);
    same("reduce less", cg::reduce(tile, lane, cg::less<int>()), lane / 8 * 8);
    same("inclusive_scan", cg::inclusive_scan(tile, 1), lane % 8 + 1);
    same("exclusive_scan", cg::exclusive_scan(tile, 2), lane % 8 * 2);
    cg::thread_group dynamic = cg::tiled_partition(block, 4);
    same("dynamic tile", dynamic.thread_rank() + 10 * dynamic.size(), unsigned(lane % 4 + 40));
    dynamic.sync();
    cg::sync(block);
    same("grid indices", cg::this_grid().thread_rank() + 100 * cg::this_grid().size(), unsigned(lane + 3200));
    static int copied[40], source[40];
    source[lane] = lane * 3;
    cg::sync(block);
    cg::memcpy_async(block, copied, source, 32 * sizeof(int));
    cg::wait(block);
    same("memcpy_async", copied[31 - lane], (31 - lane) * 3);
  });
  simt::stub::run_warp(
      [] {  // the odd lanes of a warp
        const int lane = static_cast<int>(simt::thread_index().x);
        cg::coalesced_group odd = cg::coalesced_threads();
        same("coalesced ranks", odd.thread_rank() + 100 * odd.size(), unsigned(lane / 2 + 1600));
        same("coalesced.shfl", odd.shfl(lane, 5), 11);
        same("coalesced.shfl_up", odd.shfl_up(lane, 1), lane == 1 ? 1 : lane - 2);
        same("coalesced.shfl_down", odd.shfl_down(lane, 1), lane == 31 ? 31 : lane + 2);
        same("coalesced.ballot", odd.ballot(lane == 31 || lane == 3), 0x8002u);
        same("coalesced reduce", cg::reduce(odd, lane, cg::plus<int>()), 256);
      },
      0xaaaaaaaau);
}

int main(int argc, char** argv) { return check::run(argc, argv, {atomics, shuffles, groups}); }
