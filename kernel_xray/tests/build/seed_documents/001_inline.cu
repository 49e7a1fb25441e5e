// Seed document 001, as printed, repairs marked: the sources given to load_inline, the 2-D kernel and the dispatch.
// clang-format off
__global__ void scale_kernel(float* x, float scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= scale;
}

// completed: the document stops at "bind and load..." and declares this function only.
void scale_cuda(torch::Tensor x, float scale) {
    const int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), scale, n);
}

__global__ void matrix_kernel(float* data, int M, int N) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        int idx = row * N + col;  // row-major linear index
        data[idx] = 100.0f * row + col;  // completed: a comment stood for the computation
    }
}

// completed: a function around the document's launch
void matrix_cuda(torch::Tensor x) {
    const int M = x.size(0), N = x.size(1);
    float* data = x.data_ptr<float>();
    // Launch with 2D grid and block
    dim3 threads(16, 16);  // 256 threads per block
    dim3 blocks((N + 15) / 16, (M + 15) / 16);
    matrix_kernel<<<blocks, threads>>>(data, M, N);
}

// repaired: the kernel template stood behind the function that launches it.
template <typename scalar_t>
__global__ void my_kernel(
    const scalar_t* input,
    scalar_t* output,
    int n
) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i] * input[i] + scalar_t(1);  // completed: a comment stood for the operation
}

torch::Tensor my_op_cuda(torch::Tensor input) {
    auto output = torch::empty_like(input);
    int n = input.numel();
    const int threads = 256;
    const int blocks = (n + threads - 1) / threads;

    AT_DISPATCH_FLOATING_TYPES_AND_HALF(
        input.scalar_type(), "my_op_cuda",
        [&]() {
            my_kernel<<<blocks, threads>>>(
                input.data_ptr<scalar_t>(),
                output.data_ptr<scalar_t>(),
                n
            );
        }
    );
    return output;
}

// completed: the form that the document names for bfloat16
torch::Tensor my_op_bfloat16_cuda(torch::Tensor input) {
    auto output = torch::empty_like(input);
    int n = input.numel();
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::ScalarType::Half, at::ScalarType::BFloat16, input.scalar_type(), "my_op_bfloat16_cuda",
        [&]() {
            my_kernel<<<(n + 255) / 256, 256>>>(input.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), n);
        }
    );
    return output;
}
