// watch.h: signals and time limits while kernels run.
#pragma once

#include "threads/block.h"

namespace simt {

// While a Watch exists, hardware signals (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP) and SIGINT go to the simulator
// first. It passes signals that no kernel caused to the previous handler.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

// While a Watched exists, the calling thread's worker has an alternate signal stack and the watchdog watches it.
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
