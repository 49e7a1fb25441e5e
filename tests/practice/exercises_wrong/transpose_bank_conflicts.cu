// A column of the tile lies in one bank.
// expect: 32 x 32: the result is right, but something is wasted: bank conflicts in line \d+, .*takes 32 wavefronts .*where 1 would do
__global__ void transpose_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  __shared__ float tile[kTile][kTile];
  int64_t row = int64_t(blockIdx.y) * kTile, column = int64_t(blockIdx.x) * kTile;
  int tx = threadIdx.x, ty = threadIdx.y;
  if (row + ty < rows && column + tx < columns) tile[ty][tx] = x[(row + ty) * columns + column + tx];
  __syncthreads();
  if (row + tx < rows && column + ty < columns) out[(column + ty) * rows + row + tx] = tile[tx][ty];
}
