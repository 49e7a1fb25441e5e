// Seed document 002, as printed, repairs marked: naive matrix product, with both of its bindings.
// clang-format off
// matmul.cu
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>   // C10_CUDA_KERNEL_LAUNCH_CHECK

template <typename scalar_t>
__global__ void matmul_kernel(const scalar_t* A, const scalar_t* B, scalar_t* C,
                              int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        scalar_t sum = 0;
        for (int k = 0; k < K; ++k)
            sum += A[row * K + k] * B[k * N + col];   // row-major, contiguous
        C[row * N + col] = sum;
    }
}

torch::Tensor matmul_cuda(torch::Tensor A, torch::Tensor B) {
    TORCH_CHECK(A.is_cuda() && B.is_cuda(), "inputs must be CUDA tensors");
    TORCH_CHECK(A.dim() == 2 && B.dim() == 2, "inputs must be 2D");
    TORCH_CHECK(A.size(1) == B.size(0), "inner dimensions must match");
    A = A.contiguous();                 // the naive kernel assumes row-major contiguity
    B = B.contiguous();
    const int M = A.size(0), K = A.size(1), N = B.size(1);
    auto C = torch::zeros({M, N}, A.options());

    const dim3 threads(16, 16);
    const dim3 blocks((N + threads.x - 1) / threads.x,
                      (M + threads.y - 1) / threads.y);
    AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "matmul_cuda", ([&] {
        matmul_kernel<scalar_t><<<blocks, threads>>>(
            A.data_ptr<scalar_t>(), B.data_ptr<scalar_t>(), C.data_ptr<scalar_t>(),
            M, N, K);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();     // kernel launch errors are asynchronous; check now
    return C;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("matmul", &matmul_cuda, "Naive matrix multiply (CUDA)");
}

// The alternative to PYBIND11_MODULE that the document gives, in the same file so that it compiles once.
TORCH_LIBRARY(naive, m) {
    m.def("matmul(Tensor a, Tensor b) -> Tensor");
}
TORCH_LIBRARY_IMPL(naive, CUDA, m) {
    m.impl("matmul", &matmul_cuda);
}
