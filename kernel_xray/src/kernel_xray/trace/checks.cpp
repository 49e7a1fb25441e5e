// checks.cpp: looks up the region of an access, and words what is wrong with the access.
#include "trace/checks.h"

#include <dlfcn.h>

#include <cstring>

#include "api/allocations.h"
#include "api/device_variables.h"
#include "api/devices.h"
#include "trace/heap.h"
#include "trace/session.h"
#include "trace/trace.h"

namespace simt::trace {

namespace {

const char* verb(Kind kind) {
  return kind == Kind::load ? "reads " : kind == Kind::store ? "writes " : "atomically updates ";
}

std::string bytes(uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

// Not just in any library: a stray address may lie in one.
bool in_kernels_library(uint64_t address) {
  Dl_info here, kernel;
  return dladdr(reinterpret_cast<void*>(address), &here) &&
         dladdr(reinterpret_cast<void*>(current_worker->job->run), &kernel) && here.dli_fbase == kernel.dli_fbase;
}

void borrow(const Allocation& found) {
  const std::string name = "an allocation of " + bytes(found.bytes);
  Session::active()->regions.add(found.start, found.bytes, Space::global, 0, false, name, 0);
  Session::active()->borrowed.push_back(found.start);
}

// Looks everywhere for the region of an address; null if there is none.
Region* search(Lane& lane, uint64_t address, Silence& silence) {
  Regions& regions = Session::active()->regions;
  for (bool asked = false;; asked = true) {
    if (Region* region = regions.find(address)) return region;
    Allocation found;
    DeviceVariables::Span variable;
    if (Allocations::instance().find(reinterpret_cast<void*>(address), found)) {
      borrow(found);
    } else if (DeviceVariables::instance().find(address, variable)) {
      regions.add(variable.start, variable.bytes, Space::global, 0, false, "the variable '" + variable.name + "'", 0);
      Session::active()->borrowed.push_back(variable.start);
    } else if (uint64_t start, size; Heap::instance().find(address, start, size)) {
      borrow({start, size, MemoryKind::device, 0});
    } else if (in_kernels_library(address)) {  // a global of the kernel's library: a __constant__, a literal
      const auto [start, end] = DeviceVariables::instance().gap(address, 4096);
      regions.add(start, end - start, Space::other, 0, false, "a global variable", 0);
      Session::active()->borrowed.push_back(start);
    } else if (!asked) {  // a tensor that Python has not registered?
      lane.unknown = address;
      stop_lane();
      silence.begin();
    } else {
      // The allocation that this thread misses may not have been touched before; the message still has to name it.
      if (Allocations::instance().beside(reinterpret_cast<void*>(address), found)) borrow(found);
      return nullptr;
    }
  }
}

// -fsanitize=bounds: the compiler's description of an index outside its array, local arrays included.
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct ArrayType {
  uint16_t kind, info;
  char name[1];
};
struct IndexOutOfBounds {
  SourceLocation location;
  const ArrayType* array;
  const ArrayType* index;
};

std::string describe(const IndexOutOfBounds& what, uint64_t index) {
  // info: bit 0: signed; the rest: log2 of the width. The argument itself holds values of up to 64 bits.
  const unsigned width = 1u << (what.index->info >> 1);
  const bool is_signed = (what.index->info & 1) && width <= 64;
  const unsigned shift = width < 64 ? 64 - width : 0;
  const auto value = static_cast<long long>(index << shift) >> shift;
  const std::string number = is_signed ? std::to_string(value) : std::to_string(index);
  return "index " + number + " is outside the array of type " + what.array->name;
}

}  // namespace

Region* checked_region(Lane& lane, uint64_t address, unsigned size, Kind kind, uint64_t pc) {
  Silence silence;
  Region* region = search(lane, address, silence);
  auto what = [&] { return verb(kind) + bytes(size); };
  Allocation of_peer;
  if (region && device_count() > 1 && Allocations::instance().find(reinterpret_cast<void*>(address), of_peer))
    if (const std::string why = without_access(of_peer, current_device()); !why.empty())
      lane_fault("illegal-access", {pc}, what() + " of " + region->name + why);
  if (!region) {
    const bool local = current_worker->stacks.contains(reinterpret_cast<void*>(address));
    const std::string where = local ? " in a local variable of another thread" : lane.regions->describe(address);
    lane_fault("out-of-bounds", {pc}, what() + where);
  }
  if (address + size > region->end) {
    const std::string past = bytes(address + size - region->end) + " past the end of " + region->name;
    lane_fault("out-of-bounds", {pc}, what() + ", of which " + past);
  }
  // Reads of neighbouring arguments may be one in the simulator's code; a GPU's compiler knows how they lie.
  if (address % size && region->name != kArguments)
    lane_fault("misaligned", {pc},
               what() + " at once, " + bytes(address - region->start) + " into " + region->name +
                   ": the address is not a multiple of " + std::to_string(size));
  Session::active()->regions.recent(pc) = region;
  return region;
}

void index_out_of_bounds(const void* data, uint64_t index, const void* site) {
  const auto& what = *static_cast<const IndexOutOfBounds*>(data);
  const uint64_t pc = reinterpret_cast<uint64_t>(site) - 1;
  const SourceLocation& at = what.location;
  if (in_traced_block()) {
    const Silence silence;
    lane_fault("out-of-bounds", {pc, at.file, at.line}, describe(what, index));
  }
  if (in_kernel()) fault("out-of-bounds", describe(what, index) + "\n  at " + at.file + ":" + std::to_string(at.line));
  // On the host it is only recorded: the compiler assumes that this call never throws.
  Session* session = Session::active();
  if (!session) return;
  if (Finding* found = session->place("out-of-bounds", "", pc, 0, 0, false)) {
    found->message = describe(what, index) + ", in host code";
    found->file = at.file;
    found->line = at.line;
  }
}

}  // namespace simt::trace
