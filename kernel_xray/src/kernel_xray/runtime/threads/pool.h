// pool.h: the operating-system threads that share the work of a launch.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace simt {

class Work {
 public:
  virtual void run() = 0;  // called on several threads at the same time

 protected:
  ~Work() = default;
};

// Threads that help the launching thread. They live until the process ends; a forked child starts without them.
class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = new Pool;  // never destroyed: its threads may outlive static destruction
    if (pool->process_ != getpid()) pool = new Pool;
    return *pool;
  }

  // Runs work.run() on the caller and on helpers. A concurrent launch runs on its caller alone.
  void run(Work& work, unsigned helpers) {
    std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
    if (!busy.owns_lock() || helpers == 0) return work.run();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (; threads_ < helpers_wanted(); ++threads_) std::thread([this] { serve(); }).detach();
      work_ = &work;
      offers_ = helpers < threads_ ? helpers : threads_;
    }
    wake_.notify_all();
    work.run();
    std::unique_lock<std::mutex> lock(mutex_);
    offers_ = 0;
    done_.wait(lock, [this] { return active_ == 0; });
    work_ = nullptr;
  }

  static unsigned helpers_wanted() {
    static const unsigned count = [] {
      const char* text = std::getenv("KERNEL_XRAY_THREADS");
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
      Work& work = *work_;
      lock.unlock();
      work.run();
      lock.lock();
      if (--active_ == 0) done_.notify_one();
    }
  }

  std::mutex busy_, mutex_;
  std::condition_variable wake_, done_;
  Work* work_ = nullptr;
  unsigned threads_ = 0, offers_ = 0, active_ = 0;
  pid_t process_ = getpid();
};

}  // namespace simt
