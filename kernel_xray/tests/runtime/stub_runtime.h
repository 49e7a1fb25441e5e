// stub_runtime.h: just enough of the simulator's run-time library to test the headers by themselves.
//
// A warp is 32 threads of the operating system; a collective is a rendezvous of the lanes in its mask. The barrier of a
// block is a rendezvous of the warp, as there is only one.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "simt/core.h"

namespace simt {

namespace stub {
inline Geometry geometry{{0, 0, 0}, dim3(32), dim3(1)};
inline Thread outside{{0, 0, 0}, &geometry, 0};
inline unsigned active = kFullMask;

struct Meeting {  // the rendezvous of the lanes of one mask
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t values[32], published[32];
  unsigned arrived = 0, round = 0, present = 0;
};
inline std::mutex meetings_mutex;
inline std::map<unsigned, Meeting> meetings;

// Waits for all lanes of the mask; then `published` holds their values.
inline const uint64_t* meet(unsigned mask, uint64_t value) {
  Meeting* meeting;
  {
    std::lock_guard<std::mutex> guard(meetings_mutex);
    meeting = &meetings[mask];
  }
  std::unique_lock<std::mutex> lock(meeting->mutex);
  const unsigned round = meeting->round;
  meeting->values[lane()] = value;
  meeting->arrived |= 1u << lane();
  if (meeting->arrived == mask) {
    for (int i = 0; i < 32; ++i) meeting->published[i] = meeting->values[i];
    meeting->arrived = 0;
    ++meeting->round;
    meeting->changed.notify_all();
  } else {
    meeting->changed.wait(lock, [&] { return meeting->round != round; });
  }
  return meeting->published;  // not overwritten before this lane reaches the next meeting
}

// Runs body() once on each lane of the mask.
template <typename Body>
void run_warp(Body body, unsigned mask = kFullMask) {
  active = mask;
  std::vector<std::thread> lanes;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1u)) continue;
    lanes.emplace_back([=] {
      Thread me{{i, 0, 0}, &geometry, i};
      current_thread = &me;
      body();
      current_thread = &outside;
    });
  }
  for (auto& lane : lanes) lane.join();
  active = kFullMask;
}

inline uint32_t reduced(Collective what, uint32_t a, uint32_t b) {
  const auto sa = static_cast<int32_t>(a), sb = static_cast<int32_t>(b);
  return what == Collective::add_u32   ? a + b
         : what == Collective::min_u32 ? std::min(a, b)
         : what == Collective::max_u32 ? std::max(a, b)
         : what == Collective::and_u32 ? a & b
         : what == Collective::or_u32  ? a | b
         : what == Collective::xor_u32 ? a ^ b
         : what == Collective::min_s32 ? static_cast<uint32_t>(std::min(sa, sb))
                                       : static_cast<uint32_t>(std::max(sa, sb));
}
}  // namespace stub

__thread Thread* current_thread SIMT_TLS = &stub::outside;
bool in_kernel() { return current_thread != &stub::outside; }
unsigned active_mask() { return stub::active; }
void yield_thread() { std::this_thread::yield(); }
void* shared_dynamic() { return nullptr; }

int block_barrier(Vote vote, int predicate) {
  const uint64_t* all = stub::meet(kFullMask, predicate != 0);
  int count = 0;
  for (int i = 0; i < 32; ++i) count += all[i] != 0;
  return vote == Vote::count ? count : vote == Vote::all ? count == 32 : vote == Vote::any ? count > 0 : 0;
}

uint64_t warp_collective(Collective what, unsigned mask, uint64_t value, unsigned operand) {
  const uint64_t* all = stub::meet(mask, value);
  if (what == Collective::shuffle) return mask >> operand & 1u ? all[operand] : ~uint64_t(0);
  unsigned equal = 0, nonzero = 0;
  uint64_t result = 0;
  bool first = true;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1u)) continue;
    equal |= unsigned(all[i] == value) << i;
    nonzero |= unsigned(all[i] != 0) << i;
    result = first ? static_cast<uint32_t>(all[i]) : stub::reduced(what, result, all[i]);
    first = false;
  }
  if (what == Collective::ballot) return nonzero;
  if (what == Collective::match_any) return equal;
  if (what == Collective::match_all) return equal == mask ? mask : 0;
  return result;
}

Fault::Fault(std::string kind_, std::string message_) : kind(std::move(kind_)), message(std::move(message_)) {}
Fault::~Fault() = default;
const char* Fault::what() const noexcept { return message.c_str(); }
void fault(const char* kind, const std::string& message) { throw Fault(kind, message); }
void fault(const char* kind, const char* message) { throw Fault(kind, message); }
void assert_failed(const char* expression, const char* file, int line, const char* function) {
  throw Fault("assert", std::string(file) + ":" + std::to_string(line) + ": " + function + ": " + expression);
}

}  // namespace simt
