// outcome.h: how the run of a cluster ends: the findings of its threads, its first failure, its budget of steps.
//
// A finding (a race, an uninitialised read) does not stop the kernel. A failure (an access out of bounds, a deadlock)
// ends its thread; the other threads go on to their next stop. So of several failing threads the first one in the
// cluster is reported, whatever the schedule was.
#pragma once

#include "trace/checks.h"
#include "trace/cluster.h"
#include "trace/session.h"

namespace simt {
namespace trace {

class Outcome {
 public:
  Outcome(Cluster& cluster, Session& session) : budget(session.budget), cluster_(cluster), session_(session) {}
  void begin_cluster();

  // The finding to fill in for thread i at this place, or null if an earlier thread of the grid has one there.
  Finding* place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i);
  // The same for any thread of the grid; leaves block and thread to the caller.
  Finding* place_at(const char* kind, uint64_t pc, uint64_t other_pc, uint64_t block, unsigned thread);

  // Thread i has failed.
  void record_failure(unsigned i, const char* kind, Place place, const std::string& message);
  // The running thread has failed; called on its fibre.
  [[noreturn]] void fail(const char* kind, Place place, const std::string& message);

  uint64_t budget;          // steps that a cluster may take
  uint64_t steps_left = 0;  // of it
  bool failed = false;
  bool hopeless = false;  // further clusters would repeat the failure, and take long
  FaultRecord fault;      // of the first thread that failed

 private:
  Cluster& cluster_;
  Session& session_;
  unsigned failed_thread_ = 0;
};

}  // namespace trace
}  // namespace simt
