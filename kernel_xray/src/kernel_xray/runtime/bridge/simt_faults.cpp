// simt_faults.cpp: the bridge between the simulator and PyTorch. It turns a fault in a simulated kernel into Python's
// kernel_xray.KernelFault.
//
// pybind11 tries the translators of all modules that share its internals, PyTorch's operators among them, the newest
// first. So one registration here serves every extension, whatever it is bound with.
//
// It also replaces PyTorch's CPU allocator while a function is X-rayed. So the tracer knows the memory that the
// function itself allocates: where it ends, and that nothing has written to it yet.
//
// Another allocator, for tests of tensors larger than the machine's memory, only reserves addresses: memory is zero and
// takes a page where it is first written. Wide gaps keep the tensors apart, so that an index that has lost its upper 32
// bits meets no other tensor but faults.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <pybind11/pybind11.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "simt/core.h"

namespace py = pybind11;

namespace {
PyObject* fault_type = nullptr;  // kept for the life of the process

extern "C" {
void simt_trace_fresh(uint64_t start, uint64_t bytes, uint64_t poison, const char* name);
void simt_trace_forget(uint64_t start);
void simt_window(uint64_t width);
uint64_t simt_window_left_out();
void simt_name_source(const char* name, const char* path);
void simt_watch_streams();
const char* simt_stray_launches();
const char* simt_host_waits();
}

constexpr size_t kGuard = 4096;  // nothing else lies within a page of the memory
// NaN in every floating-point format, and no number that data would repeat.
constexpr uint64_t kPoison = 0xff8dffb3ff97ffa5;

void release(void* memory) {
  simt_trace_forget(reinterpret_cast<uint64_t>(memory));
  std::free(static_cast<char*>(memory) - kGuard);
}

class FreshAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    void* block = nullptr;
    if (posix_memalign(&block, kGuard, bytes + 2 * kGuard)) throw std::bad_alloc();
    char* memory = static_cast<char*>(block) + kGuard;
    for (size_t i = 0; i < bytes; i += sizeof kPoison)  // up to 7 bytes into the guard
      std::memcpy(memory + i, &kPoison, sizeof kPoison);
    const std::string name = "a tensor of " + std::to_string(bytes) + " bytes that the function allocated";
    simt_trace_fresh(reinterpret_cast<uint64_t>(memory), bytes, kPoison, name.c_str());
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

class ReservedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    constexpr auto device = c10::DeviceType::CPU;
    if (bytes < kLarge) {
      void* memory = std::calloc(bytes ? bytes : 1, 1);
      return {memory, memory, &std::free, c10::Device(device)};
    }
    Reserved block{bytes + 2 * kGap};
    constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    block.start = mmap(nullptr, block.bytes, PROT_NONE, kind, -1, 0);
    if (block.start == MAP_FAILED) throw std::bad_alloc();
    auto* memory = static_cast<char*>(block.start) + kGap;
    if (mprotect(memory, bytes, PROT_READ | PROT_WRITE)) {
      munmap(block.start, block.bytes);
      throw std::bad_alloc();
    }
#ifdef MADV_NOHUGEPAGE
    madvise(memory, bytes, MADV_NOHUGEPAGE);  // a write takes 4 KB, not 2 MB
#endif
    return {memory, new Reserved(block), &release, c10::Device(device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // data and context differ
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static constexpr size_t kLarge = size_t{1} << 20, kGap = size_t{1} << 40;  // of addresses alone
  struct Reserved {
    size_t bytes;
    void* start = nullptr;
  };
  static void release(void* context) {
    auto* block = static_cast<Reserved*>(context);
    munmap(block->start, block->bytes);
    delete block;
  }
};

FreshAllocator fresh_allocator;
ReservedAllocator reserved_allocator;
c10::Allocator* usual_allocator = nullptr;

void use(c10::Allocator* allocator) {  // null: the usual one
  if (!usual_allocator) usual_allocator = c10::GetCPUAllocator();
  c10::SetCPUAllocator(allocator ? allocator : usual_allocator, 100);
}
}  // namespace

PYBIND11_MODULE(simt_faults, m) {
  m.def("use_fresh_allocator", [](bool fresh) { use(fresh ? &fresh_allocator : nullptr); });
  m.def("use_reserved_allocator", [](bool reserved) { use(reserved ? &reserved_allocator : nullptr); });
  m.def("open_window", [](uint64_t width) { simt_window(width); });
  m.def("close_window", [] {  // returns how many blocks or clusters did not run
    const uint64_t left_out = simt_window_left_out();
    simt_window(0);
    return left_out;
  });
  m.def("name_source",
        [](const std::string& name, const std::string& path) { simt_name_source(name.c_str(), path.c_str()); });
  m.def("watch_streams", [] { simt_watch_streams(); });
  m.def("stray_launches", [] { return std::string(simt_stray_launches()); });
  m.def("host_waits", [] { return std::string(simt_host_waits()); });
  m.def("raise_as", [](const py::object& type) {
    fault_type = py::object(type).release().ptr();
    py::register_exception_translator([](std::exception_ptr pointer) {
      try {
        if (pointer) std::rethrow_exception(pointer);
      } catch (const simt::Fault& fault) {
        simt::reset_errors();  // the exception reports it; work that launches nothing would report it again
        py::object error = py::reinterpret_borrow<py::object>(fault_type)(fault.message, fault.kind);
        PyErr_SetObject(fault_type, error.ptr());
      }
    });
  });
}
