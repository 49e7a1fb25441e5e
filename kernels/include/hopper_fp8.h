// hopper_fp8.h: products of numbers of 8 bits, e4m3: 4 bits of exponent, 3 of fraction,
// up to 448, no infinity.
//
// An instruction multiplies 32 along k in the time that bfloat16 takes for 16: 32 bytes
// of a row, either way. Maps, barriers, descriptors and swizzles are those of hopper.h,
// which move and describe bytes. One thing is missing: 8-bit factors must both be
// K-major, so b is stored column by column, where bfloat16 may have it row by row (PTX
// ISA 9.0, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", read in November
// 2026).
//
// The sums are float32 registers, but the unit keeps fewer bits of them. It aligns the
// terms of an instruction, the sum so far among them, to the largest, and drops what
// lies more than 13 bits below its leading bit. NVIDIA does not document it: Zhang et
// al. measured it (SageAttention2, arXiv 2411.10958, November 2024), DeepSeek-V3's
// report says "around 14 bits" (arXiv 2412.19437, December 2024), and an H200 confirmed
// it here (November 2026).
#pragma once

#include "hopper.h"
#include "matmul.h"

namespace hopper {

// -------------------------------------------------------------------------------------
// The launcher

constexpr auto kFloat8 = torch::headeronly::ScalarType::Float8_e4m3fn;

// t: the factor with k contiguous.
inline void check_factor(const ladder::Tensor& t, const char* name, const char* layout,
                         const char* fix) {
  STD_TORCH_CHECK(t.is_cuda(), name, " must be a CUDA tensor; move it with ", name,
                  ".cuda()");
  STD_TORCH_CHECK(t.scalar_type() == kFloat8, name, " must be float8_e4m3fn, got ",
                  ladder::dtype_name(t.scalar_type()),
                  "; divide it by its scale and convert it with .to()");
  STD_TORCH_CHECK(t.is_contiguous(), name, " must be ", layout, "; pass ", name, fix);
  STD_TORCH_CHECK(t.size(1) % 16 == 0, name,
                  " must have whole 16 bytes along k: a multiple of 16, got ",
                  t.size(1), "; pad it with zeros");
  STD_TORCH_CHECK(ladder::aligned_to_16(t.const_data_ptr()), name,
                  " must begin at a multiple of 16 bytes; pass a copy");
}

inline const float* scale_of(const ladder::Tensor& scale, const char* name,
                             const ladder::Tensor& a) {
  ladder::check_input(scale, name, torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(scale.numel() == 1, name, " must have one element, got shape ",
                  ladder::shape_of(scale));
  STD_TORCH_CHECK(scale.get_device_index() == a.get_device_index(), name,
                  " must be on a's device, cuda:", a.get_device_index(),
                  ", got cuda:", scale.get_device_index());
  return scale.const_data_ptr<float>();
}

// The elements of the scales, for the epilogue.
struct Scales {
  const float *a, *b;
};

inline ladder::MatmulSizes check_factors(const ladder::Tensor& a,
                                         const ladder::Tensor& b) {
  STD_TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "a and b must be matrices, got shapes ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b));
  STD_TORCH_CHECK(a.size(1) == b.size(0),
                  "b must have as many rows as a has columns, got shapes ",
                  ladder::shape_of(a), " and ", ladder::shape_of(b),
                  "; is one of them transposed?");
  ladder::Tensor columns = torch::stable::transpose(b, 0, 1);
  check_factor(a, "a", "row-major", ".contiguous()");
  check_factor(columns, "b", "column-major, with k contiguous",
               ".t().contiguous().t()");
  ladder::check_same_device(a, "a", b, "b");
  STD_TORCH_CHECK(b.size(1) % 8 == 0,
                  "b must have a multiple of 8 columns, so that rows of the result "
                  "have whole 16 bytes,",
                  " got ", b.size(1), "; pad it with zeros");
  return {a.size(0), b.size(1), a.size(1) / 2};
}

inline Scales check_scales(const ladder::Tensor& a, const ladder::Tensor& scale_a,
                           const ladder::Tensor& scale_b) {
  return {scale_of(scale_a, "scale_a", a), scale_of(scale_b, "scale_b", a)};
}

// Checks a and b, makes c, and calls run(a, b, c, sizes, stream), where k counts pairs.
template <typename Run>
ladder::Tensor matmul_fp8(const ladder::Tensor& a, const ladder::Tensor& b, Run run) {
  auto size = check_factors(a, b);
  auto guard = ladder::on_device_of(a);
  ladder::Tensor c = torch::stable::new_empty(a, {size.m, size.n},
                                              torch::headeronly::ScalarType::BFloat16);
  if (size.m == 0 || size.n == 0) return c;
  if (size.k == 0) return torch::stable::zero_(c);  // the sum of no products
  run(a.const_data_ptr(), b.const_data_ptr(), c.mutable_data_ptr(), size,
      ladder::current_stream(a));
  return c;
}

}  // namespace hopper
