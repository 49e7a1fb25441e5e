// textures.cpp: creating and destroying texture and surface objects.
#include "api/textures.h"

#include <atomic>
#include <mutex>

#include "api/allocations.h"
#include "api/devices.h"
#include "api/host_call.h"

namespace simt {
namespace {

constexpr unsigned kSlotBits = 16;
constexpr size_t kSlots = size_t{1} << kSlotBits;  // live objects at the same time
constexpr size_t kTextureAlignment = 512;          // bytes; of memory behind a texture
constexpr size_t kTexturePitchUnit = 32;           // bytes
constexpr size_t kMostLinear = size_t{1} << 28;    // elements

std::mutex slots_mutex;
std::atomic<Texture*> slots[kSlots];  // kernels read it while the host adds to it
unsigned long long last_number = 0;

cudaError_t add(const Texture& texture, unsigned long long* object) {
  const std::lock_guard<std::mutex> lock(slots_mutex);
  for (size_t i = 1; i < kSlots; ++i) {
    if (slots[i].load()) continue;
    auto* kept = new Texture(texture);
    *object = kept->object = ++last_number << kSlotBits | i;
    slots[i].store(kept);
    return cudaSuccess;
  }
  return failed(cudaErrorMemoryAllocation);
}

cudaError_t remove(unsigned long long object, bool surface) {
  const std::lock_guard<std::mutex> lock(slots_mutex);
  const Texture* texture = find_texture(object);
  if (!texture || texture->surface != surface) return failed(cudaErrorInvalidValue);
  slots[object % kSlots].store(nullptr);
  delete texture;
  return cudaSuccess;
}

// Memory from cudaMalloc is aligned by its offset; the alignment of a CPU tensor says nothing about a GPU's.
bool aligned(const void* pointer) {
  Allocation found;
  if (!Allocations::instance().find(pointer, found)) return true;
  return (reinterpret_cast<uintptr_t>(pointer) - found.start) % kTextureAlignment == 0;
}

cudaError_t fill_from_array(const cudaResourceDesc& resource, Texture& t) {
  const std::shared_ptr<Array> array = find_array(resource.res.array.array);
  if (!array) return cudaErrorInvalidResourceHandle;
  t.format = array->format;
  t.data = array->data;
  t.dimensions = array->dimensions();
  t.layered = array->layered();
  t.element_bytes = array->element_bytes;
  t.pitch = array->pitch();
  t.slice = array->slice();
  t.size[0] = static_cast<long long>(array->extent.width);
  t.size[1] = static_cast<long long>(array->height());
  t.size[2] = t.layered ? 1 : static_cast<long long>(array->depth());
  t.layers = t.layered ? static_cast<long long>(array->depth()) : 1;
  return cudaSuccess;
}

cudaError_t fill_from_memory(const cudaResourceDesc& resource, Texture& t) {
  const bool linear = resource.resType == cudaResourceTypeLinear;
  const auto& one = resource.res.linear;
  const auto& two = resource.res.pitch2D;
  t.format = linear ? one.desc : two.desc;
  t.data = static_cast<const char*>(linear ? one.devPtr : two.devPtr);
  t.element_bytes = element_bytes(t.format);
  if (!t.element_bytes) return cudaErrorInvalidChannelDescriptor;
  const size_t width = linear ? one.sizeInBytes / t.element_bytes : two.width, height = linear ? 1 : two.height;
  if (width == 0 || height == 0 || (linear && width > kMostLinear)) return cudaErrorInvalidValue;
  t.pitch = linear ? one.sizeInBytes : two.pitchInBytes;
  if (t.pitch / t.element_bytes < width || (!linear && t.pitch % kTexturePitchUnit != 0)) return cudaErrorInvalidValue;
  if (!is_usable(t.data, (height - 1) * t.pitch + width * t.element_bytes) || !aligned(t.data))
    return cudaErrorInvalidValue;
  t.dimensions = linear ? 0 : 2;
  t.layered = false;
  t.slice = 0;
  t.size[0] = static_cast<long long>(width);
  t.size[1] = static_cast<long long>(height);
  t.size[2] = t.layers = 1;
  return cudaSuccess;
}

cudaError_t check_reading(Texture& t) {
  const bool integers = t.format.f != cudaChannelFormatKindFloat;
  const bool as_fractions = t.how.readMode == cudaReadModeNormalizedFloat;
  if (as_fractions && integers && t.format.x == 32) return cudaErrorInvalidNormSetting;
  t.floating = !integers || as_fractions;
  return t.how.filterMode == cudaFilterModeLinear && !t.floating ? cudaErrorInvalidFilterSetting : cudaSuccess;
}

cudaError_t fill(const cudaResourceDesc& resource, Texture& t) {
  t.resource = resource;
  t.device = current_device();
  cudaError_t error = cudaErrorNotSupported;  // mipmaps
  if (resource.resType == cudaResourceTypeArray) error = fill_from_array(resource, t);
  if (resource.resType == cudaResourceTypeLinear || resource.resType == cudaResourceTypePitch2D)
    error = fill_from_memory(resource, t);
  t.components = t.format.w ? 4 : t.format.y ? 2 : 1;
  return error;
}

// Reads a field of the object with this handle.
template <typename T>
cudaError_t give(T* to, unsigned long long object, bool surface, T Texture::* field) {
  const std::lock_guard<std::mutex> lock(slots_mutex);
  const Texture* texture = find_texture(object);
  if (!to || !texture || texture->surface != surface) return failed(cudaErrorInvalidValue);
  *to = texture->*field;
  return cudaSuccess;
}

}  // namespace

const Texture* find_texture(unsigned long long object) {
  const Texture* texture = slots[object % kSlots].load(std::memory_order_acquire);
  return texture && texture->object == object ? texture : nullptr;
}

void forget_textures(int device) {
  const std::lock_guard<std::mutex> lock(slots_mutex);
  for (auto& slot : slots) {
    const Texture* texture = slot.load();
    if (!texture || texture->device != device) continue;
    slot.store(nullptr);
    delete texture;
  }
}

}  // namespace simt

using simt::failed;
using simt::Texture;

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* how, const cudaResourceViewDesc* view) {
  simt::host_only("cudaCreateTextureObject");
  if (!object || !resource || !how) return failed(cudaErrorInvalidValue);
  if (view) return failed(cudaErrorNotSupported);
  Texture texture{};
  texture.how = *how;
  if (cudaError_t error = simt::fill(*resource, texture)) return failed(error);
  if (cudaError_t error = simt::check_reading(texture)) return failed(error);
  return simt::add(texture, object);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  simt::host_only("cudaCreateSurfaceObject");
  if (!object || !resource || resource->resType != cudaResourceTypeArray) return failed(cudaErrorInvalidValue);
  Texture surface{};
  surface.surface = true;
  if (cudaError_t error = simt::fill(*resource, surface)) return failed(error);
  return simt::add(surface, object);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) { return simt::remove(object, false); }
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) { return simt::remove(object, true); }

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  return simt::give(resource, object, false, &Texture::resource);
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* how, cudaTextureObject_t object) {
  return simt::give(how, object, false, &Texture::how);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object) {
  return simt::give(resource, object, true, &Texture::resource);
}
