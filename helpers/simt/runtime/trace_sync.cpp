// trace_sync.cpp: how the threads of a traced block wait for each other, and the shared memory that they have.
#include <algorithm>
#include <cstdio>

#include "trace_block.h"

namespace simt {
namespace trace {

namespace {
constexpr size_t kRedZone = 128;  // between shared variables; a multiple of 128 keeps the banks where they were
uint64_t pc_of(const void* site) { return reinterpret_cast<uint64_t>(site) - 1; }
}  // namespace

void TracedBlock::wait(FibreThread::Waiting why, const void* site) {
  running_->waiting = why;
  known_[running_->self.linear].site = site;
  stop();
}

// ---------------------------------------------------------------------------------------------------------------
// The block

int TracedBlock::barrier(Vote vote, int predicate, const void* site) {
  barrier_true_ += predicate != 0;
  ++waiting_at_barrier_;
  wait(FibreThread::Waiting::barrier, site);
  switch (vote) {
    case Vote::count:
      return static_cast<int>(barrier_answer_);
    case Vote::all:
      return barrier_answer_ == barrier_total_;
    case Vote::any:
      return barrier_answer_ != 0;
    default:
      return 0;
  }
}

void TracedBlock::release_barrier() {
  unsigned one = count_, different = count_;
  for (unsigned i = 0; i < count_; ++i) {
    FibreThread& t = threads_[i];
    if (t.exited) continue;
    if (one == count_) one = i;
    if (different == count_ && known_[i].site != known_[one].site) different = i;
    if (!known_[i].knows.empty()) join(block_knows_, known_[i].knows), known_[i].knows.clear();
    t.waiting = FibreThread::Waiting::no;
  }
  const uint64_t pc = pc_of(known_[one].site);
  if (different < count_) {
    const uint64_t other = pc_of(known_[different].site);
    if (Finding* found = place("divergent-barrier", pc, other, one))
      found->message = "threads of one block wait at different __syncthreads: thread " + std::to_string(one) +
                       " at another one than thread " + std::to_string(different);
  }
  if (alive_ != count_)
    if (Finding* found = place("divergent-barrier", pc, 0, one))
      found->message = std::to_string(count_ - alive_) + " of the block's " + std::to_string(count_) +
                       " threads have ended without reaching this __syncthreads";
  barrier_answer_ = barrier_true_;
  barrier_total_ = waiting_at_barrier_;
  barrier_true_ = waiting_at_barrier_ = 0;
  ++epoch_;
}

// ---------------------------------------------------------------------------------------------------------------
// The warp

uint64_t TracedBlock::collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  FibreThread& me = *running_;
  const unsigned lane = me.self.linear % kWarpSize;
  if (!(mask >> lane & 1)) {
    char text[128];
    std::snprintf(text, sizeof text, "%s with mask 0x%08x, which does not name the calling lane %u", name_of(what),
                  mask, lane);
    fail("divergent-barrier", {pc_of(site)}, text);
  }
  me.what = what, me.mask = mask, me.operand = operand, me.value = value;
  warps_[me.self.linear / kWarpSize].waiting |= 1u << lane;
  wait(FibreThread::Waiting::collective, site);
  return me.answer;
}

void TracedBlock::complete(unsigned w, unsigned mask, Collective what) {
  const unsigned lanes = answer_collective(&threads_[w * kWarpSize], warps_[w], mask, what);
  if (!lanes) return;
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
  std::string text = "no thread of the block can go on: ";
  if (waiting_at_barrier_)
    text += std::to_string(waiting_at_barrier_) + " of " + std::to_string(alive_) + " wait at __syncthreads";
  for (unsigned i = 0; i < count_; ++i) {
    const FibreThread& t = threads_[i];
    if (t.exited || t.waiting != FibreThread::Waiting::collective) continue;
    char line[192];
    std::snprintf(line, sizeof line, "%sthread %u waits in %s with mask 0x%08x for lanes that do not come",
                  waiting_at_barrier_ ? " and " : "", i, name_of(t.what), t.mask);
    return text + line;
  }
  return text;
}

// ---------------------------------------------------------------------------------------------------------------
// Shared memory, with red zones

void TracedBlock::add_shared(size_t offset, size_t bytes, const std::string& name) {
  const auto start = reinterpret_cast<uint64_t>(worker_.shared) + offset;
  std::fill_n(worker_.shared + offset, bytes, static_cast<char>(0xff));  // NaN
  session_.regions.add(start, bytes, Space::shared, 0, true, name, offset);
  shared_regions_.push_back(start);
}

void* TracedBlock::shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  for (const auto& [known, offset] : shared_sites_)
    if (known == site) return worker_.shared + offset;
  const size_t align = std::max(alignment, size_t{128});
  const size_t offset = (shared_used_ + (shared_used_ ? kRedZone : 0) + align - 1) / align * align;
  shared_declared_ += bytes;
  if (shared_declared_ > kStaticSharedLimit || offset + bytes > kSharedLimit)
    fail("shared-memory", {0},
         "the kernel declares " + std::to_string(shared_declared_) + " bytes of static shared memory (with " +
             std::to_string(job_.config.shared_bytes) + " dynamic); the limit is 49152 static and 232448 in all");
  shared_used_ = offset + bytes;
  shared_sites_.push_back({site, offset});
  add_shared(offset, bytes, "a shared array of " + std::to_string(bytes) + " bytes");
  return worker_.shared + offset;
}

}  // namespace trace
}  // namespace simt
