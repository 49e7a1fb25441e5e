// watch.cpp: turns a signal in a kernel into a fault, and ends blocks that do not end by themselves.
//
// The watchdog looks at the workers every 50 ms. It ends a block that has used more processor time than
// KERNEL_XRAY_BLOCK_SECONDS (8 by default; on a busy machine that takes longer), and every block after an interrupt
// (Ctrl-C), by sending SIGURG to the worker's thread; the handler leaves the fibre for the scheduler. The fibres are
// abandoned: their destructors do not run.
#include "threads/watch.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "api/allocations.h"
#include "api/devices.h"

// On AArch64, where a division by zero is not a trap, the compiler calls this before it.
extern "C" SIMT_API void __ubsan_handle_divrem_overflow(const void*, uint64_t, uint64_t) { raise(SIGFPE); }

namespace simt {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGINT, SIGURG};
constexpr int kCount = sizeof kSignals / sizeof kSignals[0];
constexpr size_t kSignalStackBytes = 64 * 1024;
constexpr int kFinishSignal = SIGURG;  // ignored by default, so a late one does no harm

std::mutex handlers_mutex;
int handlers_users = 0;
struct sigaction previous[kCount];
std::atomic<bool> interrupted{false};

void pass_on(int number, siginfo_t* info, void* context) {
  for (int i = 0; i < kCount; ++i) {
    if (kSignals[i] != number) continue;
    const struct sigaction& action = previous[i];
    if (action.sa_flags & SA_SIGINFO) return action.sa_sigaction(number, info, context);
    if (action.sa_handler == SIG_IGN) return;
    if (action.sa_handler != SIG_DFL) return action.sa_handler(number);
    if (number == SIGURG) return;
    sigaction(number, &action, nullptr);  // default: the signal recurs and ends the process
    if (number == SIGINT) ::raise(number);
  }
}

void handle(int number, siginfo_t* info, void* context) {
  if (number == SIGINT) {
    interrupted.store(true);
    return pass_on(number, info, context);
  }
  Worker* worker = current_worker;
  if (!worker || !worker->in_fibre.load()) {
    const bool access = number == SIGSEGV || number == SIGBUS;
    return access && protected_for_now(info->si_addr) ? void() : pass_on(number, info, context);
  }
  switch (number) {
    case SIGURG: {
      const char* reason = worker->end_requested.load();
      if (reason) worker->abandon_in_handler(reason, nullptr);
      return;
    }
    case SIGFPE:
      worker->abandon_in_handler("division-by-zero", nullptr);
    case SIGILL:
    case SIGTRAP:
      worker->abandon_in_handler("trap", nullptr);
    default:
      worker->abandon_in_handler(worker->stacks.in_guard(info->si_addr) ? "stack-overflow" : "illegal-access",
                                 info->si_addr);
  }
}

double seconds_of(const timespec& time) { return static_cast<double>(time.tv_sec) + time.tv_nsec * 1e-9; }

double processor_seconds(pthread_t thread) {  // that the thread has used; on macOS, seconds that have passed
  timespec time = {};
#ifdef __APPLE__
  (void)thread;
  clock_gettime(CLOCK_MONOTONIC, &time);
#else
  clockid_t clock;
  if (pthread_getcpuclockid(thread, &clock) == 0) clock_gettime(clock, &time);
#endif
  return seconds_of(time);
}

double block_seconds() {
  const char* text = std::getenv("KERNEL_XRAY_BLOCK_SECONDS");
  const double asked = text ? std::atof(text) : 0;
  return asked > 0 ? asked : 8.0;
}

class Watchdog {
 public:
  static Watchdog& instance() {
    static Watchdog* watchdog = new Watchdog;
    if (watchdog->process_ != getpid()) watchdog = new Watchdog;  // a forked child has no watchdog thread
    return *watchdog;
  }

  void add(Worker& worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    watched_.push_back({&worker, pthread_self(), 0, 0});
    if (!started_) std::thread([this] { watch(); }).detach();
    started_ = true;
    if (parked_) wake_.notify_one();
  }

  void remove(Worker& worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = std::find_if(watched_.begin(), watched_.end(), [&](const Entry& e) { return e.worker == &worker; });
    if (it != watched_.end()) watched_.erase(it);
  }

 private:
  struct Entry {
    Worker* worker;
    pthread_t thread;
    uint64_t block;
    double since;  // processor seconds when the block was first seen
  };

  void watch() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock<std::mutex> lock(mutex_);
    for (int idle = 0;;) {
      idle = watched_.empty() ? idle + 1 : 0;
      if (idle > 20) {  // nothing for a second: sleep until the next launch
        parked_ = true;
        wake_.wait(lock, [this] { return !watched_.empty(); });
        parked_ = false;
        idle = 0;
      }
      wake_.wait_for(lock, std::chrono::milliseconds(50));
      for (Entry& entry : watched_) {
        const double now = processor_seconds(entry.thread);
        const uint64_t block = entry.worker->blocks_started.load();
        if (block != entry.block) entry.since = now;
        entry.block = block;
        const char* reason = nullptr;
        if (interrupted.load())
          reason = "interrupted";
        else if (now - entry.since > block_seconds())
          reason = "time-limit";
        if (!reason) continue;
        entry.worker->end_requested.store(reason);
        pthread_kill(entry.thread, kFinishSignal);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Entry> watched_;
  bool started_ = false, parked_ = false;
  pid_t process_ = getpid();
};

struct SignalStack {  // one for each thread that runs blocks, until that thread ends
  void* memory = ::operator new(kSignalStackBytes);
  ~SignalStack() { ::operator delete(memory); }
};

thread_local SignalStack signal_stack;
thread_local stack_t outside_stack;

// Of several devices, one's host thread may use memory that is protected while another's kernel runs, and hear of it
// after the kernel has ended: the handler must be there still.
bool is_kept(int number) {
  return (number == SIGSEGV || number == SIGBUS) && wrong_device_count().empty() && device_count() > 1;
}

}  // namespace

Watch::Watch() {
  std::lock_guard<std::mutex> lock(handlers_mutex);
  if (handlers_users++) return;
  interrupted.store(false);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // not blocked: the handler may never return
  for (int i = 0; i < kCount; ++i) {
    struct sigaction before = {};
    sigaction(kSignals[i], &action, &before);
    if (before.sa_sigaction != handle) previous[i] = before;
    // A process that ignores Ctrl-C, such as a shell's background job, ignores it in its kernels too.
    if (kSignals[i] == SIGINT && previous[i].sa_handler == SIG_IGN) sigaction(SIGINT, &previous[i], nullptr);
  }
}

Watch::~Watch() {
  std::lock_guard<std::mutex> lock(handlers_mutex);
  if (--handlers_users) return;
  for (int i = 0; i < kCount; ++i)
    if (!is_kept(kSignals[i])) sigaction(kSignals[i], &previous[i], nullptr);
}

Watched::Watched(Worker& worker) : worker_(worker) {
  stack_t stack = {};
  stack.ss_sp = signal_stack.memory;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, &outside_stack);
  Watchdog::instance().add(worker);
}

Watched::~Watched() {
  Watchdog::instance().remove(worker_);
  sigaltstack(&outside_stack, nullptr);
}

std::string describe_signal(const Worker& worker) {
  const std::string kind = worker.signal_kind;
  char text[512];
  if (kind == "illegal-access") {
    std::snprintf(text, sizeof text, "an illegal memory access was encountered: address %p", worker.signal_address);
    if (worker.shared_memory.in_guard(worker.signal_address)) return text + std::string(", outside shared memory");
    const std::string known = Allocations::instance().describe(worker.signal_address);
    return known.empty() ? text : text + (", " + known);
  }
  if (kind == "stack-overflow") {
    std::snprintf(text, sizeof text,
                  "stack overflow: the thread's local variables and calls need more than %zu KB "
                  "(endless recursion, or a large local array?)",
                  Stacks::kStackBytes / 1024);
    return text;
  }
  if (kind == "time-limit") {
    std::snprintf(text, sizeof text,
                  "time limit: the block did not end within %g s of processor time (an endless loop, or a wait for "
                  "another block?). KERNEL_XRAY_BLOCK_SECONDS sets the limit",
                  block_seconds());
    return text;
  }
  if (kind == "division-by-zero") return "integer division by zero (a GPU gives an unspecified number instead)";
  if (kind == "trap") return "the kernel executed a trap (__trap, or a path that the compiler assumes unreachable)";
  return kind;
}

}  // namespace simt
