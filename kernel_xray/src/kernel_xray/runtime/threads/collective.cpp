// collective.cpp: warp collectives (shuffles, votes, reductions, __syncwarp) and __activemask.
//
// The last lane of the mask to arrive computes every lane's answer and makes them all ready. Lanes that have exited
// are not waited for, as on hardware since Volta. Lanes match when they name the same mask and the same operation.
#include <algorithm>
#include <cstdio>

#include "threads/block.h"

namespace simt {

namespace {

uint64_t combine(Collective what, uint64_t a, uint64_t b) {
  const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
  const auto sa = static_cast<int32_t>(ua), sb = static_cast<int32_t>(ub);
  if (what == Collective::add_u32) return ua + ub;
  if (what == Collective::min_u32) return std::min(ua, ub);
  if (what == Collective::max_u32) return std::max(ua, ub);
  if (what == Collective::and_u32) return ua & ub;
  if (what == Collective::or_u32) return ua | ub;
  if (what == Collective::xor_u32) return ua ^ ub;
  if (what == Collective::min_s32) return static_cast<uint32_t>(std::min(sa, sb));
  if (what == Collective::max_s32) return static_cast<uint32_t>(std::max(sa, sb));
  return 0;
}

}  // namespace

const char* name_of(Collective what) {
  if (what == Collective::sync) return "__syncwarp";
  if (what == Collective::shuffle) return "a shuffle";
  if (what == Collective::ballot) return "a vote";
  return what == Collective::match_any || what == Collective::match_all ? "a match" : "a warp reduction";
}

unsigned answer_collective(FibreThread* warp, Warp& state, unsigned mask, Collective what) {
  const unsigned lanes = mask & state.alive;
  if ((lanes & ~state.waiting) || !lanes) return 0;
  for (unsigned i = 0; i < kWarpSize; ++i)
    if ((lanes >> i & 1) && (warp[i].mask != mask || warp[i].what != what)) return 0;

  if (what == Collective::shuffle) {  // the most frequent one
    for (unsigned i = 0; i < kWarpSize; ++i) {
      const unsigned source = warp[i].operand % kWarpSize;
      if (lanes >> i & 1) warp[i].answer = lanes >> source & 1 ? warp[source].value : ~uint64_t{0};
    }
    state.waiting &= ~lanes;
    return lanes;
  }
  uint64_t total = 0;
  bool first = true, equal = true;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    if (!(lanes >> i & 1)) continue;
    const uint64_t value = warp[i].value;
    if (what == Collective::ballot) {
      total |= static_cast<uint64_t>(value != 0) << i;
    } else if (what == Collective::match_all) {
      equal = equal && (first || value == total);
      total = value;
    } else {
      total = first ? value : combine(what, total, value);
    }
    first = false;
  }
  for (unsigned i = 0; i < kWarpSize; ++i) {
    if (!(lanes >> i & 1)) continue;
    FibreThread& t = warp[i];
    switch (what) {
      case Collective::sync:
        t.answer = 0;
        break;
      case Collective::match_any:
        t.answer = 0;
        for (unsigned j = 0; j < kWarpSize; ++j)
          if ((lanes >> j & 1) && warp[j].value == t.value) t.answer |= 1u << j;
        break;
      case Collective::match_all:
        t.answer = equal ? mask : 0;
        break;
      default:
        t.answer = total;
    }
  }
  state.waiting &= ~lanes;
  return lanes;
}

uint64_t Worker::collective(Collective what, unsigned mask, uint64_t value, unsigned operand) {
  leave_range();
  FibreThread& me = *running;
  const unsigned w = warp_of(me), lane = me.self.linear % kWarpSize;
  if (!(mask >> lane & 1)) {
    char text[128];
    std::snprintf(text, sizeof text, "%s with mask 0x%08x, which does not name the calling lane %u", name_of(what),
                  mask, lane);
    abandon({"wrong-mask", text});
  }
  me.what = what;
  me.mask = mask;
  me.operand = operand;
  me.value = value;
  me.waiting = FibreThread::Waiting::collective;
  const unsigned waiting = warps_[w].waiting |= 1u << lane;
  if (!(mask & warps_[w].alive & ~waiting)) complete_collective(w, mask, what);
  suspend();
  return me.answer;
}

// If all living lanes of the mask wait in this collective: computes their answers and makes them ready.
bool Worker::complete_collective(unsigned w, unsigned mask, Collective what) {
  FibreThread* warp = &threads_[w * kWarpSize];
  const unsigned lanes = answer_collective(warp, warps_[w], mask, what);
  for (unsigned i = 0; i < kWarpSize; ++i)
    if (lanes >> i & 1) make_ready(warp[i]);
  return lanes != 0;
}

void Worker::recheck_collectives(unsigned w) {
  FibreThread* warp = &threads_[w * kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i)
    if (warps_[w].waiting >> i & 1) complete_collective(w, warp[i].mask, warp[i].what);
}

unsigned answer_active(FibreThread* warp, unsigned count) {
  unsigned lanes = 0;
  for (unsigned i = 0; i < count; ++i)
    if (!warp[i].exited && warp[i].waiting == FibreThread::Waiting::active) lanes |= 1u << i;
  for (unsigned i = 0; i < count; ++i) {
    if (!(lanes >> i & 1)) continue;
    warp[i].answer = 0;
    for (unsigned j = 0; j < count; ++j)
      if ((lanes >> j & 1) && warp[j].value == warp[i].value) warp[i].answer |= 1u << j;
  }
  return lanes;
}

unsigned Worker::active(const void* site) {
  leave_range();
  FibreThread& me = *running;
  me.waiting = FibreThread::Waiting::active;
  me.value = reinterpret_cast<uintptr_t>(site);
  ++active_count_;
  suspend();
  return static_cast<unsigned>(me.answer);
}

bool Worker::resolve_active() {
  if (!active_count_) return false;
  for (unsigned w = 0; w * kWarpSize < count_; ++w) {
    FibreThread* warp = &threads_[w * kWarpSize];
    const unsigned lanes = answer_active(warp, std::min(count_ - w * kWarpSize, kWarpSize));
    for (unsigned i = 0; i < kWarpSize; ++i)
      if (lanes >> i & 1) make_ready(warp[i]);
  }
  active_count_ = 0;
  return true;
}

std::string Worker::describe_deadlock() {
  std::string text = "deadlock: no thread of the block can go on; ", link;
  auto tell = [&](const BarrierQueue& barrier, unsigned alive, const char* name) {
    if (!barrier.count) return;
    text += link + std::to_string(barrier.count) + " of " + std::to_string(alive) + " wait at " + name;
    link = " and ";
  };
  for (unsigned rank = 0; rank < cluster_blocks; ++rank)
    tell(blocks[rank].barrier, blocks[rank].alive, "__syncthreads");
  tell(cluster_barrier_, alive_, "the cluster's barrier");
  tell(grid_barrier_, alive_, "grid.sync()");
  for (unsigned rank = 0; rank < cluster_blocks; ++rank)
    for (const BarrierQueue& barrier : blocks[rank].named) tell(barrier, count_, "a named barrier (bar.sync)");
  for (const BarrierQueue& barrier : warp_groups_) tell(barrier, kWarpGroup, "a warp group's wgmma.wait_group");
  for (unsigned i = 0; i < count_; ++i) {
    const FibreThread& t = threads_[i];
    if (t.exited || t.waiting != FibreThread::Waiting::collective) continue;
    char line[256];
    const Warp& warp = warps_[warp_of(t)];
    std::snprintf(line, sizeof line,
                  "%sthread %u waits in %s with mask 0x%08x, in which lanes 0x%08x have not arrived with the same mask",
                  link.c_str(), t.self.linear, name_of(t.what), t.mask, t.mask & warp.alive & ~(1u << (i % 32)));
    text += line;
    break;
  }
  return text + ". Every thread that a barrier or a mask names has to reach the same call.";
}

}  // namespace simt
