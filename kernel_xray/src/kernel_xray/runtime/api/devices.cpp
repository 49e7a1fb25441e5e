// devices.cpp: the number of devices, the current device of each host thread, peers, and turns.
#include "api/devices.h"

#include <time.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "../../include/simt/lasting.h"
#include "api/allocations.h"
#include "api/device_copies.h"
#include "api/host_call.h"

namespace simt {
namespace {

struct Count {
  int devices = 1;
  std::string complaint;
};

const Count& count() {
  static const Count* found = [] {
    auto* result = new Count;
    const char* text = std::getenv("KERNEL_XRAY_DEVICES");
    if (!text || !*text) return result;
    if (std::strlen(text) == 1 && text[0] >= '1' && text[0] <= '0' + kMostDevices)
      result->devices = text[0] - '0';
    else
      result->complaint = std::string("KERNEL_XRAY_DEVICES is '") + text +
                          "'; it is the number of devices that the simulator has: 1 to 8";
    return result;
  }();
  return *found;
}

thread_local int chosen = 0;
std::atomic<bool> peers[kMostDevices][kMostDevices];  // [of the kernel][of the memory]

struct Turns {
  std::mutex mutex;
  std::condition_variable over;
  unsigned users = 0;
};
Turns& turns() { return lasting<Turns>(); }
// Changed with the mutex locked, and read by kernels and by the handler of a fault.
std::atomic<int> working{0};
std::atomic<unsigned> kernels{0}, protections{0};
thread_local unsigned kernels_here = 0;  // launches of this thread, which must not wait for their own end

}  // namespace

std::string wrong_device_count() { return count().complaint; }

int device_count() {
  if (!count().complaint.empty()) throw std::invalid_argument(count().complaint);
  return count().devices;
}

int current_device() { return in_kernel() ? working.load() : chosen; }

bool may_access(int device, int owner) { return device == owner || peers[device][owner]; }

void forget_peers(int device) {
  for (int other = 0; other < kMostDevices; ++other) peers[device][other] = peers[other][device] = false;
}

OnDevice::OnDevice(int device) : before_(chosen) { chosen = device; }
OnDevice::~OnDevice() { chosen = before_; }

std::function<cudaError_t()> on_this_device(std::function<cudaError_t()> action) {
  if (device_count() == 1) return action;
  return [action = std::move(action), device = current_device()] {
    const OnDevice there(device);
    return action();
  };
}

Turn::Turn(Work work) : counted_(device_count() > 1), kernel_(work == Work::kernel) {
  if (!counted_) return;
  Turns& all = turns();
  std::unique_lock<std::mutex> lock(all.mutex);
  all.over.wait(lock, [&] { return all.users == 0 || working == chosen; });
  if (all.users++ == 0) {
    working = chosen;
    DeviceCopies::instance().load(chosen);
  }
  if (!kernel_) return;
  ++kernels_here;
  if (kernels++ != 0) return;
  ++protections;
  Allocations::instance().protect_from(chosen);
}

Turn::~Turn() {
  if (!counted_) return;
  Turns& all = turns();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (kernel_) {
    --kernels_here;
    if (kernels == 1) Allocations::instance().end_protection();
    --kernels;
  }
  if (--all.users == 0) all.over.notify_all();
}

bool protected_for_now(const void* address) {
  // An access that fails twice without a launch in between is the program's own mistake.
  static thread_local const void* last = nullptr;
  static thread_local unsigned last_protection = 0;
  constexpr timespec moment = {0, 100'000};  // 0.1 ms
  const unsigned protection = protections;
  if (protection == 0 || kernels_here || !Allocations::instance().in_range(address)) return false;
  if (kernels == 0 && last == address && last_protection == protection) return false;
  last = address;
  last_protection = protection;
  while (kernels != 0 && protections == protection) nanosleep(&moment, nullptr);
  return true;
}

}  // namespace simt

using simt::failed;
using simt::is_device;

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return failed(cudaErrorInvalidValue);
  *count = simt::device_count();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (!device) return failed(cudaErrorInvalidValue);
  *device = simt::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  simt::chosen = device;
  return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  if (!devices || count < 0 || count > simt::device_count()) return failed(cudaErrorInvalidValue);
  for (int i = 0; i < count; ++i)
    if (!is_device(devices[i])) return failed(cudaErrorInvalidDevice);
  return cudaSuccess;
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (!device || !wanted) return failed(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return failed(cudaErrorInvalidDevice);
  if (!can_access) return failed(cudaErrorInvalidValue);
  *can_access = device != peer;  // a device is not its own peer
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  simt::host_only("cudaDeviceEnablePeerAccess");
  if (flags != 0) return failed(cudaErrorInvalidValue);
  if (!is_device(peer)) return failed(cudaErrorInvalidDevice);
  if (peer == simt::chosen) return failed(cudaErrorPeerAccessUnsupported);  // what an H200 says
  return simt::peers[simt::chosen][peer].exchange(true) ? failed(cudaErrorPeerAccessAlreadyEnabled) : cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  simt::host_only("cudaDeviceDisablePeerAccess");
  if (!is_device(peer)) return failed(cudaErrorInvalidDevice);
  return simt::peers[simt::chosen][peer].exchange(false) ? cudaSuccess : failed(cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  if (!is_device(device) || !is_device(peer) || device == peer) return failed(cudaErrorInvalidDevice);
  if (!value || attribute < cudaDevP2PAttrPerformanceRank || attribute > cudaDevP2PAttrCudaArrayAccessSupported)
    return failed(cudaErrorInvalidValue);
  *value = attribute == cudaDevP2PAttrAccessSupported || attribute == cudaDevP2PAttrNativeAtomicSupported;
  return cudaSuccess;
}
