// Takes the colours of a pixel to be neighbours.
// expect: 8 x 32: \d+ of 256 elements are wrong
__global__ void rgb_to_grey_kernel(const float* image, float* grey, int64_t height, int64_t width) {
  int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  int64_t i = row * width + column, plane = height * width;
  if (row >= height || column >= width) return;
  grey[i] = 0.299f * image[3 * i] + 0.587f * image[3 * i + 1] + 0.114f * image[3 * i + 2];
}
