// runtime_textures.h: CUDA arrays, texture objects and surface objects: types, creation and copies. Included by
// runtime_api.h. Kernels read them with the functions of textures.h.
//
// An array is a dense block of elements here, row after row; its memory counts in cudaMemGetInfo, and fresh elements
// hold 0xFF bytes. Sizes and offsets have CUDA's units: widths of arrays in elements, widths of copies in bytes, except
// that cudaMemcpy3D counts elements if an array takes part.
//
// Limits: no mipmaps, cube maps or views of resources; cudaCreateTextureObject refuses them with cudaErrorNotSupported.
// Texture references (texture<float> t; cudaBindTexture) left CUDA with version 12.
#pragma once

#include "runtime_types.h"

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3,
};

struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits of each component
  cudaChannelFormatKind f;
};

struct cudaArray;
struct cudaMipmappedArray;
using cudaArray_t = cudaArray*;
using cudaArray_const_t = const cudaArray*;
using cudaMipmappedArray_t = cudaMipmappedArray*;
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;

#define cudaArrayDefault 0x00
#define cudaArrayLayered 0x01
#define cudaArraySurfaceLoadStore 0x02
#define cudaArrayCubemap 0x04
#define cudaArrayTextureGather 0x08

enum cudaResourceType {
  cudaResourceTypeArray = 0,
  cudaResourceTypeMipmappedArray = 1,
  cudaResourceTypeLinear = 2,
  cudaResourceTypePitch2D = 3,
};

struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height;  // elements
      size_t pitchInBytes;
    } pitch2D;
  } res;
};

enum cudaTextureAddressMode {
  cudaAddressModeWrap = 0,
  cudaAddressModeClamp = 1,
  cudaAddressModeMirror = 2,
  cudaAddressModeBorder = 3,
};

enum cudaTextureFilterMode {
  cudaFilterModePoint = 0,
  cudaFilterModeLinear = 1,
};

enum cudaTextureReadMode {
  cudaReadModeElementType = 0,
  cudaReadModeNormalizedFloat = 1,
};

struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int seamlessCubemap;
};

struct cudaResourceViewDesc {
  int format;
  size_t width, height, depth;
  unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};

enum cudaSurfaceBoundaryMode {
  cudaBoundaryModeZero = 0,
  cudaBoundaryModeClamp = 1,
  cudaBoundaryModeTrap = 2,
};

struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  int srcDevice;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  int dstDevice;
  cudaExtent extent;
};

inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) { return {width, height, depth}; }
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t xsize, size_t ysize) {
  return {pointer, pitch, xsize, ysize};
}

// ---------------------------------------------------------------------------------------------------------------
// Formats

namespace simt::detail {

// The scalar type and the number of components of a type of elements: float4 has 4 floats.
template <typename T, typename = void>
struct Components {
  using Scalar = T;
  static constexpr unsigned count = 1;
};
template <typename T>
struct Components<T, std::void_t<decltype(T::x)>> {
  using Scalar = decltype(T::x);
  template <typename U>
  static constexpr auto has_y(int) -> decltype(U::y, true) {
    return true;
  }
  template <typename U>
  static constexpr bool has_y(...) {
    return false;
  }
  static constexpr unsigned count = has_y<T>(0) ? sizeof(T) / sizeof(Scalar) : 1;
};

}  // namespace simt::detail

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
template <typename T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Of = simt::detail::Components<T>;
  using Scalar = typename Of::Scalar;
  constexpr int bits = 8 * sizeof(Scalar);
  return {bits, Of::count > 1 ? bits : 0, Of::count > 2 ? bits : 0, Of::count > 3 ? bits : 0,
          std::is_floating_point_v<Scalar> ? cudaChannelFormatKindFloat
          : std::is_signed_v<Scalar>       ? cudaChannelFormatKindSigned
                                           : cudaChannelFormatKindUnsigned};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf() { return {16, 0, 0, 0, cudaChannelFormatKindFloat}; }
inline cudaChannelFormatDesc cudaCreateChannelDescHalf1() { return cudaCreateChannelDescHalf(); }
inline cudaChannelFormatDesc cudaCreateChannelDescHalf2() { return {16, 16, 0, 0, cudaChannelFormatKindFloat}; }
inline cudaChannelFormatDesc cudaCreateChannelDescHalf4() { return {16, 16, 16, 16, cudaChannelFormatKindFloat}; }

// ---------------------------------------------------------------------------------------------------------------
// Arrays

SIMT_API cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                                     size_t height = 0, unsigned flags = 0);
SIMT_API cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                                       unsigned flags = 0);
SIMT_API cudaError_t cudaFreeArray(cudaArray_t array);
SIMT_API cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                                      cudaArray_t array);
SIMT_API cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array);
SIMT_API cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent);
SIMT_API cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int byte, cudaExtent extent);
SIMT_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int byte, cudaExtent extent,
                                       cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy);
SIMT_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy);
SIMT_API cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream = nullptr);

// x offsets and widths in bytes, y offsets and heights in rows
SIMT_API cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t count,
                                       cudaMemcpyKind kind);
SIMT_API cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                         cudaMemcpyKind kind);
SIMT_API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                         size_t width, size_t height, cudaMemcpyKind kind);
SIMT_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                              size_t width, size_t height, cudaMemcpyKind kind,
                                              cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                           size_t width, size_t height, cudaMemcpyKind kind);
SIMT_API cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                                size_t width, size_t height, cudaMemcpyKind kind,
                                                cudaStream_t stream = nullptr);
SIMT_API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                              size_t from_x, size_t from_y, size_t width, size_t height,
                                              cudaMemcpyKind kind = cudaMemcpyDeviceToDevice);

// ---------------------------------------------------------------------------------------------------------------
// Texture and surface objects

SIMT_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                             const cudaTextureDesc* how, const cudaResourceViewDesc* view);
SIMT_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
SIMT_API cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture);
SIMT_API cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* how, cudaTextureObject_t texture);
SIMT_API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource);
SIMT_API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface);
SIMT_API cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface);
