// arrays.h: what is behind a cudaArray_t.
#pragma once

#include <memory>

#include "api/copies.h"

namespace simt {

struct Array {  // texture objects keep its address: reading one after cudaFreeArray faults
  cudaChannelFormatDesc format;
  cudaExtent extent;  // elements; a height or depth of 0: the array has fewer dimensions
  unsigned flags;
  char* data;
  size_t element_bytes;
  int device;

  size_t height() const { return extent.height ? extent.height : 1; }
  size_t depth() const { return extent.depth ? extent.depth : 1; }
  size_t pitch() const { return extent.width * element_bytes; }
  size_t slice() const { return pitch() * height(); }
  bool layered() const { return (flags & cudaArrayLayered) != 0; }
  unsigned dimensions() const { return layered() || !extent.depth ? 1 + (extent.height != 0) : 3; }
  ~Array();
};

constexpr int kLargestArray = 131072;  // elements along one dimension
constexpr int kMostLayers = 2048;

// Bytes of an element of this format: 1, 2 or 4 components of 8, 16 or 32 bits each; 0 if there is no such format.
size_t element_bytes(const cudaChannelFormatDesc& format);

cudaError_t copy_3d(const cudaMemcpy3DParms& copy);

std::shared_ptr<Array> find_array(cudaArray_const_t handle);  // null if there is none
void forget_arrays(int device);                               // cudaDeviceReset, before it frees all memory

}  // namespace simt
