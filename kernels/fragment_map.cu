// fragment_map.cu: which lane of a warp holds which element of the factors and of the
// result of mma.sync. The instructions themselves are asked: ldmatrix reads matrices
// whose elements are their own numbers, and the product of two chosen matrices numbers
// the elements of the result.
//
// Results, for lane l: a[l][r][h] is the number, 16 * row + column, of the element in
// half h of register r; b[l][r][h] is 8 * row + column; c[l][i] is 8 * row + column of
// the float sum[i].
//
// Needs compute capability 8.0.

#include <torch/csrc/stable/library.h>
#include <tuple>

#include "launch.h"
#include "mma_sync.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
// Kernel, for one warp. The numbers are below 2,048, so a half holds each exactly.

__global__ void fragment_map_kernel(int* of_a, int* of_b, int* of_c) {
  __shared__ __align__(16) __half a[16][16], b[16][8];
  int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) a[i / 16][i % 16] = __int2half_rn(i);
  for (int i = lane; i < 128; i += 32) b[i / 8][i % 8] = __int2half_rn(i);
  __syncwarp();
  uint32_t registers_a[4], registers_b[4];
  ladder::load_matrices(registers_a, &a[lane % 16][lane / 16 * 8]);
  // Lanes 16 to 31 repeat the rows: two matrices are enough.
  ladder::load_transposed(registers_b, &b[lane % 16][0]);
  for (int i = 0; i < 8; ++i) {
    of_a[lane * 8 + i] =
        __half2int_rn(__ushort_as_half(registers_a[i / 2] >> i % 2 * 16 & 0xffff));
    if (i < 4)
      of_b[lane * 4 + i] =
          __half2int_rn(__ushort_as_half(registers_b[i / 2] >> i % 2 * 16 & 0xffff));
  }
  __syncwarp();
  // Row y of a is (8 y, 1, 0, ...), column x of b is (1, x, 0, ...): their product is 8
  // y + x.
  for (int i = lane; i < 256; i += 32)
    a[i / 16][i % 16] = __int2half_rn(i % 16 == 0 ? i / 16 * 8 : i % 16 == 1);
  for (int i = lane; i < 128; i += 32)
    b[i / 8][i % 8] = __int2half_rn(i / 8 == 0 ? 1 : i / 8 == 1 ? i % 8 : 0);
  __syncwarp();
  ladder::load_matrices(registers_a, &a[lane % 16][lane / 16 * 8]);
  ladder::load_transposed(registers_b, &b[lane % 16][0]);
  float sum[4] = {};
  ladder::multiply_add<__half>(sum, registers_a, registers_b[0], registers_b[1]);
  for (int i = 0; i < 4; ++i) of_c[lane * 4 + i] = int(sum[i]);
}

// -------------------------------------------------------------------------------------
// Launcher. a: 32 x 4 x 2, b: 32 x 2 x 2, c: 32 x 4 elements, int32, which it writes.

void fragment_map(Tensor a, Tensor b, Tensor c) {
  for (const auto& [t, name, size] :
       {std::tuple(&a, "a", 256), std::tuple(&b, "b", 128), std::tuple(&c, "c", 128)}) {
    ladder::check_input(*t, name, ScalarType::Int);
    STD_TORCH_CHECK(t->numel() == size, name, " must have ", size,
                    " elements, got shape ", ladder::shape_of(*t));
  }
  auto guard = ladder::on_device_of(a);
  fragment_map_kernel<<<1, 32, 0, ladder::current_stream(a)>>>(
      a.mutable_data_ptr<int>(), b.mutable_data_ptr<int>(), c.mutable_data_ptr<int>());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fragment_map(Tensor(a!) a, Tensor(b!) b, Tensor(c!) c) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fragment_map", TORCH_BOX(&fragment_map));
}
