// runtime_api_stable.cpp: a stable-ABI extension that uses the device guard, the current stream and the checks, in the
// forms of published code. Also compiled for an older PyTorch (TORCH_TARGET_VERSION), whose Stream has no handle.
#include <cuda_runtime.h>

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#ifdef WITH_STUB
#include "runtime_api_stub.h"
#endif

using torch::stable::Tensor;

Tensor copy(Tensor x) {
  const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
  const auto stream = torch::stable::accelerator::getCurrentStream(x.get_device_index());
  void* current = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &current));
#if defined(TORCH_VERSION_2_13_0) && TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  STD_TORCH_CHECK(stream.nativeHandle() == current, "two current streams");
#endif
  STD_TORCH_CHECK(stream.id() == static_cast<int64_t>(reinterpret_cast<intptr_t>(current)), "a stream's id");
  Tensor out = torch::stable::empty_like(x);
  STD_CUDA_CHECK(cudaMemcpyAsync(out.mutable_data_ptr(), x.const_data_ptr(), x.numel() * sizeof(float),
                                 cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(current)));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// 0: the default stream, 1: one from the pool, 2: a destroyed one. Returns whether the guard set and restored it.
bool stream_guard(int64_t which) {
  cudaStream_t stream = nullptr;
  if (which == 1) TORCH_ERROR_CODE_CHECK(torch_get_cuda_stream_from_pool(false, 0, reinterpret_cast<void**>(&stream)));
  if (which == 2) STD_CUDA_CHECK(cudaStreamCreate(&stream));
  if (which == 2) STD_CUDA_CHECK(cudaStreamDestroy(stream));
  void *before = nullptr, *during = nullptr, *after = nullptr;
  CUDAStreamGuardHandle guard = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(0, &before));
  TORCH_ERROR_CODE_CHECK(aoti_torch_create_cuda_stream_guard(stream, 0, &guard));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(0, &during));
  TORCH_ERROR_CODE_CHECK(aoti_torch_delete_cuda_stream_guard(guard));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(0, &after));
  return during == stream && after == before && (which == 0) == (during == before);
}

int64_t launch_check(int64_t error) {
  simt::set_last_error(static_cast<int>(error));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return error;
}

int64_t guard_device(int64_t index) {
  torch::stable::accelerator::DeviceGuard guard(0);
  guard.set_index(static_cast<int32_t>(index));
  return torch::stable::accelerator::getCurrentDeviceIndex();
}

struct Streamed {};
std::ostream& operator<<(std::ostream& to, const Streamed&) { return to << "streamed"; }

// Whether failed checks say what PyTorch's own function makes of their arguments.
bool check_message() {
#define SAID "n ", 7, ' ', -3L, ' ', 2.5, true, x, name, device, Streamed()
  const char x = 'x', name[] = "name";
  const std::string device = "device";
  const std::string place = std::string("check_message, ") + __FILE__ + ":";
  std::string bare, full;
  const int line = __LINE__ + 2;
  try {
    STD_TORCH_CHECK(line < 0);
  } catch (const std::runtime_error& error) {
    bare = error.what();
  }
  try {
    STD_TORCH_CHECK(line < 0, SAID);
  } catch (const std::runtime_error& error) {
    full = error.what();
  }
  STD_TORCH_CHECK(line > 0, "a check that holds");
  const std::string said = torch::headeronly::detail::stdTorchCheckMsgImpl("", SAID);
  return bare == place + std::to_string(line) + ", " && full == place + std::to_string(line + 5) + ", " + said;
}

STABLE_TORCH_LIBRARY(simt_runtime_api, m) {
  m.def("check_message() -> bool");
  m.def("copy(Tensor x) -> Tensor");
  m.def("stream_guard(int which) -> bool");
  m.def("launch_check(int error) -> int");
  m.def("guard_device(int index) -> int");
}

STABLE_TORCH_LIBRARY_IMPL(simt_runtime_api, CompositeExplicitAutograd, m) {
  m.impl("check_message", TORCH_BOX(&check_message));
  m.impl("copy", TORCH_BOX(&copy));
  m.impl("stream_guard", TORCH_BOX(&stream_guard));
  m.impl("launch_check", TORCH_BOX(&launch_check));
  m.impl("guard_device", TORCH_BOX(&guard_device));
}
