// children.h: the kernels that a kernel launches (dynamic parallelism).
//
// They run when the grid that launched them has ended, before the host's launch returns, one after another: in the
// order of their blocks, and within a block in that of the launches. A child's own children follow it at once. So a
// child sees all that its parent wrote. On a GPU it may also run beside its parent, which must not rely on that: since
// CUDA 12 a kernel cannot wait for the kernels that it launched. Grids in cudaStreamTailLaunch run last, after all
// other descendants of their parent.
#pragma once

#include <mutex>
#include <vector>

#include "threads/launch.h"

namespace simt {

class Children {
 public:
  explicit Children(unsigned depth) : depth_(depth) {}

  // From a kernel: keeps a launch by the block of this number. Returns why the launch is not valid; empty if it is.
  std::string add(const Site& site, const Config& config, const Closure& closure, uint64_t block);

  // On the host, when the parent has ended.
  void run();

 private:
  struct Child {
    uint64_t block;
    StoredLaunch launch;
  };
  void run(std::vector<Child>& children);

  const unsigned depth_;  // of the parent: 0 if the host launched it
  std::mutex mutex_;
  std::vector<Child> children_, tail_;
};

void launch_from_kernel(const Site& site, const Config& config, const Closure& closure);

}  // namespace simt
