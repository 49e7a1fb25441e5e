// traced_launch.cpp: runs a traced grid on the calling thread: chooses the blocks that are traced, and their order.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

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
  Sample(Session& session, LaunchInfo& info, const std::string& kernel, uint64_t all, bool whole)
      : session_(session), info_(info), kernel_(kernel), all_(all), whole_(whole) {
    each([](Counts& counts) {
      counts.estimate.before = counts.cost();
      counts.estimate.begun = counts.both();
      counts.estimate.first = {};
    });
  }
  void cluster_ended(uint64_t i) {
    ++clusters_;
    compare();
    if (whole_) return;
    double& all_lines = cost_[i];
    each([&](Counts& counts) {
      Estimate& e = counts.estimate;
      all_lines += e.sampled[i] = static_cast<double>(counts.cost() - e.before);
      e.before = counts.cost();
    });
  }
  // The cluster to trace next, if few are: the first, the last, then one between two about which least is known. It
  // divides them in the golden ratio: halves would meet a grid that repeats every 128 blocks at the same place each time.
  uint64_t next() const {
    constexpr double kGolden = 0.618034;
    if (cost_.empty()) return 0;
    if (cost_.size() == 1) return all_ - 1;
    uint64_t at = 0;
    std::pair<double, uint64_t> most;
    for (auto to = std::next(cost_.begin()); to != cost_.end(); ++to) {
      const auto from = std::prev(to);
      const uint64_t between = to->first - from->first - 1;
      const std::pair unknown{static_cast<double>(between) * std::abs(to->second - from->second), between};
      if (!(most < unknown)) continue;
      most = unknown;
      at = from->first + 1 + static_cast<uint64_t>(kGolden * static_cast<double>(between - 1) + 0.5);
    }
    return at;
  }
  void launch_ended() {
    info_.even = even_ && info_.blocks == all_ && !info_.cut_blocks && (clusters_ > 1 || whole_);
    each([&](Counts& counts) {
      Estimate& e = counts.estimate;
      if (whole_)
        e.total += static_cast<double>(counts.cost() - e.before);
      else
        add(e);
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

  // The error is the standard error if the costs of neighbours differ by chance: half the square of their difference is
  // the variance. If the cost changes once between two traced blocks, the error is smaller.
  void add(Estimate& e) {
    double total = 0, variance = 0, before = e.sampled[cost_.begin()->first];
    uint64_t at = 0;  // the next block to count
    for (const auto& [i, all_lines] : cost_) {
      const double cost = e.sampled[i], between = static_cast<double>(i - at), difference = cost - before;
      total += between * (before + cost) / 2 + cost;
      variance += between * between * difference * difference / 2;
      info_.cost += cost;
      before = cost;
      at = i + 1;
    }
    total += static_cast<double>(all_ - at) * before;
    info_.all_cost += total;
    e.total += total;
    e.error += std::sqrt(variance);
    e.sampled.clear();
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
  const uint64_t all_;
  const bool whole_;
  std::map<uint64_t, double> cost_;  // of a traced cluster
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
  if (job.site->guessed) info.entry = reinterpret_cast<uint64_t>(job.site->function);
  info.file = job.site->file;
  info.line = job.site->line;
  info.grid = grid;
  info.block = job.config.block;
  info.blocks = blocks;
  info.sms_told = session.sms_told;
  info.shared_dynamic = job.config.shared_bytes;

  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const Lent arguments(session.regions, here, reinterpret_cast<uint64_t>(stack_end()), kArguments);
  const auto geometry = reinterpret_cast<uint64_t>(worker.blocks);
  const Lent built_in(session.regions, geometry, geometry + sizeof worker.blocks, "the built-in variables");

  // All clusters are traced (a cluster is usually one block), or a sample with the first and the last one in it: evenly
  // spaced or, if no others run, where the costs differ. The sample runs before the others, so that a fault is found
  // before it does harm; but one of the sample runs at the very end, so that the last cluster to run is also traced.
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
  const auto before = std::exchange(session.before, nullptr);
  if (before && job.config.early && before->stream() == job.config.stream) traced.races.follow(before);
  Sample estimate(session, info, traced.cluster.kernel, all, wanted == all);
  bool good = true;
  uint64_t first_failed = blocks;
  auto trace = [&](uint64_t i) {
    if (traced.cluster.hopeless) return;
    info.traced_blocks += of_cluster;
    const uint3 at = first_block(job, i);
    const bool ended = traced.run(at, (uint64_t{at.z} * grid.y + at.y) * grid.x + at.x);
    estimate.cluster_ended(i);
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
  const bool chosen = session.only_sample && !others.empty();
  for (uint64_t i : sample) {
    trace(chosen ? estimate.next() : i);
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
  trace(chosen ? estimate.next() : last);
  estimate.launch_ended();
  if (good) session.before = traced.races.take_for_next();
  return good;
}

}  // namespace simt::trace
