// idiom.h: turns each IDIOM of a .cu file into an operator `name(Tensor[] tensors, int[] numbers, bool bug) -> ()`.
//
// An idiom is a kernel in the form in which published code has it, with its launcher. Both are templates: with kBug
// false they are correct; with kBug true they are the twin, which differs in one place.
//
// PyTorch's stable ABI, so that a file of many kernels compiles in seconds.
#pragma once

#include <cuda_runtime.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {  // PyTorch's stable types are hidden, so types that hold them must be too

struct Call {
  std::vector<torch::stable::Tensor> tensors;
  std::vector<int64_t> numbers;

  template <typename T>
  T* data(size_t i) const {
    return static_cast<T*>(tensors.at(i).data_ptr());
  }
  float* floats(size_t i) const { return data<float>(i); }
  int* ints(size_t i) const { return data<int>(i); }
  int n(size_t i) const { return static_cast<int>(numbers.at(i)); }
  int size(size_t i) const { return static_cast<int>(tensors.at(i).numel()); }
};

}  // namespace

constexpr unsigned kAll = 0xffffffffu;  // the mask of all lanes

inline int ceil_div(int n, int by) { return (n + by - 1) / by; }

__device__ inline float warp_sum(float value) {  // in lane 0
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(kAll, value, offset);
  return value;
}

inline void expect_success(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

// The operators' namespace; each IDIOM adds a fragment to it.
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, library) {}

#define IDIOM(name)                                                                                                 \
  template <bool kBug>                                                                                              \
  static void name(const Call& call);                                                                               \
  static void name##_operator(std::vector<torch::stable::Tensor> tensors, std::vector<int64_t> numbers, bool bug) { \
    bug ? name<true>({tensors, numbers}) : name<false>({tensors, numbers});                                         \
    expect_success(cudaGetLastError());                                                                             \
  }                                                                                                                 \
  STABLE_TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, library) {                                                    \
    library.def(#name "(Tensor[] tensors, int[] numbers, bool bug) -> ()");                                         \
    library.impl(#name, TORCH_BOX(&name##_operator));                                                               \
  }                                                                                                                 \
  template <bool kBug>                                                                                              \
  static void name(const Call& call)
