// kernel_before.h: what a kernel accessed that lets the next one begin early, for programmatic dependent launch.
//
// A kernel that was launched so may run beside the kernel before it in the stream. griddepcontrol.wait waits for the end
// of that kernel and makes its results visible: it acquires an epoch that stands for the whole kernel before
// (Slots::before). An access that does not know this epoch races with the earlier kernel's accesses.
// A kernel that lets the next begin before it has waited itself may run beside both: then the kernels before count, too.
// Limits: a kernel counts only if it has executed griddepcontrol.launch_dependents: the implicit trigger at its end leaves
// little time. Other work on the stream that an X-ray does not see, such as operators of PyTorch, may
// lie between the two. What a kernel learns through global memory from blocks that have waited is not judged.
#pragma once

#include <memory>
#include <vector>

#include "trace/regions.h"
#include "trace/shadow_memory.h"

namespace simt::trace {

class KernelBefore {
 public:
  // `further`: the kernel before that one, which may run too; or null.
  KernelBefore(cudaStream_t stream, ShadowMemory&& shadow, const Regions& regions,
               std::shared_ptr<const KernelBefore> further);
  cudaStream_t stream() const { return stream_; }
  // An access of the kernels to the same memory, one of the two being a write; null if there is none.
  const Access* conflict(const Event& event) const;

 private:
  const Access* own_conflict(const Event& event) const;

  cudaStream_t stream_;
  ShadowMemory shadow_;
  std::vector<Span> spans_;  // global memory as it was: virtual addresses may be others in the next launch
  std::shared_ptr<const KernelBefore> further_;
};

}  // namespace simt::trace
