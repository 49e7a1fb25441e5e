// matmul_choice_fp8.cu: scale_a * scale_b * (a @ b) with factors of 8 bits (e4m3), as
// matmul_fp8, for a caller: matmul_choice's model with forms for 8 bits. A step is 128
// along k and takes as long as 64 do in 16 bits: the bytes are the same, and wgmma
// multiplies twice as many in that time. The forms' constants are fitted as there, to
// 16,805 times of 975 random shapes on an H200. Fitted to half of the shapes, it ran
// the others at 1.02 times cuBLAS's speed (geometric mean).
//
// What limits it: products with few columns, whose a is read from the L2 cache in tiles
// of 64 to 128 rows, and the results of tiles of 64 columns, which are written in
// pieces of 16 bytes.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#define LADDER_NO_CHOICE_OPERATOR
#include "matmul/13_choice.cu"

using hopper::Scaled;

// As those for bfloat16, all persistent, each with its own `shared`.
template <>
constexpr Form<Scaled> kForms<Scaled>[15] = {
    persistent<Scaled, 256, 2>(0.526, 1.50, 3.70, 0.20),
    persistent<Scaled, 192, 2>(0.384, 1.36, 3.08, 0.27),
    swap<Scaled, 24, 64, 1, 1, 2>(0.074, 0.63, 1.79, 3.05),
    swap<Scaled, 96, 64, 1, 1, 2>(0.086, 0.80, 1.62, 7.30),
    swap<Scaled, 160, 128, 1, 2>(0.277, 1.32, 2.49, 0.54),
    swap<Scaled, 192, 128, 1, 2>(0.394, 1.55, 2.46, 0.26),
    swap<Scaled, 112, 128, 1, 2>(0.177, 1.02, 2.43, 0.89),
    swap<Scaled, 32, 64, 1, 4>(0.114, 0.33, 2.15, 0.41),
    swap<Scaled, 64, 64, 1, 4>(0.122, 1.21, 1.44, 0.34),
    swap<Scaled, 96, 64, 1, 4>(0.141, 0.85, 1.67, 0.32),
    swap<Scaled, 96, 128, 1, 4>(0.159, 0.82, 2.26, 0.74),
    swap<Scaled, 96, 64, 4, 1>(0.124, 0.62, 1.93, 0.76),
    swap<Scaled, 64, 128, 4, 1>(0.161, 1.12, 1.73, 0.30),
    swap<Scaled, 96, 128, 4, 1>(0.208, 0.86, 1.97, 0.32),
    swap<Scaled, 128, 128, 4, 1>(0.265, 1.02, 2.47, 0.29)};

Scaled scaled(const Tensor& a, const Tensor& scale_a, const Tensor& scale_b) {
  hopper::Scales scales = hopper::check_scales(a, scale_a, scale_b);
  return {{}, scales.a, scales.b};
}

Tensor matmul_choice_fp8(const Tensor& a, const Tensor& b, const Tensor& scale_a,
                         const Tensor& scale_b) {
  return product(a, b, scaled(a, scale_a, scale_b));
}

Tensor matmul_fp8_as(const Tensor& a, const Tensor& b, const Tensor& scale_a,
                     const Tensor& scale_b, int64_t form, int64_t whole,
                     int64_t parts) {
  return product_as(a, b, scaled(a, scale_a, scale_b), form, whole, parts);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_choice_fp8(a, b, scale_a,
// scale_b), for CUDA tensors; the others check the choice, as in matmul/13_choice.cu

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "matmul_choice_fp8(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b) -> "
      "Tensor");
  m.def("matmul_fp8_plan(Tensor a, Tensor b, int form=-1) -> (int, int, int, float)");
  m.def(
      "matmul_fp8_as(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, int form, int "
      "whole, int parts) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_choice_fp8", TORCH_BOX(&matmul_choice_fp8));
  m.impl("matmul_fp8_plan", TORCH_BOX(&plan_as<Scaled>));
  m.impl("matmul_fp8_as", TORCH_BOX(&matmul_fp8_as));
}
