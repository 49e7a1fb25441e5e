// cooperative_groups.h: thread blocks, tiles of a warp, coalesced groups.
//
// Supported: this_thread_block(), tiled_partition by 1 to 32 threads (static and dynamic), coalesced_threads(),
// binary_partition, labeled_partition, this_cluster() with the shared memory of its other blocks, and this_grid(), with
// its barrier in kernels that cudaLaunchCooperativeKernel launched. Not supported: tiles of more than a warp.
// barrier_arrive() of a block or a grid does nothing here and barrier_wait() is the whole barrier: it also orders what
// threads do between the two, which a GPU does not, and a token that is never waited for does no harm.
// cooperative_groups/reduce.h, scan.h and memcpy_async.h add the collectives.
#pragma once

#include "simt/core.h"
#include "simt/intrinsics.h"
#include "simt/warp.h"

namespace cooperative_groups {

namespace detail {
inline unsigned block_threads() {
  const dim3& block = ::simt::self().geometry->block_dim;
  return block.x * block.y * block.z;
}
inline dim3 times(dim3 a, dim3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
inline dim3 over(dim3 a, dim3 b) { return {a.x / b.x, a.y / b.y, a.z / b.z}; }
inline dim3 thread_index(dim3 block) {
  const dim3 first = times(block, ::simt::self().geometry->block_dim), at = ::simt::self().thread_index;
  return {first.x + at.x, first.y + at.y, first.z + at.z};
}
inline unsigned below(unsigned lane) { return (1u << lane) - 1; }
inline unsigned lanes_from(unsigned first, unsigned count) { return (count == 32 ? ~0u : (1u << count) - 1) << first; }
}  // namespace detail

// Any group, by value: what functions that take a `thread_group` accept. A mask of 0 means the whole block.
class thread_group {
 public:
  void sync() const {
    if (mask_ == 0)
      __syncthreads();
    else
      __syncwarp(mask_);
  }
  unsigned num_threads() const { return mask_ == 0 ? detail::block_threads() : static_cast<unsigned>(__popc(mask_)); }
  unsigned long long size() const { return num_threads(); }
  unsigned long long thread_rank() const {
    return mask_ == 0 ? ::simt::self().linear : static_cast<unsigned>(__popc(mask_ & detail::below(::simt::lane())));
  }

 protected:
  explicit thread_group(unsigned mask) : mask_(mask) {}
  unsigned mask_;
  friend thread_group tiled_partition(const thread_group& parent, unsigned size);
};

class thread_block : public thread_group {
 public:
  static void sync() { __syncthreads(); }
  struct arrival_token {};
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&) { sync(); }
  static unsigned num_threads() { return detail::block_threads(); }
  static unsigned size() { return num_threads(); }
  static unsigned thread_rank() { return ::simt::self().linear; }
  static dim3 group_index() { return ::simt::self().geometry->block_index; }
  static dim3 thread_index() { return ::simt::self().thread_index; }
  static dim3 group_dim() { return ::simt::self().geometry->block_dim; }
  static dim3 dim_threads() { return group_dim(); }

 private:
  thread_block() : thread_group(0) {}
  friend thread_block this_thread_block();
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static unsigned long long block_rank() {
    const ::simt::Geometry& g = *::simt::self().geometry;
    return (static_cast<unsigned long long>(g.block_index.z) * g.grid_dim.y + g.block_index.y) * g.grid_dim.x +
           g.block_index.x;
  }
  static unsigned long long num_blocks() {
    const dim3& grid = group_dim();
    return static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
  }
  static unsigned long long thread_rank() { return block_rank() * detail::block_threads() + ::simt::self().linear; }
  static unsigned long long num_threads() { return num_blocks() * detail::block_threads(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 block_index() { return ::simt::self().geometry->block_index; }
  static const dim3& group_dim() { return ::simt::self().geometry->grid_dim; }
  static dim3 dim_blocks() { return group_dim(); }
  static dim3 thread_index() { return detail::thread_index(block_index()); }
  static dim3 dim_threads() { return detail::times(dim_blocks(), ::simt::self().geometry->block_dim); }
  static dim3 dim_clusters() { return detail::over(dim_blocks(), ::simt::cluster_dim()); }
  static dim3 cluster_index() { return detail::over(block_index(), ::simt::cluster_dim()); }
  static unsigned long long num_clusters() { return num_blocks() / ::simt::cluster_blocks(); }
  static unsigned long long cluster_rank() {
    const dim3 at = cluster_index(), all = dim_clusters();
    return (static_cast<unsigned long long>(at.z) * all.y + at.y) * all.x + at.x;
  }
  static bool is_valid() { return ::simt::in_cooperative_grid(); }
  static void sync() { ::simt::grid_barrier(); }
  struct arrival_token {};
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&) { sync(); }
};
inline grid_group this_grid() { return {}; }

// The blocks that a launch's cluster dimensions, or __cluster_dims__, put together; else each block is a cluster.
class cluster_group {
 public:
  static void sync() { ::simt::cluster_barrier(); }
  struct arrival_token {};
  static arrival_token barrier_arrive() { return ::simt::cluster_arrive(), arrival_token(); }
  static void barrier_wait(arrival_token&&) { sync(); }
  static void barrier_wait() { sync(); }
  static unsigned block_rank() { return ::simt::cluster_rank(); }
  static unsigned num_blocks() { return ::simt::cluster_blocks(); }
  static unsigned thread_rank() { return block_rank() * detail::block_threads() + ::simt::self().linear; }
  static unsigned num_threads() { return num_blocks() * detail::block_threads(); }
  static unsigned size() { return num_threads(); }
  static dim3 dim_blocks() { return ::simt::cluster_dim(); }
  static dim3 dim_threads() { return detail::times(dim_blocks(), ::simt::self().geometry->block_dim); }
  static dim3 block_index() {
    const dim3 at = ::simt::self().geometry->block_index, by = dim_blocks();
    return {at.x % by.x, at.y % by.y, at.z % by.z};
  }
  static dim3 thread_index() { return detail::thread_index(block_index()); }
  // The rank of the block in whose shared memory the address lies.
  static unsigned query_shared_rank(const void* address) {
    unsigned rank = 0;
    for (uintptr_t nearest = ~uintptr_t{0}, k = 0; k < num_blocks(); ++k) {
      const uintptr_t start = reinterpret_cast<uintptr_t>(::simt::shared_dynamic_of(static_cast<unsigned>(k)));
      const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - start;
      if (offset < nearest) nearest = offset, rank = static_cast<unsigned>(k);
    }
    return rank;
  }
  // Where the block of this rank keeps what this block keeps at `address`, in its own shared memory.
  template <typename T>
  static T* map_shared_rank(T* address, int rank) {
    auto bytes = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(::simt::shared_dynamic());
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(::simt::shared_dynamic_of(static_cast<unsigned>(rank))) +
                                bytes);
  }
};
inline cluster_group this_cluster() { return {}; }

// The lanes of a warp that execute a branch together, ranked by lane.
class coalesced_group : public thread_group {
 public:
  template <typename T>
  T shfl(const T& value, unsigned rank) const {
    return ::simt::detail::exchange(mask_, value, lane_of(rank));
  }
  template <typename T>
  T shfl_up(const T& value, unsigned delta) const {
    const unsigned rank = static_cast<unsigned>(thread_rank());
    return shfl(value, rank >= delta ? rank - delta : rank);
  }
  template <typename T>
  T shfl_down(const T& value, unsigned delta) const {
    const unsigned rank = static_cast<unsigned>(thread_rank());
    return shfl(value, rank + delta < num_threads() ? rank + delta : rank);
  }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  unsigned ballot(int predicate) const { return by_rank(__ballot_sync(mask_, predicate)); }
  template <typename T>
  unsigned match_any(T value) const {
    return by_rank(__match_any_sync(mask_, value));
  }
  template <typename T>
  unsigned match_all(T value, int& predicate) const {
    return by_rank(__match_all_sync(mask_, value, &predicate));
  }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

 private:
  explicit coalesced_group(unsigned mask, unsigned rank = 0, unsigned size = 1)
      : thread_group(mask), meta_rank_(rank), meta_size_(size) {}
  unsigned lane_of(unsigned rank) const { return __fns(mask_, 0, static_cast<int>(rank) + 1); }
  unsigned by_rank(unsigned lanes) const {  // packs the bits of the group's lanes together
    unsigned result = 0;
    for (unsigned left = mask_, rank = 0; left != 0; left &= left - 1, ++rank)
      result |= (lanes >> __builtin_ctz(left) & 1u) << rank;
    return result;
  }
  unsigned meta_rank_, meta_size_;
  friend coalesced_group coalesced_threads();
  friend coalesced_group tiled_partition(const coalesced_group& parent, unsigned size);
  friend struct Partition;
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

// `Size` neighbouring lanes, aligned to `Size`.
template <unsigned Size, typename Parent = void>
class thread_block_tile : public thread_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "the simulator supports tiles of 1, 2, 4, 8, 16 and 32 threads");

 public:
  template <typename Other>  // a tile of a known parent converts to a tile of any parent
  thread_block_tile(const thread_block_tile<Size, Other>& other)
      : thread_group(other.mask()), meta_rank_(other.meta_group_rank()), meta_size_(other.meta_group_size()) {}
  thread_block_tile(unsigned mask, unsigned meta_rank, unsigned meta_size)
      : thread_group(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}

  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return ::simt::lane() % Size; }
  unsigned meta_group_rank() const { return meta_rank_; }  // which of the parent's tiles this one is
  unsigned meta_group_size() const { return meta_size_; }  // how many tiles the parent was cut into
  unsigned mask() const { return mask_; }

  template <typename T>
  T shfl(const T& value, int rank) const {
    return exchange(value, ::simt::shuffle_source_index(::simt::lane(), static_cast<unsigned>(rank), Size));
  }
  template <typename T>
  T shfl_up(const T& value, unsigned delta) const {
    return exchange(value, ::simt::shuffle_source_up(::simt::lane(), delta, Size));
  }
  template <typename T>
  T shfl_down(const T& value, unsigned delta) const {
    return exchange(value, ::simt::shuffle_source_down(::simt::lane(), delta, Size));
  }
  template <typename T>
  T shfl_xor(const T& value, unsigned lane_mask) const {
    return exchange(value, ::simt::shuffle_source_xor(::simt::lane(), lane_mask, Size));
  }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  unsigned ballot(int predicate) const { return by_rank(__ballot_sync(mask_, predicate)); }
  template <typename T>
  unsigned match_any(T value) const {
    return by_rank(__match_any_sync(mask_, value));
  }
  template <typename T>
  unsigned match_all(T value, int& predicate) const {
    return by_rank(__match_all_sync(mask_, value, &predicate));
  }

 private:
  template <typename T>
  T exchange(const T& value, unsigned lane) const {
    return ::simt::detail::exchange(mask_, value, lane);
  }
  static unsigned by_rank(unsigned lanes) {
    return lanes >> (::simt::lane() & ~(Size - 1)) & detail::lanes_from(0, Size);
  }
  unsigned meta_rank_, meta_size_;
};

template <unsigned Size>
thread_block_tile<Size, thread_block> tiled_partition(const thread_block&) {
  const unsigned mask = detail::lanes_from(::simt::lane() & ~(Size - 1), Size);
  return {mask, ::simt::self().linear / Size, (detail::block_threads() + Size - 1) / Size};
}
template <unsigned Size, unsigned ParentSize, typename Grandparent>
thread_block_tile<Size, thread_block_tile<ParentSize, Grandparent>> tiled_partition(
    const thread_block_tile<ParentSize, Grandparent>& parent) {
  static_assert(Size <= ParentSize, "a tile must not be larger than the group it is cut from");
  const unsigned mask = detail::lanes_from(::simt::lane() & ~(Size - 1), Size);
  return {mask, parent.thread_rank() / Size, ParentSize / Size};
}
// With a size known only at run time: 1, 2, 4, 8, 16 or 32 ranks of the parent to each group.
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned rank = static_cast<unsigned>(parent.thread_rank());
  if (size == 0 || size > 32 || (size & (size - 1)) != 0)
    ::simt::fault("cooperative groups", "tiled_partition: the size must be 1, 2, 4, 8, 16 or 32");
  const unsigned first = rank / size * size;
  if (parent.mask_ == 0) {  // ranks of a block are lanes of its warps
    const unsigned left = detail::block_threads() - first;
    return thread_group(detail::lanes_from(first % 32, size < left ? size : left));
  }
  unsigned mask = 0;
  for (unsigned i = first; i < first + size && i < parent.num_threads(); ++i)
    mask |= 1u << __fns(parent.mask_, 0, static_cast<int>(i) + 1);
  return thread_group(mask);
}

inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  coalesced_group tile = parent;
  static_cast<thread_group&>(tile) = tiled_partition(static_cast<const thread_group&>(parent), size);
  tile.meta_rank_ = static_cast<unsigned>(parent.thread_rank()) / size;
  tile.meta_size_ = (parent.num_threads() + size - 1) / size;
  return tile;
}

// The lanes of a tile or a coalesced group for which a label has the same value.
struct Partition {
  template <typename Group>
  static unsigned lanes(const Group& group) {
    if constexpr (std::is_same_v<Group, coalesced_group>)
      return group.mask_;
    else
      return group.mask();
  }
  static coalesced_group binary(unsigned lanes, bool label) {
    const unsigned set = __ballot_sync(lanes, label);
    if (set == 0 || set == lanes) return coalesced_group(lanes);
    return coalesced_group(label ? set : lanes & ~set, label, 2);
  }
  template <typename T>
  static coalesced_group labeled(unsigned lanes, T label) {
    const unsigned alike = __match_any_sync(lanes, label), first = alike & -alike;
    const unsigned leaders = __ballot_sync(lanes, first == 1u << ::simt::lane());
    return coalesced_group(alike, static_cast<unsigned>(__popc(leaders & (first - 1))),
                           static_cast<unsigned>(__popc(leaders)));
  }
};
template <typename Group>
coalesced_group binary_partition(const Group& group, bool label) {
  return Partition::binary(Partition::lanes(group), label);
}
template <typename Group, typename T>
coalesced_group labeled_partition(const Group& group, T label) {
  if constexpr (std::is_same_v<T, bool>)
    return binary_partition(group, label);
  else if constexpr (std::is_pointer_v<T>)
    return Partition::labeled(Partition::lanes(group), reinterpret_cast<unsigned long long>(label));
  else
    return Partition::labeled(Partition::lanes(group), label);
}

template <typename Group>
void sync(const Group& group) {
  group.sync();
}
template <typename Group>
void synchronize(const Group& group) {
  group.sync();
}
template <typename Group>
auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <typename Group>
auto group_size(const Group& group) {
  return group.size();
}

}  // namespace cooperative_groups
