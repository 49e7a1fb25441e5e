// program.cpp: starts a program, and reports its fault and the findings of its X-ray.
#include "api/program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "api/devices.h"
#include "api/host_call.h"

extern "C" {  // trace/session.cpp
SIMT_API void simt_trace_begin(uint64_t seed, uint64_t max_blocks, uint64_t budget, double seconds,
                               bool (*ask)(uint64_t));
SIMT_API const char* simt_trace_so_far();
}

namespace simt::program {

std::mutex tracing;

namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kAlwaysWritten = 100;  // launches
constexpr auto kInterval = std::chrono::milliseconds(500);

struct Program {
  std::string folder;        // for fault and findings; empty: they are not wanted
  pid_t process = getpid();  // a forked child writes neither
  uint64_t base = 0;         // the address at which the program is loaded
  bool traced = false;
  // With `tracing` locked:
  unsigned launches = 0;                     // traced ones that have ended
  Clock::time_point written = Clock::now();  // when the findings were written
};
Program* current = nullptr;  // never destroyed: static objects may launch kernels at exit

// Reads a variable that is for this program alone, not for programs that it starts.
std::string take_variable(const char* name) {
  const char* text = std::getenv(name);
  const std::string value = text ? text : "";
  unsetenv(name);
  return value;
}

// Another process may end this one at any time, so the file is replaced completely or not at all.
void write(const std::string& name, const std::string& text) {
  if (current->folder.empty() || getpid() != current->process) return;
  const std::string path = current->folder + "/" + name, partial = path + ".partial";
  std::FILE* file = std::fopen(partial.c_str(), "wb");
  if (!file) return;
  const bool complete = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && complete) std::rename(partial.c_str(), path.c_str());
}

void write_findings() {
  const std::string found = simt_trace_so_far();  // an object
  write("xray.json", "{\"base\":" + std::to_string(current->base) + "," + found.substr(1));
  current->written = Clock::now();
}

void write_last_findings() {
  const std::unique_lock<std::mutex> alone(tracing, std::try_to_lock);
  if (alone) write_findings();  // otherwise another thread is in a launch
}

}  // namespace

bool running() { return current != nullptr; }
bool device_lost() { return final_fault() != cudaSuccess; }

void report(const FaultRecord& fault) {
  static std::once_flag reported;
  std::call_once(reported, [&] {
    std::fprintf(stderr, "kernel fault (%s): %s\n", fault.kind.c_str(), fault.message.c_str());
    write("fault", fault.kind + "\n" + fault.message);
  });
  if (current->traced) write_last_findings();
}

void block_ended() {
  if (current && current->traced && Clock::now() - current->written >= kInterval) write_findings();
}

void launch_ended() {
  if (current && current->traced && ++current->launches <= kAlwaysWritten) write_findings();
  block_ended();
}

}  // namespace simt::program

using simt::program::current;
using simt::program::take_variable;

// `inside`: an address in the program.
extern "C" SIMT_API void simt_program(const void* inside) {
  current = new simt::program::Program;
  simt::keep_faults();
  if (const std::string why = simt::wrong_device_count(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    _exit(EXIT_FAILURE);
  }
  current->folder = take_variable("KERNEL_XRAY_FINDINGS");
  Dl_info info;
  if (dladdr(const_cast<void*>(inside), &info)) current->base = reinterpret_cast<uint64_t>(info.dli_fbase);
  const std::string xray = take_variable("KERNEL_XRAY_XRAY");
  uint64_t seed, max_blocks, budget;
  double seconds;
  const char* const form = "%" SCNu64 " %" SCNu64 " %" SCNu64 " %lf";
  if (std::sscanf(xray.c_str(), form, &seed, &max_blocks, &budget, &seconds) != 4) return;
  simt_trace_begin(seed, max_blocks, budget, seconds, nullptr);
  current->traced = true;
  std::atexit(simt::program::write_last_findings);
}
