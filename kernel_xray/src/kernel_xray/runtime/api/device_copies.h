// device_copies.h: each device's own values of the __device__ and __constant__ variables.
//
// A variable has one address, and holds the values of the device whose turn it is (devices.h); those of the others are
// kept here. A translated source adds its __device__ variables when its library is loaded (core.h,
// SIMT_DEVICE_VARIABLE). A __constant__ variable is added when the host first asks for it, before which no device can
// have changed it. Nothing is kept if there is one device.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace simt {

class DeviceCopies {
 public:
  static DeviceCopies& instance();

  // `shared`: all devices see the same values, as of a __managed__ variable. Nothing happens for a known address.
  void add(const volatile void* start, size_t bytes, bool shared = false);
  void remove(const volatile void* start);
  bool has(const void* address);  // that of a byte of a variable with copies
  void load(int device);          // the device whose turn begins

 private:
  struct Variable {
    size_t bytes;
    std::vector<std::vector<char>> values;  // by device; empty: shared
  };
  using Map = std::map<uintptr_t, Variable>;  // by start
  Map::iterator holding(uintptr_t address);   // the variable that holds this byte, or end()

  std::mutex mutex_;
  Map variables_;
  int loaded_ = 0;
};

}  // namespace simt
