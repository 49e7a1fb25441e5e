// Adds bias after GELU.
// expect: m = 1, n = 1, k = 1: .*wrong
template <typename T>
struct BiasGelu {
  const T* bias;  // n numbers

  template <int rows, int columns>
  __device__ void apply(float (&sum)[rows][columns][4], int column, int n) const {
#pragma unroll
    for (int s = 0; s < columns; ++s) {
      int at = column + 8 * s;
      float bias0 = at < n ? ladder::widened(bias[at]) : 0, bias1 = at + 1 < n ? ladder::widened(bias[at + 1]) : 0;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          sum[r][s][2 * i] = gelu_tanh(sum[r][s][2 * i]) + bias0;
          sum[r][s][2 * i + 1] = gelu_tanh(sum[r][s][2 * i + 1]) + bias1;
        }
      }
    }
  }
};
