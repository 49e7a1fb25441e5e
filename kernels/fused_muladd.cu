// fused_muladd.cu: out = a * b + c in one pass, and its gradients, for float64,
// float32, float16 and bfloat16.
//
// With s bytes per element: PyTorch's a * b + c runs two kernels, which read a and b,
// write the product, read it and c, and write the sum, 6s in all. One kernel reads a,
// b, c and writes out: 4s. Backward, grad_a = grad * b and grad_b = grad * a, moves 6s
// in two kernels and 5s in one that reads grad once. grad_c is grad itself: nothing
// moves. Memory bandwidth limits both.
//
//   fused_muladd            a, b, c -> out
//   fused_muladd_backward   grad, a, b -> grad_a, grad_b
//
// It is fused in a second sense too: fma() rounds once, a product and a sum round
// twice. Halves are computed in float.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <tuple>

#include "floating.h"
#include "vector.h"

using ladder::Wide;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block
// Bytes that a thread takes from each input at once. With three inputs 8 keep enough
// bytes in flight; on an H200, 16 were slightly slower in all four dtypes.
constexpr int kBytes = 8;

template <typename T>
using Vector = ladder::Vector<T, kBytes>;

// -------------------------------------------------------------------------------------
// Kernels. Each array has n elements of type T. The first `vectors` threads take kBytes
// from each, for which the pointers must be multiples of kBytes; the next threads take
// the elements that are left, one each.

template <typename T>
__device__ T muladd(T a, T b, T c) {
  return T(fma(Wide<T>(a), Wide<T>(b), Wide<T>(c)));
}

template <typename T>
__global__ void fused_muladd_kernel(const T* __restrict__ a, const T* __restrict__ b,
                                    const T* __restrict__ c, T* __restrict__ out,
                                    int64_t n, int64_t vectors) {
  constexpr int size = Vector<T>::size;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < vectors) {
    Vector<T> x = Vector<T>::load(a, i), y = Vector<T>::load(b, i),
              z = Vector<T>::load(c, i);
    for (int k = 0; k < size; ++k) z.at[k] = muladd(x.at[k], y.at[k], z.at[k]);
    z.store(out, i);
    return;
  }
  int64_t j = size * vectors + (i - vectors);
  if (j < n) {
    out[j] = muladd(a[j], b[j], c[j]);
  }
}

template <typename T>
__device__ T product(T x, T y) {
  return T(Wide<T>(x) * Wide<T>(y));
}

template <typename T>
__global__ void fused_muladd_backward_kernel(
    const T* __restrict__ grad, const T* __restrict__ a, const T* __restrict__ b,
    T* __restrict__ grad_a, T* __restrict__ grad_b, int64_t n, int64_t vectors) {
  constexpr int size = Vector<T>::size;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < vectors) {
    Vector<T> g = Vector<T>::load(grad, i), x = Vector<T>::load(a, i),
              y = Vector<T>::load(b, i);
    for (int k = 0; k < size; ++k) {
      T old_x = x.at[k];
      x.at[k] = product(g.at[k], y.at[k]);
      y.at[k] = product(g.at[k], old_x);
    }
    x.store(grad_a, i);
    y.store(grad_b, i);
    return;
  }
  int64_t j = size * vectors + (i - vectors);
  if (j < n) {
    grad_a[j] = product(grad[j], b[j]);
    grad_b[j] = product(grad[j], a[j]);
  }
}

// -------------------------------------------------------------------------------------
// Launchers

// Three inputs of one shape, one device and one floating dtype.
void check_three(const Tensor& x, const char* name_x, const Tensor& y,
                 const char* name_y, const Tensor& z, const char* name_z) {
  ScalarType dtype = ladder::check_floating_input(x, name_x);
  ladder::check_input(y, name_y, dtype);
  ladder::check_input(z, name_z, dtype);
  ladder::check_same(x, name_x, y, name_y);
  ladder::check_same(x, name_x, z, name_z);
}

// How many threads take a vector, and how many blocks these and the elements that are
// left need.
struct Shape {
  int64_t vectors, blocks;
};

template <typename T, typename... Pointers>
Shape shape_for(int64_t n, Pointers... pointers) {
  constexpr int size = Vector<T>::size;
  int64_t vectors = ladder::all_aligned_to(kBytes, pointers...) ? n / size : 0;
  return {vectors, ladder::ceil_div(vectors + n - size * vectors, kThreads)};
}

template <typename T>
void launch(const Tensor& a, const Tensor& b, const Tensor& c, Tensor& out) {
  const T *pa = a.const_data_ptr<T>(), *pb = b.const_data_ptr<T>(),
          *pc = c.const_data_ptr<T>();
  T* po = out.mutable_data_ptr<T>();
  Shape shape = shape_for<T>(a.numel(), pa, pb, pc, po);
  fused_muladd_kernel<<<shape.blocks, kThreads, 0, ladder::current_stream(a)>>>(
      pa, pb, pc, po, a.numel(), shape.vectors);
}

template <typename T>
void launch_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                     Tensor& grad_a, Tensor& grad_b) {
  const T *pg = grad.const_data_ptr<T>(), *pa = a.const_data_ptr<T>(),
          *pb = b.const_data_ptr<T>();
  T *pga = grad_a.mutable_data_ptr<T>(), *pgb = grad_b.mutable_data_ptr<T>();
  Shape shape = shape_for<T>(a.numel(), pg, pa, pb, pga, pgb);
  fused_muladd_backward_kernel<<<shape.blocks, kThreads, 0,
                                 ladder::current_stream(a)>>>(pg, pa, pb, pga, pgb,
                                                              a.numel(), shape.vectors);
}

Tensor fused_muladd(const Tensor& a, const Tensor& b, const Tensor& c) {
  check_three(a, "a", b, "b", c, "c");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;  // a grid of 0 blocks is an error
  FOR_FLOATING_DTYPE(a.scalar_type(), [&] { launch<scalar_t>(a, b, c, out); });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

std::tuple<Tensor, Tensor> fused_muladd_backward(const Tensor& grad, const Tensor& a,
                                                 const Tensor& b) {
  check_three(grad, "grad", a, "a", b, "b");
  auto guard = ladder::on_device_of(a);
  Tensor grad_a = torch::stable::empty_like(a);
  Tensor grad_b = torch::stable::empty_like(b);
  if (a.numel() == 0) return {grad_a, grad_b};
  FOR_FLOATING_DTYPE(a.scalar_type(),
                     [&] { launch_backward<scalar_t>(grad, a, b, grad_a, grad_b); });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_a, grad_b};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.fused_muladd(a, b, c), for CUDA tensors

// region registration
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fused_muladd(Tensor a, Tensor b, Tensor c) -> Tensor");
  m.def("fused_muladd_backward(Tensor grad, Tensor a, Tensor b) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fused_muladd", TORCH_BOX(&fused_muladd));
  m.impl("fused_muladd_backward", TORCH_BOX(&fused_muladd_backward));
}
// endregion
