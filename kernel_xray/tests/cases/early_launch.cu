// early_launch.cu: programmatic dependent launch: a kernel that may begin before the kernel before it has ended.
// Needs -arch=sm_90.
#include "case.h"

constexpr int kThreads = 64;

__global__ void first_kernel(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  out[i] = 2 * in[i];  // <- first
}

enum How {
  kAllWait,
  kOneWaits,   // for its block
  kReadsOwn,   // before it waits, what the kernel before does not write
  kRuntime,    // by the functions of the CUDA runtime
  kOrdered,    // no wait, but the launch has no attribute
  kHostWaits,  // likewise: the host waits between the two
  kNeverWaits,
  kWaitsLate,
  kNotForBlock,  // one thread waits, and the others do not wait for it
  kOverwrites,
};

__global__ void second_kernel(float* in, float* between, float* out, int how) {
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float own = 0;
  if (how == kReadsOwn) own = out[i];
  if (how == kOverwrites) in[i] = 1;        // <- overwrite
  if (how == kWaitsLate) own = between[i];  // <- late
  const bool all = how == kAllWait || how == kReadsOwn || how == kWaitsLate || how == kOverwrites;
  if (all || ((how == kOneWaits || how == kNotForBlock) && t == 0)) asm volatile("griddepcontrol.wait;" ::: "memory");
  if (how == kRuntime) cudaGridDependencySynchronize();
  if (how == kOneWaits) __syncthreads();
  out[i] = own + between[i];  // <- read
}

// Lets the next kernel begin before it waits, or afterwards; writes nothing that others read.
__global__ void middle_kernel(float* own, bool late) {
  if (!late) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (late) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  own[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

// in, what is between, out, and what no other kernel uses; what the second kernel does; whether a third lies between:
// 0: no; 1: it lets the next begin at once; 2: after its wait.
CASE(early_launch) {
  const int how = static_cast<int>(call.number(0)), blocks = 4;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = kThreads;
  config.attrs = &early;
  first_kernel<<<blocks, kThreads>>>(call.data<float>(0), call.data<float>(1));
  if (how == kHostWaits) cudaDeviceSynchronize();
  config.numAttrs = how != kOrdered;
  if (call.number(1)) cudaLaunchKernelEx(&config, middle_kernel, call.data<float>(3), call.number(1) == 2);
  cudaLaunchKernelEx(&config, second_kernel, call.data<float>(0), call.data<float>(1), call.data<float>(2), how);
}
