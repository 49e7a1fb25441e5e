// device_variables.h: the __device__ and __managed__ variables of traced kernels, by address.
//
// A translated source registers each of its variables when its library is loaded (core.h, SIMT_DEVICE_VARIABLE), so that
// the tracer can tell them from constants and literals, which a GPU does not keep in global memory.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace simt {

class DeviceVariables {
 public:
  struct Span {
    uint64_t start = 0, bytes = 0;
    std::string name;
  };
  static DeviceVariables& instance();

  void add(const Span& span);  // several sources may register one variable
  void remove(uint64_t start);
  bool find(uint64_t address, Span& found);  // the variable that holds this byte
  // The part of the page of an address that lies between variables, as [start, end).
  std::pair<uint64_t, uint64_t> gap(uint64_t address, uint64_t page);

 private:
  struct Entry {
    Span span;
    unsigned count;
  };
  std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by start
};

}  // namespace simt
