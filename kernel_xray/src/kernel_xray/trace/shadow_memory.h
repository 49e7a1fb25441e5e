// shadow_memory.h: the last accesses to each address, and whether a new one races with them.
//
// A shadow cell stands for 1, 2 or 4 bytes: for the size of the smallest access that its page has seen. Like FastTrack
// it holds the last write and, most often, a single read. Where accesses are concurrent it deviates:
//
//   Reads. FastTrack then keeps a vector clock of all readers. A cell keeps three: `read`; the latest concurrent one by
//   another lane of that reader's warp; and the latest concurrent one by another warp. A writer that no barrier orders
//   after the reads is a thread of at most one warp, so one of the three is by another thread than the writer, and if
//   the writer has synchronised with its own warp only, one is by another warp. Limit: a writer that is ordered after
//   the three kept reads, but not after a fourth one, is not reported.
//   Strong accesses: atomics, volatile accesses to global memory, and reads that a compare-and-swap has validated. They
//   do not race with each other, unless one's scope leaves the other's thread out. If a strong write follows a
//   concurrent one, the cell keeps both, the earlier one as `strong`: a later plain access can be ordered after one of
//   them alone. Limit: two are kept.
//
// After a plain write the cell forgets all earlier accesses: either they happen before it, or the race was reported.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/access.h"

namespace simt::trace {

struct Race {
  Access before;
  bool unfenced;    // the two are ordered, but a proxy fence is missing
  bool same_value;  // both are plain writes, of the same value
  bool copied;      // unfenced, but a cp.async wrote what a wgmma reads
  bool narrow;      // both are atomic, but not for each other

  bool harmless() const { return same_value || copied; }  // on the GPUs that there are
};

struct ShadowCell {
  struct Concurrent {       // accesses that are concurrent with the two below
    Access read_in_warp;    // by another lane of `read`'s warp
    Access read_elsewhere;  // by another warp than `read`'s
    Access strong;          // a strong write, if `write` is one
  };
  Access write, read;
  std::unique_ptr<Concurrent> concurrent;

  Concurrent& make_concurrent() {
    if (!concurrent) concurrent = std::make_unique<Concurrent>();
    return *concurrent;
  }
};

class ShadowMemory {
 public:
  ShadowMemory() = default;
  ShadowMemory(ShadowMemory&&) = default;
  ShadowMemory(const ShadowMemory&) = delete;
  ShadowMemory& operator=(const ShadowMemory&) = delete;
  ~ShadowMemory();
  // Starts a cluster of blocks with 2^shift slots each, and forgets the shared memory of the previous one.
  void begin_cluster(unsigned shift);
  // Records an access. Returns an earlier access that races with it, or null; it is valid until the next call.
  const Race* access(const Accessor& accessor, const Event& event);
  // The accessor's own plain reads of this memory were validated by its compare-and-swap: they become strong.
  void validate(const Accessor& accessor, const Event& swap);
  // An access that was recorded of the memory that the event would have at this address, if one of the two is a write and
  // one is plain; or null.
  const Access* conflict(uint64_t address, const Event& event) const;

 private:
  struct Page {
    unsigned shift = 2;  // a cell stands for 2^shift bytes
    std::vector<ShadowCell> cells;
  };
  static constexpr unsigned kPageShift = 10, kRecent = 16;
  Page& page(uint64_t number, unsigned shift);
  Page& prepared_page(uint64_t number, unsigned shift);
  template <typename Visit>
  void cells(const Event& event, Visit visit);

  std::unordered_map<uint64_t, Page> pages_;
  std::vector<Page*> shared_;  // those of shared memory
  std::pair<uint64_t, Page*> recent_[kRecent] = {};
  unsigned shift_ = 0;
  Race found_{};
};

}  // namespace simt::trace
