// matmul_choice_fp8.cu: scale_a * scale_b * (a @ b) with factors of 8 bits (e4m3), as
// matmul_fp8, for a caller: matmul_choice's model with forms for 8 bits. A step is 128
// along k and takes as long as 64 do in 16 bits: the bytes are the same, and wgmma
// multiplies twice as many in that time. The forms' constants are fitted as there, to
// 1,320 times of 88 shapes on an H200: over shapes that a fit had not seen, the form
// that it chose took 5% longer than the fastest (mean).
//
// What limits it: products with few columns, whose a is read from the L2 cache in tiles
// of 64 to 128 rows, and the results of tiles of 64 columns, which are written in
// pieces of 16 bytes.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#define LADDER_NO_CHOICE_OPERATOR
#include "matmul/13_choice.cu"

using hopper::Scaled;

// As those for bfloat16, all persistent.
template <>
constexpr Form<Scaled> kForms<Scaled>[15] = {
    persistent<Scaled, 256, 2>(0.382, 1.36, 3.70),
    persistent<Scaled, 192, 2>(0.339, 0.92, 3.55),
    swap<Scaled, 24, 128, 1, 1>(0.176, 1.22, 1.11),
    swap<Scaled, 48, 128, 1, 1>(0.184, 0.66, 1.86),
    swap<Scaled, 64, 64, 1, 1, 2>(0.195, 1.53, 0.91),
    swap<Scaled, 96, 64, 1, 1, 2>(0.264, 1.35, 0.95),
    swap<Scaled, 88, 128, 2, 1>(0.185, 0.88, 2.25),
    swap<Scaled, 160, 128, 1, 2>(0.291, 1.22, 2.59),
    swap<Scaled, 192, 128, 1, 2>(0.308, 1.38, 3.09),
    swap<Scaled, 136, 256, 2, 1>(0.407, 2.29, 3.08),
    swap<Scaled, 168, 256, 2, 1>(0.506, 2.91, 2.52),
    swap<Scaled, 96, 64, 1, 4>(0.110, 0.88, 1.70),
    swap<Scaled, 64, 64, 4, 1>(0.086, 1.38, 1.32),
    swap<Scaled, 96, 64, 4, 1>(0.136, 0.79, 1.80),
    swap<Scaled, 128, 64, 4, 1>(0.188, 1.46, 0.90)};

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
