// deadlock.cpp: the report when no thread of a cluster can go on: which threads wait, and for what.
#include "trace/scheduler.h"

#include <cstdio>

namespace simt::trace {

namespace {

using Waiting = FibreThread::Waiting;

unsigned waiting(const Cluster& cluster, Waiting why) {
  unsigned waiting = 0;
  for (unsigned i = 0; i < cluster.count; ++i) waiting += cluster.waits(i, why);
  return waiting;
}

// The first thread that waits for lanes of its warp or for an mbarrier, in detail; empty if there is none.
std::string describe_thread(const Cluster& cluster, const MBarriers& mbarriers, const std::string& link) {
  char text[192];
  for (unsigned i = 0; i < cluster.count; ++i) {
    const FibreThread& t = cluster.threads[i];
    if (cluster.waits(i, Waiting::collective)) {
      std::snprintf(text, sizeof text, "%sthread %u waits in %s with mask 0x%08x for lanes that do not come",
                    link.c_str(), t.self.linear, name_of(t.what), t.mask);
      return text;
    }
    if (cluster.waits(i, Waiting::phase)) {
      const MBarrier& barrier = mbarriers.waited_for(i);
      std::snprintf(text, sizeof text, ": for thread %u, %u of %u arrivals and %d bytes have not come", t.self.linear,
                    barrier.pending, barrier.arrivals, barrier.bytes);
      return text;
    }
  }
  return "";
}

std::string describe(const Cluster& cluster, const MBarriers& mbarriers) {
  const Worker& worker = cluster.worker;
  std::string text =
      worker.cluster_blocks > 1 ? "no thread of the cluster can go on: " : "no thread of the block can go on: ";
  std::string link;
  const auto tell = [&](unsigned count, unsigned of, const char* where) {
    if (!count) return;
    text += link + std::to_string(count) + " of " + std::to_string(of) + " wait at " + where;
    link = " and ";
  };
  for (unsigned rank = 0; rank < worker.cluster_blocks; ++rank)
    tell(worker.blocks[rank].barrier.count, worker.blocks[rank].alive, "__syncthreads");
  tell(waiting(cluster, Waiting::cluster), cluster.alive, "the cluster's barrier");
  tell(waiting(cluster, Waiting::warp_group), cluster.alive, "a warp group's wgmma.wait_group");
  tell(waiting(cluster, Waiting::named), cluster.alive, "a named barrier (bar.sync)");
  tell(waiting(cluster, Waiting::phase), cluster.alive, "an mbarrier");
  return text + describe_thread(cluster, mbarriers, link);
}

}  // namespace

void report_deadlock(Cluster& cluster, const MBarriers& mbarriers) {
  unsigned i = 0;
  while (cluster.threads[i].exited) ++i;
  cluster.record_failure(i, "deadlock", {cluster.pc(i)}, describe(cluster, mbarriers));
}

}  // namespace simt::trace
