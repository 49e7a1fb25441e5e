// devices.h: the devices of a process (runtime_devices.h in the include directory), and whose turn it is to work.
#pragma once

#include <functional>

#include "../../include/simt/runtime_api.h"

namespace simt {

constexpr int kMostDevices = 8;

// What KERNEL_XRAY_DEVICES says, 1 by default. Throws std::invalid_argument if it is not a number from 1 to 8.
int device_count();
std::string wrong_device_count();  // the sentence for a bad value, or ""

inline bool is_device(int device) { return device >= 0 && device < device_count(); }
int current_device();  // of this host thread; in a kernel, the device that runs it

// True if kernels on `device` may use memory of `owner`: their own, or that of a peer whose access was enabled.
bool may_access(int device, int owner);
void forget_peers(int device);  // cudaDeviceReset

// Makes a device current as long as it lives.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

// The same action, on the device that is current now.
std::function<cudaError_t()> on_this_device(std::function<cudaError_t()> action);

// The current device works as long as it lives. Other devices wait: the variables of kernels hold this device's values,
// and while it runs kernels, memory that it may not access is protected. Of no effect if there is one device.
class Turn {
 public:
  enum class Work { kernel, copy };
  explicit Turn(Work work);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const bool counted_, kernel_;
};

// For the handler of a fault in host code. Host threads may use memory that is protected while another device runs
// kernels: true after waiting for the end of that turn, so that the access is to be repeated.
bool protected_for_now(const void* address);

}  // namespace simt
