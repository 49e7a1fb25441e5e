// The values gate the gates.
// expect: float32, 1 rows, 1 columns: 1 of 1 elements are wrong
template <typename T, int bytes>
__global__ void swiglu_kernel(const T* x, T* out, int64_t rows, int64_t row_vectors) {
  using V = ladder::Vector<T, bytes>;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * row_vectors) return;
  int64_t place = i / row_vectors * 2 * row_vectors + i % row_vectors;
  V gates = V::load(x, place), values = V::load(x, place + row_vectors);
  for (int j = 0; j < V::size; ++j) {
    float gate = float(values.at[j]);
    values.at[j] = T(gate / (1 + expf(-gate)) * float(gates.at[j]));
  }
  values.store(out, i);
}
