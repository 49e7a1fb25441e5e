// launch.cpp: checks a launch, spreads its blocks or clusters over the workers, and reports its fault: by an exception
// or, in a program, as CUDA does.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "api/program.h"
#include "threads/block.h"
#include "trace/trace.h"
#include "threads/watch.h"

namespace simt {

size_t dynamic_shared_limit(const void* function);  // function.cpp; nullptr: the largest for any kernel
bool stream_exists(cudaStream_t stream);            // stream.cpp

namespace {

constexpr int kInvalidValue = 1, kInvalidConfiguration = 9, kInvalidHandle = 400, kInvalidCluster = 912;

struct Grid {  // one launch, shared by the workers
  Job job;
  uint64_t clusters;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  FaultRecord fault;

  void run() {
    Worker& worker = Worker::current();
    Watched watched(worker);
    worker.begin_job(job);
    while (!stop.load(std::memory_order_relaxed)) {
      const uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= clusters) break;
      if (worker.run_cluster(job, first_block(job, i))) continue;
      std::lock_guard<std::mutex> lock(mutex);
      if (fault.kind.empty()) fault = worker.fault;
      stop.store(true);
    }
  }
};

// Threads that help the launching thread. They live until the process ends; a forked child starts without them.
class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = new Pool;  // never destroyed: its threads may outlive static destruction
    if (pool->process_ != getpid()) pool = new Pool;
    return *pool;
  }

  // Runs grid.run() on the caller and on the helpers. A concurrent launch runs on its caller alone.
  void run(Grid& grid, unsigned helpers) {
    std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
    if (!busy.owns_lock() || helpers == 0) return grid.run();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (; threads_ < helpers_wanted(); ++threads_) std::thread([this] { serve(); }).detach();
      grid_ = &grid;
      offers_ = helpers < threads_ ? helpers : threads_;
    }
    wake_.notify_all();
    grid.run();
    std::unique_lock<std::mutex> lock(mutex_);
    offers_ = 0;
    done_.wait(lock, [this] { return active_ == 0; });
    grid_ = nullptr;
  }

  static unsigned helpers_wanted() {
    static const unsigned count = [] {
      const char* text = std::getenv("KERNEL_LADDER_THREADS");
      const int asked = text ? std::atoi(text) : 0;
      const unsigned cores = asked > 0 ? static_cast<unsigned>(asked) : std::thread::hardware_concurrency();
      return cores > 1 ? cores - 1 : 0;
    }();
    return count;
  }

 private:
  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return offers_ > 0; });
      --offers_;
      ++active_;
      Grid& grid = *grid_;
      lock.unlock();
      grid.run();
      lock.lock();
      if (--active_ == 0) done_.notify_one();
    }
  }

  std::mutex busy_, mutex_;
  std::condition_variable wake_, done_;
  Grid* grid_ = nullptr;
  unsigned threads_ = 0, offers_ = 0, active_ = 0;
  pid_t process_ = getpid();
};

uint64_t blocks_of(dim3 cluster) { return static_cast<uint64_t>(cluster.x) * cluster.y * cluster.z; }

// The first limit of compute capability 8.0 (9.0 for clusters) that the launch violates; 0 if it is valid.
int configuration_error(const Site& site, const Config& c) {
  const uint64_t threads = static_cast<uint64_t>(c.block.x) * c.block.y * c.block.z;
  if (threads == 0 || c.block.x > kMaxThreads || c.block.y > kMaxThreads || c.block.z > 64 || threads > kMaxThreads)
    return kInvalidConfiguration;
  if (c.grid.x == 0 || c.grid.y == 0 || c.grid.z == 0) return kInvalidConfiguration;
  if (c.grid.x > 0x7fffffffu || c.grid.y > 65535 || c.grid.z > 65535) return kInvalidConfiguration;
  if (c.shared_bytes > dynamic_shared_limit(site.function)) return kInvalidValue;
  if (!stream_exists(c.stream)) return kInvalidHandle;
  const dim3 size = site.cluster;
  if (blocks_of(size) == 0 || blocks_of(size) > kMaxClusterBlocks) return kInvalidCluster;
  if (c.grid.x % size.x || c.grid.y % size.y || c.grid.z % size.z) return kInvalidCluster;
  return 0;
}

// Why the simulator cannot run this launch of clusters; empty if it can.
std::string cluster_refused(const Site& site, const Config& c) {
  const uint64_t blocks = blocks_of(site.cluster), threads = static_cast<uint64_t>(c.block.x) * c.block.y * c.block.z;
  if (blocks == 1) return "";
  if (threads % kWarpSize == 0 && blocks * threads <= kMaxThreads) return "";
  return "not supported by the simulator: a cluster of " + std::to_string(blocks) + " blocks of " +
         std::to_string(threads) + " threads; it runs clusters of whole warps with 1024 threads or fewer in all";
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

}  // namespace

Fault::Fault(std::string kind_, std::string message_) : kind(std::move(kind_)), message(std::move(message_)) {}
Fault::~Fault() = default;
const char* Fault::what() const noexcept { return message.c_str(); }

void launch(const Site& site, const Config& config, void (*thread)(void*), void* closure) {
  if (in_kernel()) fault("unsupported", "a kernel launched a kernel: the simulator has no dynamic parallelism");
  reset_errors();                      // a fault's error lasts until new work begins
  if (program::device_lost()) return;  // in a program it lasts until the end: no kernel runs any more
  if (int code = configuration_error(site, config)) return set_last_error(code);

  const bool traced = site.traced && trace::Session::active();
  if (std::string why = cluster_refused(site, config); !why.empty()) return raise({"unsupported", why});

  if (traced) {
    FaultRecord record;
    bool good;
    {
      const std::lock_guard<std::mutex> alone(program::tracing);
      Watch watch;
      Watched watched(Worker::current());
      good = trace::launch({&site, config, thread, closure}, record);
      std::fflush(stdout);
      program::launch_ended();
    }
    if (!good) raise(record);
    return;
  }
  Grid grid;
  grid.job = {&site, config, thread, closure};
  const uint64_t blocks = static_cast<uint64_t>(config.grid.x) * config.grid.y * config.grid.z;
  grid.clusters = blocks / blocks_of(site.cluster);
  const uint64_t threads = blocks * config.block.x * config.block.y * config.block.z;
  const uint64_t worthwhile = threads / 2048;  // waking a helper costs about as much as 2,048 short threads
  uint64_t helpers = Pool::helpers_wanted();
  if (helpers > grid.clusters - 1) helpers = grid.clusters - 1;
  if (helpers > worthwhile) helpers = worthwhile;
  {
    Watch watch;  // the simulator handles signals while the grid runs
    Pool::instance().run(grid, static_cast<unsigned>(helpers));
  }
  std::fflush(stdout);  // device printf appears when its launch ends
  if (!grid.fault.kind.empty()) raise(grid.fault);
}

}  // namespace simt
