// runtime_launch.h: launches through a kernel's address: cudaLaunchKernel, cudaLaunchCooperativeKernel and the forms
// with a cudaLaunchConfig_t. Included by runtime_api.h.
//
// CUDA's driver knows the parameters of every kernel; here its C++ type does. So the address of a kernel has to pass
// known() once, where its type is still known. The translator puts known() around the kernel's name in these calls,
// and wherever the name of a kernel in the same file is cast to void*. A launch through an address that never passed it
// is refused with a sentence.
//
// A cooperative launch may have as many blocks as the device holds at the same time: the occupancy of
// cudaOccupancyMaxActiveBlocksPerMultiprocessor on 108 SMs. Of a launch's attributes, the cluster's dimensions and
// `cooperative` have an effect; those that only concern scheduling, caches and priorities have none.
#pragma once

#include "runtime_types.h"

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8,
  cudaLaunchAttributeMemSyncDomain = 10,
  cudaLaunchAttributePreferredClusterDimension = 11,
  cudaLaunchAttributePreferredSharedMemoryCarveout = 14,
};

struct cudaLaunchAttributeDim {
  unsigned x, y, z;
};

union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  cudaLaunchAttributeDim clusterDim, preferredClusterDim;
  int clusterSchedulingPolicyPreference;
  int programmaticStreamSerializationAllowed;
  int syncPolicy;
  int priority;
  int memSyncDomain;
  unsigned sharedMemCarveout;
};

struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace simt {
namespace detail {

// Makes a closure on the heap of a kernel and the arguments that these pointers point to.
using MakeClosure = Closure (*)(const void* kernel, void** arguments);

// An argument as the launch keeps it: of an object with a destructor the bytes alone, as CUDA sends them.
template <typename T>
struct Kept {
  alignas(T) unsigned char bytes[sizeof(T)];
  explicit Kept(const T& from) { __builtin_memcpy(bytes, std::addressof(from), sizeof(T)); }
  operator T&() { return *reinterpret_cast<T*>(bytes); }
};
template <typename T>
using KeptAs = std::conditional_t<std::is_trivially_destructible_v<T>, T, Kept<T>>;

template <typename... Parameters>
struct PointerCall : Arguments<KeptAs<std::decay_t<Parameters>>...> {
  using Kept = Arguments<KeptAs<std::decay_t<Parameters>>...>;
  void (*kernel)(Parameters...);

  template <typename... Given>
  SIMT_HERE explicit PointerCall(void (*kernel_)(Parameters...), Given&&... given)
      : Kept(std::index_sequence_for<Parameters...>(), static_cast<Given&&>(given)...), kernel(kernel_) {}
  SIMT_HERE void operator()() { this->give(CopiesOfBytes(), *this); }

  SIMT_HERE void operator()(CopiesOfBytes pass, KeptAs<std::decay_t<Parameters>>&... kept) const {
    if constexpr ((std::is_trivially_destructible_v<std::decay_t<Parameters>> && ...)) {
      kernel(kept...);
    } else {
      pass(kernel, static_cast<std::decay_t<Parameters>&>(kept)...);
    }
  }
};

template <typename... Parameters, size_t... i>
Closure make_closure(const void* kernel, [[maybe_unused]] void** arguments, std::index_sequence<i...>) {
  auto* call = new PointerCall<Parameters...>(reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(kernel)),
                                              *static_cast<std::decay_t<Parameters>*>(arguments[i])...);
  Closure closure = closure_of(*call);
  closure.on_heap = true;
  return closure;
}
template <typename... Parameters>
Closure make_closure(const void* kernel, void** arguments) {
  return make_closure<Parameters...>(kernel, arguments, std::index_sequence_for<Parameters...>());
}

SIMT_API void register_kernel(const void* kernel, const char* name, bool traced, MakeClosure make);

struct ConfigAt {  // a launch's configuration, and its place in the source
  const cudaLaunchConfig_t* config;
  const char* file;
  int line;
  ConfigAt(const cudaLaunchConfig_t* config_, const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE())
      : config(config_), file(file_), line(line_) {}
};
SIMT_API cudaError_t launch_pointer(const ConfigAt& at, const void* kernel, void** arguments, bool cooperative);
SIMT_API cudaError_t launch_closure(const ConfigAt& at, const void* kernel, const Closure& closure);

}  // namespace detail

// Remembers how to launch the kernel of this name and address, and returns the address. With a null name it keeps the
// one that it may have had.
template <typename... Parameters>
auto known(const char* name, void (*kernel)(Parameters...)) {
  detail::register_kernel(reinterpret_cast<const void*>(kernel), name, Site{}.traced,
                          &detail::make_closure<Parameters...>);
  return kernel;
}
template <typename T>
T known(const char*, T other) {  // not a kernel: the address of one that has passed before
  return other;
}

// A launch of what a pointer holds, `pointer<<<config>>>(arguments)`. The host reads the pointer, once.
template <typename... Parameters>
auto launcher_of(const Site& given, void (*kernel)(Parameters...), Config config) {
  const Site site = site_of(reinterpret_cast<const void*>(kernel), given);
  return [=](Parameters... arguments) {
    detail::PointerCall<Parameters...> call(kernel, static_cast<Parameters&&>(arguments)...);
    launch(site, config, closure_of(call));
  };
}

}  // namespace simt

#define SIMT_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

// The arguments are pointers to the kernel's arguments, in order.
template <typename T>
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, T* kernel, void** arguments, SIMT_CALLER) {
  const auto* address = reinterpret_cast<const void*>(simt::known(nullptr, kernel));
  return simt::detail::launch_pointer({config, file, line}, address, arguments, false);
}

template <typename T>
cudaError_t cudaLaunchKernel(T* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr, SIMT_CALLER) {
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream};
  return cudaLaunchKernelExC(&config, kernel, arguments, file, line);
}

template <typename T>
cudaError_t cudaLaunchCooperativeKernel(T* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr, SIMT_CALLER) {
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream};
  const auto* address = reinterpret_cast<const void*>(simt::known(nullptr, kernel));
  return simt::detail::launch_pointer({&config, file, line}, address, arguments, true);
}

#undef SIMT_CALLER

// The same with the arguments themselves.
template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(simt::detail::ConfigAt config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "a launch needs one argument for each parameter");
  simt::detail::PointerCall<Parameters...> call(kernel, std::forward<Arguments>(arguments)...);
  const auto* address = reinterpret_cast<const void*>(simt::known(nullptr, kernel));
  return simt::detail::launch_closure(config, address, simt::closure_of(call));
}
