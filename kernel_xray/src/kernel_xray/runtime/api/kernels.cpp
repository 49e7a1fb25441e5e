// kernels.cpp: launches through a kernel's address (runtime_launch.h).
#include "api/kernels.h"

#include <map>
#include <mutex>

#include "../../include/simt/lasting.h"
#include "api/host_call.h"

namespace simt {
namespace {

struct Kernel {
  const char* name = "a kernel";
  bool traced = false;
  detail::MakeClosure make = nullptr;
};

struct Kernels {
  std::mutex mutex;
  std::map<const void*, Kernel> known;
};

Kernels& known_kernels() { return lasting<Kernels>(); }

Kernel find(const void* address) {
  const std::lock_guard<std::mutex> lock(known_kernels().mutex);
  const auto it = known_kernels().known.find(address);
  return it == known_kernels().known.end() ? Kernel{} : it->second;
}

// Applies a launch's attributes; false if the simulator does not know one.
bool apply_attributes(const cudaLaunchConfig_t& launch, Site& site, Config& config) {
  for (unsigned i = 0; i < launch.numAttrs; ++i) {
    const cudaLaunchAttributeValue& value = launch.attrs[i].val;
    switch (launch.attrs[i].id) {
      case cudaLaunchAttributeCooperative:
        config.cooperative = value.cooperative != 0;
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        config.early = value.programmaticStreamSerializationAllowed != 0;
        break;
      case cudaLaunchAttributeClusterDimension:
        site.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        break;
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributePreferredClusterDimension:  // of some of the clusters; the others have the dimensions above
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        break;
      default:
        return false;
    }
  }
  return true;
}

// What a launch needs besides its arguments.
cudaError_t describe(const detail::ConfigAt& at, const void* kernel, Site& site, Config& config) {
  const cudaLaunchConfig_t* given = at.config;
  if (!given || (given->numAttrs && !given->attrs)) return failed(cudaErrorInvalidValue);
  if (!kernel) return failed(cudaErrorInvalidDeviceFunction);
  const Kernel known = find(kernel);
  site = site_of(kernel, {known.name, at.file, at.line, kernel});
  site.traced = known.traced;
  config = {given->gridDim, given->blockDim, given->dynamicSmemBytes, given->stream};
  return apply_attributes(*given, site, config) ? cudaSuccess : failed(cudaErrorNotSupported);
}

cudaError_t answer(int code) { return code ? failed(static_cast<cudaError_t>(code)) : cudaSuccess; }

}  // namespace

cudaError_t prepare_launch(const detail::ConfigAt& at, const void* kernel, void** arguments, bool cooperative,
                           std::optional<StoredLaunch>& launch) {
  Site site{};
  Config config(1, 1);
  if (cudaError_t error = describe(at, kernel, site, config)) return error;
  config.cooperative |= cooperative;
  const detail::MakeClosure make = find(kernel).make;
  if (!make)
    throw Fault("unsupported", std::string("not supported by the simulator: the launch at ") + at.file + ":" +
                                   std::to_string(at.line) +
                                   " of a kernel whose type is not known any more; give the kernel's name in this "
                                   "call, or cast it to void* in the file that defines it");
  launch.emplace(site, config, make(kernel, arguments));
  return cudaSuccess;
}

namespace detail {

void register_kernel(const void* kernel, const char* name, bool traced, MakeClosure make) {
  const std::lock_guard<std::mutex> lock(known_kernels().mutex);
  Kernel& known = known_kernels().known[kernel];
  known.make = make;
  known.traced = traced;
  if (name) known.name = name;
}

cudaError_t launch_pointer(const ConfigAt& at, const void* kernel, void** arguments, bool cooperative) {
  host_only("cudaLaunchKernel");
  std::optional<StoredLaunch> launch;
  if (cudaError_t error = prepare_launch(at, kernel, arguments, cooperative, launch)) return error;
  return answer(launch->start());
}

cudaError_t launch_closure(const ConfigAt& at, const void* kernel, const Closure& closure) {
  host_only("cudaLaunchKernelEx");
  Site site{};
  Config config(1, 1);
  if (cudaError_t error = describe(at, kernel, site, config)) return error;
  return answer(start(site, config, closure));
}

}  // namespace detail
}  // namespace simt
