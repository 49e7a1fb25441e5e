// scheduler.cpp: plays the records of a warp's lanes back in step, and counts and checks each request.
#include <algorithm>
#include <tuple>

#include "trace/traced_block.h"

namespace simt {
namespace trace {

namespace {

// In how many events a lane comes to a key; kFar if not soon.
constexpr unsigned kFar = 64;
unsigned distance(const Lane& lane, uint64_t key) {
  const unsigned end = std::min(lane.length, lane.position + kFar);
  for (unsigned i = lane.position + 1; i < end; ++i)
    if (lane.record[i].key == key) return i - lane.position;
  return kFar;
}

}  // namespace

// The key to play next, where lanes are at different ones: the lowest, unless those at another one come to it sooner than
// the other way round. So lanes meet where branches do, wherever the compiler has put these.
uint64_t TracedBlock::next_key(const uint64_t* head, unsigned n) const {
  unsigned best = static_cast<unsigned>(std::min_element(head, head + n) - head);
  uint64_t seen = head[best];
  for (unsigned k = 0; k < n; ++k) {
    if (head[k] == head[best] || head[k] == seen || head[k] == kNoKey) continue;
    seen = head[k];
    if (distance(lanes_[k], head[best]) < distance(lanes_[best], head[k])) best = k;
  }
  return head[best];
}

// Goes on until a lane that has more to say has none left in its record: it might come first.
void TracedBlock::play(unsigned w) {
  const unsigned first = w * kWarpSize, n = lanes_of(w);
  uint64_t head[kWarpSize];  // keys of the lanes' next events
  for (unsigned k = 0; k < n; ++k)
    head[k] = lanes_[k].position < lanes_[k].length ? lanes_[k].record[lanes_[k].position].key : kNoKey;
  Request request;
  bool starved = false;
  while (!starved && steps_left_) {
    const bool together = std::all_of(head + 1, head + n, [&](uint64_t key) { return key == head[0]; });
    const uint64_t key = together ? head[0] : next_key(head, n);
    if (key == kNoKey) break;
    request.count = 0;
    for (unsigned k = 0; k < n; ++k) {
      if (head[k] != key) continue;
      Lane& lane = lanes_[k];
      request.events[request.count] = &lane.record[lane.position++];
      request.lanes[request.count++] = k;
      const bool more = lane.position < lane.length;
      head[k] = more ? lane.record[lane.position].key : kNoKey;
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

Who TracedBlock::who(unsigned i) {
  Thread& known = known_[i];
  BlockState& block = blocks_[rank_of(i)];
  return {static_cast<uint32_t>(number_),
          block.epoch,
          known.clock,
          slot_of(i),
          &known.warp_knows,
          &block.knows,
          &known.knows,
          &apart_[i].clocks,
          false,
          false};
}

namespace {

struct Side {  // of a race
  uint64_t pc;
  Kind kind;
  enum Who { thread, load, store, product } who;
  uint64_t block;
  unsigned index;  // of the thread, or of the one that a unit works for

  // Which of the two came first is chance. The reader is named first, or the place that is later in the code.
  auto rank() const { return std::make_tuple(kind != Kind::load, ~pc, block, index); }
  const char* what() const {
    if (who == load) return "load of a tile";
    if (who == store) return "store of a tile";
    if (who == product) return "product's read";
    return kind == Kind::load ? "read" : kind == Kind::store ? "write" : "atomic update";
  }
  const char* preposition() const {
    if (who == load || who == store) return kind == Kind::load ? "from" : "into";
    return kind == Kind::store ? "to" : "of";
  }
};

std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

}  // namespace

void TracedBlock::check_race(const Who& who, unsigned i, const Event& event) {
  const Race* race = races_.access(who, event);
  if (!race) return;
  const Access& before = race->before;
  const dim3 grid = job_.config.grid, size = job_.config.block;
  const auto side = [&](unsigned slot, bool unit, bool product) {
    if (!unit) return product ? Side::product : Side::thread;
    return (slot & ((1u << slot_shift_) - 1)) < 2 * unit_slots_ ? Side::store : Side::load;
  };
  Side one{event.pc(), event.kind, side(who.slot, who.unit, who.asynchronous), number_of(number_, rank_of(i)),
           i % block_threads_},
      two{before.pc, before.kind, side(before.slot, before.by == Access::By::unit, before.by == Access::By::product),
          number_of(before.cluster, before.slot >> slot_shift_), asked_by(before)};
  if (two.rank() < one.rank()) std::swap(one, two);
  Finding* found = session_.place("race", kernel_, one.pc, two.pc, one.block * kMaxThreads + one.index);
  if (!found) return;
  found->rank = one.kind != Kind::load;
  found->block = index_in(one.block, grid);
  found->thread = index_in(one.index, size);
  const std::string article = one.kind == Kind::atomic && one.who == Side::thread ? "an " : "a ";
  const std::string whose = one.block == two.block ? "the same block" : "block " + text(index_in(two.block, grid));
  found->message =
      article + one.what() + " " + one.preposition() + " " + event.region->name + " races with the " + two.what() +
      " by thread " + text(index_in(two.index, size)) + " of " + whose +
      (race->unfenced ? ": no fence makes what threads write known to units (fence_before_store, fence_init)"
                      : ": nothing orders the two");
}

// The thread that made an access, or that asked a unit to; of a load of another cluster it is not known any more.
unsigned TracedBlock::asked_by(const Access& access) const {
  const unsigned slot = access.slot & ((1u << slot_shift_) - 1);
  if (slot < 2 * unit_slots_) return slot % unit_slots_;
  for (const auto& [at, barrier] : barriers_)
    if (access.cluster == number_ && barrier.unit_slot == access.slot) return barrier.asked_by;
  return 0;
}

}  // namespace trace
}  // namespace simt
