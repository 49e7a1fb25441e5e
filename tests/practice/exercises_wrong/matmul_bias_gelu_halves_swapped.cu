// Takes the four numbers of a lane for two columns of two rows: they are two rows of two columns.
// expect: elements are wrong
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
          float first = gelu_tanh(sum[r][s][i] + bias0), second = gelu_tanh(sum[r][s][i + 2] + bias1);
          sum[r][s][i] = first, sum[r][s][i + 2] = second;
        }
      }
    }
  }
};
