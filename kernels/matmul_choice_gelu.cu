// matmul_choice_gelu.cu: gelu(a @ b + bias) in bfloat16 for a caller: matmul_choice
// with the epilogue of matmul_cluster_gelu. A file of its own: each form is compiled
// anew.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#define LADDER_NO_CHOICE_OPERATOR
#include "matmul/13_choice.cu"

Tensor matmul_choice_gelu(const Tensor& a, const Tensor& b, const Tensor& bias) {
  const bfloat16* data = hopper::check_bias(a, b, bias);
  return product(a, b, BiasGelu<false>{data, int(bias.size(0))});
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.matmul_choice_gelu(a, b, bias), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_choice_gelu(Tensor a, Tensor b, Tensor bias) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_choice_gelu", TORCH_BOX(&matmul_choice_gelu));
}
