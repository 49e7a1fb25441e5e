// device.h: the limits of the simulated device. They are CUDA's for compute capability 9.0, and for 10.0, which a program
// has that is built for sm_100a (core.h): the simulator has the units of both.
#pragma once

#include <cstddef>

namespace simt {

constexpr int kSms = 108;
constexpr int kThreadsPerBlock = 1024;
constexpr int kThreadsPerSm = 2048;
constexpr int kBlocksPerSm = 32;
constexpr int kRegistersPerSm = 65536;
constexpr size_t kSharedPerBlock = 48 * 1024;  // without opting in
constexpr size_t kSharedPerBlockOptin = 227 * 1024;
constexpr size_t kSharedPerSm = 228 * 1024;
constexpr size_t kSharedReserved = 1024;  // by the system, for each block

int compute_capability();                                   // its first number
int resident_blocks(int block_size, size_t dynamic_bytes);  // of an SM (function.cpp)
void forget_functions(int device);                          // cudaDeviceReset: the attributes set for kernels

}  // namespace simt
