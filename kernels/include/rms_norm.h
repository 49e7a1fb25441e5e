// rms_norm.h: what the kernels of rms_norm.cu and rms_norm_backward.cu share: the scale
// of a row, and halves as floats.
#pragma once

#include "floating.h"
#include "row.h"

namespace ladder {

constexpr int kBlocks = 16;  // of a cluster, at most
constexpr int kLong = 1024;  // threads that share a long row

__device__ inline float rms_scale(float mean_of_squares, float eps) {
  return rsqrtf(mean_of_squares + eps);
}
__device__ inline double rms_scale(double mean_of_squares, double eps) {
  return 1 / sqrt(mean_of_squares + eps);
}

// The elements of a vector that was loaded as one word.
template <typename T, typename Word, typename W, int size>
__device__ void widen(const Word& word, W (&wide)[size]) {
  if constexpr (std::is_same_v<T, torch::headeronly::BFloat16> && sizeof(word) == 16) {
    // A bfloat16 is the upper half of a float: an instruction for each, where nvcc
    // takes two for every other one.
    unsigned int pairs[4];
    memcpy(pairs, &word, 16);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      wide[j] =
          __uint_as_float(j % 2 ? pairs[j / 2] & 0xffff0000u : pairs[j / 2] << 16);
  } else {
    T elements[size];
    memcpy(elements, &word, sizeof(word));
    for (int j = 0; j < size; ++j) wide[j] = W(elements[j]);
  }
}

}  // namespace ladder
