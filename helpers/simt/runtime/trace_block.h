// trace_block.h: one block of a traced kernel.
//
// Every thread is a fibre. The scheduler lets the lanes of a warp run, one after another in an order drawn from the
// seed, until each has stopped; then it plays their records back in step. Only one warp has records at a time.
#pragma once

#include "trace.h"

namespace simt {
namespace trace {

class TracedBlock {
 public:
  TracedBlock(const Job& job, Session& session, LaunchInfo& info);

  bool run(uint3 index, uint64_t number);  // false: with a fault, which `fault` describes
  FaultRecord fault;
  uint64_t budget;        // steps that a block may take
  bool hopeless = false;  // the fault is one that other blocks would only take long to repeat

  // The device side, on the fibre of the thread that calls.
  int barrier(Vote vote, int predicate, const void* site);
  uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
  unsigned active(const void* site);
  void stop() { switch_context(running_->context, worker_.scheduler); }
  void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);
  [[noreturn]] void fail(const char* kind, Place place, const std::string& message);

 private:
  struct Thread {      // what is known of a thread besides what FibreThread holds
    const void* site;  // where it waits
    uint64_t last_pc;  // of its last event that was played
    unsigned depth;
    bool fenced;
    uint32_t clock;
    Clock warp_knows;
    Knowledge knows;
  };

  void begin(uint3 index, uint64_t number);
  static void fibre_main();
  void resume(unsigned i);
  void run_warp(unsigned w);
  void play(unsigned w);
  void step(unsigned w, const Request& request);
  void check_written(unsigned i, const Event& event);
  void check_race(unsigned i, const Event& event);
  Counts& counts(const Event& event);

  void wait(FibreThread::Waiting why, const void* site);
  void complete(unsigned w, unsigned mask, Collective what);
  void release_barrier();
  bool resolve_active();
  void deadlock();
  std::string describe_deadlock() const;
  void add_shared(size_t offset, size_t bytes, const std::string& name);

  void record_failure(unsigned i, const char* kind, Place place, const std::string& message);
  Finding* place(const char* kind, uint64_t pc, uint64_t other_pc, unsigned i);
  const unsigned* shuffled(unsigned n, unsigned* order);
  bool ready(unsigned i) const { return !threads_[i].exited && threads_[i].waiting == FibreThread::Waiting::no; }
  unsigned lanes_of(unsigned w) const {
    return count_ - w * kWarpSize < kWarpSize ? count_ - w * kWarpSize : kWarpSize;
  }

  const Job& job_;
  Session& session_;
  LaunchInfo& info_;
  Worker& worker_;
  Races races_;
  const std::string kernel_;
  std::vector<FibreThread> threads_ = std::vector<FibreThread>(kMaxThreads);
  std::vector<Thread> known_ = std::vector<Thread>(kMaxThreads);
  Warp warps_[kMaxThreads / kWarpSize];
  Lane lanes_[kWarpSize];
  Knowledge block_knows_;
  std::unordered_map<uint64_t, Counts*> counts_;  // by the event's key

  FibreThread* running_ = nullptr;
  unsigned count_ = 0, alive_ = 0, waiting_at_barrier_ = 0, barrier_true_ = 0, barrier_answer_ = 0, barrier_total_ = 0;
  uint64_t number_ = 0, steps_left_ = 0;
  uint32_t epoch_ = 0;
  bool failed_ = false, asked_ = false;
  unsigned failed_thread_ = 0;

  std::vector<std::pair<const SharedSite*, size_t>> shared_sites_;
  std::vector<uint64_t> shared_regions_;
  size_t shared_used_ = 0, shared_declared_ = 0;
};

}  // namespace trace
}  // namespace simt
