// trace_play.cpp: plays the records of a warp's lanes back in step, and counts and checks each request.
#include <algorithm>

#include "trace_block.h"

namespace simt {
namespace trace {

// Goes on until a lane that has more to say has none left in its record: it might come first.
void TracedBlock::play(unsigned w) {
  constexpr uint64_t kNone = ~uint64_t{0};
  const unsigned first = w * kWarpSize, n = lanes_of(w);
  uint64_t head[kWarpSize];  // keys of the lanes' next events
  for (unsigned k = 0; k < n; ++k)
    head[k] = lanes_[k].position < lanes_[k].length ? lanes_[k].record[lanes_[k].position].key : kNone;
  Request request;
  bool starved = false;
  while (!starved && steps_left_) {
    const uint64_t key = *std::min_element(head, head + n);
    if (key == kNone) break;
    request.count = 0;
    for (unsigned k = 0; k < n; ++k) {
      if (head[k] != key) continue;
      Lane& lane = lanes_[k];
      request.events[request.count] = &lane.record[lane.position++];
      request.lanes[request.count++] = k;
      const bool more = lane.position < lane.length;
      head[k] = more ? lane.record[lane.position].key : kNone;
      starved = starved || (!more && ready(first + k));
    }
    info_.steps += 1;
    info_.lane_steps += request.count;
    steps_left_ -= std::min<uint64_t>(steps_left_, request.count);
    if (request.events[0]->kind != Kind::step) step(w, request);
  }
}

Counts& TracedBlock::counts(const Event& event) {
  Counts*& known = counts_[event.key];
  if (!known) known = &session_.counts[{kernel_, event.pc(), event.kind}];
  return *known;
}

void TracedBlock::step(unsigned w, const Request& request) {
  const Event& event = *request.events[0];
  if (!event.quiet) count(counts(event), request);
  for (unsigned k = 0; k < request.count; ++k) {
    const unsigned i = w * kWarpSize + request.lanes[k];
    check_written(i, *request.events[k]);
    check_race(i, *request.events[k]);
  }
}

void TracedBlock::check_written(unsigned i, const Event& event) {
  Region& region = *event.region;
  if (!region.fresh) return;
  const uint64_t offset = event.address - region.virtual_start;
  const uint16_t written = region.written_before(offset, event.size, event.kind != Kind::load);
  if (!(event.poison & ~written)) return;
  if (Finding* found = place("uninitialised-read", event.pc(), 0, i))
    found->message = (event.kind == Kind::load ? "reads " : "atomically updates ") + std::to_string(event.size) +
                     (event.size == 1 ? " byte" : " bytes") + " of " + region.name + ", " + std::to_string(offset) +
                     " bytes into it, which nothing has written";
}

void TracedBlock::check_race(unsigned i, const Event& event) {
  const Thread& known = known_[i];
  const Who who{
      static_cast<uint32_t>(number_), epoch_, known.clock, i, &known.warp_knows, &block_knows_, &known_[i].knows};
  const Access* before = races_.access(who, event);
  if (!before) return;
  // Which of the two came first is chance. The reader is named first, or the place that is later in the code.
  struct Side {
    uint64_t pc;
    Kind kind;
    uint64_t block;
    unsigned thread;
  } one{event.pc(), event.kind, number_, i}, two{before->pc, before->kind, before->block, before->thread};
  auto rank = [](const Side& s) { return std::make_tuple(s.kind != Kind::load, ~s.pc, s.block, s.thread); };
  if (rank(two) < rank(one)) std::swap(one, two);
  Finding* found = session_.place("race", kernel_, one.pc, two.pc, one.block * kMaxThreads + one.thread);
  if (!found) return;
  const dim3 grid = job_.config.grid, block = job_.config.block;
  const auto x = [](uint64_t linear, dim3 of) {
    return uint3{static_cast<unsigned>(linear % of.x), static_cast<unsigned>(linear / of.x % of.y),
                 static_cast<unsigned>(linear / of.x / of.y)};
  };
  found->rank = one.kind != Kind::load;
  found->block = x(one.block, grid);
  found->thread = x(one.thread, block);
  const uint3 b = x(two.block, grid), t = x(two.thread, block);
  auto verb = [](Kind kind, bool first) {
    if (kind == Kind::load) return first ? "a read of " : "the read";
    if (kind == Kind::store) return first ? "a write to " : "the write";
    return first ? "an atomic update of " : "the atomic update";
  };
  auto triple = [](uint3 v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
  };
  const std::string whose = one.block == two.block ? " of the same block" : " of block " + triple(b);
  found->message = verb(one.kind, true) + event.region->name + " races with " + verb(two.kind, false) + " by thread " +
                   triple(t) + whose + ": nothing orders the two";
}

}  // namespace trace
}  // namespace simt
