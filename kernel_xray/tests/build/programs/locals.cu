// Sums with an accumulator that has no value at first, and with one that has.
#include <cstdio>

__global__ void sum(const float* x, int n, float* results) {
  float forgotten, right = 0;
  for (int i = 0; i < n; ++i) {
    forgotten += x[i];
    right += x[i];
  }
  results[0] = forgotten;
  results[1] = right;
}

int main() {
  const float host[4] = {1, 2, 3, 4};
  float *x, *results, sums[2];
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&results, sizeof sums);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  sum<<<1, 1>>>(x, 4, results);
  cudaMemcpy(sums, results, sizeof sums, cudaMemcpyDeviceToHost);
  std::printf("%g %g\n", sums[0], sums[1]);
}
