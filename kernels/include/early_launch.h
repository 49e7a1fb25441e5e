// early_launch.h: programmatic dependent launch, from compute capability 9.0 on. The
// blocks of a kernel can be there before the kernel before it in the stream has ended.
// That one lets them begin; they wait for its end before they read what it wrote, or
// write what it may read. In the simulator each kernel begins after the one before; an
// X-ray finds what comes before the wait, if it conflicts with that kernel.
#pragma once

#include "launch.h"

namespace ladder {

// For cudaLaunchKernelEx: the launch of a kernel that calls wait_for_kernel_before.
struct EarlyLaunch {
  cudaLaunchAttribute early = {};
  cudaLaunchConfig_t config = {};
  EarlyLaunch(dim3 grid, dim3 block, int shared_bytes, cudaStream_t stream) {
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    unsigned attributes = device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
    config = {grid, block, size_t(shared_bytes), stream, &early, attributes};
  }
  EarlyLaunch(const EarlyLaunch&) = delete;  // config points to early
};

// The next kernel may begin once all blocks have called this, where they leave room.
__device__ inline void let_next_kernel_begin() {
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900) || defined(__SIMT__)
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Waits until the kernel before has ended and its results are in memory.
__device__ inline void wait_for_kernel_before() {
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900) || defined(__SIMT__)
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace ladder
