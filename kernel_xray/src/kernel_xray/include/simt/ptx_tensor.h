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

// In the block whose shared memory begins at `there`: `to` and `barrier` are addresses as this block has them.
SIMT_PTX void load_tile(char* there, uint32_t to, const TensorMap& map, uint32_t barrier, const int32_t* at,
                        Copy copy) {
  const Tile tile(map, at, there, to);
  tile.tell_load(copy != Copy::further);
  async_load(there + barrier, tile.bytes(), copy);
  tile.load();
}

template <typename Rank, typename Space, unsigned flags, typename To, typename Map, typename Barrier, typename... At>
SIMT_PTX void op_tile_load(To to, Map map_, Barrier barrier, const At&... coordinates) {
  static_assert(sizeof...(At) == Rank::n, "cp.async.bulk.tensor has as many coordinates as dimensions");
  const int32_t at[] = {get<int32_t>(coordinates)...};
  char* const here = static_cast<char*>(shared_dynamic());
  const auto offset = static_cast<uint32_t>(pointer<Space>(to) - here);
  const auto counter = static_cast<uint32_t>(pointer<Space>(barrier) - here);
  load_tile(here, offset, checked_map(map_, Rank::n, at, offset, false), counter, at, Copy::own);
}

// For every block of the cluster whose rank is a set bit of the last operand.
template <typename Rank, typename Space, unsigned flags, typename To, typename Map, typename Barrier, typename... At>
SIMT_PTX void op_tiles(To to, Map map_, Barrier barrier, const At&... coordinates) {
  static_assert(sizeof...(At) == Rank::n + 1, "cp.async.bulk.tensor has as many coordinates as dimensions");
  const int32_t at[] = {static_cast<int32_t>(coordinates)...};
  const auto offset = static_cast<uint32_t>(to), counter = static_cast<uint32_t>(barrier);
  const TensorMap& map = checked_map(map_, Rank::n, at, offset, false);
  Copy copy = Copy::first;
  for (unsigned rank = 0; rank < 16; ++rank) {
    if (at[Rank::n] >> rank & 1) {
      load_tile(static_cast<char*>(shared_dynamic_of(rank)), offset, map, counter, at, copy);
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

}  // namespace simt::ptx
