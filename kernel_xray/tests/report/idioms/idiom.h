// idiom.h: turns each IDIOM of a .cu file into an operator `name(Tensor[] tensors, int[] numbers, bool bug) -> ()`.
//
// An idiom is a kernel in the form in which published code has it, with its launcher. Both are templates: with kBug
// false they are correct; with kBug true they are the twin, which differs in one place.
#pragma once

#include <utility>

#include "../../cases/case.h"

constexpr unsigned kAll = 0xffffffffu;  // the mask of all lanes

inline int ceil_div(int n, int by) { return (n + by - 1) / by; }

__device__ inline int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline float warp_sum(float value) {  // in lane 0
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(kAll, value, offset);
  return value;
}

#define IDIOM(name)                                                                                                 \
  template <bool kBug>                                                                                              \
  static void name(const Call& call);                                                                               \
  static void name##_operator(std::vector<torch::stable::Tensor> tensors, std::vector<int64_t> numbers, bool bug) { \
    bug ? name<true>({tensors, numbers}) : name<false>({tensors, numbers});                                         \
    EXPECT_SUCCESS(cudaGetLastError());                                                                             \
  }                                                                                                                 \
  OPERATOR(name, name##_operator, "(Tensor[] tensors, int[] numbers, bool bug) -> ()")                              \
  template <bool kBug>                                                                                              \
  static void name(const Call& call)

// An idiom whose launcher runs name##_kernel<kBug> with the configuration.
#define IDIOM_OF(name, ...) \
  IDIOM(name) { RUN(name##_kernel<kBug>, __VA_ARGS__); }
