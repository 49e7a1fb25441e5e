// trace_block.cpp: runs one block of a traced kernel, warp by warp.
//
// Every thread is a fibre. The scheduler lets the lanes of a warp run, one after another in an order drawn from the
// seed, until each has stopped; then it plays their records back in step. Only one warp has records at a time.
#include <pthread.h>

#include <algorithm>
#include <cstdio>

#include "trace.h"

namespace simt {
namespace trace {

class TracedBlock;

namespace {

thread_local TracedBlock* this_block = nullptr;
constexpr uint64_t kRedZone = 128;  // between shared variables; a multiple of 128 keeps the banks where they were

}  // namespace

__thread Lane* current_lane SIMT_TLS = nullptr;

class TracedBlock {
 public:
  TracedBlock(const Job& job, Session& session, Races& races, LaunchInfo& info)
      : job_(job), session_(session), races_(races), info_(info), worker_(Worker::current()), threads_(kMaxThreads) {}

  bool run(uint3 index, uint32_t number);

  int barrier(Vote vote, int predicate, const void* site);
  uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
  unsigned active(const void* site);
  void stop() { switch_context(running_->context, worker_.scheduler); }
  void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);
  [[noreturn]] void end(Finding finding);

 private:
  static void fibre_main();
  void resume(unsigned i);
  bool run_warp(unsigned w);
  void play(unsigned w);
  void step(unsigned w, const Request& request);
  void complete(unsigned w, unsigned mask, Collective what);
  void release_barrier();
  bool resolve_active();
  std::string describe_deadlock() const;
  void wait(FibreThread::Waiting why, const void* site);
  void add_shared(size_t offset, size_t bytes, const std::string& name);
  std::vector<unsigned> shuffled(unsigned n);
  bool ready(unsigned i) const { return !threads_[i].exited && threads_[i].waiting == FibreThread::Waiting::no; }
  unsigned lanes_of(unsigned w) const { return std::min(kWarpSize, count_ - w * kWarpSize); }

  const Job& job_;
  Session& session_;
  Races& races_;
  LaunchInfo& info_;
  Worker& worker_;
  std::vector<FibreThread> threads_;
  std::vector<const void*> sites_ = std::vector<const void*>(kMaxThreads);
  std::vector<unsigned> depths_ = std::vector<unsigned>(kMaxThreads);
  std::vector<char> fenced_ = std::vector<char>(kMaxThreads);
  std::vector<uint32_t> clocks_ = std::vector<uint32_t>(kMaxThreads);
  std::vector<Clock> warp_knows_ = std::vector<Clock>(kMaxThreads);
  std::vector<Knowledge> lane_knows_ = std::vector<Knowledge>(kMaxThreads);
  Knowledge block_knows_;
  Lane lanes_[kWarpSize];
  Warp warps_[kMaxThreads / kWarpSize];
  FibreThread* running_ = nullptr;
  unsigned count_ = 0, alive_ = 0, waiting_at_barrier_ = 0, barrier_true_ = 0, barrier_answer_ = 0, barrier_total_ = 0;
  uint32_t number_ = 0, epoch_ = 0;
  uint64_t steps_left_ = 0;
  std::vector<std::pair<const SharedSite*, size_t>> shared_sites_;
  std::vector<uint64_t> shared_regions_;
  size_t shared_used_ = 0;
};

std::vector<unsigned> TracedBlock::shuffled(unsigned n) {
  std::vector<unsigned> order(n);
  for (unsigned i = 0; i < n; ++i) order[i] = i;
  for (unsigned i = n; i > 1; --i) std::swap(order[i - 1], order[session_.random() % i]);
  return order;
}

bool TracedBlock::run(uint3 index, uint32_t number) {
  const dim3 block = job_.config.block;
  worker_.geometry = {index, block, job_.config.grid};
  worker_.fault = {};
  worker_.signal_kind = nullptr;
  worker_.end_requested.store(nullptr);
  worker_.blocks_started.fetch_add(1);
  number_ = number;
  count_ = alive_ = block.x * block.y * block.z;
  epoch_ = 0;
  waiting_at_barrier_ = barrier_true_ = 0;
  steps_left_ = session_.budget;
  block_knows_.clear();
  shared_sites_.clear();
  shared_used_ = job_.config.shared_bytes;
  std::fill_n(worker_.shared, kSharedLimit, static_cast<char>(0xff));
  if (shared_used_) add_shared(0, shared_used_, "the dynamic shared memory");
  for (unsigned w = 0; w * kWarpSize < count_; ++w) {
    const unsigned n = lanes_of(w);
    warps_[w] = {n == kWarpSize ? kFullMask : (1u << n) - 1, 0};
  }
  for (unsigned i = 0; i < count_; ++i) {
    FibreThread& t = threads_[i];
    t.self = {{i % block.x, i / block.x % block.y, i / (block.x * block.y)}, &worker_.geometry, i};
    t.waiting = FibreThread::Waiting::no;
    t.exited = false;
    depths_[i] = 0, fenced_[i] = 0, clocks_[i] = 1;
    warp_knows_[i] = {};
    lane_knows_[i].clear();
    make_context(t.context, worker_.stacks.low(i), worker_.stacks.top(i), &TracedBlock::fibre_main);
  }

  this_block = this;
  Thread* outside = current_thread;
  bool good = true;
  const unsigned warps = (count_ + kWarpSize - 1) / kWarpSize;
  while (good && alive_) {
    bool moved = false;
    for (unsigned w : shuffled(warps)) {
      moved = moved || std::any_of(&threads_[w * kWarpSize], &threads_[w * kWarpSize] + lanes_of(w), [&](auto& t) {
                return ready(static_cast<unsigned>(&t - threads_.data()));
              });
      good = run_warp(w);
      if (!good) break;
    }
    if (!good || !alive_) break;
    if (waiting_at_barrier_ == alive_)
      release_barrier();
    else if (!moved && !resolve_active()) {
      running_ = &*std::find_if(threads_.begin(), threads_.end(), [](auto& t) { return !t.exited; });
      worker_.running = running_;
      session_.report({"deadlock", job_.site->kernel, describe_deadlock(),
                       reinterpret_cast<uint64_t>(sites_[running_->self.linear]) - 1, index,
                       running_->self.thread_index, 0});
      worker_.fault = {"deadlock", describe_deadlock() + "\n  in " + where(worker_)};
      good = false;
    }
  }
  current_thread = outside;
  worker_.running = nullptr;
  this_block = nullptr;
  for (uint64_t start : shared_regions_) session_.regions.remove(start);
  shared_regions_.clear();
  info_.shared_static = std::max(info_.shared_static, shared_used_ - job_.config.shared_bytes);
  return good;
}

void TracedBlock::fibre_main() {
  TracedBlock& block = *this_block;
  FaultRecord thrown;
  try {
    block.job_.thread(block.job_.closure);
  } catch (const std::exception& error) {
    thrown = {"exception", std::string("an exception was thrown in the kernel: ") + error.what()};
  } catch (...) {
    thrown = {"exception", "an exception was thrown in the kernel"};
  }
  if (!thrown.kind.empty()) block.worker_.abandon(std::move(thrown));
  block.running_->exited = true;
  block.stop();
}

// Lets one thread run until it waits, exits, or has filled its record. A fault comes back here as well.
void TracedBlock::resume(unsigned i) {
  FibreThread& t = threads_[i];
  Lane& lane = lanes_[i % kWarpSize];
  lane.depth = depths_[i];
  lane.fenced = fenced_[i];
  running_ = &t;
  worker_.running = &t;
  current_thread = &t.self;
  current_lane = &lane;
  worker_.in_fibre.store(true);
  switch_context(worker_.scheduler, t.context);
  worker_.in_fibre.store(false);
  current_lane = nullptr;
  depths_[i] = lane.depth;
  fenced_[i] = lane.fenced;
}

// Runs warp w until all its lanes wait or have exited. False after a fault.
bool TracedBlock::run_warp(unsigned w) {
  const unsigned first = w * kWarpSize, n = lanes_of(w);
  for (;;) {
    bool any = false;
    for (unsigned k : shuffled(n)) {
      const unsigned i = first + k;
      if (!ready(i) || lanes_[k].length == kRecordLength) continue;
      any = true;
      resume(i);
      if (worker_.signal_kind) worker_.fault = {worker_.signal_kind, describe_signal(worker_)};
      if (!worker_.fault.kind.empty()) {
        worker_.fault.message += "\n  in " + where(worker_);
        for (Lane& lane : lanes_) lane.length = lane.position = 0;
        return false;
      }
      if (threads_[i].exited) {
        --alive_;
        warps_[w].alive &= ~(1u << k);
      }
    }
    if (!any) return true;
    play(w);
    if (steps_left_ == 0) {
      worker_.running = running_;
      const std::string text = "the block spent its budget of instructions: an endless loop?";
      session_.report({"deadlock", job_.site->kernel, text, 0, worker_.geometry.block_index,
                       running_->self.thread_index, 0});
      worker_.fault = {"deadlock", text + "\n  in " + where(worker_)};
      return false;
    }
    for (unsigned k = 0; k < n; ++k) {
      const FibreThread& t = threads_[first + k];
      if (t.waiting == FibreThread::Waiting::collective && !t.exited) complete(w, t.mask, t.what);
    }
  }
}

// Steps through the records of the warp's lanes until one of them that can still go on has none left.
void TracedBlock::play(unsigned w) {
  const unsigned first = w * kWarpSize, n = lanes_of(w);
  Request request;
  for (;;) {
    const Event* best = nullptr;
    for (unsigned k = 0; k < n; ++k) {
      const Lane& lane = lanes_[k];
      if (lane.position == lane.length) {
        if (lane.length && ready(first + k)) best = nullptr;
        if (lane.length && ready(first + k)) goto done;  // it has more to say before the others may go on
        continue;
      }
      const Event& event = lane.record[lane.position];
      if (!best || event.depth > best->depth || (event.depth == best->depth && event.pc < best->pc)) best = &event;
    }
    if (!best) break;
    request.count = 0;
    const Event chosen = *best;
    for (unsigned k = 0; k < n; ++k) {
      Lane& lane = lanes_[k];
      if (lane.position == lane.length) continue;
      const Event& event = lane.record[lane.position];
      if (event.pc != chosen.pc || event.depth != chosen.depth || event.kind != chosen.kind ||
          event.size != chosen.size)
        continue;
      request.events[request.count] = &event;
      request.lanes[request.count++] = k;
      ++lane.position;
    }
    info_.steps += 1;
    info_.lane_steps += request.count;
    steps_left_ = steps_left_ > request.count ? steps_left_ - request.count : 0;
    if (chosen.kind != Kind::step) step(w, request);
    if (!steps_left_) break;
  }
done:
  for (unsigned k = 0; k < n; ++k) {  // keep what is left at the front
    Lane& lane = lanes_[k];
    std::copy(&lane.record[lane.position], &lane.record[lane.length], &lane.record[0]);
    lane.length -= lane.position;
    lane.position = 0;
  }
}

void TracedBlock::step(unsigned w, const Request& request) {
  const Event& first = *request.events[0];
  if (!first.quiet) count(session_, job_.site->kernel, request);
  for (unsigned k = 0; k < request.count; ++k) {
    const Event& event = *request.events[k];
    const unsigned i = w * kWarpSize + request.lanes[k];
    Region& region = *event.region;
    const uint3 thread = threads_[i].self.thread_index, block = worker_.geometry.block_index;
    if (region.fresh) {
      const uint64_t offset = event.address - region.virtual_start;
      bool missing = false;
      for (uint64_t b = offset; b < offset + event.size; ++b) {
        missing = missing || !region.written[b];
        if (event.kind != Kind::load) region.written[b] = true;
      }
      if (missing && event.kind != Kind::store) {
        session_.report({"uninitialised-read", job_.site->kernel,
                         "reads " + std::to_string(event.size) + " bytes of " + region.name + ", " +
                             std::to_string(offset) + " bytes into it, which nothing has written",
                         event.pc, block, thread, 0});
        for (uint64_t b = offset; b < offset + event.size; ++b) region.written[b] = true;
      }
    }
    const Who who{number_, epoch_, clocks_[i], i, &warp_knows_[i], &block_knows_, &lane_knows_[i]};
    if (const Access* before = races_.access(who, event)) {
      char text[256];
      const bool same = before->block == number_;
      std::snprintf(text, sizeof text, "%s %s races with %s by thread %u of %s block: nothing orders the two",
                    event.kind == Kind::load    ? "a read of"
                    : event.kind == Kind::store ? "a write to"
                                                : "an atomic update of",
                    region.name.c_str(), before->atomic ? "an atomic update" : "an access", before->thread,
                    same ? "the same" : "another");
      session_.report({"race", job_.site->kernel, text, event.pc, block, thread, before->pc});
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Waiting

void TracedBlock::wait(FibreThread::Waiting why, const void* site) {
  running_->waiting = why;
  sites_[running_->self.linear] = site;
  stop();
}

int TracedBlock::barrier(Vote vote, int predicate, const void* site) {
  barrier_true_ += predicate != 0;
  ++waiting_at_barrier_;
  wait(FibreThread::Waiting::barrier, site);
  switch (vote) {
    case Vote::count: return static_cast<int>(barrier_answer_);
    case Vote::all: return barrier_answer_ == barrier_total_;
    case Vote::any: return barrier_answer_ != 0;
    default: return 0;
  }
}

void TracedBlock::release_barrier() {
  const FibreThread* one = nullptr;
  const FibreThread* different = nullptr;
  Knowledge learned;
  for (unsigned i = 0; i < count_; ++i) {
    FibreThread& t = threads_[i];
    if (t.exited) continue;
    if (!one) one = &t;
    if (sites_[i] != sites_[one->self.linear]) different = &t;
    join(block_knows_, lane_knows_[i]);
    lane_knows_[i].clear();
    t.waiting = FibreThread::Waiting::no;
  }
  const auto pc = reinterpret_cast<uint64_t>(sites_[one->self.linear]) - 1;
  const uint3 block = worker_.geometry.block_index;
  if (different)
    session_.report({"divergent-barrier", job_.site->kernel,
                     "threads of one block wait at different __syncthreads: thread " +
                         std::to_string(different->self.linear) + " at another one than thread " +
                         std::to_string(one->self.linear),
                     pc, block, one->self.thread_index, reinterpret_cast<uint64_t>(sites_[different->self.linear]) - 1});
  if (alive_ != count_)
    session_.report({"divergent-barrier", job_.site->kernel,
                     std::to_string(count_ - alive_) + " of the block's " + std::to_string(count_) +
                         " threads have ended without reaching this __syncthreads",
                     pc, block, one->self.thread_index, 0});
  barrier_answer_ = barrier_true_;
  barrier_total_ = waiting_at_barrier_;
  barrier_true_ = waiting_at_barrier_ = 0;
  ++epoch_;
}

uint64_t TracedBlock::collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  FibreThread& me = *running_;
  const unsigned lane = me.self.linear % kWarpSize;
  if (!(mask >> lane & 1)) {
    char text[128];
    std::snprintf(text, sizeof text, "%s with mask 0x%08x, which does not name the calling lane %u", name_of(what),
                  mask, lane);
    end({"divergent-barrier", job_.site->kernel, text, reinterpret_cast<uint64_t>(site) - 1,
         worker_.geometry.block_index, me.self.thread_index, 0});
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
    const unsigned i = w * kWarpSize + k;
    for (unsigned j = 0; j < kWarpSize; ++j) known.of[j] = std::max(known.of[j], warp_knows_[i].of[j]);
    known.of[k] = std::max(known.of[k], clocks_[i]++);
    join(learned, lane_knows_[i]);
  }
  for (unsigned k = 0; k < kWarpSize; ++k) {
    if (!(lanes >> k & 1)) continue;
    const unsigned i = w * kWarpSize + k;
    FibreThread& t = threads_[i];
    warp_knows_[i] = known;
    lane_knows_[i] = learned;
    t.waiting = FibreThread::Waiting::no;
    const unsigned source = t.operand % kWarpSize;
    if (what == Collective::shuffle && !(lanes >> source & 1))
      session_.report({"divergent-barrier", job_.site->kernel,
                       "a shuffle reads from lane " + std::to_string(source) + ", which takes no part in it",
                       reinterpret_cast<uint64_t>(sites_[i]) - 1, worker_.geometry.block_index, t.self.thread_index, 0});
  }
}

unsigned TracedBlock::active(const void* site) {
  running_->value = reinterpret_cast<uintptr_t>(site);
  wait(FibreThread::Waiting::active, site);
  return static_cast<unsigned>(running_->answer);
}

bool TracedBlock::resolve_active() {
  bool any = false;
  for (unsigned i = 0; i < count_; ++i) {
    FibreThread& t = threads_[i];
    if (t.exited || t.waiting != FibreThread::Waiting::active) continue;
    any = true;
    t.answer = 0;
    for (unsigned j = i / kWarpSize * kWarpSize; j < std::min(count_, (i / kWarpSize + 1) * kWarpSize); ++j)
      if (!threads_[j].exited && threads_[j].waiting == FibreThread::Waiting::active && threads_[j].value == t.value)
        t.answer |= 1u << (j % kWarpSize);
  }
  for (unsigned i = 0; i < count_; ++i)
    if (!threads_[i].exited && threads_[i].waiting == FibreThread::Waiting::active)
      threads_[i].waiting = FibreThread::Waiting::no;
  return any;
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

void TracedBlock::end(Finding finding) {
  session_.report(finding);
  worker_.abandon({finding.kind, finding.message});
}

// ---------------------------------------------------------------------------------------------------------------
// Shared memory, with red zones

void TracedBlock::add_shared(size_t offset, size_t bytes, const std::string& name) {
  const auto start = reinterpret_cast<uint64_t>(worker_.shared) + offset;
  session_.regions.add(start, bytes, Space::shared, true, name, offset);
  shared_regions_.push_back(start);
}

void* TracedBlock::shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  for (const auto& [known, offset] : shared_sites_)
    if (known == site) return worker_.shared + offset;
  const size_t align = std::max(alignment, size_t{128});
  const size_t offset = (shared_used_ + (shared_used_ ? kRedZone : 0) + align - 1) / align * align;
  if (offset + bytes > kSharedLimit)
    end({"out-of-bounds", job_.site->kernel, "the kernel declares more shared memory than there is", 0,
         worker_.geometry.block_index, running_->self.thread_index, 0});
  shared_used_ = offset + bytes;
  shared_sites_.push_back({site, offset});
  add_shared(offset, bytes, "a shared array of " + std::to_string(bytes) + " bytes");
  return worker_.shared + offset;
}

// ---------------------------------------------------------------------------------------------------------------

namespace {

uint64_t stack_end() {
#if defined(__APPLE__)
  return reinterpret_cast<uint64_t>(pthread_get_stackaddr_np(pthread_self()));
#else
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* low;
  size_t bytes;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(low) + bytes;
#endif
}

}  // namespace

bool launch(const Job& job, FaultRecord& fault) {
  Session& session = *Session::active();
  Worker& worker = Worker::current();
  worker.begin_job(job);
  const dim3 grid = job.config.grid;
  const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  session.launches.push_back({});
  LaunchInfo& info = session.launches.back();
  info.kernel = job.site->kernel, info.file = job.site->file, info.line = job.site->line;
  info.grid = grid, info.block = job.config.block, info.blocks = blocks;
  info.shared_dynamic = job.config.shared_bytes;

  // Which blocks are traced: all, or a sample that has the first and the last one in it.
  std::vector<uint64_t> order(blocks <= 1u << 20 ? blocks : 0);
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  for (uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[session.random() % i]);
  const uint64_t stride = blocks > session.max_blocks ? (blocks + session.max_blocks - 1) / session.max_blocks : 1;
  // Arguments lie on the launching thread's stack.
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  session.regions.add(here, stack_end() - here, Space::other, false, "the launching thread's stack");
  const auto geometry = reinterpret_cast<uint64_t>(&worker.geometry);
  session.regions.add(geometry, sizeof worker.geometry, Space::other, false, "the built-in variables");
  struct Forget {
    Regions& regions;
    uint64_t first, second;
    ~Forget() { regions.remove(first), regions.remove(second); }
  } forget{session.regions, here, geometry};

  Races races;
  TracedBlock traced(job, session, races, info);
  for (uint64_t k = 0; k < blocks; ++k) {
    const uint64_t i = order.empty() ? k : order[k];
    const uint3 index{static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                      static_cast<unsigned>(i / (static_cast<uint64_t>(grid.x) * grid.y))};
    const bool sampled = i % stride == 0 || i + 1 == blocks;
    info.traced_blocks += sampled;
    if (sampled ? traced.run(index, static_cast<uint32_t>(i)) : worker.run_block(job, index)) continue;
    fault = worker.fault;
    return false;
  }
  return true;
}

bool in_traced_block() { return this_block != nullptr; }
void stop_lane() { this_block->stop(); }
int barrier(Vote vote, int predicate, const void* site) { return this_block->barrier(vote, predicate, site); }
uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site) {
  return this_block->collective(what, mask, value, operand, site);
}
unsigned active(const void* site) { return this_block->active(site); }
void yield() { this_block->stop(); }
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment) {
  return this_block->shared_static(site, bytes, alignment);
}

void access_fault(const char* kind, uint64_t pc, const std::string& message) {
  Worker& worker = Worker::current();
  this_block->end({kind, worker.job->site->kernel, message, pc, worker.geometry.block_index,
                   worker.running->self.thread_index, 0});
}

}  // namespace trace
}  // namespace simt
