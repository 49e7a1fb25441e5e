// runtime_api_device_test.cpp: errors, device, streams, events, attributes of kernels and occupancy.
#include <string>

#include "check.h"
#include "runtime_api_stub.h"
#include "simt/torch_bridge.h"

using check::same;

void kernel(float*) {}
void other_kernel(float*) {}
template <int N>
void template_kernel(int*) {}

void texts() {
  same("text", std::string(cudaGetErrorString(cudaErrorInvalidConfiguration)) == "invalid configuration argument",
       true);
  same("another text",
       std::string(cudaGetErrorString(cudaErrorIllegalAddress)) == "an illegal memory access was encountered", true);
  same("name", std::string(cudaGetErrorName(cudaErrorLaunchFailure)) == "cudaErrorLaunchFailure", true);
  same("unknown code", std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))) == "unrecognized error code",
       true);
  same("value of a code", cudaErrorMisalignedAddress, 716);
  const std::string message = simt::error_message(cudaErrorInvalidValue, "f", "a.cu", 7);
  same("message", message == "CUDA error: invalid argument\n  cudaErrorInvalidValue, found in f at a.cu:7", true);
}

void last_error() {
  float x;
  same("none at first", cudaGetLastError(), cudaSuccess);
  cudaFree(&x);
  same("peek", cudaPeekAtLastError(), cudaErrorInvalidValue);
  same("peek again", cudaPeekAtLastError(), cudaErrorInvalidValue);
  cudaSetDevice(7);
  same("the last one counts", cudaGetLastError(), cudaErrorInvalidDevice);
  same("read once", cudaGetLastError(), cudaSuccess);
  cudaSetDevice(7);
  cudaSetDevice(0);
  same("success does not clear", cudaGetLastError(), cudaErrorInvalidDevice);

  // A kernel's fault: every call that waits reports it, read or not, until new work begins.
  void* memory = nullptr;
  cudaStream_t stream;
  cudaMalloc(&memory, 4);
  cudaStreamCreate(&stream);
  simt::set_last_error(700);
  const auto fault = cudaErrorIllegalAddress;
  same("fault, first reading", cudaGetLastError(), fault);
  same("fault, second reading", cudaGetLastError(), fault);
  same("fault at synchronise", cudaDeviceSynchronize(), fault);
  same("fault at stream synchronise", cudaStreamSynchronize(stream), fault);
  same("fault at copy from device", cudaMemcpy(&x, memory, 4, cudaMemcpyDeviceToHost), fault);
  same("fault at default copy from device", cudaMemcpy(&x, memory, 4, cudaMemcpyDefault), fault);
  same("free after a fault", cudaFree(memory), cudaSuccess);
  same("fault is still there", cudaGetLastError(), fault);
  same("malloc after a fault", cudaMalloc(&memory, 4), cudaSuccess);
  same("over with new work", cudaDeviceSynchronize(), cudaSuccess);
  simt::set_last_error(719);
  same("copy to device after a fault", cudaMemcpy(memory, &x, 4, cudaMemcpyHostToDevice), cudaSuccess);
  same("over with a copy", cudaGetLastError(), cudaSuccess);
  simt::set_last_error(710);
  cudaSetDevice(3);
  simt::reset_errors();
  same("an ordinary error outlives a fault", cudaGetLastError(), cudaErrorInvalidDevice);

  simt::set_last_error(702);
  same("reset", cudaDeviceReset(), cudaSuccess);
  same("over with a reset", cudaGetLastError(), cudaSuccess);
  same("reset frees", cudaFree(memory), cudaErrorInvalidValue);
  same("reset destroys", cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

void in_kernel() {
  void* memory = nullptr;
  std::string kind;
  stub::in_kernel = true;
  try {
    cudaMalloc(&memory, 4);
  } catch (const simt::Fault& fault) {
    kind = fault.kind;
  }
  stub::in_kernel = false;
  same("a host call in a kernel is a fault", kind == "host-call", true);
  same("it is none outside", cudaMalloc(&memory, 4), cudaSuccess);
  cudaFree(memory);
}

void device() {
  int value = -1;
  cudaDeviceProp p;
  same("count", cudaGetDeviceCount(&value) + value, 1);
  same("current", cudaGetDevice(&value) + value, 0);
  same("set", cudaSetDevice(0), cudaSuccess);
  same("set another", cudaSetDevice(1), cudaErrorInvalidDevice);
  same("set a negative one", cudaSetDevice(-1), cudaErrorInvalidDevice);
  same("properties", cudaGetDeviceProperties(&p, 0), cudaSuccess);
  same("properties of another", cudaGetDeviceProperties(&p, 1), cudaErrorInvalidDevice);
  same("its name", std::string(p.name) == "Kernel Ladder SIMT simulator", true);
  same("capability", p.major * 10 + p.minor, 90);
  same("SMs", p.multiProcessorCount, 108);
  same("opt-in shared memory", p.sharedMemPerBlockOptin, 227u * 1024);
  same("no bandwidth to be worked out", p.memoryClockRate + p.memoryBusWidth + p.clockRate, 0);
  same("attribute", cudaDeviceGetAttribute(&value, cudaDevAttrMaxGridDimX, 0) + value, 2147483647);
  same("no such attribute", cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(5000), 0),
       cudaErrorInvalidValue);
  same("runtime version", cudaRuntimeGetVersion(&value) + value, CUDART_VERSION);
  size_t limit = 0;
  same("set limit", cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 12345), cudaSuccess);
  same("get limit", cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize) + limit, 12345u);
  same("no such limit", cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1), cudaErrorUnsupportedLimit);
  cudaGetLastError();
}

void streams() {
  cudaStream_t stream = nullptr, second = nullptr;
  int priority = 1;
  same("create", cudaStreamCreate(&stream), cudaSuccess);
  same("create to null", cudaStreamCreate(nullptr), cudaErrorInvalidValue);
  same("create with bad flags", cudaStreamCreateWithFlags(&second, 8), cudaErrorInvalidValue);
  same("create with priority", cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -3), cudaSuccess);
  same("priority", cudaStreamGetPriority(second, &priority) + priority, -3);
  same("streams differ", stream != second, true);
  same("exists", simt::stream_exists(stream), true);
  same("synchronise", cudaStreamSynchronize(stream) + cudaStreamQuery(stream), 0);
  same("default streams", cudaStreamSynchronize(nullptr) + cudaStreamQuery(cudaStreamPerThread), 0);
  auto increment = [](void* n) { ++*static_cast<int*>(n); };
  int calls = 0;
  same("host function", cudaLaunchHostFunc(stream, increment, &calls), cudaSuccess);
  same("host function ran", calls, 1);
  same("no host function", cudaLaunchHostFunc(stream, nullptr, &calls), cudaErrorInvalidValue);
  auto callback = [](cudaStream_t, cudaError_t status, void* n) { *static_cast<int*>(n) += 10 + status; };
  same("callback", cudaStreamAddCallback(stream, callback, &calls, 0), cudaSuccess);
  same("callback ran", calls, 11);
  same("destroy", cudaStreamDestroy(stream), cudaSuccess);
  same("does not exist", simt::stream_exists(stream), false);
  const auto bad = cudaErrorInvalidResourceHandle;
  same("destroy twice", cudaStreamDestroy(stream), bad);
  same("destroy the default stream", cudaStreamDestroy(nullptr), bad);
  same("synchronise a destroyed one", cudaStreamSynchronize(stream), bad);
  same("host function of a destroyed one", cudaLaunchHostFunc(stream, increment, &calls), bad);
  same("last error", cudaGetLastError(), bad);
  cudaStream_t third = nullptr;
  cudaStreamCreate(&third);
  same("handles are not given twice", third != stream, true);

  simt::set_current_stream(third);
  same("current stream", simt::current_stream() == third, true);
  cudaStreamDestroy(third);
  same("a destroyed one is not current", simt::current_stream() == nullptr, true);
  cudaStream_t first_of_pool = simt::stream_from_pool(false), from_pool = nullptr;
  for (int i = 1; i < 32; ++i) from_pool = simt::stream_from_pool(false);
  same("the pool's streams differ", from_pool != first_of_pool, true);
  same("the pool has 32", simt::stream_from_pool(false) == first_of_pool, true);
}

void events() {
  cudaEvent_t start, stop, untimed;
  float milliseconds = -1;
  const auto bad = cudaErrorInvalidResourceHandle;
  same("create event", cudaEventCreate(&start) + cudaEventCreateWithFlags(&stop, cudaEventBlockingSync), 0);
  same("create event without time", cudaEventCreate(&untimed, cudaEventDisableTiming), cudaSuccess);
  same("create event with bad flags", cudaEventCreateWithFlags(&untimed, 64), cudaErrorInvalidValue);
  same("record", cudaEventRecord(start), cudaSuccess);
  same("elapsed before recording", cudaEventElapsedTime(&milliseconds, start, stop), bad);
  same("record the second", cudaEventRecord(stop, nullptr) + cudaEventRecord(untimed), 0);
  same("elapsed", cudaEventElapsedTime(&milliseconds, start, stop), cudaSuccess);
  same("elapsed is a time", milliseconds >= 0 && milliseconds < 1e6f, true);
  same("elapsed to null", cudaEventElapsedTime(nullptr, start, stop), cudaErrorInvalidValue);
  same("elapsed without time", cudaEventElapsedTime(&milliseconds, start, untimed), bad);
  cudaEventElapsedTime(&milliseconds, start, stop);
  same("wait", cudaStreamWaitEvent(nullptr, start) + cudaEventSynchronize(stop) + cudaEventQuery(stop), 0);
  same("destroy event", cudaEventDestroy(start), cudaSuccess);
  same("destroy event twice", cudaEventDestroy(start), bad);
  same("wait for a destroyed one", cudaStreamWaitEvent(nullptr, start, 0), bad);
  same("record a destroyed one", cudaEventRecord(start), bad);
  same("record on no stream", cudaEventRecord(stop, reinterpret_cast<cudaStream_t>(0x55)), bad);
  same("null event", cudaEventQuery(nullptr), bad);
  cudaGetLastError();
}

int blocks_of(int size, size_t shared) {
  int blocks = -1;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, size, shared) ? -1 : blocks;
}

void functions() {
  const auto opt_in = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const void* address = reinterpret_cast<const void*>(&kernel);
  same("48 KB by default", simt::dynamic_shared_limit(address), 48u * 1024);
  same("by threads", blocks_of(256, 0), 8);
  same("by whole warps", blocks_of(33, 0), 32);
  same("by blocks", blocks_of(32, 0), 32);
  same("by shared memory", blocks_of(128, 40 * 1024), 5);
  same("too large a block", blocks_of(1025, 0), 0);
  same("too much shared memory", blocks_of(128, 100 * 1024), 0);
  same("no block size", blocks_of(0, 0), -1);
  same("allow 100 KB", cudaFuncSetAttribute(kernel, opt_in, 100 * 1024), cudaSuccess);
  same("then it fits", blocks_of(128, 100 * 1024), 2);
  same("limit of the kernel", simt::dynamic_shared_limit(address), 100u * 1024);
  same("limit of another", simt::dynamic_shared_limit(reinterpret_cast<const void*>(&other_kernel)), 48u * 1024);
  same("largest limit", simt::dynamic_shared_limit(nullptr), 100u * 1024);
  same("allow 227 KB", cudaFuncSetAttribute(template_kernel<3>, opt_in, 227 * 1024), cudaSuccess);
  const auto large_clusters = cudaFuncAttributeNonPortableClusterSizeAllowed;
  same("large clusters", cudaFuncSetAttribute(kernel, large_clusters, 1), cudaSuccess);
  same("neither yes nor no", cudaFuncSetAttribute(kernel, large_clusters, 2), cudaErrorInvalidValue);
  same("allow too much", cudaFuncSetAttribute(kernel, opt_in, 227 * 1024 + 1), cudaErrorInvalidValue);
  same("no kernel", cudaFuncSetAttribute(static_cast<const void*>(nullptr), opt_in, 0), cudaErrorInvalidDeviceFunction);
  same("as a pointer", cudaFuncSetAttribute(address, opt_in, 50 * 1024), cudaSuccess);
  cudaFuncAttributes attributes;
  same("attributes", cudaFuncGetAttributes(&attributes, kernel), cudaSuccess);
  same("attribute of the kernel", attributes.maxDynamicSharedSizeBytes, 50 * 1024);

  int grid = 0, block = 0;
  same("potential", cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel), cudaSuccess);
  same("potential block", block, 1024);
  same("potential grid", grid, 2 * 108);
  same("potential, limited", cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 100) + block, 64);
  // 64 bytes per thread: the largest of the sizes at which an SM's shared memory holds most threads.
  auto bytes = [](int size) { return static_cast<size_t>(size) * 64; };
  same("potential, variable", cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, kernel, bytes),
       cudaSuccess);
  int blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, block, bytes(block));
  int best = 0;
  for (int size = 32; size <= 1024; size += 32) {
    int each = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, size, bytes(size));
    if (each * size > best) best = each * size;
  }
  same("potential, variable, is the best", blocks * block, best);
  same("potential, bad limit", cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, -1), cudaErrorInvalidValue);
  cudaGetLastError();
}

int main(int argc, char** argv) {
  return check::run(argc, argv, {texts, last_error, in_kernel, device, streams, events, functions});
}
