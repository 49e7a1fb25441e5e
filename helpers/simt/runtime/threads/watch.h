// watch.h: signals and time limits while kernels run.
#pragma once

#include "threads/block.h"

namespace simt {

// While one lives, hardware signals (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP) and SIGINT go to the simulator first. What is not a
// kernel's goes on to the handler that was there before.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

// While one lives, the worker of the calling thread has an alternate signal stack and the watchdog looks after it.
class Watched {
 public:
  explicit Watched(Worker& worker);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Worker& worker_;
};

}  // namespace simt
