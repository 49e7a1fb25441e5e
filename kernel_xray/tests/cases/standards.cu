// standards.cu: built as C++17 and again as C++20; without PyTorch's headers, which demand a particular standard.
#include <cuda_runtime.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace course::kernels {  // C++17: nested namespaces

template <typename T>
inline constexpr bool is_small = sizeof(T) <= 4;

// C++17: if constexpr, fold expressions, auto template parameters, structured bindings, class template deduction.
template <auto kFactor, typename... Ts>
__device__ auto scaled_sum(Ts... values) {
  if constexpr ((is_small<Ts> && ...))
    return kFactor * (values + ...);
  else
    return -(values + ...);
}

struct Range {
  int first, last;
};

__global__ void seventeen_kernel(int* out) {
  const auto [first, last] = Range{3, 9};
  out[0] = scaled_sum<10>(1, 2, 3);
  out[1] = int(scaled_sum<10>(1.5, 2.5));
  out[2] = last - first;
  if (int square = last * last; square > 80) out[3] = square;
  constexpr auto triple = [](int v) constexpr { return 3 * v; };
  static_assert(triple(2) == 6);
  out[4] = triple(first);
}

#if __cplusplus >= 202002L
// C++20: concepts, constrained kernels, abbreviated templates, lambdas with template parameters, designated
// initialisers, consteval, requires-expressions.
template <typename T>
concept Number = std::is_arithmetic_v<T>;

consteval int cube(int v) { return v * v * v; }

__device__ auto twice(Number auto v) { return v + v; }

template <Number T>
__global__ void twenty_kernel(T* out) {
  constexpr Range range{.first = 4, .last = cube(2)};
  const auto pick = []<typename U>(U a, U b) { return a < b ? a : b; };
  out[0] = T(range.first);
  out[1] = T(range.last);
  out[2] = pick(T(7), T(6));
  out[3] = twice(T(21));
  out[4] = T(requires { twice(T(1)); });
}
#endif

}  // namespace course::kernels

// Returns the standard that it was compiled for (17 or 20), 0 if a launch failed.
extern "C" __attribute__((visibility("default"))) int run_standards(int* out) {
  using namespace course::kernels;
  int standard = 17;
  std::array<int, 10> host{};
  int* device = nullptr;
  if (cudaMalloc(&device, sizeof(host)) != cudaSuccess) return 0;
  if (cudaMemset(device, 0, sizeof(host)) != cudaSuccess) return 0;
  seventeen_kernel<<<1, 1>>>(device);
#if __cplusplus >= 202002L
  standard = 20;
  twenty_kernel<int><<<1, 1>>>(device + 5);
#endif
  if (cudaMemcpy(host.data(), device, sizeof(host), cudaMemcpyDeviceToHost) != cudaSuccess) return 0;
  if (cudaFree(device) != cudaSuccess) return 0;
  std::optional<int> sum;
  for (size_t i = 0; i < host.size(); ++i) out[i] = host[i];
  return sum.value_or(standard);
}
