// launch.h: launches, for the parts of the run-time library that keep one for later.
#pragma once

#include <memory>

#include "../../include/simt/core.h"

namespace simt {

// Checks a launch and runs it, or records it if its stream is being captured. Returns 0 or the cudaError_t of a launch
// that did not begin; throws Fault for a kernel that did not end well.
int start(const Site& site, const Config& config, const Closure& closure);

// The cudaError_t of the first limit that a launch violates; 0 if it is valid.
int configuration_error(const Site& site, const Config& config);

// Runs a valid launch. `depth`: of kernels that launch kernels; 0 for the host's. Returns 0, or the cudaError_t of a
// grid that does not suit the clusters that only the kernel names.
int run_launch(const Site& site, const Config& config, const Closure& closure, unsigned depth);

// A launch that runs later, perhaps several times. It owns its arguments.
class StoredLaunch {
 public:
  StoredLaunch(const Site& site, const Config& config, const Closure& closure)
      : site_(site), config_(config), closure_(closure) {
    if (!closure.on_heap)
      closure_.state = closure.copy(closure.state, closure.bytes);  // else it takes the closure over
    closure_.on_heap = true;
    state_.reset(closure_.state, closure_.destroy);
  }
  int start() const { return simt::start(site_, config_, closure_); }
  int run(unsigned depth = 0) const { return run_launch(site_, config_, closure_, depth); }
  const Site& site() const { return site_; }
  const Config& config() const { return config_; }

 private:
  Site site_;
  Config config_;
  Closure closure_;
  std::shared_ptr<void> state_;
};

}  // namespace simt
