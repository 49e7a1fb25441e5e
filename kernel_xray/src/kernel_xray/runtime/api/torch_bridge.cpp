// torch_bridge.cpp: the functions of PyTorch's stable C interface that only a CUDA build of PyTorch has, or that look
// for an accelerator, and the messages of failed checks.
//
// torch/csrc/inductor/aoti_torch/c/shim.h in the simulator's include directory renames the functions to these. They
// have names of their own so that a CUDA build of PyTorch in the same process keeps its functions. Signatures are
// PyTorch's, with void* for its opaque handles. A stream handle is the stream itself, and a guard's handle is null,
// since there is one device; guards for a stream remember the stream that they replaced.
#include "../../include/simt/torch_bridge.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "../../include/simt/failed_check.h"

#include "api/host_call.h"

namespace simt {

namespace {
std::mutex names_lock;

// The file that each source's name in a build stands for: see simt/origins.py.
std::map<std::string, std::string>& paths() {
  static std::map<std::string, std::string> known;
  return known;
}

std::string path_of(const char* name) {
  const std::lock_guard<std::mutex> hold(names_lock);
  const auto found = paths().find(name);
  return found == paths().end() ? name : found->second;
}
}  // namespace

extern "C" SIMT_API void simt_name_source(const char* name, const char* path) {
  const std::lock_guard<std::mutex> hold(names_lock);
  paths()[name] = path;
}

std::string error_message(cudaError_t error, const char* function, const char* file, unsigned line) {
  std::string text = std::string("CUDA error: ") + cudaGetErrorString(error) + "\n  " + cudaGetErrorName(error) +
                     ", found in " + function + " at " + path_of(file) + ":" + std::to_string(line);
  if (error == cudaErrorInvalidConfiguration)
    text +=
        "\n  A block has 1 to 1024 threads, at most 64 of them in z; a grid has 1 to 2147483647 blocks in x and 1 to"
        " 65535 in y and z. Was the size 0, or a launch's grid and block exchanged?";
  if (error == cudaErrorMemoryAllocation)
    text += "\n  The simulator's device has half of this machine's memory; cudaMemGetInfo says how much is free.";
  return text;
}

void check_failed(const char* function, const char* file, int line, std::initializer_list<Piece> pieces) {
  std::ostringstream message;
  message << function << ", " << path_of(file) << ":" << line << ", ";
  for (const Piece& piece : pieces) piece.write(message, piece.value);
  throw std::runtime_error(message.str());
}

namespace {

void check_device(const char* function, int32_t index) {
  if (is_device_index(index)) return;
  throw std::runtime_error(std::string("CUDA error: invalid device ordinal\n  ") + function + " got device " +
                           std::to_string(index) + "; the simulator has one device, number 0");
}

int32_t check(const char* function, cudaError_t error) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA error: ") + cudaGetErrorString(error) + "\n  in " + function);
  return 0;
}

}  // namespace
}  // namespace simt

extern "C" {

// Devices and guards: the "device" forms are for any accelerator, the "cuda" forms for CUDA.
SIMT_API int32_t simt_aoti_torch_create_device_guard(int32_t device_index, void** guard) {
  simt::check_device("a device guard", device_index);
  *guard = nullptr;
  return 0;
}
SIMT_API int32_t simt_aoti_torch_delete_device_guard(void*) { return 0; }
SIMT_API int32_t simt_aoti_torch_device_guard_set_index(void*, int32_t device_index) {
  simt::check_device("a device guard", device_index);
  return 0;
}
SIMT_API int32_t simt_aoti_torch_create_cuda_guard(int32_t device_index, void** guard) {
  return simt_aoti_torch_create_device_guard(device_index, guard);
}
SIMT_API int32_t simt_aoti_torch_delete_cuda_guard(void*) { return 0; }
SIMT_API int32_t simt_aoti_torch_cuda_guard_set_index(void* guard, int32_t device_index) {
  return simt_aoti_torch_device_guard_set_index(guard, device_index);
}
SIMT_API int32_t simt_aoti_torch_get_current_device_index(int32_t* device_index) {
  *device_index = 0;
  return 0;
}

// Streams
SIMT_API int32_t simt_aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream) {
  simt::check_device("the current stream", device_index);
  *stream = simt::current_stream();
  return 0;
}
SIMT_API int32_t simt_aoti_torch_get_current_stream(int32_t device_index, void** stream) {
  return simt_aoti_torch_get_current_cuda_stream(device_index, stream);
}
SIMT_API int32_t simt_aoti_torch_delete_stream(void*) { return 0; }  // deletes the handle only
SIMT_API int32_t simt_aoti_torch_stream_id(void* stream, int64_t* id) {
  *id = static_cast<int64_t>(reinterpret_cast<intptr_t>(stream));
  return 0;
}
SIMT_API int32_t simt_torch_stream_native_handle(void* stream, void** handle) {
  *handle = stream;
  return 0;
}
SIMT_API int32_t simt_torch_set_current_cuda_stream(void* stream, int32_t device_index) {
  simt::check_device("torch_set_current_cuda_stream", device_index);
  if (!simt::stream_exists(static_cast<cudaStream_t>(stream)))
    simt::check("torch_set_current_cuda_stream", simt::failed(cudaErrorInvalidResourceHandle));
  simt::set_current_stream(static_cast<cudaStream_t>(stream));
  return 0;
}
SIMT_API int32_t simt_torch_get_cuda_stream_from_pool(bool high_priority, int32_t device_index, void** stream) {
  simt::check_device("torch_get_cuda_stream_from_pool", device_index);
  *stream = simt::stream_from_pool(high_priority);
  return 0;
}
SIMT_API int32_t simt_torch_cuda_stream_synchronize(void* stream, int32_t device_index) {
  simt::check_device("torch_cuda_stream_synchronize", device_index);
  return simt::check("torch_cuda_stream_synchronize", cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}
SIMT_API int32_t simt_aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index, void** guard) {
  cudaStream_t before = simt::current_stream();
  simt_torch_set_current_cuda_stream(stream, device_index);
  *guard = before;
  return 0;
}
SIMT_API int32_t simt_aoti_torch_delete_cuda_stream_guard(void* guard) {
  simt::set_current_stream(static_cast<cudaStream_t>(guard));
  return 0;
}

// Memory
SIMT_API int32_t simt_aoti_torch_cuda_caching_allocator_raw_alloc(uint64_t bytes, void** pointer) {
  return simt::check("aoti_torch_cuda_caching_allocator_raw_alloc", cudaMalloc(pointer, bytes));
}
SIMT_API int32_t simt_aoti_torch_cuda_caching_allocator_raw_delete(void* pointer) {
  return simt::check("aoti_torch_cuda_caching_allocator_raw_delete", cudaFree(pointer));
}

// STD_CUDA_CHECK: stores the message for an error, which the caller frees, or null for success.
SIMT_API int32_t simt_torch_c10_cuda_check_msg(int32_t error, const char* file, const char* function, uint32_t line,
                                               bool, char** message) {
  *message = nullptr;
  if (error == cudaSuccess) return 0;
  (void)cudaGetLastError();  // the message reports it
  *message = strdup(simt::error_message(static_cast<cudaError_t>(error), function, file, line).c_str());
  return 0;
}
SIMT_API void simt_torch_c10_cuda_free_error_msg(char* message) { std::free(message); }

}  // extern "C"
