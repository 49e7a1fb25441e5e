// textures.h: what kernels read and write through texture and surface objects (runtime_textures.h creates them).
//
// The model is that of the appendix on texture fetching of CUDA's programming guide: coordinates are normalised or in
// elements, elements lie at i + 0.5, and linear filtering weighs the neighbours with fractions of 8 bits. Mipmaps are
// not simulated: functions with a level or gradients read the only level there is.
//
// Components that a texture does not have read as 0, as on an H200.
//
// Deviations from CUDA: there is no texture cache, so a read sees what this kernel has written; what CUDA leaves
// undefined (an object that was destroyed, a type that is not the texture's, coordinates of more or fewer dimensions)
// is a fault. The X-ray neither counts nor checks these accesses: they do not pass through the load/store unit.
#pragma once

#include "core.h"
#include "runtime_textures.h"
#include "vector_types.h"

namespace simt {

struct Texel {  // 4 components, as 32-bit numbers of the texture's kind
  union {
    float f[4];
    int32_t i[4];
  };
};

struct Fetch {  // what a kernel asks for
  cudaTextureObject_t texture;
  unsigned dimensions;  // 0: an element of linear memory, by its index
  bool layered;
  bool floating;  // the components of the result
};

SIMT_API void fetch_texel(const Fetch& fetch, float x, float y, float z, int layer, Texel& texel);
SIMT_API void fetch_element(const Fetch& fetch, int index, Texel& texel);
SIMT_API void gather_texels(const Fetch& fetch, float x, float y, int component, Texel& texel);

struct SurfaceAccess {
  cudaSurfaceObject_t surface;
  unsigned dimensions;
  bool layered;
  int x, y, z, layer;  // x in bytes
  cudaSurfaceBoundaryMode mode;
};
SIMT_API void read_surface(const SurfaceAccess& access, void* value, size_t bytes);
SIMT_API void write_surface(const SurfaceAccess& access, const void* value, size_t bytes);

namespace detail {

template <typename T>
Fetch fetch_of(cudaTextureObject_t texture, unsigned dimensions, bool layered = false) {
  return {texture, dimensions, layered, std::is_floating_point_v<typename Components<T>::Scalar>};
}

template <typename Scalar>
Scalar component(const Texel& texel, unsigned i) {
  if constexpr (std::is_floating_point_v<Scalar>)
    return texel.f[i];
  else
    return static_cast<Scalar>(texel.i[i]);
}

template <typename T>
T texel_as(const Texel& texel) {
  using Of = Components<T>;
  using Scalar = typename Of::Scalar;
  if constexpr (std::is_arithmetic_v<T>) {
    return component<T>(texel, 0);
  } else {
    T value{};
    value.x = component<Scalar>(texel, 0);
    if constexpr (Of::count > 1) value.y = component<Scalar>(texel, 1);
    if constexpr (Of::count > 2) value.z = component<Scalar>(texel, 2);
    if constexpr (Of::count > 3) value.w = component<Scalar>(texel, 3);
    return value;
  }
}

template <typename T>
T fetched(cudaTextureObject_t texture, unsigned dimensions, float x, float y = 0, float z = 0) {
  Texel texel;
  fetch_texel(fetch_of<T>(texture, dimensions), x, y, z, 0, texel);
  return texel_as<T>(texel);
}
template <typename T>
T fetched_layer(cudaTextureObject_t texture, unsigned dimensions, float x, float y, int layer) {
  Texel texel;
  fetch_texel(fetch_of<T>(texture, dimensions, true), x, y, 0, layer, texel);
  return texel_as<T>(texel);
}

template <typename T>
T surface_value(const SurfaceAccess& access) {
  T value;
  read_surface(access, &value, sizeof(T));
  return value;
}

}  // namespace detail
}  // namespace simt

// Each function has a second form that stores its result: tex2D(&value, texture, x, y).
#define SIMT_TEXTURE_FUNCTION(name, parameters, names, ...)             \
  template <typename T>                                                 \
  T name(cudaTextureObject_t texture, SIMT_LIST parameters) {           \
    return __VA_ARGS__;                                                 \
  }                                                                     \
  template <typename T>                                                 \
  void name(T* to, cudaTextureObject_t texture, SIMT_LIST parameters) { \
    *to = name<T>(texture, SIMT_LIST names);                            \
  }
#define SIMT_LIST(...) __VA_ARGS__

template <typename T>
T tex1Dfetch(cudaTextureObject_t texture, int index) {
  simt::Texel texel;
  simt::fetch_element(simt::detail::fetch_of<T>(texture, 0), index, texel);
  return simt::detail::texel_as<T>(texel);
}
template <typename T>
void tex1Dfetch(T* to, cudaTextureObject_t texture, int index) {
  *to = tex1Dfetch<T>(texture, index);
}
template <typename T>
T tex2Dgather(cudaTextureObject_t texture, float x, float y, int component = 0) {
  simt::Texel texel;
  simt::gather_texels(simt::detail::fetch_of<T>(texture, 2), x, y, component, texel);
  return simt::detail::texel_as<T>(texel);
}
template <typename T>
void tex2Dgather(T* to, cudaTextureObject_t texture, float x, float y, int component = 0) {
  *to = tex2Dgather<T>(texture, x, y, component);
}

SIMT_TEXTURE_FUNCTION(tex1D, (float x), (x), simt::detail::fetched<T>(texture, 1, x))
SIMT_TEXTURE_FUNCTION(tex2D, (float x, float y), (x, y), simt::detail::fetched<T>(texture, 2, x, y))
SIMT_TEXTURE_FUNCTION(tex3D, (float x, float y, float z), (x, y, z), simt::detail::fetched<T>(texture, 3, x, y, z))
SIMT_TEXTURE_FUNCTION(tex1DLayered, (float x, int layer), (x, layer),
                      simt::detail::fetched_layer<T>(texture, 1, x, 0, layer))
SIMT_TEXTURE_FUNCTION(tex2DLayered, (float x, float y, int layer), (x, y, layer),
                      simt::detail::fetched_layer<T>(texture, 2, x, y, layer))
SIMT_TEXTURE_FUNCTION(tex1DLod, (float x, float), (x, 0), tex1D<T>(texture, x))
SIMT_TEXTURE_FUNCTION(tex2DLod, (float x, float y, float), (x, y, 0), tex2D<T>(texture, x, y))
SIMT_TEXTURE_FUNCTION(tex3DLod, (float x, float y, float z, float), (x, y, z, 0), tex3D<T>(texture, x, y, z))
SIMT_TEXTURE_FUNCTION(tex1DGrad, (float x, float, float), (x, 0, 0), tex1D<T>(texture, x))
SIMT_TEXTURE_FUNCTION(tex2DGrad, (float x, float y, float2, float2), (x, y, {}, {}), tex2D<T>(texture, x, y))

#define SIMT_SURFACE_FUNCTIONS(dimensions, suffix, layered, parameters, places)                     \
  template <typename T>                                                                             \
  T surf##suffix##read(cudaSurfaceObject_t surface, SIMT_LIST parameters,                           \
                       cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                       \
    return simt::detail::surface_value<T>({surface, dimensions, layered, SIMT_LIST places, mode});  \
  }                                                                                                 \
  template <typename T>                                                                             \
  void surf##suffix##read(T* to, cudaSurfaceObject_t surface, SIMT_LIST parameters,                 \
                          cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                    \
    *to = simt::detail::surface_value<T>({surface, dimensions, layered, SIMT_LIST places, mode});   \
  }                                                                                                 \
  template <typename T>                                                                             \
  void surf##suffix##write(T value, cudaSurfaceObject_t surface, SIMT_LIST parameters,              \
                           cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                   \
    simt::write_surface({surface, dimensions, layered, SIMT_LIST places, mode}, &value, sizeof(T)); \
  }

SIMT_SURFACE_FUNCTIONS(1, 1D, false, (int x), (x, 0, 0, 0))
SIMT_SURFACE_FUNCTIONS(2, 2D, false, (int x, int y), (x, y, 0, 0))
SIMT_SURFACE_FUNCTIONS(3, 3D, false, (int x, int y, int z), (x, y, z, 0))
SIMT_SURFACE_FUNCTIONS(1, 1DLayered, true, (int x, int layer), (x, 0, 0, layer))
SIMT_SURFACE_FUNCTIONS(2, 2DLayered, true, (int x, int y, int layer), (x, y, 0, layer))

#undef SIMT_TEXTURE_FUNCTION
#undef SIMT_SURFACE_FUNCTIONS
#undef SIMT_LIST
