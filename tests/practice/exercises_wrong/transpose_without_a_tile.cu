// Right, but the lanes of a warp write to 32 rows of out.
// expect: 32 x 32: the result is right, but something is wasted: a warp's lanes lie apart in line \d+, .*takes 32 sectors
__global__ void transpose_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  int64_t row = int64_t(blockIdx.y) * kTile + threadIdx.y, column = int64_t(blockIdx.x) * kTile + threadIdx.x;
  if (row < rows && column < columns) out[column * rows + row] = x[row * columns + column];
}
