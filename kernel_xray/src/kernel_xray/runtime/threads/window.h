// window.h: launches of which only the first and the last blocks run, for tests on tensors too large to compute whole.
//
// While a window is open, every launch of the calling thread runs the first `width` and the last `width` blocks of its
// grid (with clusters: clusters), numbered as CUDA numbers them, x first. CUDA has nothing like it. The results of the
// other blocks are missing, so a kernel whose blocks use each other's results gives others than on a GPU. Grids whose
// blocks wait for each other, and traced launches, are refused. A device loop over the whole tensor takes its time.
#pragma once

#include <cstdint>

namespace simt {

struct Window {
  uint64_t width = 0;     // clusters at either end of a grid; 0: grids are whole
  uint64_t left_out = 0;  // clusters that launches have left out since the window was opened

  static Window& current() {
    static thread_local Window window;
    return window;
  }

  // How many clusters of a grid run.
  uint64_t of(uint64_t clusters) {
    const uint64_t running = width && clusters > 2 * width ? 2 * width : clusters;
    left_out += clusters - running;
    return running;
  }

  // The number of the i-th cluster that runs.
  static uint64_t number(uint64_t i, uint64_t running, uint64_t clusters) {
    return 2 * i < running ? i : i + (clusters - running);
  }
};

}  // namespace simt
