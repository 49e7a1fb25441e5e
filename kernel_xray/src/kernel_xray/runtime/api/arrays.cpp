// arrays.cpp: CUDA arrays, memory in three dimensions, and copies to and from both.
#include "api/arrays.h"

#include "api/allocations.h"
#include "api/capture.h"
#include "api/handles.h"

namespace simt {
namespace {

using ArrayPointer = std::shared_ptr<Array>;

Handles<ArrayPointer>& arrays() { return lasting<Handles<ArrayPointer>>(); }

cudaError_t refused(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags) {
  if (!element_bytes(format)) return cudaErrorInvalidChannelDescriptor;
  constexpr unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayTextureGather;
  if (flags & cudaArrayCubemap) return cudaErrorNotSupported;
  const bool layered = (flags & cudaArrayLayered) != 0;
  if ((flags & ~known) || extent.width == 0 || (layered && extent.depth == 0)) return cudaErrorInvalidValue;
  if (!layered && extent.depth && !extent.height) return cudaErrorInvalidValue;
  constexpr size_t largest = kLargestArray;
  const size_t deepest = layered ? kMostLayers : largest;
  if (extent.width > largest || extent.height > largest || extent.depth > deepest) return cudaErrorInvalidValue;
  return cudaSuccess;
}

// The box of an array that begins at this element; null start: the box's size does not fit.
Box part(const Array& array, size_t x_bytes, size_t y, size_t z, size_t width_bytes, size_t height, size_t depth) {
  const bool fits = x_bytes + width_bytes <= array.pitch() && y + height <= array.height() &&
                    z + depth <= array.depth() && width_bytes <= array.pitch();
  return {fits ? array.data + z * array.slice() + y * array.pitch() + x_bytes : nullptr, array.pitch(), array.slice()};
}

cudaError_t copy_parts(const Box& to, const Box& from, size_t width, size_t height, size_t depth, cudaMemcpyKind kind) {
  if (!to.start || !from.start) return failed(cudaErrorInvalidValue);
  return copy_box(to, from, width, height, depth, kind);
}

// One side of cudaMemcpy3D. `unit`: bytes of the extent's elements.
cudaError_t side_of(cudaArray_t handle, cudaPos at, const cudaPitchedPtr& pointer, const cudaExtent& extent,
                    size_t unit, Box* box) {
  if ((handle != nullptr) == (pointer.ptr != nullptr)) return cudaErrorInvalidValue;
  const size_t width = extent.width * unit;
  if (handle) {
    const ArrayPointer array = find_array(handle);
    if (!array) return cudaErrorInvalidResourceHandle;
    *box = part(*array, at.x * array->element_bytes, at.y, at.z, width, extent.height, extent.depth);
    return box->start ? cudaSuccess : cudaErrorInvalidValue;
  }
  if (at.x + width > pointer.pitch) return cudaErrorInvalidPitchValue;
  const size_t slice = pointer.pitch * pointer.ysize;
  *box = {static_cast<char*>(pointer.ptr) + at.z * slice + at.y * pointer.pitch + at.x, pointer.pitch, slice};
  return extent.depth > 1 && at.y + extent.height > pointer.ysize ? cudaErrorInvalidValue : cudaSuccess;
}

// `count` bytes from (x, y) on, row after row.
template <typename Copy>
cudaError_t by_rows(const Array& array, size_t x, size_t y, size_t count, Copy copy) {
  if (x > array.pitch() || y > array.height() || count > array.slice() - y * array.pitch() - x)
    return failed(cudaErrorInvalidValue);
  return copy(array.data + y * array.pitch() + x);
}

}  // namespace

size_t element_bytes(const cudaChannelFormatDesc& d) {
  const unsigned count = d.w ? 4 : d.z ? 3 : d.y ? 2 : 1;
  for (int bits : {d.y, d.z, d.w})
    if (bits != 0 && bits != d.x) return 0;
  const bool known = d.x == 8 || d.x == 16 || d.x == 32;
  const bool floating = d.f == cudaChannelFormatKindFloat;
  if (!known || count == 3 || (count == 4 && (!d.y || !d.z)) || d.f == cudaChannelFormatKindNone) return 0;
  return floating && d.x == 8 ? 0 : count * static_cast<size_t>(d.x) / 8;
}

cudaError_t copy_3d(const cudaMemcpy3DParms& copy) {
  const ArrayPointer from_array = find_array(copy.srcArray), to_array = find_array(copy.dstArray);
  if (from_array && to_array && from_array->element_bytes != to_array->element_bytes)
    return failed(cudaErrorInvalidValue);
  const size_t unit = from_array ? from_array->element_bytes : to_array ? to_array->element_bytes : 1;
  Box to{}, from{};
  if (cudaError_t error = side_of(copy.dstArray, copy.dstPos, copy.dstPtr, copy.extent, unit, &to))
    return failed(error);
  if (cudaError_t error = side_of(copy.srcArray, copy.srcPos, copy.srcPtr, copy.extent, unit, &from))
    return failed(error);
  return copy_box(to, from, copy.extent.width * unit, copy.extent.height, copy.extent.depth, copy.kind);
}

Array::~Array() { Allocations::instance().release(data); }

ArrayPointer find_array(cudaArray_const_t handle) { return arrays().find(handle); }

void forget_arrays(int device) {
  arrays().remove_if([=](const ArrayPointer& array) { return array->device == device; });
}

}  // namespace simt

using simt::failed;

cudaError_t cudaMalloc3DArray(cudaArray_t* handle, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags) {
  if (cudaError_t fault = simt::begin_work("cudaMallocArray")) return fault;
  if (const auto answer = simt::refused_by_capture(simt::Unsafe::call)) return *answer;
  if (!handle || !format) return failed(cudaErrorInvalidValue);
  if (cudaError_t error = simt::refused(*format, extent, flags)) return failed(error);
  auto array = std::make_shared<simt::Array>();
  array->format = *format;
  array->extent = extent;
  array->flags = flags;
  array->element_bytes = simt::element_bytes(*format);
  array->device = simt::current_device();
  const size_t bytes = array->slice() * array->depth();
  void* data = simt::Allocations::instance().allocate(bytes, simt::MemoryKind::device, array->device);
  array->data = static_cast<char*>(data);
  if (!data) return failed(cudaErrorMemoryAllocation);
  simt::arrays().add(handle, array);
  return cudaSuccess;
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height,
                            unsigned flags) {
  if (flags & cudaArrayLayered) return failed(cudaErrorInvalidValue);
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  simt::host_only("cudaFreeArray");
  return array ? simt::arrays().remove(array) : cudaSuccess;
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t handle) {
  const auto array = simt::find_array(handle);
  if (!array) return failed(cudaErrorInvalidResourceHandle);
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  if (!format) return failed(cudaErrorInvalidValue);
  return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  if (!pointer) return failed(cudaErrorInvalidValue);
  *pointer = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int byte, cudaExtent extent, cudaStream_t stream) {
  if (cudaError_t fault = simt::begin_work("cudaMemset3D")) return fault;
  if (extent.width > pointer.pitch) return failed(cudaErrorInvalidPitchValue);
  const simt::Box box{pointer.ptr, pointer.pitch, pointer.pitch * pointer.ysize};
  return simt::submit(stream, cudaGraphNodeTypeMemset,
                      [=] { return simt::set_box(box, byte, extent.width, extent.height, extent.depth); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int byte, cudaExtent extent) {
  return cudaMemset3DAsync(pointer, byte, extent, nullptr);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  simt::host_only("cudaMemcpy3D");
  if (!copy) return failed(cudaErrorInvalidValue);
  return simt::submit(stream, cudaGraphNodeTypeMemcpy, [copy = *copy] { return simt::copy_3d(copy); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) { return cudaMemcpy3DAsync(copy, nullptr); }

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  if (!copy) return failed(cudaErrorInvalidValue);
  if (!simt::is_device(copy->srcDevice) || !simt::is_device(copy->dstDevice)) return failed(cudaErrorInvalidDevice);
  const cudaMemcpy3DParms plain{copy->srcArray, copy->srcPos, copy->srcPtr, copy->dstArray,
                                copy->dstPos,   copy->dstPtr, copy->extent, cudaMemcpyDefault};
  return cudaMemcpy3DAsync(&plain, stream);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy) { return cudaMemcpy3DPeerAsync(copy, nullptr); }

// A copy of which one side is an array. `copy` gets the array, in whichever order the copies run.
template <typename Copy>
static cudaError_t with_array(const char* function, cudaArray_const_t handle, cudaStream_t stream, Copy copy) {
  simt::host_only(function);
  if (!simt::find_array(handle)) return failed(cudaErrorInvalidResourceHandle);
  return simt::submit(stream, cudaGraphNodeTypeMemcpy, [=] {
    const auto array = simt::find_array(handle);
    return array ? copy(*array) : failed(cudaErrorInvalidResourceHandle);
  });
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t count, cudaMemcpyKind kind) {
  return with_array("cudaMemcpyToArray", to, nullptr, [=](const simt::Array& array) {
    return simt::by_rows(array, x, y, count,
                         [=](char* place) { return simt::copy_box({place, 0, 0}, {from, 0, 0}, count, 1, 1, kind); });
  });
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
  return with_array("cudaMemcpyFromArray", from, nullptr, [=](const simt::Array& array) {
    return simt::by_rows(array, x, y, count,
                         [=](char* place) { return simt::copy_box({to, 0, 0}, {place, 0, 0}, count, 1, 1, kind); });
  });
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > pitch) return failed(cudaErrorInvalidPitchValue);
  return with_array("cudaMemcpy2DToArray", to, stream, [=](const simt::Array& array) {
    return simt::copy_parts(simt::part(array, x, y, 0, width, height, 1), {from, pitch, 0}, width, height, 1, kind);
  });
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                       size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > pitch) return failed(cudaErrorInvalidPitchValue);
  return with_array("cudaMemcpy2DFromArray", from, stream, [=](const simt::Array& array) {
    return simt::copy_parts({to, pitch, 0}, simt::part(array, x, y, 0, width, height, 1), width, height, 1, kind);
  });
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                     size_t from_y, size_t width, size_t height, cudaMemcpyKind kind) {
  if (!simt::find_array(from)) return failed(cudaErrorInvalidResourceHandle);
  return with_array("cudaMemcpy2DArrayToArray", to, nullptr, [=](const simt::Array& array) {
    const auto source = simt::find_array(from);
    if (!source) return failed(cudaErrorInvalidResourceHandle);
    return simt::copy_parts(simt::part(array, to_x, to_y, 0, width, height, 1),
                            simt::part(*source, from_x, from_y, 0, width, height, 1), width, height, 1, kind);
  });
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind, nullptr);
}
