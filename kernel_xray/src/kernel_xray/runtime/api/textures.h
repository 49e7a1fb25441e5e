// textures.h: what is behind a texture or surface object.
#pragma once

#include "api/arrays.h"

namespace simt {

struct Texture {
  unsigned long long object;  // its handle: a slot of the table in the lower bits, and a number that is never reused
  bool surface;
  int device;  // the one that was current when it was made
  cudaResourceDesc resource;
  cudaTextureDesc how;
  cudaChannelFormatDesc format;
  const char* data;
  unsigned dimensions;  // of the coordinates; 0: linear memory, which has an index
  bool layered;
  unsigned components;
  size_t element_bytes, pitch, slice;
  long long size[3];  // elements
  long long layers;
  bool floating;  // what kernels read: floats, or integers
};

// The texture or surface of this handle; null if there is none.
const Texture* find_texture(unsigned long long object);
void forget_textures(int device);  // cudaDeviceReset

}  // namespace simt
