// floating.h: for kernels that are templates over the floating dtypes: the dtypes, how
// a launcher calls the right instance, and the type to compute in.
#pragma once

#include <torch/headeronly/core/Dispatch.h>

#include <type_traits>

#include "launch.h"

// clang-format off
// region dispatch
// Calls the lambda that is the second argument, with scalar_t as the C++ type of a
// tensor of this dtype.
#define FOR_FLOATING_DTYPE(dtype, ...)                            \
  THO_DISPATCH_SWITCH(dtype, "a kernel for floating dtypes",      \
    THO_DISPATCH_CASE(ladder::ScalarType::Double, __VA_ARGS__)    \
    THO_DISPATCH_CASE(ladder::ScalarType::Float, __VA_ARGS__)     \
    THO_DISPATCH_CASE(ladder::ScalarType::Half, __VA_ARGS__)      \
    THO_DISPATCH_CASE(ladder::ScalarType::BFloat16, __VA_ARGS__))
// endregion

// -DLADDER_ONLY=Float builds the instances of one dtype and refuses the others: enough
// for an X-ray, in half the time.
#ifdef LADDER_ONLY
#undef FOR_FLOATING_DTYPE
#define FOR_FLOATING_DTYPE(dtype, ...)                              \
  THO_DISPATCH_SWITCH(dtype, "a kernel that was built for one dtype", \
    THO_DISPATCH_CASE(ladder::ScalarType::LADDER_ONLY, __VA_ARGS__))
#endif
// clang-format on

namespace ladder {

constexpr unsigned kAll = 0xffffffffu;  // every lane of a warp

// The type to compute in: T itself, but float for the 16-bit types.
template <typename T>
using Wide = std::conditional_t<(sizeof(T) < 4), float, T>;

// Like check_input, for any of these dtypes. Returns the tensor's dtype.
inline ScalarType check_floating_input(const Tensor& t, const char* name,
                                       bool strided = false) {
  ScalarType dtype = t.scalar_type();
  STD_TORCH_CHECK(dtype == ScalarType::Double || dtype == ScalarType::Float ||
                      dtype == ScalarType::Half || dtype == ScalarType::BFloat16,
                  name, " must be float64, float32, float16 or bfloat16, got ",
                  dtype_name(dtype), "; convert it with ", name, ".float()");
  check_input(t, name, dtype, strided);
  return dtype;
}

}  // namespace ladder
