// A thread reads what another one is to write, without waiting for it.
// expect: (?s)race: .*transpose_kernel
__global__ void transpose_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];
  int64_t row = int64_t(blockIdx.y) * kTile, column = int64_t(blockIdx.x) * kTile;
  int tx = threadIdx.x, ty = threadIdx.y;
  if (row + ty < rows && column + tx < columns) tile[ty][tx] = x[(row + ty) * columns + column + tx];
  if (row + tx < rows && column + ty < columns) out[(column + ty) * rows + row + tx] = tile[tx][ty];
}
