// tile.h: tiles of a tensor map, which TMA moves between a tensor and shared memory at once (async.h).
//
// A tile lies in shared memory row after row, a row being its elements along the tensor's innermost dimension; the
// swizzle moves the 16-byte pieces of a row, by the bits of their addresses. What is outside the tensor is loaded as
// zeros and not stored. The X-ray is told of each row as one piece: the swizzle stays inside it.
#pragma once

#include "async.h"
#include "reductions.h"
#include "tensor_map.h"

namespace simt {

struct Refused {
  const char *kind, *message;  // null: not refused
};

// `memory`: where the address 0 of shared memory is, of the block that has the tile; `address`: of the tile, there.
class Tile {
 public:
  SIMT_NOT_TRACED __attribute__((noinline)) Tile(const TensorMap& map, const int32_t* at, char* memory,
                                                 uint32_t address)
      : map_(map), memory_(memory), address_(address) {
    for (int d = 0; d < TensorMap::kMostDimensions; ++d) at_[d] = d < map.dimensions ? at[d] : 0;
    const int64_t begin = int64_t{at_[0]} * map.element_bytes, bytes = map.sizes[0] * map.element_bytes;
    row_bytes_ = map.row_bytes();
    first_ = clamped(-begin);
    last_ = clamped(bytes - begin);
    if (last_ < first_) last_ = first_;
  }

  SIMT_NOT_TRACED int bytes() const { return map_.rows() * row_bytes_; }

  SIMT_NOT_TRACED __attribute__((noinline)) void tell_load(bool reads) const {
    for (int r = 0; r < map_.rows(); ++r) {
      char* const row = row_of_tensor(r);
      if (reads && row && first_ < last_) {
        async_zeros(static_cast<size_t>(first_));
        async_reads(row + first_, static_cast<size_t>(last_ - first_));
        async_zeros(static_cast<size_t>(row_bytes_ - last_));
      } else if (reads) {
        async_zeros(static_cast<size_t>(row_bytes_));
      }
      async_writes(memory_ + address_ + r * row_bytes_, static_cast<size_t>(row_bytes_));
    }
  }
  SIMT_NOT_TRACED __attribute__((noinline)) void load() const {
    for (int r = 0; r < map_.rows(); ++r) {
      char* const row = row_of_tensor(r);
      for (int at = 0; at < row_bytes_; at += 16) copy_piece(shared_piece(r, at), row ? row + at : nullptr, at, true);
    }
  }

  SIMT_NOT_TRACED __attribute__((noinline)) void tell_store() const {
    for (int r = 0; r < map_.rows(); ++r) {
      char* const row = row_of_tensor(r);
      if (!row || first_ == last_) continue;
      async_reads(memory_ + address_ + r * row_bytes_, static_cast<size_t>(row_bytes_));
      async_writes(row + first_, static_cast<size_t>(last_ - first_));
    }
  }
  SIMT_NOT_TRACED __attribute__((noinline)) void store() const {
    for (int r = 0; r < map_.rows(); ++r) {
      char* const row = row_of_tensor(r);
      for (int at = 0; row && at < row_bytes_; at += 16) copy_piece(row + at, shared_piece(r, at), at, false);
    }
  }

  // The X-ray is told of the reads only: reductions by several blocks are no races.
  SIMT_NOT_TRACED __attribute__((noinline)) void tell_reduction() const {
    for (int r = 0; r < map_.rows(); ++r)
      if (row_of_tensor(r) && first_ < last_)
        async_reads(memory_ + address_ + r * row_bytes_, static_cast<size_t>(row_bytes_));
  }
  SIMT_NOT_TRACED __attribute__((noinline)) void reduce(Reduction how) const {
    for (int r = 0; r < map_.rows(); ++r) {
      char* const row = row_of_tensor(r);
      for (int at = first_; row && at < last_; at += map_.element_bytes)
        reduce_element(how, row + at, shared_piece(r, at / 16 * 16) + at % 16);
    }
  }

 private:
  typedef uint64_t Piece __attribute__((vector_size(16), may_alias));

  SIMT_NOT_TRACED int clamped(int64_t at) const {
    return static_cast<int>(at < 0 ? 0 : at < row_bytes_ ? at : row_bytes_);
  }
  // Where the tile's column 0 of its row r would be in the tensor; null if the tensor has no such row.
  SIMT_NOT_TRACED char* row_of_tensor(int r) const {
    char* row = map_.data + int64_t{at_[0]} * map_.element_bytes;
    for (int d = 1; d < TensorMap::kMostDimensions; ++d) {
      const int64_t at = at_[d] + r % map_.box[d];
      if (at < 0 || at >= map_.sizes[d]) return nullptr;
      row += at * map_.strides[d];
      r /= map_.box[d];
    }
    return row;
  }
  SIMT_NOT_TRACED char* shared_piece(int r, int at) const {
    return memory_ + swizzled(address_ + static_cast<uint32_t>(r * row_bytes_ + at), map_.swizzle);
  }
  SIMT_NOT_TRACED void reduce_element(Reduction how, char* to, const char* from) const {
    switch (map_.type) {
      case CU_TENSOR_MAP_DATA_TYPE_UINT32:
        return simt::reduce<uint32_t>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_INT32:
        return simt::reduce<int32_t>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_UINT64:
        return simt::reduce<uint64_t>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_INT64:
        return simt::reduce<int64_t>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        return reduce_narrow<Binary16>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
        return reduce_narrow<Brain16>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
        return simt::reduce<double>(how, to, from);
      case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      case CU_TENSOR_MAP_DATA_TYPE_UINT16:
        return fault("tile", "a reduction of a tile of 8-bit or 16-bit integers, which TMA does not have");
      default:
        return simt::reduce<float>(how, to, from);
    }
  }
  // Copies the part of the piece at byte `at` of a row that is inside the tensor, and zeros for the rest of a load.
  SIMT_NOT_TRACED void copy_piece(char* to, const char* from, int at, bool zeros) const {
    if (from && first_ <= at && at + 16 <= last_) {
      *reinterpret_cast<Piece*>(to) = *reinterpret_cast<const Piece*>(from);
      return;
    }
    for (int i = 0; i < 16; ++i) {
      const bool inside = from && first_ <= at + i && at + i < last_;
      if (inside || zeros) to[i] = inside ? from[i] : char{0};
    }
  }

  const TensorMap& map_;
  char* memory_;
  uint32_t address_;
  int32_t at_[TensorMap::kMostDimensions];
  int row_bytes_, first_, last_;  // of a row, the bytes inside the tensor
};

// g++ for AArch64 aligns the copy of an argument, such as a __grid_constant__ map, to 16 bytes, whatever its type says.
#if defined(__aarch64__) && !defined(__clang__)
inline constexpr uintptr_t kMapAlignment = 16;
#else
inline constexpr uintptr_t kMapAlignment = alignof(CUtensorMap);
#endif

// Why TMA would not move the tile at these coordinates.
SIMT_NOT_TRACED __attribute__((noinline)) inline Refused refuses_tile(const TensorMap& map, int coordinates,
                                                                      const int32_t* at, uint32_t address, bool store) {
  if (reinterpret_cast<uintptr_t>(&map) % kMapAlignment)
    return {"misaligned", "a tensor map lies at a multiple of 64 bytes"};
  if (map.mark != TensorMap::kMark)
    return {"tile", "cp.async.bulk.tensor is given the address of something that is not a tensor map"};
  if (map.dimensions != coordinates)
    return {"tile", "cp.async.bulk.tensor is given another number of coordinates than its tensor map has dimensions"};
  if (address % 128) return {"misaligned", "a tile in shared memory begins at a multiple of 128 bytes"};
  if (at[0] * map.element_bytes % 16) return {"misaligned", "a tile begins at a column that is a multiple of 16 bytes"};
  for (int d = 0; store && d < coordinates; ++d)
    if (at[d] < 0)
      return {"out-of-bounds", "a tile is stored from a negative row or column: a GPU ends the kernel there"};
  return {nullptr, nullptr};
}

}  // namespace simt
