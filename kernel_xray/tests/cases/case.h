// case.h: turns each CASE of a test's `.cu` file into an operator `name(Tensor[] tensors, int[] numbers) -> ()`.
//
// PyTorch's stable ABI, so that a file of many kernels compiles in about a second. A case reads and writes the
// memory of the tensors that the test passes, and the test compares what it finds there afterwards.
#pragma once

#include <cuda_runtime.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
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
  int size(size_t i) const { return static_cast<int>(tensors.at(i).numel()); }
  int64_t number(size_t i) const { return numbers.at(i); }
  int n(size_t i) const { return static_cast<int>(number(i)); }

  // Calls launch with the arguments of a kernel: the tensors in order for its pointers, the numbers for the others.
  template <typename... Parameters, typename Launch>
  void with_arguments_of(void (*)(Parameters...), Launch launch) const {
    size_t tensor = 0, number = 0;
    const auto next = [&](auto* parameter) {
      using Parameter = std::remove_pointer_t<decltype(parameter)>;
      if constexpr (std::is_pointer_v<Parameter>)
        return static_cast<Parameter>(tensors.at(tensor++).data_ptr());
      else
        return static_cast<Parameter>(numbers.at(number++));
    };
    const std::tuple<Parameters...> arguments{next(static_cast<Parameters*>(nullptr))...};  // braces: in this order
    std::apply(launch, arguments);
  }
};

// Calls body(T()) with the type T of that number in the list.
template <typename T, typename... Others, typename Body>
void with_type(int64_t number, Body body) {
  if (number == 0) return body(T());
  if constexpr (sizeof...(Others) > 0) return with_type<Others...>(number - 1, body);
  throw std::runtime_error("the case has no type of this number");
}

}  // namespace

// Writes the values one after the other, each converted to T.
template <typename T, typename... Values>
__device__ void store_all(T* out, Values... values) {
  ((*out++ = T(values)), ...);
}

// The address of something in shared memory, as inline PTX takes it.
inline __device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Raises the error that a call of the CUDA run-time returned, with its place.
inline void expect_success(cudaError_t code, const char* what, int line) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + " (line " + std::to_string(line) + "): " + cudaGetErrorName(code) +
                           ": " + cudaGetErrorString(code));
}
#define EXPECT_SUCCESS(call) expect_success((call), #call, __LINE__)

// Ends the case with an error unless the condition holds; for answers of the host API.
#define EXPECT(condition) \
  if (!(condition)) throw std::runtime_error("line " + std::to_string(__LINE__) + ": expected " #condition)

// The operators' namespace, and what adds a function to it: with its schema, or as a case.
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, library) {}
#define OPERATOR(name, function, schema)                         \
  STABLE_TORCH_LIBRARY_FRAGMENT(TORCH_EXTENSION_NAME, library) { \
    library.def(#name schema);                                   \
    library.impl(#name, TORCH_BOX(&function));                   \
  }

// Launches a kernel with the arguments that the case has for it; the rest is the launch's configuration.
#define RUN(kernel, ...) \
  call.with_arguments_of(kernel, [&](auto... arguments) { kernel<<<__VA_ARGS__>>>(arguments...); })

// A case that runs name##_kernel.
#define CASE_OF(name, ...) \
  CASE(name) { RUN(name##_kernel, __VA_ARGS__); }

#define CASE(name)                                                                                        \
  static void name(const Call& call);                                                                     \
  static void name##_operator(std::vector<torch::stable::Tensor> tensors, std::vector<int64_t> numbers) { \
    name(Call{tensors, numbers});                                                                         \
    EXPECT_SUCCESS(cudaGetLastError());                                                                   \
    EXPECT_SUCCESS(cudaDeviceSynchronize());                                                              \
  }                                                                                                       \
  OPERATOR(name, name##_operator, "(Tensor[] tensors, int[] numbers) -> ()")                              \
  static void name(const Call& call)
