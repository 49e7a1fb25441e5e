// device.h: the limits of the simulated device, those of compute capability 8.0 in CUDA's programming guide; but shared
// memory is that of 9.0, so that kernels written for it fit.
#pragma once

#include <cstddef>

namespace simt {

constexpr int kMultiprocessors = 108;
constexpr int kThreadsPerBlock = 1024;
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kBlocksPerMultiprocessor = 32;
constexpr int kRegistersPerMultiprocessor = 65536;
constexpr size_t kSharedPerBlock = 48 * 1024;  // without opting in
constexpr size_t kSharedPerBlockOptin = 227 * 1024;
constexpr size_t kSharedPerMultiprocessor = 228 * 1024;
constexpr size_t kSharedReserved = 1024;  // by the system, for each block

void forget_functions();  // cudaDeviceReset: the attributes set for kernels

}  // namespace simt
