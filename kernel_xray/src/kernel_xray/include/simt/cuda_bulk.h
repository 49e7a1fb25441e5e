// cuda_bulk.h: cuda::device of <cuda/barrier>: bulk copies and tiles of tensor maps that complete on a cuda::barrier.
//
// Each function is the instruction of inline PTX that it stands for (ptx_async.h, ptx_tensor.h).
#pragma once

#include "cuda_barrier.h"
#include "ptx_tensor.h"

namespace simt::ptx {

SIMT_PTX uint32_t shared_offset(const void* p) {
  return static_cast<uint32_t>(static_cast<const char*>(p) - static_cast<char*>(shared_dynamic()));
}
SIMT_PTX uint64_t generic_address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace simt::ptx

namespace cuda::device {

using Barrier = barrier<thread_scope_block>;

inline uint64_t* barrier_native_handle(Barrier& b) { return reinterpret_cast<uint64_t*>(&b); }
// Arrivals of this thread, which announce that many bytes.
[[nodiscard]] inline Barrier::arrival_token barrier_arrive_tx(Barrier& b, ::std::ptrdiff_t arrivals,
                                                              ::std::ptrdiff_t bytes) {
  ::simt::mbarrier_expect(&b, static_cast<int>(bytes));
  return b.arrive(arrivals);
}
inline void barrier_expect_tx(Barrier& b, ::std::ptrdiff_t bytes) {
  ::simt::mbarrier_expect(&b, static_cast<int>(bytes));
}

namespace experimental {

using ::CUtensorMap;

inline void fence_proxy_async_shared_cta() { ::simt::async_fence(); }
inline void fence_proxy_async_global() { ::simt::async_fence(); }

inline void cp_async_bulk_global_to_shared(void* to, const void* from, uint32_t bytes, Barrier& b) {
  using namespace ::simt::ptx;
  op_cp_async_bulk<t_generic, 0>(generic_address(to), generic_address(from), generic_address(&b), bytes);
}
inline void cp_async_bulk_shared_to_global(void* to, const void* from, uint32_t bytes) {
  using namespace ::simt::ptx;
  op_cp_async_bulk_store<0>(generic_address(to), shared_offset(from), bytes);
}
inline void cp_async_bulk_commit_group() { ::simt::ptx::op_cp_async_bulk_commit_group<0>(); }
template <int pending>
void cp_async_bulk_wait_group_read() {
  ::simt::ptx::op_cp_async_bulk_wait_group<0>(pending);
}

#define SIMT_TILES(rank, parameters, ...)                                                                              \
  inline void cp_async_bulk_tensor_##rank##_global_to_shared(void* to, const CUtensorMap* map, parameters,             \
                                                             Barrier& b) {                                             \
    using namespace ::simt::ptx;                                                                                       \
    op_tile_load<t_##rank, t_generic, 0>(generic_address(to), generic_address(map), generic_address(&b), __VA_ARGS__); \
  }                                                                                                                    \
  inline void cp_async_bulk_tensor_##rank##_shared_to_global(const CUtensorMap* map, parameters, const void* from) {   \
    using namespace ::simt::ptx;                                                                                       \
    op_tile_store<t_##rank, 0>(generic_address(map), shared_offset(from), __VA_ARGS__);                                \
  }
#define SIMT_AND ,
SIMT_TILES(1d, int x, x)
SIMT_TILES(2d, int x SIMT_AND int y, x, y)
SIMT_TILES(3d, int x SIMT_AND int y SIMT_AND int z, x, y, z)
SIMT_TILES(4d, int x SIMT_AND int y SIMT_AND int z SIMT_AND int w, x, y, z, w)
SIMT_TILES(5d, int x SIMT_AND int y SIMT_AND int z SIMT_AND int w SIMT_AND int v, x, y, z, w, v)
#undef SIMT_AND
#undef SIMT_TILES

}  // namespace experimental

// The barrier counts the bytes, which another call has announced.
template <typename T, ::std::size_t alignment>
void memcpy_async_tx(T* to, const T* from, aligned_size_t<alignment> bytes, Barrier& b) {
  static_assert(alignment >= 16, "memcpy_async_tx copies whole pieces of 16 bytes: cuda::aligned_size_t<16>");
  experimental::cp_async_bulk_global_to_shared(to, from, static_cast<uint32_t>(bytes.value), b);
}

}  // namespace cuda::device
