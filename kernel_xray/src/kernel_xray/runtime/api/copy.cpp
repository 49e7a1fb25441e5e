// copy.cpp: cudaMemcpy, cudaMemset and their relatives, and copies to and from symbols.
//
// Pointers are checked before a byte moves. A pointer from cudaMalloc must be on the device's side of the copy, with
// enough bytes behind it; a pointer to freed memory, to unmapped host memory, or to the host's where the device's is
// wanted is refused. With CUDA some of these mistakes return cudaErrorInvalidValue and the others end the process; here
// all return cudaErrorInvalidValue.
//
// Limit: PyTorch's tensors are host memory here. What is surely the host's is the calling thread's stack and, in a
// program without PyTorch, its heap; what lies in the program itself may be a variable of kernels.
#include "api/copies.h"

#include "api/allocations.h"
#include "api/capture.h"
#include "api/device_copies.h"
#include "api/devices.h"
#include "api/program.h"
#include "threads/fibre.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace {

using simt::Allocation;
using simt::Allocations;
using simt::MemoryKind;

enum class Side { device, host, either, invalid };

// A copy of unmapped pages would end the process. msync with MS_ASYNC writes nothing and reports whether all are
// mapped.
bool is_mapped(const void* pointer, size_t bytes) {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(pointer) / page * page;
  if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(pointer)) return false;
  const size_t length = reinterpret_cast<uintptr_t>(pointer) + bytes - start;
  const int saved = errno;
  const bool mapped = msync(reinterpret_cast<void*>(start), length, MS_ASYNC) == 0 || errno != ENOMEM;
  errno = saved;
  return mapped;
}

bool has_tensors() {  // PyTorch is in the process
  static const bool found = !simt::program::running() || dlsym(RTLD_DEFAULT, "aoti_torch_get_data_ptr");
  return found;
}

bool is_hosts(const void* pointer) {
  const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
  if (pointer >= here && pointer < simt::stack_end()) return true;
  Dl_info info;
  return !has_tensors() && !dladdr(pointer, &info);
}

Side side_at(const void* pointer, size_t bytes) {
  Allocation found;
  if (Allocations::instance().find(pointer, found)) {
    if (bytes > found.bytes - (reinterpret_cast<uintptr_t>(pointer) - found.start)) return Side::invalid;
    return found.kind == MemoryKind::device ? Side::device : Side::either;  // kernels may use pinned memory too
  }
  if (!pointer || Allocations::instance().in_range(pointer) || !is_mapped(pointer, bytes)) return Side::invalid;
  return is_hosts(pointer) && !simt::is_registered(pointer) ? Side::host : Side::either;
}

// Bytes from the first one to the end of the last one; 0 if that overflows.
size_t extent(const simt::Box& box, size_t width, size_t height, size_t depth) {
  const unsigned __int128 bytes = static_cast<unsigned __int128>(depth - 1) * box.slice +
                                  static_cast<unsigned __int128>(height - 1) * box.pitch + width;
  return bytes > SIZE_MAX ? 0 : static_cast<size_t>(bytes);
}

// A variable of kernels has the values of the current device while they are copied or set.
void begin_turn(std::optional<simt::Turn>& turn, const void* to, const void* from) {
  auto& copies = simt::DeviceCopies::instance();
  if (copies.has(to) || copies.has(from)) turn.emplace(simt::Turn::Work::copy);
}

bool is_kind(cudaMemcpyKind kind) { return static_cast<unsigned>(kind) <= cudaMemcpyDefault; }

}  // namespace

namespace simt {

cudaError_t check_copy(const void* to, size_t to_bytes, const void* from, size_t from_bytes, cudaMemcpyKind kind) {
  if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
  const Side to_side = side_at(to, to_bytes), from_side = side_at(from, from_bytes);
  if (to_side == Side::invalid || from_side == Side::invalid) return cudaErrorInvalidValue;
  const bool to_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  const bool from_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  if ((to_host && to_side == Side::device) || (from_host && from_side == Side::device)) return cudaErrorInvalidValue;
  const bool to_device = kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyHostToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDeviceToHost;
  if ((to_device && to_side == Side::host) || (from_device && from_side == Side::host)) return cudaErrorInvalidValue;
  const bool waits = kind == cudaMemcpyDeviceToHost ||
                     (kind == cudaMemcpyDefault && from_side == Side::device && to_side != Side::device);
  if (waits) return simt::pending_fault();
  simt::reset_errors();
  return simt::final_fault();
}

bool is_usable(const void* pointer, size_t bytes) {
  const Side side = side_at(pointer, bytes);
  return side != Side::invalid && side != Side::host;
}

cudaError_t copy_box(const Box& to, const Box& from, size_t width, size_t height, size_t depth, cudaMemcpyKind kind) {
  if ((width == 0 || height == 0 || depth == 0) && is_kind(kind)) return cudaSuccess;
  const size_t to_bytes = extent(to, width, height, depth), from_bytes = extent(from, width, height, depth);
  if (to_bytes == 0 || from_bytes == 0) return failed(cudaErrorInvalidValue);
  if (cudaError_t error = check_copy(to.start, to_bytes, from.start, from_bytes, kind)) return failed(error);
  std::optional<Turn> turn;
  begin_turn(turn, to.start, from.start);
  auto* into = static_cast<char*>(const_cast<void*>(to.start));
  auto* out_of = static_cast<const char*>(from.start);
  for (size_t z = 0; z < depth; ++z)
    for (size_t y = 0; y < height; ++y)
      std::memmove(into + z * to.slice + y * to.pitch, out_of + z * from.slice + y * from.pitch, width);
  return cudaSuccess;
}

cudaError_t set_box(const Box& box, int byte, size_t width, size_t height, size_t depth) {
  if (width == 0 || height == 0 || depth == 0) return cudaSuccess;
  const size_t bytes = extent(box, width, height, depth);
  if (bytes == 0 || !is_usable(box.start, bytes)) return failed(cudaErrorInvalidValue);
  std::optional<Turn> turn;
  begin_turn(turn, box.start, nullptr);
  auto* into = static_cast<char*>(const_cast<void*>(box.start));
  for (size_t z = 0; z < depth; ++z)
    for (size_t y = 0; y < height; ++y) std::memset(into + z * box.slice + y * box.pitch, byte, width);
  return cudaSuccess;
}

}  // namespace simt

namespace {

cudaError_t copy(const char* function, void* to, const void* from, size_t count, cudaMemcpyKind kind,
                 cudaStream_t stream = nullptr) {
  simt::host_only(function);
  return simt::submit(stream, cudaGraphNodeTypeMemcpy,
                      [=] { return simt::copy_box({to, 0, 0}, {from, 0, 0}, count, 1, 1, kind); });
}

cudaError_t copy_2d(const char* function, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  simt::host_only(function);
  if (width > to_pitch || width > from_pitch) return simt::failed(cudaErrorInvalidPitchValue);
  return simt::submit(stream, cudaGraphNodeTypeMemcpy,
                      [=] { return simt::copy_box({to, to_pitch, 0}, {from, from_pitch, 0}, width, height, 1, kind); });
}

cudaError_t set_2d(const char* function, void* pointer, size_t pitch, int byte, size_t width, size_t height,
                   cudaStream_t stream = nullptr) {
  if (cudaError_t fault = simt::begin_work(function)) return fault;
  if (width > pitch && height > 1) return simt::failed(cudaErrorInvalidPitchValue);
  return simt::submit(stream, cudaGraphNodeTypeMemset,
                      [=] { return simt::set_box({pointer, pitch, 0}, byte, width, height, 1); });
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  return copy("cudaMemcpy", to, from, count, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpyAsync", to, from, count, kind, stream);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return copy_2d("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t count,
                                cudaStream_t stream) {
  if (!simt::is_device(to_device) || !simt::is_device(from_device)) return simt::failed(cudaErrorInvalidDevice);
  return copy("cudaMemcpyPeer", to, from, count, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t count) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, count, nullptr);
}

cudaError_t cudaMemset(void* pointer, int byte, size_t count) {
  return set_2d("cudaMemset", pointer, count, byte, count, 1);
}

cudaError_t cudaMemsetAsync(void* pointer, int byte, size_t count, cudaStream_t stream) {
  return set_2d("cudaMemsetAsync", pointer, count, byte, count, 1, stream);
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int byte, size_t width, size_t height) {
  return set_2d("cudaMemset2D", pointer, pitch, byte, width, height);
}

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int byte, size_t width, size_t height, cudaStream_t stream) {
  return set_2d("cudaMemset2DAsync", pointer, pitch, byte, width, height, stream);
}

namespace simt::detail {

namespace {
// Checks a copy of `count` bytes at an offset in a symbol of `size` bytes; `against` is the wrong direction.
cudaError_t check_symbol(size_t size, size_t count, size_t offset, cudaMemcpyKind kind, cudaMemcpyKind against,
                         cudaStream_t stream) {
  if (!stream_exists(stream)) return no_stream();
  if (kind == cudaMemcpyHostToHost || kind == against) return failed(cudaErrorInvalidMemcpyDirection);
  return offset > size || count > size - offset ? failed(cudaErrorInvalidValue) : cudaSuccess;
}
}  // namespace

cudaError_t copy_to_symbol(void* symbol, size_t size, const void* from, size_t count, size_t offset,
                           cudaMemcpyKind kind, cudaStream_t stream) {
  if (auto error = check_symbol(size, count, offset, kind, cudaMemcpyDeviceToHost, stream)) return error;
  DeviceCopies::instance().add(symbol, size);
  return copy("cudaMemcpyToSymbol", static_cast<char*>(symbol) + offset, from, count, kind, stream);
}

cudaError_t copy_from_symbol(void* to, const void* symbol, size_t size, size_t count, size_t offset,
                             cudaMemcpyKind kind, cudaStream_t stream) {
  if (auto error = check_symbol(size, count, offset, kind, cudaMemcpyHostToDevice, stream)) return error;
  return copy("cudaMemcpyFromSymbol", to, static_cast<const char*>(symbol) + offset, count, kind, stream);
}

cudaError_t give_symbol_address(void** pointer, void* symbol, size_t size) {
  if (!pointer) return failed(cudaErrorInvalidValue);
  DeviceCopies::instance().add(symbol, size);
  *pointer = symbol;
  return cudaSuccess;
}

}  // namespace simt::detail
