// The last tile reads past the end of bias.
// expect: n = 1, k = 1: .*out-of-bounds: reads 2 bytes.* past the end of bias
template <typename T>
struct BiasGelu {
  const T* bias;  // n numbers

  template <bool wide, int rows, int columns>
  __device__ void store(T* y, const float (&sum)[rows][columns][4], int row, int column, int m, int n) const {
#pragma unroll
    for (int s = 0; s < columns; ++s) {
      int at = column + 8 * s;
      float bias0 = ladder::widened(bias[at]), bias1 = ladder::widened(bias[at + 1]);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float first = gelu_tanh(sum[r][s][2 * i] + bias0), second = gelu_tanh(sum[r][s][2 * i + 1] + bias1);
          store_pair<wide>(y, row + 16 * r + 8 * i, at, m, n, first, second);
        }
      }
    }
  }
};
