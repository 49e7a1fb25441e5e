// Seed document 001, as printed, repairs marked: fused multiply-add.
// clang-format off
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAException.h>  // repaired: C10_CUDA_CHECK is defined there

// The actual GPU kernel - one thread per element
__global__ void fused_muladd_kernel(
    const float* __restrict__ a,
    const float* __restrict__ b,
    const float* __restrict__ c,
    float* __restrict__ out,
    int n
) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) {
        out[idx] = a[idx] * b[idx] + c[idx];
    }
}

// C++ wrapper called from Python
torch::Tensor fused_muladd_cuda(
    torch::Tensor a,
    torch::Tensor b,
    torch::Tensor c
) {
    TORCH_CHECK(a.device().is_cuda(), "a must be on CUDA");
    TORCH_CHECK(a.sizes() == b.sizes() && a.sizes() == c.sizes(),
                "All inputs must have the same shape");
    TORCH_CHECK(a.scalar_type() == torch::kFloat32, "Only float32 supported");

    auto out = torch::empty_like(a);
    int n = a.numel();

    const int threads = 256;
    const int blocks = (n + threads - 1) / threads;

    fused_muladd_kernel<<<blocks, threads>>>(
        a.data_ptr<float>(),
        b.data_ptr<float>(),
        c.data_ptr<float>(),
        out.data_ptr<float>(),
        n
    );

    // Check for kernel launch errors
    C10_CUDA_CHECK(cudaGetLastError());
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("fused_muladd", &fused_muladd_cuda, "Fused multiply-add (CUDA)");
}
