// outcome.cpp: findings and failures of a cluster's threads.
#include "trace/outcome.h"

namespace simt {
namespace trace {

void Outcome::begin_cluster() {
  steps_left = budget;
  failed = false;
}

Finding* Outcome::place_at(const char* kind, uint64_t pc, uint64_t other_pc, uint64_t block, unsigned thread) {
  return session_.place(kind, cluster_.kernel, pc, other_pc, block * kMaxThreads + thread);
}

Finding* Outcome::place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i) {
  const simt::Thread& self = cluster_.threads[i].self;
  const uint64_t block = cluster_.number_of(cluster_.number, cluster_.rank_of(i));
  Finding* found = place_at(kind, pc, other_pc, block, self.linear);
  if (!found) return nullptr;
  found->block = self.geometry->block_index;
  found->thread = self.thread_index;
  return found;
}

void Outcome::record_failure(unsigned i, const char* kind, Place where, const std::string& message) {
  if (Finding* found = place(kind, where.pc, 0, i)) {
    found->message = message;
    if (where.file) {
      found->file = where.file;
      found->line = where.line;
    }
  }
  constexpr uint64_t kStepsAfterFailure = 1'000'000;  // a lane that now waits for ever is not a second fault
  steps_left = std::min(steps_left, kStepsAfterFailure);
  if (failed && failed_thread_ <= i) return;
  failed = true;
  failed_thread_ = i;
  cluster_.worker.running = &cluster_.threads[i];
  fault = {kind, message + "\n  in " + simt::where(cluster_.worker)};
}

void Outcome::fail(const char* kind, Place where, const std::string& message) {
  const unsigned i = cluster_.running();
  record_failure(i, kind, where, message);
  cluster_.threads[i].exited = true;
  cluster_.suspend();
  __builtin_unreachable();
}

}  // namespace trace
}  // namespace simt
