// Seed document 004, as printed, repairs marked: fused bias and GELU, kernels and launchers (indentation restored).
// clang-format off
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>
// Device function: GELU approximation (tanh variant)
__device__ __forceinline__ float gelu_fwd(float x) {
    const float kSqrt2OverPi = 0.7978845608f;  // sqrt(2/pi)
    const float kCoeff = 0.044715f;
    float cube = x * x * x;
    float inner = kSqrt2OverPi * (x + kCoeff * cube);
    return 0.5f * x * (1.0f + tanhf(inner));
}
// Device function: GELU gradient
__device__ __forceinline__ float gelu_bwd(float x) {
    const float kSqrt2OverPi = 0.7978845608f;
    const float kCoeff = 0.044715f;
    float cube = x * x * x;
    float inner = kSqrt2OverPi * (x + kCoeff * cube);
    float tanh_inner = tanhf(inner);
    float sech2 = 1.0f - tanh_inner * tanh_inner;
    float inner_deriv = kSqrt2OverPi * (1.0f + 3.0f * kCoeff * x * x);
    return 0.5f * (1.0f + tanh_inner) + 0.5f * x * sech2 * inner_deriv;
}
// Forward kernel: y = GELU(x + bias)
__global__ void fused_bias_gelu_fwd_kernel(const float* __restrict__ input,
                                           const float* __restrict__ bias,
                                           float* __restrict__ output, int rows, int cols) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < rows * cols) {
        int col = idx % cols;
        float val = input[idx] + bias[col];
        output[idx] = gelu_fwd(val);
    }
}
// Backward kernel
__global__ void fused_bias_gelu_bwd_kernel(const float* __restrict__ grad_out,
                                           const float* __restrict__ input,
                                           const float* __restrict__ bias,
                                           float* __restrict__ grad_input, int rows, int cols) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < rows * cols) {
        int col = idx % cols;
        float val = input[idx] + bias[col];
        grad_input[idx] = grad_out[idx] * gelu_bwd(val);
    }
}
// C++ wrapper functions (called from Python)
torch::Tensor fused_bias_gelu_fwd_cuda(torch::Tensor input, torch::Tensor bias) {
    TORCH_CHECK(input.is_cuda(), "input must be on CUDA");
    TORCH_CHECK(bias.is_cuda(), "bias must be on CUDA");
    TORCH_CHECK(input.size(-1) == bias.size(0), "bias size mismatch");
    auto output = torch::empty_like(input);
    int rows = input.numel() / input.size(-1);
    int cols = input.size(-1);
    int total = rows * cols;
    const int threads = 256;
    const int blocks = (total + threads - 1) / threads;
    fused_bias_gelu_fwd_kernel<<<blocks, threads>>>(input.data_ptr<float>(), bias.data_ptr<float>(),
                                                    output.data_ptr<float>(), rows, cols);
    return output;
}
torch::Tensor fused_bias_gelu_bwd_cuda(torch::Tensor grad_out, torch::Tensor input,
                                       torch::Tensor bias) {
    auto grad_input = torch::empty_like(input);
    int rows = input.numel() / input.size(-1);
    int cols = input.size(-1);
    int total = rows * cols;
    const int threads = 256;
    const int blocks = (total + threads - 1) / threads;
    fused_bias_gelu_bwd_kernel<<<blocks, threads>>>(grad_out.data_ptr<float>(),
                                                    input.data_ptr<float>(), bias.data_ptr<float>(),
                                                    grad_input.data_ptr<float>(), rows, cols);
    return grad_input;
}

// ---------------------------------------------------------------------------------------------------------------
// The document's two exercises: its kernels as printed.

template <typename scalar_t>
__global__ void fused_bias_gelu_fwd_kernel(const scalar_t* __restrict__ input,
                                           const scalar_t* __restrict__ bias,
                                           scalar_t* __restrict__ output, int rows, int cols) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < rows * cols) {
        int col = idx % cols;
        float val = static_cast<float>(input[idx]) + static_cast<float>(bias[col]);
        output[idx] = static_cast<scalar_t>(gelu_fwd(val));
    }
}

// The basic kernel loads one float per thread. Optimize by loading
// 4 floats at once using float4:
__global__ void fused_bias_gelu_fwd_vec4(const float4* __restrict__ input,
                                         const float* __restrict__ bias,
                                         float4* __restrict__ output, int rows, int cols_div4) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < rows * cols_div4) {
        int col4 = (idx % cols_div4) * 4;
        float4 in = input[idx];
        float4 out;
        out.x = gelu_fwd(in.x + bias[col4 + 0]);
        out.y = gelu_fwd(in.y + bias[col4 + 1]);
        out.z = gelu_fwd(in.z + bias[col4 + 2]);
        out.w = gelu_fwd(in.w + bias[col4 + 3]);
        output[idx] = out;
    }
}

// completed: the document gives these two kernels' dispatch in a comment and leaves the launchers
// to the reader.
torch::Tensor fused_bias_gelu_fwd_typed(torch::Tensor input, torch::Tensor bias) {
    TORCH_CHECK(input.is_cuda() && bias.is_cuda(), "input and bias must be on CUDA");
    auto output = torch::empty_like(input);
    int cols = input.size(-1);
    int rows = input.numel() / cols;
    const int threads = 256;
    const int blocks = (rows * cols + threads - 1) / threads;
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(input.scalar_type(), "fused_gelu", [&] {
        fused_bias_gelu_fwd_kernel<scalar_t>
            <<<blocks, threads>>>(input.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(),
                                  output.data_ptr<scalar_t>(), rows, cols);
    });
    return output;
}

torch::Tensor fused_bias_gelu_fwd_float4(torch::Tensor input, torch::Tensor bias) {
    TORCH_CHECK(input.is_cuda() && bias.is_cuda(), "input and bias must be on CUDA");
    TORCH_CHECK(input.size(-1) % 4 == 0, "the last dimension must be a multiple of 4, got ",
                input.size(-1));
    auto output = torch::empty_like(input);
    int cols = input.size(-1);
    int rows = input.numel() / cols;
    const int threads = 256;
    const int blocks = (rows * cols / 4 + threads - 1) / threads;
    fused_bias_gelu_fwd_vec4<<<blocks, threads>>>(
        reinterpret_cast<const float4*>(input.data_ptr<float>()), bias.data_ptr<float>(),
        reinterpret_cast<float4*>(output.data_ptr<float>()), rows, cols / 4);
    return output;
}
