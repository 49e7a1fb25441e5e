// barriers.cpp: how the threads of a traced block or cluster wait for each other.
#include <algorithm>
#include <cstdio>

#include "trace/traced_block.h"

namespace simt {
namespace trace {

void TracedBlock::wait(FibreThread::Waiting why, const void* site) {
  running_->waiting = why;
  known_[me()].site = site;
  stop();
}

// ---------------------------------------------------------------------------------------------------------------
// The block, the cluster, the warp group

int TracedBlock::barrier(Vote vote, int predicate, const void* site) {
  BarrierQueue& barrier = worker_.blocks[cluster_rank()].barrier;
  barrier.trues += predicate != 0;
  ++barrier.count;
  wait(FibreThread::Waiting::barrier, site);
  return barrier.answer_to(vote);
}

void TracedBlock::warp_group_barrier(const void* site) {
  if (block_threads_ % kWarpGroup)
    fail("unsupported", {pc_of(site)},
         "not supported by the simulator: warp groups in a block of " + std::to_string(block_threads_) +
             " threads, which is no multiple of 128");
  clocks_ = true;
  wait(FibreThread::Waiting::warp_group, site);
}

// Opens each barrier that all have come to. true if one was opened.
bool TracedBlock::release_barriers() {
  bool opened = false;
  for (unsigned rank = 0; rank < worker_.cluster_blocks; ++rank) {
    const Block& block = worker_.blocks[rank];
    if (block.alive && block.barrier.count == block.alive) release_barrier(rank), opened = true;
  }
  if (!clocks_) return opened;  // there are no others
  const auto waits = [&](unsigned i) {
    return threads_[i].exited || threads_[i].waiting == FibreThread::Waiting::cluster;
  };
  bool all = true;
  for (unsigned i = 0; i < count_ && all; ++i) all = waits(i);
  if (all) open(0, count_);
  opened = opened || all;
  for (unsigned first = 0; first + kWarpGroup <= count_; first += kWarpGroup) {
    all = true;
    for (unsigned i = first; i < first + kWarpGroup && all; ++i)
      all = !threads_[i].exited && threads_[i].waiting == FibreThread::Waiting::warp_group;
    if (all) open(first, kWarpGroup);
    opened = opened || all;
  }
  return release_phases() || opened;
}

void TracedBlock::release_barrier(unsigned rank) {
  Block& block = worker_.blocks[rank];
  const unsigned begin = rank * block_threads_, end = begin + block_threads_;
  unsigned one = end, different = end;
  for (unsigned i = begin; i < end; ++i) {
    if (threads_[i].exited) continue;
    if (one == end) one = i;
    if (different == end && known_[i].site != known_[one].site) different = i;
    if (!known_[i].knows.empty()) join(blocks_[rank].knows, known_[i].knows), known_[i].knows.clear();
  }
  const uint64_t pc = pc_of(known_[one].site);
  if (different < end) {
    const uint64_t other = pc_of(known_[different].site);
    if (Finding* found = place("divergent-barrier", pc, other, one))
      found->message = "threads of one block wait at different __syncthreads: thread " + std::to_string(one - begin) +
                       " at another one than thread " + std::to_string(different - begin);
  }
  if (block.alive != block_threads_)
    if (Finding* found = place("divergent-barrier", pc, 0, one))
      found->message = std::to_string(block_threads_ - block.alive) + " of the block's " +
                       std::to_string(block_threads_) + " threads have ended without reaching this __syncthreads";
  block.barrier = {nullptr, nullptr, 0, 0, block.barrier.count, block.barrier.trues};
  for (unsigned i = begin; i < end; ++i) known_[i].at_barrier = known_[i].clock;
  open(begin, block_threads_);
  ++blocks_[rank].epoch;
}

// Lets threads go on, which know now what each of them knew.
void TracedBlock::open(unsigned first, unsigned count) {
  if (clocks_) share(first, count, kFullMask);
  for (unsigned i = first; i < first + count; ++i) {
    ++known_[i].clock;
    if (!threads_[i].exited) threads_[i].waiting = FibreThread::Waiting::no;
  }
}

bool TracedBlock::release_phases() {
  bool any = false;
  for (unsigned i = 0; i < count_; ++i) {
    if (threads_[i].exited || threads_[i].waiting != FibreThread::Waiting::phase) continue;
    if (!apart_[i].barrier->passed(apart_[i].parity)) continue;
    threads_[i].waiting = FibreThread::Waiting::no;
    any = true;
  }
  return any;
}

// ---------------------------------------------------------------------------------------------------------------
// The warp

uint64_t TracedBlock::collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  FibreThread& me = *running_;
  const unsigned lane = this->me() % kWarpSize;
  if (!(mask >> lane & 1)) {
    char text[128];
    std::snprintf(text, sizeof text, "%s with mask 0x%08x, which does not name the calling lane %u", name_of(what),
                  mask, lane);
    fail("divergent-barrier", {pc_of(site)}, text);
  }
  me.what = what, me.mask = mask, me.operand = operand, me.value = value;
  warps_[this->me() / kWarpSize].waiting |= 1u << lane;
  wait(FibreThread::Waiting::collective, site);
  return me.answer;
}

void TracedBlock::complete(unsigned w, unsigned mask, Collective what) {
  const unsigned lanes = answer_collective(&threads_[w * kWarpSize], warps_[w], mask, what);
  if (!lanes) return;
  if (clocks_) share(w * kWarpSize, lanes_of(w), lanes);
  Clock known{};
  Knowledge learned;
  for (unsigned k = 0; k < kWarpSize; ++k) {
    if (!(lanes >> k & 1)) continue;
    Thread& t = known_[w * kWarpSize + k];
    for (unsigned j = 0; j < kWarpSize; ++j) known.of[j] = std::max(known.of[j], t.warp_knows.of[j]);
    known.of[k] = std::max(known.of[k], t.clock++);
    if (!t.knows.empty()) join(learned, t.knows);
  }
  for (unsigned k = 0; k < kWarpSize; ++k) {
    if (!(lanes >> k & 1)) continue;
    const unsigned i = w * kWarpSize + k;
    FibreThread& t = threads_[i];
    known_[i].warp_knows = known;
    known_[i].knows = learned;
    t.waiting = FibreThread::Waiting::no;
    const unsigned source = t.operand % kWarpSize;
    if (what != Collective::shuffle || (lanes >> source & 1)) continue;
    if (Finding* found = place("divergent-barrier", pc_of(known_[i].site), 0, i))
      found->message = "a shuffle reads from lane " + std::to_string(source) + ", which takes no part in it";
  }
}

unsigned TracedBlock::active(const void* site) {
  running_->value = reinterpret_cast<uintptr_t>(site);
  wait(FibreThread::Waiting::active, site);
  return static_cast<unsigned>(running_->answer);
}

bool TracedBlock::resolve_active() {
  bool any = false;
  auto asks = [&](unsigned i) { return !threads_[i].exited && threads_[i].waiting == FibreThread::Waiting::active; };
  for (unsigned i = 0; i < count_; ++i) {
    if (!asks(i)) continue;
    any = true;
    threads_[i].answer = 0;
    const unsigned first = i / kWarpSize * kWarpSize;
    for (unsigned j = first; j < std::min(count_, first + kWarpSize); ++j)
      if (asks(j) && threads_[j].value == threads_[i].value) threads_[i].answer |= 1u << (j % kWarpSize);
  }
  for (unsigned i = 0; i < count_; ++i)
    if (asks(i)) threads_[i].waiting = FibreThread::Waiting::no;
  return any;
}

void TracedBlock::deadlock() {
  unsigned i = 0;
  while (threads_[i].exited) ++i;
  record_failure(i, "deadlock", {pc_of(known_[i].site)}, describe_deadlock());
}

std::string TracedBlock::describe_deadlock() const {
  std::string text = "no thread of the block can go on: ", link;
  if (worker_.cluster_blocks > 1) text = "no thread of the cluster can go on: ";
  const auto tell = [&](unsigned count, unsigned of, const char* where) {
    if (count) text += link + std::to_string(count) + " of " + std::to_string(of) + " wait at " + where, link = " and ";
  };
  const auto waiting = [&](FibreThread::Waiting why) {
    unsigned count = 0;
    for (unsigned i = 0; i < count_; ++i) count += !threads_[i].exited && threads_[i].waiting == why;
    return count;
  };
  for (unsigned rank = 0; rank < worker_.cluster_blocks; ++rank)
    tell(worker_.blocks[rank].barrier.count, worker_.blocks[rank].alive, "__syncthreads");
  tell(waiting(FibreThread::Waiting::cluster), alive_, "the cluster's barrier");
  tell(waiting(FibreThread::Waiting::warp_group), alive_, "a warp group's wgmma_wait");
  tell(waiting(FibreThread::Waiting::phase), alive_, "an mbarrier");
  for (unsigned i = 0; i < count_; ++i) {
    const FibreThread& t = threads_[i];
    if (t.exited) continue;
    char line[192];
    if (t.waiting == FibreThread::Waiting::collective) {
      std::snprintf(line, sizeof line, "%sthread %u waits in %s with mask 0x%08x for lanes that do not come",
                    link.c_str(), t.self.linear, name_of(t.what), t.mask);
      return text + line;
    }
    if (t.waiting == FibreThread::Waiting::phase) {
      const MBarrier& barrier = *apart_[i].barrier;
      std::snprintf(line, sizeof line, ": for thread %u, %u of %u arrivals and %d bytes have not come", t.self.linear,
                    barrier.pending, barrier.arrivals, barrier.bytes);
      return text + line;
    }
  }
  return text;
}

}  // namespace trace
}  // namespace simt
