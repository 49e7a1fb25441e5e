// launch.cpp: checks a launch, spreads its blocks or clusters over the workers, and reports its fault: by an exception
// or, in a program, as CUDA does.
#include "threads/launch.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "api/capture.h"
#include "api/device.h"
#include "api/devices.h"
#include "api/program.h"
#include "threads/children.h"
#include "threads/cooperative.h"
#include "threads/pool.h"
#include "threads/stray.h"
#include "threads/watch.h"
#include "threads/window.h"
#include "trace/trace.h"

namespace simt {

size_t dynamic_shared_limit(const void* function);   // function.cpp; nullptr: the largest for any kernel
unsigned most_cluster_blocks(const void* function);  // likewise
bool accepts_launches(cudaStream_t stream);          // stream.cpp

namespace {

constexpr int kInvalidValue = 1, kInvalidConfiguration = 9, kInvalidHandle = 400, kTooLarge = 720,
              kInvalidCluster = 912;

class Grid : public Work {  // one launch, shared by the workers
 public:
  Grid(const Job& job, uint64_t clusters) : job_(job), clusters_(clusters), running_(Window::current().of(clusters)) {}
  const FaultRecord& fault() const { return fault_; }

  void run() override {
    Worker& worker = Worker::current();
    Watched watched(worker);
    worker.begin_job(job_);
    while (!stop_.load(std::memory_order_relaxed)) {
      const uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= running_) break;
      if (worker.run_cluster(job_, first_block(job_, Window::number(i, running_, clusters_)))) continue;
      std::lock_guard<std::mutex> lock(mutex_);
      if (fault_.kind.empty()) fault_ = worker.fault;
      stop_.store(true);
    }
  }

 private:
  const Job& job_;
  const uint64_t clusters_, running_;  // the grid's; of these, the ones to run
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  FaultRecord fault_;
};

uint64_t product(dim3 size) { return static_cast<uint64_t>(size.x) * size.y * size.z; }

std::string blocks_of_threads(uint64_t blocks, uint64_t threads) {
  return std::to_string(blocks) + " blocks of " + std::to_string(threads) + " threads";
}

// Why the simulator cannot run this valid launch; empty if it can.
std::string refused(const Site& site, const Config& c, bool traced) {
  const uint64_t threads = product(c.block), of_cluster = product(site.cluster), of_grid = product(c.grid);
  const auto runs_together = [=](uint64_t blocks) {
    return blocks == 1 || (threads % kWarpSize == 0 && blocks * threads <= kMaxClusterThreads);
  };
  if (!runs_together(of_cluster))
    return "not supported by the simulator: a cluster of " + blocks_of_threads(of_cluster, threads) +
           "; it runs clusters of whole warps with " + std::to_string(kMaxClusterThreads) + " threads or fewer in all";
  if (Window::current().width && (traced || c.cooperative))
    return std::string("not supported by the simulator: only the first and the last blocks of ") +
           (traced ? "an X-ray" : "a cooperative grid, whose blocks wait for each other");
  const bool together = runs_together(of_grid) && of_grid <= kPortableClusterBlocks && of_cluster == 1;
  if (traced && c.cooperative && !together)
    return "not supported by the simulator: an X-ray of a cooperative grid of " + blocks_of_threads(of_grid, threads) +
           "; it traces up to 8 blocks of whole warps with " + std::to_string(kMaxClusterThreads) +
           " threads or fewer in all, without clusters";
  return "";
}

int sticky_code(const std::string& kind) {  // the cudaError_t that CUDA would return
  if (kind == "time-limit" || kind == "deadlock" || kind == "interrupted") return 702;
  if (kind == "assert") return 710;
  if (kind == "stack-overflow") return 714;
  if (kind == "trap") return 715;
  if (kind == "illegal-access" || kind == "out-of-bounds") return 700;
  if (kind == "misaligned") return 716;
  return 719;
}

void raise(const FaultRecord& record) {
  set_last_error(sticky_code(record.kind));
  if (!program::running()) throw Fault(record.kind, record.message);
  program::report(record);
}

// A traced kernel may read its arguments wherever they lie.
class LentClosure {
 public:
  explicit LentClosure(const Closure& closure) : start_(reinterpret_cast<uint64_t>(closure.state)) {
    trace::Session::active()->regions.add(start_, closure.bytes, trace::Space::other, 0, false, trace::kArguments, 0);
  }
  ~LentClosure() { trace::Session::active()->regions.remove(start_); }

 private:
  uint64_t start_;
};

FaultRecord run_traced(Job job, const Closure& closure) {
  const std::lock_guard<std::mutex> alone(program::tracing);
  Site whole = *job.site;
  if (job.config.cooperative) whole.cluster = job.config.grid;  // the grid's barrier is then the cluster's
  job.site = &whole;
  std::unique_ptr<LentClosure> lent;
  if (closure.on_heap) lent = std::make_unique<LentClosure>(closure);
  FaultRecord fault;
  Watch watch;
  const Turn turn(Turn::Work::kernel);
  Watched watched(Worker::current());
  trace::launch(job, fault);
  std::fflush(stdout);
  program::launch_ended();
  return fault;
}

FaultRecord run_fast(const Job& job) {
  const uint64_t blocks = product(job.config.grid), clusters = blocks / product(job.site->cluster);
  const uint64_t worthwhile = blocks * product(job.config.block) / 2048;  // waking a helper costs about as much
  uint64_t helpers = Pool::helpers_wanted();                              // as 2,048 short threads
  if (helpers > clusters - 1) helpers = clusters - 1;
  if (helpers > worthwhile) helpers = worthwhile;
  Watch watch;  // the simulator handles signals while the grid runs
  const Turn turn(Turn::Work::kernel);
  const auto run = [&](auto grid) {
    Pool::instance().run(grid, static_cast<unsigned>(helpers));
    return grid.fault();
  };
  return job.config.cooperative ? run(CooperativeGrid(job, clusters)) : run(Grid(job, clusters));
}

}  // namespace

Fault::Fault(std::string kind_, std::string message_) : kind(std::move(kind_)), message(std::move(message_)) {}
Fault::~Fault() = default;
const char* Fault::what() const noexcept { return message.c_str(); }

// The limits are those of compute capability 9.0.
int configuration_error(const Site& site, const Config& c) {
  const uint64_t threads = product(c.block);
  if (threads == 0 || c.block.x > kMaxThreads || c.block.y > kMaxThreads || c.block.z > 64 || threads > kMaxThreads)
    return kInvalidConfiguration;
  if (c.grid.x == 0 || c.grid.y == 0 || c.grid.z == 0) return kInvalidConfiguration;
  if (c.grid.x > 0x7fffffffu || c.grid.y > 65535 || c.grid.z > 65535) return kInvalidConfiguration;
  if (c.shared_bytes > dynamic_shared_limit(site.function)) return kInvalidValue;
  if (!accepts_launches(c.stream)) return kInvalidHandle;
  const dim3 size = site.cluster;
  if (product(size) == 0 || product(size) > most_cluster_blocks(site.function)) return kInvalidCluster;
  if (c.grid.x % size.x || c.grid.y % size.y || c.grid.z % size.z) return kInvalidCluster;
  if (c.cooperative && product(c.grid) > resident_blocks(static_cast<int>(threads), c.shared_bytes) * uint64_t{kSms})
    return kTooLarge;
  return 0;
}

namespace {
// The launch again, in the clusters that the kernel's first thread has named: nothing has run but its beginning.
int run_in_clusters(Site site, const std::string& dimensions, const Config& config, const Closure& closure,
                    unsigned depth) {
  std::sscanf(dimensions.c_str(), "%u %u %u", &site.cluster.x, &site.cluster.y, &site.cluster.z);
  if (int code = configuration_error(site, config)) return code;
  return run_launch(site, config, closure, depth);
}
}  // namespace

int run_launch(const Site& site, const Config& config, const Closure& closure, unsigned depth) {
  const bool traced = site.traced && trace::Session::active();
  if (std::string why = refused(site, config, traced); !why.empty()) return raise({"unsupported", why}), 0;
  Children children(depth);
  const Job job{&site, config, closure.run, closure.state, &children};
  if (!traced) trace::forget_kernel_before();
  const FaultRecord fault = traced ? run_traced(job, closure) : run_fast(job);
  if (fault.kind == kWithoutClusters) {
    if (traced) trace::Session::active()->launches.pop_back();
    return run_in_clusters(site, fault.message, config, closure, depth);
  }
  std::fflush(stdout);  // device printf appears when its launch ends
  if (fault.kind.empty())
    children.run();
  else
    raise(fault);
  return 0;
}

int start(const Site& site, const Config& config, const Closure& closure) {
  reset_errors();                        // a fault's error lasts until new work begins
  if (program::device_lost()) return 0;  // in a program it lasts until the end: no kernel runs any more
  if (int code = configuration_error(site, config)) {
    const bool captured = capturing() && invalidate_capture(config.stream);
    return captured ? kInvalidValue : code;  // what an H200 says
  }
  StreamWatch::current().launch(site, config.stream);
  if (capturing())
    if (const auto answer = capture_launch(site, config, closure)) return *answer;
  return run_launch(site, config, closure, 0);
}

Site site_of(const void* function, Site site) {
  site.function = function;
  Dl_info info{};
  site.guessed = !dladdr(function, &info) || info.dli_saddr != function;
  if (site.guessed) return site;
  char* const demangled = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr);
  std::string name = demangled ? demangled : info.dli_sname;
  std::free(demangled);
  for (size_t k = name.size(), depth = 0; k && name.back() == ')'; name.resize(depth ? name.size() : k))
    depth += (name[--k] == ')') - (name[k] == '(');
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);  // the return type of a template's instance
  static std::mutex mutex;
  static std::set<std::string> names;  // to the end of the process: a report may outlive the library
  const std::lock_guard lock(mutex);
  site.kernel = names.insert(name).first->c_str();
  return site;
}

void launch(const Site& site, const Config& config, const Closure& closure) {
  if (in_kernel()) return launch_from_kernel(site, config, closure);
  if (int code = start(site, config, closure)) set_last_error(code);
}

}  // namespace simt

// For kernel_xray/src/kernel_xray/runtime/faults.py. Opens a window on the calling thread's launches, or closes it (width 0).
extern "C" SIMT_API void simt_window(uint64_t width) { simt::Window::current() = {width, 0}; }
extern "C" SIMT_API uint64_t simt_window_left_out() { return simt::Window::current().left_out; }

// For kernel_xray/src/kernel_xray/runtime/faults.py, too. Begins a watch of the calling thread's streams; ends it, and returns what it saw.
extern "C" SIMT_API void simt_watch_streams() {
  simt::StreamWatch::current() = {true, simt::current_stream(), "", ""};
  simt::set_current_stream(simt::stream_from_pool(false));
}
extern "C" SIMT_API const char* simt_stray_launches() {
  simt::StreamWatch& watch = simt::StreamWatch::current();
  simt::set_current_stream(watch.before);
  watch.on = false;
  return watch.seen.c_str();
}
// The calls in which the host waited since the watch began.
extern "C" SIMT_API const char* simt_host_waits() { return simt::StreamWatch::current().waits.c_str(); }
