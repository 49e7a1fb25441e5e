// runtime_api_torch_test.cpp: the replacements for PyTorch's CUDA headers, on libc10 alone.
#include <string>

#include "check.h"
#include "runtime_api_stub.h"

#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

using at::cuda::getCurrentCUDAStream;
using check::same;

// The message of the exception thrown here, or "".
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

void guards() {
  const c10::Device cpu(c10::DeviceType::CPU), meta(c10::DeviceType::Meta);
  const auto ordinal = [](const std::string& message) {
    return message.find("CUDA error: invalid device ordinal") == 0;
  };
  same("guard",
       error_of([&] { c10::cuda::CUDAGuard a(cpu), b(-1), c(0), d(c10::Device(c10::DeviceType::CPU, 0)); }) == "",
       true);
  same("guard of device 1", ordinal(error_of([] { c10::cuda::CUDAGuard guard(1); })), true);
  same("guard of another kind", error_of([&] { c10::cuda::CUDAGuard guard(meta); }).find("meta") != std::string::npos,
       true);
  at::cuda::OptionalCUDAGuard none, some(std::optional<c10::Device>{cpu});
  same("optional guard, none", none.current_device().has_value(), false);
  same("optional guard, some", some.current_device() == cpu, true);
  same("optional guard of device 2", ordinal(error_of([&] { none.set_index(2); })), true);
  same("devices", c10::cuda::device_count() * 10 + c10::cuda::current_device(), 10);
  same("set device 3", ordinal(error_of([] { c10::cuda::set_device(3); })), true);
  same("properties", at::cuda::getCurrentDeviceProperties()->multiProcessorCount, 108);
  same("properties of device 4", ordinal(error_of([] { at::cuda::getDeviceProperties(4); })), true);
}

void streams() {
  const auto stream = at::cuda::getStreamFromPool(), urgent = at::cuda::getStreamFromPool(true);
  same("default stream", getCurrentCUDAStream().stream() == nullptr, true);
  same("device of a stream", stream.device() == c10::Device(c10::DeviceType::CPU), true);
  same("priority", urgent.priority() * 10 + stream.priority(), -10);
  {
    const c10::cuda::CUDAStreamGuard outer(stream);
    same("guarded", getCurrentCUDAStream() == stream, true);
    {
      c10::cuda::CUDAStreamGuard inner(urgent);
      same("guarded twice", getCurrentCUDAStream(0) == urgent, true);
      inner.reset_stream(at::cuda::getDefaultCUDAStream());
      same("guard reset", getCurrentCUDAStream() == urgent, false);
      same("original stream", inner.original_stream() == stream, true);
    }
    same("inner one restored", getCurrentCUDAStream() == stream, true);
  }
  same("outer one restored", static_cast<cudaStream_t>(getCurrentCUDAStream(-1)) == nullptr, true);
  c10::cuda::setCurrentCUDAStream(stream);
  same("set", getCurrentCUDAStream().id() == stream.id(), true);
  c10::cuda::setCurrentCUDAStream(c10::cuda::getDefaultCUDAStream());
  same("unwrapped and wrapped", c10::cuda::CUDAStream(stream.unwrap()) == stream, true);
  same("not a stream",
       error_of([] { c10::cuda::CUDAStream(c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCPU), 99)); }) == "",
       false);
  same("stream on device 5", error_of([] { getCurrentCUDAStream(5); }) == "", false);
  same("query and synchronise", error_of([&] { stream.query(), stream.synchronize(); }) == "", true);
}

void checks() {
  C10_CUDA_CHECK(cudaSuccess);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  simt::set_last_error(9);
  const int line = __LINE__ + 1;
  const std::string launch = error_of([] { C10_CUDA_KERNEL_LAUNCH_CHECK(); });
  same("launch check", launch.find("CUDA error: invalid configuration argument\n") == 0, true);
  same("where", launch.find("runtime_api_torch_test.cpp:" + std::to_string(line)) != std::string::npos, true);
  same("what to do", launch.find("1 to 1024 threads") != std::string::npos, true);
  same("checked once", cudaGetLastError(), cudaSuccess);
  const std::string call = error_of([] { AT_CUDA_CHECK(cudaSetDevice(9)); });
  same("call check", call.find("CUDA error: invalid device ordinal\n  cudaErrorInvalidDevice") == 0, true);
  bool accelerator = false;
  try {
    C10_CUDA_CHECK(cudaErrorInvalidValue);
  } catch (const c10::AcceleratorError& error) {
    accelerator = true;
  }
  same("the exception is PyTorch's", accelerator, true);
  C10_CUDA_IGNORE_ERROR(cudaSetDevice(9));
  same("ignored", cudaGetLastError(), cudaSuccess);
}

void event_and_memory() {
  at::cuda::CUDAEvent untimed, start(cudaEventDefault), stop(cudaEventDefault);
  same("not created", untimed.isCreated(), false);
  untimed.record();
  start.record(getCurrentCUDAStream());
  stop.record();
  same("created", untimed.isCreated() && untimed.query(), true);
  same("time", start.elapsed_time(stop) >= 0, true);
  same("no time", error_of([&] { start.elapsed_time(untimed); }) == "", false);
  same("moved", at::cuda::CUDAEvent(std::move(untimed)).isCreated(), true);

  void* memory = c10::cuda::CUDACachingAllocator::raw_alloc(64);
  cudaPointerAttributes attributes;
  C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
  same("raw memory", attributes.type, cudaMemoryTypeDevice);
  c10::cuda::CUDACachingAllocator::raw_delete(memory);
  same("deleted twice", error_of([=] { c10::cuda::CUDACachingAllocator::raw_delete(memory); }) == "", false);
  same("allocator", at::cuda::getCUDADeviceAllocator()->allocate(16).get() != nullptr, true);
}

void atomics() {
  c10::Half half = 1.5f;
  c10::BFloat16 bfloat = 2.0f;
  int64_t wide = 5;
  uint8_t small = 250;
  float number = 1;
  c10::complex<float> pair(1, 2);
  same("half, old", static_cast<float>(gpuAtomicAdd(&half, c10::Half(2.0f))), 1.5f);
  same("half", static_cast<float>(half), 3.5f);
  gpuAtomicAddNoReturn(&bfloat, 1.0f);
  same("bfloat16", static_cast<float>(bfloat), 3.0f);
  atomicAdd(&wide, int64_t{1} << 40);
  same("int64", wide, (int64_t{1} << 40) + 5);
  gpuAtomicAdd(&small, 10);
  same("uint8 wraps", static_cast<int>(small), 4);
  gpuAtomicMax(&number, 3.0f);
  gpuAtomicMin(&number, 2.0f);
  gpuAtomicMul(&number, 5.0f);
  same("max, min, mul", number, 10.0f);
  gpuAtomicAdd(&pair, c10::complex<float>(1, 1));
  same("complex", pair.real() * 10 + pair.imag(), 23.0f);
}

int main(int argc, char** argv) { return check::run(argc, argv, {guards, streams, checks, event_and_memory, atomics}); }
