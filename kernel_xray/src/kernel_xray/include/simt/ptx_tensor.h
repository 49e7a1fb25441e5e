// ptx_tensor.h: cp.async.bulk.tensor of inline PTX: TMA moves tiles of tensor maps (tile.h). A tile is there when the
// instruction has been executed; an X-ray finds a missing wait or fence.
#pragma once

#include "ptx_async.h"
#include "tile.h"

namespace simt::ptx {

template <int count>
struct Dimensions {
  static constexpr int n = count;
};
using t_1d = Dimensions<1>;
using t_2d = Dimensions<2>;
using t_3d = Dimensions<3>;
using t_4d = Dimensions<4>;
using t_5d = Dimensions<5>;

template <typename Address>
SIMT_PTX const TensorMap& checked_map(Address address, int coordinates, const int32_t* at, uint32_t shared,
                                      bool store) {
  const auto& map = *reinterpret_cast<const TensorMap*>(pointer<t_generic>(address));
  const Refused why = refuses_tile(map, coordinates, at, shared, store);
  if (why.kind) fault(why.kind, why.message);
  return map;
}

// To the offset `to` in the shared memory that begins at `there`.
SIMT_PTX void load_tile(char* there, uint32_t to, const TensorMap& map, char* barrier, const int32_t* at, Copy copy) {
  const Tile tile(map, at, there, to);
  tile.tell_load(copy != Copy::further);
  async_load(barrier, tile.bytes(), copy);
  tile.load();
}

template <typename Rank, typename Space, unsigned flags, typename To, typename Map, typename Barrier, typename... At>
SIMT_PTX void op_tile_load(To to, Map map_, Barrier barrier, const At&... coordinates) {
  static_assert(sizeof...(At) == Rank::n, "cp.async.bulk.tensor has as many coordinates as dimensions");
  const int32_t at[] = {get<int32_t>(coordinates)...};
  char* const here = static_cast<char*>(shared_dynamic());
  const auto offset = static_cast<uint32_t>(pointer<Space>(to) - here);
  load_tile(here, offset, checked_map(map_, Rank::n, at, offset, false), pointer<Space>(barrier), at, Copy::own);
}

// For every block of the cluster whose rank is a set bit of the last operand. Its bytes arrive at its own barrier; with
// .cta_group::2 at that of the even or of the odd block of its pair, whichever kind has the barrier of the operand.
template <typename Rank, typename Space, unsigned flags, typename To, typename Map, typename Barrier, typename... At>
SIMT_PTX void op_tiles(To to, Map map_, Barrier barrier, const At&... coordinates) {
  static_assert(sizeof...(At) == Rank::n + 1, "cp.async.bulk.tensor has as many coordinates as dimensions");
  const int32_t at[] = {static_cast<int32_t>(coordinates)...};
  const uint32_t offset = shared_offset(to), counter = shared_offset(barrier);
  const auto parity = static_cast<unsigned>(barrier >> kSharedRankShift & 1);
  const TensorMap& map = checked_map(map_, Rank::n, at, offset, false);
  Copy copy = Copy::first;
  for (unsigned rank = 0; rank < 16; ++rank) {
    if (at[Rank::n] >> rank & 1) {
      char* const there = static_cast<char*>(shared_dynamic_of(rank));
      char* const counts = flags & kPair ? static_cast<char*>(shared_dynamic_of((rank & ~1u) | parity)) : there;
      load_tile(there, offset, map, counts + counter, at, copy);
      copy = Copy::further;
    }
  }
}

template <typename Rank, unsigned flags, typename Map, typename From, typename... At>
SIMT_PTX void op_tile_store(Map map_, From from, const At&... coordinates) {
  static_assert(sizeof...(At) == Rank::n, "cp.async.bulk.tensor has as many coordinates as dimensions");
  const int32_t at[] = {get<int32_t>(coordinates)...};
  char* const here = static_cast<char*>(shared_dynamic());
  const auto offset = static_cast<uint32_t>(pointer<t_shared>(from) - here);
  const Tile tile(checked_map(map_, Rank::n, at, offset, true), at, here, offset);
  tile.tell_store();
  async_store();
  tile.store();
}

template <typename Rank, Reduction how, typename Map, typename From, typename... At>
SIMT_PTX void reduce_tile(Map map_, From from, const At&... coordinates) {
  static_assert(sizeof...(At) == Rank::n, "cp.reduce.async.bulk.tensor has as many coordinates as dimensions");
  const int32_t at[] = {get<int32_t>(coordinates)...};
  char* const here = static_cast<char*>(shared_dynamic());
  const auto offset = static_cast<uint32_t>(pointer<t_shared>(from) - here);
  const Tile tile(checked_map(map_, Rank::n, at, offset, true), at, here, offset);
  tile.tell_reduction();
  async_store();
  tile.reduce(how);
}
template <typename T, Reduction how, typename To, typename From, typename Size>
SIMT_PTX void reduce_bulk(To to_, From from_, const Size& size) {
  char *const to = pointer<t_global>(to_), *const from = pointer<t_shared>(from_);
  const uint32_t bytes = get<uint32_t>(size);
  if (reinterpret_cast<uintptr_t>(to) % 16 || reinterpret_cast<uintptr_t>(from) % 16 || bytes % 16)
    fault("misaligned", "cp.reduce.async.bulk reduces whole pieces of 16 bytes between multiples of 16 bytes");
  async_reads(from, bytes);
  async_store();
  for (uint32_t at = 0; at < bytes; at += static_cast<uint32_t>(sizeof(T))) {
    if constexpr (std::is_same_v<T, t_f16>)
      reduce_narrow<Binary16>(how, to + at, from + at);
    else if constexpr (std::is_same_v<T, t_bf16>)
      reduce_narrow<Brain16>(how, to + at, from + at);
    else
      reduce<T>(how, to + at, from + at);
  }
}
#define SIMT_PTX_REDUCTION(name, how)                                \
  template <typename Rank, unsigned flags, typename... Operands>     \
  SIMT_PTX void op_tile_reduce_##name(const Operands&... operands) { \
    reduce_tile<Rank, Reduction::how>(operands...);                  \
  }                                                                  \
  template <typename T, unsigned flags, typename... Operands>        \
  SIMT_PTX void op_bulk_reduce_##name(const Operands&... operands) { \
    reduce_bulk<T, Reduction::how>(operands...);                     \
  }
SIMT_PTX_REDUCTION(add, add)
SIMT_PTX_REDUCTION(min, min)
SIMT_PTX_REDUCTION(max, max)
SIMT_PTX_REDUCTION(inc, inc)
SIMT_PTX_REDUCTION(dec, dec)
SIMT_PTX_REDUCTION(and, bit_and)
SIMT_PTX_REDUCTION(or, bit_or)
SIMT_PTX_REDUCTION(xor, bit_xor)
#undef SIMT_PTX_REDUCTION

}  // namespace simt::ptx
