// ptx_tcgen05.h: tcgen05 of inline PTX: tensor memory and its products (tensor_memory.h). Products are complete, and values
// are in registers, when the instruction has been executed.
//
// An X-ray does not find a missing tcgen05.wait: values in registers are not checked.
#pragma once

#include "ptx_memory.h"
#include "tensor_memory.h"

namespace simt::ptx {

template <TensorKind kind_>
struct KindOfProduct {
  static constexpr TensorKind kind = kind_;
};
using t_kind_f16 = KindOfProduct<TensorKind::f16>;
using t_kind_tf32 = KindOfProduct<TensorKind::tf32>;
using t_kind_f8f6f4 = KindOfProduct<TensorKind::f8f6f4>;
using t_kind_i8 = KindOfProduct<TensorKind::i8>;

template <unsigned rows_, unsigned bits_>
struct LanesByBits {
  static constexpr unsigned rows = rows_, bits = bits_;
};
using t_32x32b = LanesByBits<32, 32>;
using t_16x32bx2 = LanesByBits<16, 32>;
using t_16x64b = LanesByBits<16, 64>;
using t_16x128b = LanesByBits<16, 128>;
using t_16x256b = LanesByBits<16, 256>;

// ---------------------------------------------------------------------------------------------------------------
// Columns

template <typename Space, unsigned flags, typename A, typename N>
SIMT_PTX void op_tcgen05_alloc(A to, const N& columns) {
  __syncwarp();
  if (lane() == 0) write<0, 4>(pointer<Space>(to), {{tensor_allocate(get<uint32_t>(columns)), 0}});
  __syncwarp();
}
template <unsigned flags, typename A, typename N>
SIMT_PTX void op_tcgen05_dealloc(const A& address, const N& columns) {
  __syncwarp();
  if (lane() == 0) tensor_free(get<uint32_t>(address), get<uint32_t>(columns));
  __syncwarp();
}
template <unsigned flags>
SIMT_PTX void op_tcgen05_relinquish_alloc_permit() {
  if (lane() == 0) tensor_relinquish();
}

// ---------------------------------------------------------------------------------------------------------------
// Loads and stores. What a lane has stored, another lane may load: a store is the warp's as a whole.

// The registers are uint32_t; the split of 16x32bx2, which comes behind or before them, is a number of the text.
template <typename T>
inline constexpr bool is_register = std::is_same_v<std::decay_t<T>, uint32_t>;
template <typename S, unsigned flags, typename... R>
SIMT_PTX TensorAccess access_of(uint32_t address, const R&... r) {
  unsigned split = 0;
  ((split = is_register<R> ? split : static_cast<unsigned>(r)), ...);
  return {address, S::rows, S::bits, (0u + ... + is_register<R>), split, (flags & kPack) != 0};
}
template <typename R>
SIMT_PTX void take(R& r, const uint32_t*& values) {
  if constexpr (is_register<R>) r = *values++;
}
template <typename S, unsigned flags, typename... R>
SIMT_PTX void op_tcgen05_ld(uint32_t address, R&&... r) {
  uint32_t values[sizeof...(R)];
  tensor_load(access_of<S, flags>(address, r...), values);
  const uint32_t* next = values;
  (take(r, next), ...);
}
template <typename S, unsigned flags, typename... R>
SIMT_PTX void op_tcgen05_st(uint32_t address, const R&... r) {
  uint32_t values[sizeof...(R)];
  uint32_t* next = values;
  ((is_register<R> ? void(*next++ = static_cast<uint32_t>(r)) : void()), ...);
  __syncwarp();
  tensor_store(access_of<S, flags>(address, r...), values);
  __syncwarp();
}
SIMT_PTX_CALL(tcgen05_wait, __syncwarp())

// ---------------------------------------------------------------------------------------------------------------
// Products

// What follows the instruction descriptor: the lanes that are disabled, in 4 or 8 registers or none; whether to add; the
// scale of the sum so far, or nothing.
struct TensorOptions {
  TensorProduct& product;
  unsigned words = 0;
  SIMT_PTX void take(bool add) { product.add = add; }
  SIMT_PTX void take(uint32_t disabled) { product.disabled[words++] = disabled; }
  SIMT_PTX void take(long long scale) { product.scale = static_cast<unsigned>(scale); }
};
template <typename Kind, unsigned flags, typename A, typename B, typename I, typename... Rest>
SIMT_PTX void op_tcgen05_mma(uint32_t d, const A& a, const B& b, const I& instruction, const Rest&... rest) {
  constexpr bool in_tensor_memory = sizeof(A) == 4;  // an address, not a descriptor
  static_assert(sizeof...(Rest) <= 10, "tcgen05.mma has another number of operands");
  TensorProduct product{
      d, a, get<uint64_t>(b), get<uint32_t>(instruction), Kind::kind, (flags & kPair) != 0, in_tensor_memory, false,
      0, {}};
  TensorOptions options{product};
  (options.take(rest), ...);
  tensor_multiply(product);
}
template <typename Space, unsigned flags, typename A>
SIMT_PTX void op_tcgen05_commit(A barrier) {
  tensor_commit(pointer<Space>(barrier));
}
// At the same place of every block of the cluster whose rank is a set bit of the mask.
template <typename Space, unsigned flags, typename A, typename Mask>
SIMT_PTX void op_tcgen05_commit_multicast(A barrier, const Mask& mask) {
  for (unsigned rank = 0; rank < 16; ++rank)
    if (get<uint16_t>(mask) >> rank & 1)
      tensor_commit(static_cast<char*>(shared_dynamic_of(rank)) + shared_offset(barrier));
}

}  // namespace simt::ptx
