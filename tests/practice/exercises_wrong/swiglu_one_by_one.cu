// Right, but reads the elements of a vector one by one.
// expect: float32, 5 rows, 64 columns: the result is right, but a thread is to move 16 bytes in one access
template <typename T, int bytes>
__global__ void swiglu_kernel(const T* x, T* out, int64_t rows, int64_t row_vectors) {
  constexpr int size = bytes / sizeof(T);
  int64_t columns = row_vectors * size, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t k = i * size; k < (i + 1) * size && k < rows * columns; ++k) {
    int64_t place = k / columns * 2 * columns + k % columns;
    float gate = float(x[place]);
    out[k] = T(gate / (1 + expf(-gate)) * float(x[place + columns]));
  }
}
