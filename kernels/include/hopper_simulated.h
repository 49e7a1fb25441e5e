// hopper_simulated.h: the functions of hopper.h for the simulator, which includes this file instead.
//
// Nothing is asynchronous here: a load is complete when load_tile returns, a product when wgmma_64x256x16 returns.
// Tiles are stored and read as the descriptors and the swizzle say, so these mistakes show: a wrong descriptor, a wrong
// offset, a wrong order of phases (a deadlock), a barrier that expects too few bytes, a stage released too soon.
//
// In traced mode the functions also report what a GPU may do later (simt/async.h), so that the X-ray finds a missing
// wait, fence, store_wait or wgmma_wait as a race. It misses two mistakes: a missing wgmma_fence, and reading data that
// another block's thread wrote before it arrived at a barrier, since that arrival does not publish the data.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <simt/async.h>
#include <torch/csrc/stable/macros.h>

namespace hopper {

constexpr int kRowBytes = 128, kElements = kRowBytes / 2;
using bfloat16 = __nv_bfloat16;

// Addresses count from the beginning of dynamic shared memory, whose first byte has address 1,024, so that none is 0.
__device__ __forceinline__ char* shared_memory() { return static_cast<char*>(simt::shared_dynamic()) - 1024; }
__device__ __forceinline__ char* shared_memory_of(int rank) {
  return static_cast<char*>(simt::shared_dynamic_of(rank)) - 1024;
}
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const char*>(p) - shared_memory());
}

// ---------------------------------------------------------------------------------------------------------------------
// mbarrier

struct Barrier {
  uint64_t word;
};

__device__ __forceinline__ void init(Barrier& barrier, int arrivals) { simt::mbarrier_init(&barrier, arrivals); }
__device__ __forceinline__ void fence_init() { simt::async_fence(); }
__device__ __forceinline__ void arrive(Barrier& barrier) { simt::mbarrier_arrive(&barrier, 0); }
__device__ __forceinline__ void arrive_and_expect(Barrier& barrier, int bytes) {
  simt::mbarrier_arrive(&barrier, bytes);
}
__device__ __forceinline__ void wait(Barrier& barrier, int parity) { simt::mbarrier_wait(&barrier, parity); }
__device__ __forceinline__ bool test(const Barrier& barrier, int parity) {
  return int(simt::mbarrier_phase(&barrier) & 1) != parity;
}

// ---------------------------------------------------------------------------------------------------------------------
// Clusters

__device__ __forceinline__ int cluster_rank() { return simt::cluster_rank(); }
__device__ __forceinline__ void cluster_sync() { simt::cluster_barrier(); }

__device__ __forceinline__ Barrier& barrier_of(int rank, Barrier& barrier) {
  return *reinterpret_cast<Barrier*>(shared_memory_of(rank) + shared_address(&barrier));
}
__device__ __forceinline__ void arrive_at(int rank, Barrier& barrier) { arrive(barrier_of(rank, barrier)); }

// ---------------------------------------------------------------------------------------------------------------------
// TMA

struct TileMap {
  const uint16_t* data;
  int64_t matrices, rows, columns;
  int box_rows, dimensions;
};

inline TileMap tile_map_3d(const void* data, int64_t matrices, int64_t rows, int64_t columns, int box_rows,
                           int dimensions = 3) {
  STD_TORCH_CHECK(reinterpret_cast<uintptr_t>(data) % 16 == 0 && columns % 8 == 0 && box_rows <= 256,
                  "cuTensorMapEncodeTiled refuses a matrix of ", rows, " x ", columns);
  return {static_cast<const uint16_t*>(data), matrices, rows, columns, box_rows, dimensions};
}
inline TileMap tile_map(const void* data, int64_t rows, int64_t columns, int box_rows) {
  return tile_map_3d(data, 1, rows, columns, box_rows, 2);
}

// The swizzle: bits 7 to 9 of an address, the row, change bits 4 to 6, which select one of 8 pieces of 16 bytes.
SIMT_NOT_TRACED inline uint32_t swizzled(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

// A tile in a matrix and in shared memory, where it begins at byte `at`.
struct Tile {
  const TileMap& map;
  int matrix, row, column;
  char* memory;
  uint32_t at;

  // The rows, or the columns, of the tile that are inside the matrix: [first, last).
  struct Inside {
    int first, last;
    SIMT_NOT_TRACED Inside(int64_t from, int64_t size, int count)
        : first(clamped(-from, count)), last(std::max(first, clamped(size - from, count))) {}
    SIMT_NOT_TRACED static int clamped(int64_t value, int most) {
      return int(std::min(std::max(value, int64_t{0}), int64_t{most}));
    }
    SIMT_NOT_TRACED bool has(int i) const { return first <= i && i < last; }
    SIMT_NOT_TRACED int count() const { return last - first; }
  };
  SIMT_NOT_TRACED Inside rows() const {
    bool there = 0 <= matrix && matrix < map.matrices;
    return {row, there ? map.rows : row, map.box_rows};
  }
  SIMT_NOT_TRACED Inside columns() const { return {column, map.columns, kElements}; }

  SIMT_NOT_TRACED uint16_t* in_matrix(int r, int c) const {
    return const_cast<uint16_t*>(map.data) + (matrix * map.rows + row + r) * map.columns + column + c;
  }
  SIMT_NOT_TRACED char* in_shared(int r) const { return memory + at + r * kRowBytes; }
  SIMT_NOT_TRACED uint16_t& in_shared(int r, int c) const {
    return *reinterpret_cast<uint16_t*>(memory + swizzled(at + r * kRowBytes + 2 * c));
  }
};

// A row of 128 bytes in shared memory is reported as one piece: the swizzle stays inside it. A tile for several blocks
// is read once for all of them. Zeros outside the matrix are reported like the elements beside them.
SIMT_NOT_TRACED __attribute__((noinline)) inline void tell_load(const Tile& tile, bool reads) {
  Tile::Inside rows = tile.rows(), columns = tile.columns();
  for (int r = 0; r < tile.map.box_rows; ++r) {
    bool inside = rows.has(r) && columns.count();
    if (reads && inside) {
      simt::async_zeros(columns.first * 2);
      simt::async_reads(tile.in_matrix(r, columns.first), columns.count() * 2);
      simt::async_zeros(kRowBytes - columns.last * 2);
    } else if (reads) {
      simt::async_zeros(kRowBytes);
    }
    simt::async_writes(tile.in_shared(r), kRowBytes);
  }
}
SIMT_NOT_TRACED __attribute__((noinline)) inline void tell_store(const Tile& tile) {
  Tile::Inside rows = tile.rows(), columns = tile.columns();
  for (int r = rows.first; r < rows.last && columns.count(); ++r) {
    simt::async_reads(tile.in_shared(r), kRowBytes);
    simt::async_writes(tile.in_matrix(r, columns.first), columns.count() * 2);
  }
}
SIMT_NOT_TRACED __attribute__((noinline)) inline void do_load(const Tile& tile) {
  Tile::Inside rows = tile.rows(), columns = tile.columns();
  for (int r = 0; r < tile.map.box_rows; ++r)
    for (int c = 0; c < kElements; ++c)
      tile.in_shared(r, c) = rows.has(r) && columns.has(c) ? *tile.in_matrix(r, c) : 0;
}
SIMT_NOT_TRACED __attribute__((noinline)) inline void do_store(const Tile& tile) {
  Tile::Inside rows = tile.rows(), columns = tile.columns();
  for (int r = rows.first; r < rows.last; ++r)
    for (int c = columns.first; c < columns.last; ++c) *tile.in_matrix(r, c) = tile.in_shared(r, c);
}

__device__ __forceinline__ void check_dimensions(const TileMap& map, int dimensions) {
  if (map.dimensions != dimensions)
    simt::fault("tile", "a tile of a tile_map is loaded with (row, column), one of a tile_map_3d with the matrix too");
}

// The address of a tile in shared memory. Reports a fault unless it and the tile's first column are aligned.
__device__ __forceinline__ uint32_t tile_address(const void* p, int column) {
  uint32_t at = shared_address(p);
  if (at % kRowBytes) simt::fault("misaligned", "a tile in shared memory begins at a multiple of 128 bytes");
  if (column % 8) simt::fault("misaligned", "a tile begins at a column that is a multiple of 8: at 16 bytes");
  return at;
}

__device__ __forceinline__ void load_to(int rank, simt::Copy copy, void* to, const TileMap& map, Barrier& barrier,
                                        int matrix, int row, int column, int dimensions = 2) {
  check_dimensions(map, dimensions);
  Tile tile{map, matrix, row, column, shared_memory_of(rank), tile_address(to, column)};
  tell_load(tile, copy != simt::Copy::further);
  simt::async_load(&barrier_of(rank, barrier), map.box_rows * kRowBytes, copy);
  do_load(tile);
}

__device__ __forceinline__ void prefetch(const TileMap&) {}

__device__ __forceinline__ void load_tile(void* to, const TileMap& map, Barrier& barrier, int row, int column) {
  load_to(cluster_rank(), simt::Copy::own, to, map, barrier, 0, row, column);
}
__device__ __forceinline__ void load_tile(void* to, const TileMap& map, Barrier& barrier, int matrix, int row,
                                          int column) {
  load_to(cluster_rank(), simt::Copy::own, to, map, barrier, matrix, row, column, 3);
}

__device__ __forceinline__ void load_tile_for(uint16_t blocks, void* to, const TileMap& map, Barrier& barrier, int row,
                                              int column) {
  simt::Copy copy = simt::Copy::first;
  for (int rank = 0; rank < 16; ++rank) {
    if (blocks >> rank & 1) {
      load_to(rank, copy, to, map, barrier, 0, row, column);
      copy = simt::Copy::further;
    }
  }
}

__device__ __forceinline__ void store_tile(const TileMap& map, const void* from, int row, int column) {
  if (row < 0 || column < 0)
    simt::fault("out-of-bounds", "a tile is stored from a negative row or column: a GPU ends the kernel there");
  check_dimensions(map, 2);
  Tile tile{map, 0, row, column, shared_memory(), tile_address(from, column)};
  tell_store(tile);
  simt::async_store();
  do_store(tile);
}
__device__ __forceinline__ void fence_before_store() { simt::async_fence(); }
__device__ __forceinline__ void store_commit() { simt::async_commit(simt::Unit::store); }
template <int groups>
__device__ __forceinline__ void store_wait() {
  simt::async_wait(simt::Unit::store, groups);
}

// ---------------------------------------------------------------------------------------------------------------------
// wgmma

__device__ __forceinline__ uint64_t descriptor(const void* p, int next_panel) {
  constexpr uint64_t swizzle_128 = uint64_t(1) << 62, next_8_rows = uint64_t(1024 >> 4) << 32;
  return swizzle_128 | next_8_rows | uint64_t(next_panel >> 4) << 16 | (shared_address(p) & 0x3ffff) >> 4;
}

__device__ __forceinline__ void wgmma_fence() {}
__device__ __forceinline__ void wgmma_commit() { simt::async_commit(simt::Unit::product); }
template <int groups>  // products are complete when all 4 warps have requested them
__device__ __forceinline__ void wgmma_wait() {
  simt::async_wait(simt::Unit::product, groups);
  simt::warp_group_barrier();
}

// Where a tile's lines of 64 columns, 128 bytes, are: a descriptor without its constant parts.
struct Lines {
  uint32_t start, next_panel, next_8_rows;

  SIMT_NOT_TRACED explicit Lines(uint64_t descriptor)
      : start(uint32_t(descriptor & 0x3fff) << 4),
        next_panel(uint32_t(descriptor >> 16 & 0x3fff) << 4),
        next_8_rows(uint32_t(descriptor >> 32 & 0x3fff) << 4) {}
  SIMT_NOT_TRACED uint32_t at(int line, int column) const {
    return swizzled(start + line / 8 * next_8_rows + line % 8 * kRowBytes + column / 64 * next_panel + column % 64 * 2);
  }
};

SIMT_NOT_TRACED inline float element(const char* memory, const Lines& lines, int line, int column) {
  uint32_t bits = uint32_t(*reinterpret_cast<const uint16_t*>(memory + lines.at(line, column))) << 16;  // of a bfloat16
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Reports the reads of a warp's part of a product: 32 bytes of each of its 16 rows of a, and all of b.
SIMT_NOT_TRACED __attribute__((noinline)) inline void tell_product(const char* memory, Lines a, Lines b, int warp) {
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; k += 8) simt::async_reads(memory + a.at(16 * warp + i, k), 16);
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < 256; j += 8) simt::async_reads(memory + b.at(k, j), 16);
}

SIMT_NOT_TRACED __attribute__((noinline)) inline void do_product(float (&d)[128], const char* memory, Lines a, Lines b,
                                                                 int add, int t) {
  for (int i = 0; i < 2; ++i) {
    float row[16];
    for (int k = 0; k < 16; ++k) row[k] = element(memory, a, t / 32 * 16 + t % 32 / 4 + 8 * i, k);
    for (int j = 0; j < 32; ++j) {
      for (int c = 0; c < 2; ++c) {
        float sum = add ? d[4 * j + 2 * i + c] : 0;
        for (int k = 0; k < 16; ++k) sum += row[k] * element(memory, b, k, 8 * j + t % 4 * 2 + c);
        d[4 * j + 2 * i + c] = sum;
      }
    }
  }
}

__device__ __forceinline__ void wgmma_64x256x16(float (&d)[128], uint64_t a, uint64_t b, int add) {
  int t = threadIdx.x % 128;
  if (t % 32 == 0) {
    tell_product(shared_memory(), Lines(a), Lines(b), t / 32);
    simt::async_product();
  }
  do_product(d, shared_memory(), Lines(a), Lines(b), add, t);
}

__device__ __forceinline__ void wgmma_wait_for(float (&)[128]) { wgmma_wait<0>(); }

template <int registers>
__device__ __forceinline__ void keep_registers() {}
template <int registers>
__device__ __forceinline__ void take_registers() {}

}  // namespace hopper
