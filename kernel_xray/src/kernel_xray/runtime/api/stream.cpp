// stream.cpp: streams, and the current stream of each host thread.
//
// All work is done when a call returns, so a stream has nothing to order. A table of the live streams is kept so that a
// destroyed stream is refused.
#include "api/capture.h"
#include "api/devices.h"
#include "api/handles.h"

#include "../../include/simt/torch_bridge.h"
#include "threads/stray.h"

namespace simt {
namespace {

constexpr int kGreatestPriority = -5;  // priorities run from 0 (least) to this one, as on recent GPUs

struct StreamRecord {
  unsigned flags;
  int priority;
  int device;
};

Handles<StreamRecord>& streams() { return lasting<Handles<StreamRecord>>(); }

thread_local cudaStream_t current = nullptr;

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

cudaError_t wait_for(const char* function, cudaStream_t stream) {
  host_only(function);
  if (!stream_exists(stream)) return no_stream();
  StreamWatch::current().waited(function);
  if (const auto answer = refused_by_capture(stream)) return *answer;
  return pending_fault();
}

// Reads a field of a stream's record, which is 0 for the default streams.
template <typename T>
cudaError_t read(cudaStream_t stream, T* value, T StreamRecord::* field) {
  if (!value) return failed(cudaErrorInvalidValue);
  *value = 0;
  if (is_default(stream)) return cudaSuccess;
  return streams().with(stream, [=](StreamRecord& record) {
    *value = record.*field;
    return cudaSuccess;
  });
}

}  // namespace

unsigned stream_flags(cudaStream_t stream) {
  unsigned flags = 0;
  if (streams().has(stream)) read(stream, &flags, &StreamRecord::flags);
  return flags;
}

int stream_device(cudaStream_t stream) {
  int device = current_device();
  if (streams().has(stream)) read(stream, &device, &StreamRecord::device);
  return device;
}

bool accepts_launches(cudaStream_t stream) {
  return stream_exists(stream) && stream_device(stream) == current_device();
}
bool stream_exists(cudaStream_t stream) { return is_default(stream) || streams().has(stream); }
void forget_streams(int device) {
  streams().remove_if([=](const StreamRecord& record) { return record.device == device; });
}

cudaStream_t current_stream() { return stream_exists(current) ? current : nullptr; }
void set_current_stream(cudaStream_t stream) { current = stream; }

cudaStream_t stream_from_pool(bool high_priority) {
  constexpr unsigned kPool = 32;  // as in PyTorch
  static std::mutex mutex;
  static cudaStream_t pools[2][kPool];
  static unsigned given[2];
  const std::lock_guard<std::mutex> lock(mutex);
  cudaStream_t& stream = pools[high_priority][given[high_priority]++ % kPool];
  if (!stream || !stream_exists(stream))  // cudaDeviceReset ends the pool's streams too
    streams().add(&stream, {cudaStreamNonBlocking, high_priority ? -1 : 0, 0});
  return stream;
}

}  // namespace simt

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  simt::host_only("cudaStreamCreate");
  if (!stream || (flags & ~cudaStreamNonBlocking)) return simt::failed(cudaErrorInvalidValue);
  if (priority > 0) priority = 0;  // CUDA clamps the priority, too
  if (priority < simt::kGreatestPriority) priority = simt::kGreatestPriority;
  simt::streams().add(stream, {flags, priority, simt::current_device()});
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (simt::in_kernel()) {
    if (!stream || flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = simt::kStreamInKernel;
    return cudaSuccess;
  }
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = simt::kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (simt::in_kernel()) return stream == simt::kStreamInKernel ? cudaSuccess : cudaErrorInvalidResourceHandle;
  if (simt::capturing()) simt::forget_capture(stream);
  return simt::streams().remove(stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const auto answer = simt::refused_by_capture(simt::Unsafe::call)) return *answer;
  return simt::wait_for("cudaStreamSynchronize", stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return simt::wait_for("cudaStreamQuery", stream); }

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return simt::read(stream, priority, &simt::StreamRecord::priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return simt::read(stream, flags, &simt::StreamRecord::flags);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (!device) return simt::failed(cudaErrorInvalidValue);
  *device = simt::stream_device(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t, unsigned flags) {
  cudaPointerAttributes attributes;
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (cudaError_t error = cudaPointerGetAttributes(&attributes, pointer)) return error;
  const bool known = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  return known && attributes.type == cudaMemoryTypeManaged ? cudaSuccess : simt::failed(cudaErrorInvalidValue);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data, unsigned flags) {
  simt::host_only("cudaStreamAddCallback");
  if (!simt::stream_exists(stream)) return simt::no_stream();
  if (!callback || flags != 0) return simt::failed(cudaErrorInvalidValue);
  if (const auto answer = simt::refused_by_capture(stream)) return *answer;
  callback(stream, simt::pending_fault(), user_data);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  simt::host_only("cudaLaunchHostFunc");
  if (!function) return simt::failed(cudaErrorInvalidValue);
  return simt::submit(stream, cudaGraphNodeTypeHost, [=] {
    function(user_data);
    return cudaSuccess;
  });
}
