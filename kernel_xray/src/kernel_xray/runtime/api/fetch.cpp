// fetch.cpp: how kernels read textures, and read and write surfaces (textures.h in the include directory).
#include <cmath>
#include <cstring>

#include "../../include/simt/narrow_formats.h"
#include "../../include/simt/textures.h"
#include "api/devices.h"
#include "api/textures.h"

namespace simt {
namespace {

constexpr char kOtherDevice[] = "the kernel uses a texture or surface object of another device";

[[noreturn]] void wrong(const char* what) { fault("texture", what); }

const Texture& texture_of(const Fetch& fetch) {
  const Texture* found = find_texture(fetch.texture);
  if (!found || found->surface) wrong("the kernel reads a texture object that does not exist, or no longer");
  const Texture& t = *found;
  if (t.device != current_device()) wrong(kOtherDevice);
  if (t.dimensions != fetch.dimensions || t.layered != fetch.layered)
    wrong(t.dimensions == 0 ? "a texture of linear memory is read with tex1Dfetch only"
                            : "the kernel reads a texture with coordinates of other dimensions than the texture has");
  if (t.floating != fetch.floating)
    wrong(t.floating ? "the texture holds floating-point numbers (or is read as such), and the kernel reads integers"
                     : "the texture holds integers, and the kernel reads floating-point numbers; "
                       "cudaReadModeNormalizedFloat converts them");
  return t;
}

// ---------------------------------------------------------------------------------------------------------------
// One element

float linear_light(float c) { return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f); }

template <typename T>
void read_components(const Texture& t, const char* place, Texel& texel) {
  const bool as_fractions = t.how.readMode == cudaReadModeNormalizedFloat;
  for (unsigned i = 0; i < t.components; ++i) {
    T value;
    std::memcpy(&value, place + i * sizeof(T), sizeof(T));
    if constexpr (sizeof(T) < 4) {
      if (as_fractions) {
        constexpr float largest = (1u << (8 * sizeof(T) - std::is_signed_v<T>)) - 1;
        const float fraction = static_cast<float>(value) / largest;
        texel.f[i] = fraction < -1 ? -1 : t.how.sRGB && sizeof(T) == 1 && i < 3 ? linear_light(fraction) : fraction;
        continue;
      }
    }
    texel.i[i] = static_cast<int32_t>(value);
  }
}

void read_element(const Texture& t, const char* place, Texel& texel) {
  const int bits = t.format.x;
  if (t.format.f == cudaChannelFormatKindFloat) {
    if (bits == 32) {
      std::memcpy(texel.f, place, t.element_bytes);
    } else {
      read_components<uint16_t>(t, place, texel);
      for (unsigned i = 0; i < t.components; ++i) texel.f[i] = Binary16::decode(static_cast<uint16_t>(texel.i[i]));
    }
  } else if (t.format.f == cudaChannelFormatKindSigned) {
    if (bits == 8) read_components<int8_t>(t, place, texel);
    if (bits == 16) read_components<int16_t>(t, place, texel);
    if (bits == 32) read_components<int32_t>(t, place, texel);
  } else {
    if (bits == 8) read_components<uint8_t>(t, place, texel);
    if (bits == 16) read_components<uint16_t>(t, place, texel);
    if (bits == 32) read_components<uint32_t>(t, place, texel);
  }
}

// The index along a dimension after the address mode; -1: on the border. As in CUDA, coordinates wrap and are mirrored
// only if they are normalised.
long long address(const Texture& t, unsigned dimension, long long i) {
  const long long n = t.size[dimension];
  if (i >= 0 && i < n) return i;
  cudaTextureAddressMode mode = t.how.addressMode[dimension];
  if (!t.how.normalizedCoords && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror))
    mode = cudaAddressModeClamp;
  if (mode == cudaAddressModeBorder) return -1;
  if (mode == cudaAddressModeClamp) return i < 0 ? 0 : n - 1;
  const long long period = mode == cudaAddressModeMirror ? 2 * n : n, k = (i % period + period) % period;
  return k < n ? k : period - 1 - k;
}

// Components that the texture does not have stay as they are.
void read_at(const Texture& t, const long long* index, long long layer, Texel& texel) {
  const char* place = t.data + layer * static_cast<long long>(t.slice);
  const long long strides[3] = {static_cast<long long>(t.element_bytes), static_cast<long long>(t.pitch),
                                static_cast<long long>(t.slice)};
  for (unsigned d = 0; d < t.dimensions; ++d) {
    const long long i = address(t, d, index[d]);
    if (i < 0) {
      std::memcpy(texel.f, t.how.borderColor, sizeof texel.f);  // the same bits for integers
      return;
    }
    place += i * strides[d];
  }
  read_element(t, place, texel);
}

// ---------------------------------------------------------------------------------------------------------------
// Coordinates

long long floor_to_index(double x) {  // NaN counts as 0
  constexpr double kFar = 1e15;
  return !(x > -kFar) ? (x != x ? 0 : static_cast<long long>(-kFar))
                      : static_cast<long long>(std::floor(x < kFar ? x : kFar));
}

double in_elements(const Texture& t, unsigned dimension, float x) {
  return t.how.normalizedCoords ? static_cast<double>(x) * static_cast<double>(t.size[dimension]) : x;
}

// The lower neighbour along a dimension, and the weight of the upper one in multiples of 1/256.
struct Between {
  long long lower;
  float weight;
};
Between between(const Texture& t, unsigned dimension, float x) {
  const double at = in_elements(t, dimension, x) - 0.5;
  const long long lower = floor_to_index(at);
  const double fraction = at - std::floor(at);
  return {lower, fraction == fraction ? static_cast<float>(std::floor(fraction * 256 + 0.5) / 256) : 0};
}

void read_filtered(const Texture& t, const float* x, long long layer, Texel& texel) {
  Between between_[3];
  for (unsigned d = 0; d < t.dimensions; ++d) between_[d] = between(t, d, x[d]);
  Texel sum{};
  for (unsigned corner = 0; corner < 1u << t.dimensions; ++corner) {
    long long index[3];
    float weight = 1;
    for (unsigned d = 0; d < t.dimensions; ++d) {
      const bool upper = corner >> d & 1;
      index[d] = between_[d].lower + upper;
      weight *= upper ? between_[d].weight : 1 - between_[d].weight;
    }
    if (weight == 0) continue;  // or a NaN beside the point would spread
    Texel one{};
    read_at(t, index, layer, one);
    for (unsigned c = 0; c < t.components; ++c) sum.f[c] += weight * one.f[c];
  }
  texel = sum;
}

long long layer_of(const Texture& t, int layer) { return layer < 0 ? 0 : layer >= t.layers ? t.layers - 1 : layer; }

}  // namespace

void fetch_texel(const Fetch& fetch, float x, float y, float z, int layer, Texel& texel) {
  const Texture& t = texture_of(fetch);
  const float at[3] = {x, y, z};
  texel = {};
  if (t.how.filterMode == cudaFilterModeLinear) return read_filtered(t, at, layer_of(t, layer), texel);
  long long index[3];
  for (unsigned d = 0; d < t.dimensions; ++d) index[d] = floor_to_index(in_elements(t, d, at[d]));
  read_at(t, index, layer_of(t, layer), texel);
}

void fetch_element(const Fetch& fetch, int index, Texel& texel) {
  const Texture& t = texture_of(fetch);
  texel = {};
  if (index >= 0 && index < t.size[0]) read_element(t, t.data + static_cast<size_t>(index) * t.element_bytes, texel);
}

void gather_texels(const Fetch& fetch, float x, float y, int component, Texel& texel) {
  const Texture& t = texture_of(fetch);
  if (component < 0 || component >= static_cast<int>(t.components))
    wrong("tex2Dgather of a component that is not there");
  const long long left = between(t, 0, x).lower, top = between(t, 1, y).lower;
  const long long corners[4][2] = {{left, top + 1}, {left + 1, top + 1}, {left + 1, top}, {left, top}};
  for (unsigned i = 0; i < 4; ++i) {
    Texel corner;
    read_at(t, corners[i], 0, corner);
    texel.i[i] = corner.i[component];
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Surfaces

namespace {

// Where an access begins; null: outside, in the mode in which it reads zeros and writes nothing.
char* surface_place(const SurfaceAccess& a, size_t bytes) {
  const Texture* s = find_texture(a.surface);
  if (!s || !s->surface) wrong("the kernel uses a surface object that does not exist, or no longer");
  if (s->device != current_device()) wrong(kOtherDevice);
  if (s->dimensions != a.dimensions || s->layered != a.layered)
    wrong("the kernel uses a surface with coordinates of other dimensions than the surface has");
  const auto unit = static_cast<long long>(bytes);
  if (a.x % unit != 0) wrong("a surface is read or written at an x that is not a multiple of the type's size in bytes");
  const long long row = s->size[0] * static_cast<long long>(s->element_bytes);
  long long x = a.x, at[2] = {a.y, s->layered ? a.layer : a.z};
  const long long ends[2] = {s->size[1], s->layered ? s->layers : s->size[2]};
  bool inside = x >= 0 && x <= row - unit;
  for (int d = 0; d < 2; ++d) inside = inside && at[d] >= 0 && at[d] < ends[d];
  if (!inside) {
    if (a.mode == cudaBoundaryModeZero) return nullptr;
    if (a.mode != cudaBoundaryModeClamp)
      fault("illegal-access", "a surface is read or written outside: x " + std::to_string(a.x) + " bytes, y " +
                                  std::to_string(a.y) + ", z or layer " + std::to_string(at[1]) + " of " +
                                  std::to_string(row) + " bytes, " + std::to_string(ends[0]) + ", " +
                                  std::to_string(ends[1]));
    x = x < 0 ? 0 : x > row - unit ? row - unit : x;
    for (int d = 0; d < 2; ++d) at[d] = at[d] < 0 ? 0 : at[d] >= ends[d] ? ends[d] - 1 : at[d];
  }
  return const_cast<char*>(s->data) + at[1] * static_cast<long long>(s->slice) +
         at[0] * static_cast<long long>(s->pitch) + x;
}

}  // namespace

void read_surface(const SurfaceAccess& access, void* value, size_t bytes) {
  if (const char* place = surface_place(access, bytes))
    std::memcpy(value, place, bytes);
  else
    std::memset(value, 0, bytes);
}

void write_surface(const SurfaceAccess& access, const void* value, size_t bytes) {
  if (char* place = surface_place(access, bytes)) std::memcpy(place, value, bytes);
}

}  // namespace simt
