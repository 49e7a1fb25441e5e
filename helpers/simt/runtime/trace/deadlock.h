// deadlock.h: no thread of a cluster can go on: which threads wait, and for what.
#pragma once

#include "trace/mbarriers.h"

namespace simt {
namespace trace {

// Records the failure for the first thread that has not ended.
void report_deadlock(const Cluster& cluster, const MBarriers& mbarriers, Outcome& outcome);

}  // namespace trace
}  // namespace simt
