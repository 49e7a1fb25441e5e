// Goes down the columns: right for square images alone.
// expect: 8 x 32: .*race: a write to grey
__global__ void rgb_to_grey_kernel(const float* image, float* grey, int64_t height, int64_t width) {
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  int64_t i = row * height + column, plane = height * width;
  if (row >= height || column >= width) return;
  grey[i] = 0.299f * image[i] + 0.587f * image[i + plane] + 0.114f * image[i + 2 * plane];
}
