// traced_block.cpp: begins, runs and ends a cluster, and lays out its shared memory.
#include "trace/traced_block.h"

#include <algorithm>

#include "trace/trace.h"

namespace simt::trace {

__thread TracedBlock* this_block SIMT_TLS = nullptr;

bool in_traced_block() { return this_block != nullptr && in_kernel(); }
void stop_lane() { this_block->cluster.suspend(); }
void lane_fault(const char* kind, Place where, const std::string& message) {
  this_block->cluster.fail(kind, where, message);
}

bool TracedBlock::run(uint3 index, uint64_t number) {
  cluster.begin(index, number, &Scheduler::fibre_main);
  units.begin_cluster();
  columns.begin_cluster();
  clocks.begin_cluster();
  races.begin_cluster();
  mbarriers.begin_cluster();
  barriers.begin_cluster();
  shared.begin_cluster();
  replay.work.begin_cluster();

  this_block = this;
  simt::Thread* const outside = current_thread;
  scheduler.run();
  races.end_cluster();
  columns.end_cluster();
  if (cluster.unwatched) {
    info_.cut_blocks += cluster.worker.cluster_blocks;
    cluster.session.regions.note_other_writes();
  } else {
    barriers.end_cluster();
  }
  current_thread = outside;
  cluster.worker.running = nullptr;
  this_block = nullptr;

  shared.end_cluster();
  for (unsigned i = 0; i < cluster.count; ++i) replay.work.add_tiles(i, units.tiles_of(i));
  replay.work.end_cluster();
  info_.shared_static = std::max(info_.shared_static, shared.declared());
  return !cluster.failed;
}

// ---------------------------------------------------------------------------------------------------------------
// Shared memory

constexpr size_t kRedZone = 128;

void SharedArrays::begin_cluster() {
  sites_.clear();
  used_ = cluster_.job.config.shared_bytes;
  declared_ = 0;
  if (used_) add(0, used_, "the dynamic shared memory");
}

void SharedArrays::end_cluster() {
  for (const uint64_t start : added_) cluster_.session.regions.remove(start);
  added_.clear();
}

void SharedArrays::add(size_t offset, size_t bytes, const std::string& name) {
  for (unsigned rank = 0; rank < cluster_.worker.cluster_blocks; ++rank) {
    char* const place = cluster_.worker.shared_of(rank) + offset;
    const auto start = reinterpret_cast<uint64_t>(place);
    std::fill_n(place, bytes, static_cast<char>(0xff));  // NaN
    cluster_.session.regions.add(start, bytes, Space::shared, 0, true, name, rank * kSharedLimit + offset);
    added_.push_back(start);
  }
}

void* SharedArrays::variable(const SharedSite* site, size_t bytes, size_t alignment) {
  char* const arena = cluster_.worker.shared_of(cluster_.running_rank());
  for (const auto& [known, offset] : sites_)
    if (known == site) return arena + offset;
  const size_t align = std::max(alignment, size_t{128});
  const size_t offset = (used_ + (used_ ? kRedZone : 0) + align - 1) / align * align;
  declared_ += bytes;
  if (declared_ > kStaticSharedLimit || offset + bytes > kSharedLimit)
    cluster_.fail("shared-memory", {0},
                  "the kernel declares " + std::to_string(declared_) + " bytes of static shared memory (with " +
                      std::to_string(cluster_.job.config.shared_bytes) +
                      " dynamic); the limit is 49152 static and 232448 in all");
  used_ = offset + bytes;
  sites_.push_back({site, offset});
  add(offset, bytes, "a shared array of " + std::to_string(bytes) + " bytes");
  return arena + offset;
}

}  // namespace simt::trace
