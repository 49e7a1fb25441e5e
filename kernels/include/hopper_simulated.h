// hopper_simulated.h: the functions of hopper.h for the simulator, which includes this file in its place.
//
// A load is complete when load_tile returns, and a product when wgmma_64x256x16 returns: nothing is asynchronous here, so
// a missing wgmma_wait goes unseen, and so do a missing fence and a missing store_wait. What is seen, since tiles are
// stored and read as the descriptors and the swizzle say: a wrong descriptor, a wrong offset, a wrong order of phases (a
// deadlock), a barrier that expects too few bytes, a stage released too soon.
#pragma once

#ifdef SIMT_TRACED
#error "not supported by the simulator: TMA, mbarriers and wgmma in traced mode; build the kernel without traced=True"
#endif

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include <torch/csrc/stable/macros.h>

namespace hopper {

constexpr int kRowBytes = 128;
using bfloat16 = __nv_bfloat16;

// Addresses count from the dynamic shared memory's begin: its first byte is the 1,024th, so that none is 0.
inline char* shared_memory() { return static_cast<char*>(simt::shared_dynamic()) - 1024; }
inline char* shared_memory_of(int rank) { return static_cast<char*>(simt::shared_dynamic_of(rank)) - 1024; }
__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const char*>(p) - shared_memory());
}

// ---------------------------------------------------------------------------------------------------------------------
// mbarrier

struct Barrier {
  unsigned long long word;
};

// What a Barrier's 64 bits hold.
struct BarrierState {
  int32_t bytes;              // expected and not yet there
  uint8_t pending, arrivals;  // still to arrive in this phase; in each phase
  uint16_t phase;
};

__device__ inline void write_state(Barrier& barrier, BarrierState state) {
  unsigned long long word;
  memcpy(&word, &state, sizeof word);
  atomicExch(&barrier.word, word);
}

__device__ inline BarrierState read_state(Barrier& barrier) {
  unsigned long long word = atomicAdd(&barrier.word, 0ull);
  BarrierState state;
  memcpy(&state, &word, sizeof state);
  return state;
}

__device__ inline void count(Barrier& barrier, int arrivals, int bytes) {
  __threadfence();  // what this thread has written is there for those who wait
  for (;;) {
    BarrierState state = read_state(barrier);
    unsigned long long before, after;
    memcpy(&before, &state, sizeof before);
    if (state.pending < arrivals)
      simt::fault("barrier", "more threads arrive at a Barrier than it was initialised for");
    state.pending -= arrivals;
    state.bytes += bytes;
    if (state.pending == 0 && state.bytes == 0) {
      state.pending = state.arrivals;
      ++state.phase;
    }
    memcpy(&after, &state, sizeof after);
    if (atomicCAS(&barrier.word, before, after) == before) return;
  }
}

__device__ inline void init(Barrier& barrier, int arrivals) {
  write_state(barrier, {0, uint8_t(arrivals), uint8_t(arrivals), 0});
}
__device__ inline void fence_init() {}
__device__ inline void arrive(Barrier& barrier) { count(barrier, 1, 0); }
__device__ inline void arrive_and_expect(Barrier& barrier, int bytes) { count(barrier, 1, bytes); }

__device__ inline void wait(Barrier& barrier, int parity) {
  while (read_state(barrier).phase % 2 == parity) __nanosleep(20);
  __threadfence();
}

// ---------------------------------------------------------------------------------------------------------------------
// Clusters

__device__ inline int cluster_rank() { return simt::cluster_rank(); }
__device__ inline void cluster_sync() {
  __threadfence();
  simt::cluster_barrier();
}

__device__ inline Barrier& barrier_of(int rank, Barrier& barrier) {
  return *reinterpret_cast<Barrier*>(shared_memory_of(rank) + shared_address(&barrier));
}
__device__ inline void arrive_at(int rank, Barrier& barrier) { count(barrier_of(rank, barrier), 1, 0); }

// ---------------------------------------------------------------------------------------------------------------------
// TMA

struct TileMap {
  const uint16_t* data;
  int64_t rows, columns;
  int box_rows;
};

inline TileMap tile_map(const void* data, int64_t rows, int64_t columns, int box_rows) {
  STD_TORCH_CHECK(reinterpret_cast<uintptr_t>(data) % 16 == 0 && columns % 8 == 0 && box_rows <= 256,
                  "cuTensorMapEncodeTiled refuses a matrix of ", rows, " x ", columns);
  return {static_cast<const uint16_t*>(data), rows, columns, box_rows};
}

// The swizzle: bits 4 to 6 of an address, which of the 8 pieces of 16 bytes, are changed by bits 7 to 9, the row.
__device__ inline uint32_t swizzled(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

// Calls copy(number in the matrix, its place in shared memory) for the part of a tile that is inside, outside(place) for
// the rest.
template <typename Copy, typename Outside>
__device__ inline void each_number(const TileMap& map, char* memory, uint32_t at, int row, int column, Copy copy,
                                   Outside outside) {
  for (int r = 0; r < map.box_rows; ++r) {
    for (int c = 0; c < kRowBytes / 2; ++c) {
      bool inside = row + r < map.rows && column + c < map.columns;
      auto& place = *reinterpret_cast<uint16_t*>(memory + swizzled(at + r * kRowBytes + 2 * c));
      inside ? copy(map.data[(row + r) * map.columns + column + c], place) : outside(place);
    }
  }
}

__device__ inline void load_to(int rank, void* to, const TileMap& map, Barrier& barrier, int row, int column) {
  each_number(
      map, shared_memory_of(rank), shared_address(to), row, column,
      [](const uint16_t& number, uint16_t& place) { place = number; }, [](uint16_t& place) { place = 0; });
  count(barrier_of(rank, barrier), 0, -map.box_rows * kRowBytes);
}

__device__ inline void prefetch(const TileMap&) {}

__device__ inline void load_tile(void* to, const TileMap& map, Barrier& barrier, int row, int column) {
  load_to(cluster_rank(), to, map, barrier, row, column);
}

__device__ inline void load_tile_for(uint16_t blocks, void* to, const TileMap& map, Barrier& barrier, int row,
                                     int column) {
  for (int rank = 0; rank < 16; ++rank)
    if (blocks >> rank & 1) load_to(rank, to, map, barrier, row, column);
}

__device__ inline void store_tile(const TileMap& map, const void* from, int row, int column) {
  each_number(
      map, shared_memory(), shared_address(from), row, column,
      [](const uint16_t& number, uint16_t& place) { const_cast<uint16_t&>(number) = place; }, [](uint16_t&) {});
}
__device__ inline void fence_before_store() {}
__device__ inline void store_commit() {}
template <int groups>
__device__ inline void store_wait() {}

// ---------------------------------------------------------------------------------------------------------------------
// wgmma

__device__ inline uint64_t descriptor(const void* p, int next_panel) {
  constexpr uint64_t swizzle_128 = uint64_t(1) << 62, next_8_rows = uint64_t(1024 >> 4) << 32;
  return swizzle_128 | next_8_rows | uint64_t(next_panel >> 4) << 16 | (shared_address(p) & 0x3ffff) >> 4;
}

__device__ inline void wgmma_fence() {}
__device__ inline void wgmma_commit() {}
template <int groups>  // products are done when all 4 warps have asked for them
__device__ inline void wgmma_wait() {
  simt::warp_group_barrier();
}

// The number at (line, column) of a tile, where a line has 64 columns of 128 bytes side by side.
__device__ inline float element(uint64_t descriptor, int line, int column) {
  uint32_t start = uint32_t(descriptor & 0x3fff) << 4, next_panel = uint32_t(descriptor >> 16 & 0x3fff) << 4,
           next_8_rows = uint32_t(descriptor >> 32 & 0x3fff) << 4;
  uint32_t at = start + line / 8 * next_8_rows + line % 8 * kRowBytes + column / 64 * next_panel + column % 64 * 2;
  return __bfloat162float(*reinterpret_cast<const bfloat16*>(shared_memory() + swizzled(at)));
}

__device__ inline void wgmma_64x256x16(float (&d)[128], uint64_t a, uint64_t b, int add) {
  int t = threadIdx.x % 128;
  for (int i = 0; i < 2; ++i) {
    float row[16];
    for (int k = 0; k < 16; ++k) row[k] = element(a, t / 32 * 16 + t % 32 / 4 + 8 * i, k);
    for (int j = 0; j < 32; ++j) {
      for (int c = 0; c < 2; ++c) {
        float sum = add ? d[4 * j + 2 * i + c] : 0;
        for (int k = 0; k < 16; ++k) sum += row[k] * element(b, k, 8 * j + t % 4 * 2 + c);
        d[4 * j + 2 * i + c] = sum;
      }
    }
  }
}

__device__ inline void wgmma_wait_for(float (&)[128]) { wgmma_wait<0>(); }

template <int registers>
__device__ inline void keep_registers() {}
template <int registers>
__device__ inline void take_registers() {}

}  // namespace hopper
