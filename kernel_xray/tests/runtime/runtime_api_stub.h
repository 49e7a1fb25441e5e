// runtime_api_stub.h: the parts of the simulator's run-time library that the run-time API calls, without kernels.
//
// A launch runs its kernel once, as one thread. A test says that it is in a kernel by setting stub::in_kernel; fault()
// then throws, where the library would end the block.
#pragma once

#include <utility>

#include "simt/runtime_api.h"
#include "threads/launch.h"

namespace stub {
inline bool in_kernel = false;
}

namespace simt {

bool in_kernel() { return stub::in_kernel; }
char* stack_end() { return static_cast<char*>(__builtin_frame_address(0)) + 65536; }
Fault::Fault(std::string kind_, std::string message_) : kind(std::move(kind_)), message(std::move(message_)) {}
Fault::~Fault() = default;
const char* Fault::what() const noexcept { return message.c_str(); }
void fault(const char* kind, const std::string& message) { throw Fault(kind, message); }
void fault(const char* kind, const char* message) { throw Fault(kind, message); }
int run_launch(const Site&, const Config&, const Closure& closure, unsigned) {
  Thread thread{};
  Range alone{&thread, dim3(), 0};
  closure.run(closure.state, alone);
  return 0;
}
Site site_of(const void*, Site site) { return site; }
int configuration_error(const Site&, const Config& config) { return config.block.x == 0 ? 9 : 0; }
int start(const Site& site, const Config& config, const Closure& closure) {
  if (int code = configuration_error(site, config)) return code;
  return run_launch(site, config, closure, 0);
}

namespace trace {
void forget_kernel_before() {}
int told_sms(int own) { return own; }
}  // namespace trace

}  // namespace simt

extern "C" {  // of the tracer, for program.cpp
SIMT_API void simt_trace_begin(uint64_t, uint64_t, uint64_t, bool (*)(uint64_t)) {}
SIMT_API const char* simt_trace_so_far() { return "{}"; }
}
