// launch.h: what every launcher of this course needs: size arithmetic, input checks,
// the device and the stream.
//
// Each check throws std::runtime_error, in Python a RuntimeError. The message names the
// argument, what it was, and what to do about it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

namespace ladder {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// How many groups of `size` hold `n` elements; n >= 0, size > 0.
__host__ __device__ inline int64_t ceil_div(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// True if a 16-byte access at p is allowed: an address must be a multiple of the access
// size.
inline bool aligned_to_16(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

inline std::string shape_of(const Tensor& t) {
  std::string text = "[";
  for (int64_t i = 0; i < t.dim(); ++i)
    text += (i ? ", " : "") + std::to_string(t.size(i));
  return text + "]";
}

// A dtype as Python writes it.
inline const char* dtype_name(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float:
      return "float32";
    case ScalarType::Double:
      return "float64";
    case ScalarType::Half:
      return "float16";
    case ScalarType::BFloat16:
      return "bfloat16";
    case ScalarType::Float8_e4m3fn:
      return "float8_e4m3fn";
    case ScalarType::Int:
      return "int32";
    case ScalarType::Long:
      return "int64";
    default:
      return torch::headeronly::toString(dtype);
  }
}

// A kernel reads memory through a bare pointer and cannot see dtype, strides or device,
// so the launcher must check. strided: the kernel takes views.
inline void check_input(const Tensor& t, const char* name, ScalarType dtype,
                        bool strided = false) {
  STD_TORCH_CHECK(t.is_cuda(), name, " must be a CUDA tensor; move it with ", name,
                  ".cuda()");
  STD_TORCH_CHECK(t.scalar_type() == dtype, name, " must be ", dtype_name(dtype),
                  ", got ", dtype_name(t.scalar_type()), "; convert it with ", name,
                  ".to(torch.", dtype_name(dtype), ")");
  STD_TORCH_CHECK(strided || t.is_contiguous(), name,
                  " must be contiguous, but is a strided view of shape ", shape_of(t),
                  "; pass ", name, ".contiguous()");
}

inline bool same_shape(const Tensor& a, const Tensor& b) {
  auto of_a = a.sizes(), of_b = b.sizes();
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
}

inline void check_same_device(const Tensor& a, const char* name_a, const Tensor& b,
                              const char* name_b) {
  STD_TORCH_CHECK(a.get_device_index() == b.get_device_index(), name_a, " and ", name_b,
                  " must be on the same device, got cuda:", a.get_device_index(),
                  " and cuda:", b.get_device_index(), "; move one of them");
}

inline void check_same(const Tensor& a, const char* name_a, const Tensor& b,
                       const char* name_b) {
  STD_TORCH_CHECK(same_shape(a, b), name_a, " and ", name_b,
                  " must have the same shape, got ", shape_of(a), " and ", shape_of(b),
                  "; expand the smaller one first");
  check_same_device(a, name_a, b, name_b);
}

// Makes the tensor's device current until the end of the scope: a launch goes to the
// current device.
inline torch::stable::accelerator::DeviceGuard on_device_of(const Tensor& t) {
  return torch::stable::accelerator::DeviceGuard(t.get_device_index());
}

// An attribute of the current device.
inline int device_attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  STD_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

// PyTorch's current stream for this tensor's device, which `with torch.cuda.stream(s):`
// sets. A kernel launched there runs after the work that made its inputs and before the
// work that reads its output.
inline cudaStream_t current_stream(const Tensor& t) {
  void* stream = nullptr;
  STD_TORCH_CHECK(
      aoti_torch_get_current_cuda_stream(t.get_device_index(), &stream) == 0,
      "PyTorch has no current stream for cuda:", t.get_device_index());
  return static_cast<cudaStream_t>(stream);
}

// What ask() returns, which must depend on the device alone: each lambda is asked once
// on each device.
template <typename Ask>
int once_per_device(Ask ask) {
  static std::mutex one_at_a_time;
  static std::map<int, int> answers;
  int device = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  std::lock_guard<std::mutex> lock(one_at_a_time);
  auto known = answers.find(device);
  return known == answers.end() ? answers[device] = ask() : known->second;
}

// How many SMs the current device has.
inline int sms() { return device_attribute(cudaDevAttrMultiProcessorCount); }

}  // namespace ladder
