// traced_launch.cpp: runs a traced grid on the calling thread: chooses the blocks that are traced, and their order.
#include <algorithm>
#include <cmath>

#include "api/program.h"
#include "trace/trace.h"
#include "trace/traced_block.h"

namespace simt::trace {

namespace {

void shuffle(std::vector<uint64_t>& order, Session& session) {
  for (uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[session.random() % i]);
}

// Memory of the simulator that kernels read in place of a GPU's constant memory and registers: the launch's arguments
// and the built-in variables.
class Lent {
 public:
  Lent(Regions& regions, uint64_t start, uint64_t end, const char* name) : regions_(regions), start_(start) {
    regions.add(start, end - start, Space::other, 0, false, name, 0);
  }
  ~Lent() { regions_.remove(start_); }

 private:
  Regions& regions_;
  uint64_t start_;
};

// Adds up what a launch costs, for the estimate of its cost in all blocks, and compares its clusters.
class Sample {
 public:
  Sample(Session& session, LaunchInfo& info, const std::string& kernel, bool whole)
      : session_(session), info_(info), kernel_(kernel), whole_(whole) {
    each([](Counts& counts) {
      counts.estimate.before = counts.cost();
      counts.estimate.begun = counts.both();
      counts.estimate.first = {};
    });
  }
  void cluster_ended() {
    ++clusters_;
    compare();
    if (whole_) return;
    each([](Counts& counts) {
      Estimate& e = counts.estimate;
      const auto cost = static_cast<double>(counts.cost() - e.before);
      e.before = counts.cost();
      e.sum += cost;
      e.squares += cost * cost;
    });
  }
  void launch_ended(uint64_t all) {
    info_.even = even_ && info_.blocks == all && !info_.cut_blocks && (clusters_ > 1 || whole_);
    each([&](Counts& counts) {
      Estimate& e = counts.estimate;
      if (whole_) {
        e.total += static_cast<double>(counts.cost() - e.before);
        return;
      }
      const auto traced = static_cast<double>(clusters_), of = static_cast<double>(all);
      e.total += of / traced * e.sum;
      const double variance = traced > 1 ? std::max(0.0, e.squares - e.sum * e.sum / traced) / (traced - 1) : 0;
      e.error += of * std::sqrt((1 - traced / of) * variance / traced);
      e.sum = e.squares = 0;
    });
  }

 private:
  template <typename Visit>
  void each(Visit visit) {
    for (auto it = session_.counts.lower_bound({kernel_, 0, Kind{}}); it != session_.counts.end(); ++it) {
      if (std::get<0>(it->first) != kernel_) break;
      visit(it->second);
    }
  }

  void compare() {
    const uint64_t read = info_.sectors_read - read_before_;
    info_.least_read = clusters_ == 1 ? read : std::min(info_.least_read, read);
    read_before_ = info_.sectors_read;
    if (!even_) return;
    each([&](Counts& counts) {
      Estimate& e = counts.estimate;
      const auto now = counts.both();
      const std::pair<uint64_t, uint64_t> own{now.first - e.begun.first, now.second - e.begun.second};
      e.begun = now;
      if (clusters_ == 1) e.first = own;
      even_ &= own == e.first;
    });
  }

  Session& session_;
  LaunchInfo& info_;
  const std::string& kernel_;
  const bool whole_;
  bool even_ = true;
  uint64_t clusters_ = 0, read_before_ = 0;
};

}  // namespace

bool launch(const Job& job, FaultRecord& fault) {
  Session& session = *Session::active();
  Worker& worker = Worker::current();
  worker.begin_job(job);
  const dim3 grid = job.config.grid, size = job.site->cluster;
  const uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  const unsigned of_cluster = size.x * size.y * size.z;
  LaunchInfo& info = session.launches.emplace_back();
  info.kernel = name_of(job);
  info.file = job.site->file;
  info.line = job.site->line;
  info.grid = grid;
  info.block = job.config.block;
  info.blocks = blocks;
  info.sms_told = session.sms_told;
  info.shared_dynamic = job.config.shared_bytes;

  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const Lent arguments(session.regions, here, reinterpret_cast<uint64_t>(stack_end()), "the launch's arguments");
  const auto geometry = reinterpret_cast<uint64_t>(worker.blocks);
  const Lent built_in(session.regions, geometry, geometry + sizeof worker.blocks, "the built-in variables");

  // All clusters are traced (a cluster is usually one block), or an evenly spaced sample with the first and the last
  // one in it. The sample runs before the others, so that a fault is found before it does harm; but one of the sample
  // runs at the very end, so that the last cluster to run is also traced.
  const uint64_t all = blocks / of_cluster, wanted = std::min(all, (session.max_blocks + of_cluster - 1) / of_cluster);
  std::vector<uint64_t> sample, others;
  for (uint64_t k = 0; k < wanted; ++k) sample.push_back(wanted > 1 ? k * (all - 1) / (wanted - 1) : 0);
  for (uint64_t i = 0, k = 0; i < all; ++i)
    if (k < wanted && sample[k] == i)
      ++k;
    else
      others.push_back(i);
  shuffle(sample, session);
  shuffle(others, session);
  const uint64_t last = sample.back();
  sample.pop_back();

  struct GiveBack {
    Session& session;
    ~GiveBack() {
      session.launch_ends();
      for (uint64_t start : session.borrowed) session.regions.remove(start);
      session.borrowed.clear();
    }
  } give_back{session};
  session.launch_begins();

  TracedBlock traced(job, session, info);
  Sample estimate(session, info, traced.cluster.kernel, wanted == all);
  bool good = true;
  uint64_t first_failed = blocks;
  auto trace = [&](uint64_t i) {
    if (traced.cluster.hopeless) return;
    info.traced_blocks += of_cluster;
    const uint3 at = first_block(job, i);
    const bool ended = traced.run(at, (uint64_t{at.z} * grid.y + at.y) * grid.x + at.x);
    estimate.cluster_ended();
    if (ended) return;
    good = false;
    if (i < first_failed) {
      first_failed = i;
      fault = traced.cluster.fault;
    }
    constexpr uint64_t kBudgetAfterFailure = 1'000'000;  // the fault is known: wait no longer than that for others
    traced.cluster.budget = std::min(traced.cluster.budget, kBudgetAfterFailure);
  };
  session.regions.note_other_writes();
  for (uint64_t i : sample) {
    trace(i);
    program::block_ended();
  }
  for (uint64_t i : others) {
    if (!good || session.only_sample) break;
    program::block_ended();
    if (worker.run_cluster(job, first_block(job, i))) continue;
    fault = worker.fault;
    return false;
  }
  if (!others.empty()) session.regions.note_other_writes();
  trace(last);
  estimate.launch_ended(all);
  return good;
}

}  // namespace simt::trace
