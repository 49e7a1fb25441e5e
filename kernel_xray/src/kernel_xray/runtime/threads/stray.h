// stray.h: launches in another stream than PyTorch's current one, for tests of operators.
//
// While a watch is on, the calling thread's current stream is one of PyTorch's pool, as in `with torch.cuda.stream(s):`.
// On a GPU, a kernel in any other stream does not wait for the work that makes its inputs. Here all work is done when a
// call returns, so no result shows the mistake: the watch remembers where it saw such launches. After a call that waits
// for a stream, an event or the device, other streams may be in order, and the watch is off; it never sees the launches
// of a graph, nor those that a kernel makes.
#pragma once

#include <string>

#include "../../include/simt/torch_bridge.h"
#include "trace/trace.h"

namespace simt {

struct StreamWatch {
  bool on = false;
  cudaStream_t before = nullptr;  // the current stream outside the watch
  std::string seen;               // a line "kernel, at FILE:LINE" for each place with a stray launch
  std::string waits;              // a line with the function's name for each call in which the host waited

  static StreamWatch& current() {
    static thread_local StreamWatch watch;
    return watch;
  }

  void launch(const Site& site, cudaStream_t stream) {
    if (!on || stream == current_stream()) return;
    const std::string line = std::string(site.kernel) + ", at " + site.file + ":" + std::to_string(site.line) + "\n";
    if (seen.find(line) == std::string::npos) seen += line;
  }

  void waited(const char* by_host = nullptr) {
    on = false;
    trace::forget_kernel_before();
    if (by_host) waits += std::string(by_host) + "\n";
  }
};

}  // namespace simt
