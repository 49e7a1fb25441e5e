// The last tile reads past the end of bias.
// expect: n = 1, k = 1: .*out-of-bounds: reads 2 bytes.* past the end of bias
template <typename T>
struct BiasGelu {
  const T* bias;  // n numbers

  template <int rows, int columns>
  __device__ void apply(float (&sum)[rows][columns][4], int column, int n) const {
#pragma unroll
    for (int s = 0; s < columns; ++s) {
      int at = column + 8 * s;
      float bias0 = ladder::widened(bias[at]), bias1 = ladder::widened(bias[at + 1]);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          sum[r][s][2 * i] = gelu_tanh(sum[r][s][2 * i] + bias0);
          sum[r][s][2 * i + 1] = gelu_tanh(sum[r][s][2 * i + 1] + bias1);
        }
      }
    }
  }
};
