// trace_hooks.cpp: what the compiler calls in a traced kernel, before each access and at each basic block.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "allocations.h"
#include "trace.h"

namespace simt {
namespace trace {

namespace {

const char* verb(Kind kind) {
  return kind == Kind::load ? "reads " : kind == Kind::store ? "writes " : "atomically updates ";
}

std::string bytes(uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

// A wild address may lie in some other library: that is no excuse.
bool in_kernels_library(uint64_t address) {
  Dl_info here, kernel;
  return dladdr(reinterpret_cast<void*>(address), &here) &&
         dladdr(reinterpret_cast<void*>(current_worker->job->thread), &kernel) && here.dli_fbase == kernel.dli_fbase;
}

// Looks everywhere for the region that an address lies in; null if there is none.
Region* search(Lane& lane, uint64_t address) {
  Regions& regions = Session::active()->regions;
  for (bool asked = false;; asked = true) {
    if (Region* region = regions.find(address)) return region;
    Allocation found;
    if (Allocations::instance().find(reinterpret_cast<void*>(address), found)) {
      const std::string name = "an allocation of " + bytes(found.bytes);
      regions.add(found.start, found.bytes, Space::global, 0, false, name, 0);
    } else if (in_kernels_library(address)) {  // a global of its own: a __constant__, a literal
      constexpr uint64_t kPage = 4096;
      regions.add(address / kPage * kPage, kPage, Space::other, 0, false, "a global variable", 0);
    } else if (!asked) {  // a tensor that Python has not told of?
      lane.unknown = address;
      stop_lane();
      current_lane = nullptr;  // still silent
    } else {
      return nullptr;
    }
  }
}

// The region of an access that is allowed. Ends the lane otherwise.
Region* checked_region(Lane& lane, uint64_t address, unsigned size, Kind kind, uint64_t pc) {
  const Silence silence;
  Region* region = search(lane, address);
  auto what = [&] { return verb(kind) + bytes(size); };
  if (!region) lane_fault("out-of-bounds", {pc}, what() + Session::active()->regions.describe(address));
  if (address + size > region->end) {
    const std::string past = bytes(address + size - region->end) + " past the end of " + region->name;
    lane_fault("out-of-bounds", {pc}, what() + ", of which " + past);
  }
  if (address % size)
    lane_fault("misaligned", {pc},
               what() + " at once, " + bytes(address - region->start) + " into " + region->name +
                   ": the address is no multiple of " + std::to_string(size));
  Session::active()->regions.recent(pc) = region;
  return region;
}

bool on_a_fibre(uint64_t address) {
  static const uint64_t span = [] {
    const Stacks& stacks = current_worker->stacks;
    return reinterpret_cast<uint64_t>(stacks.low(kMaxThreads)) - reinterpret_cast<uint64_t>(stacks.low(0));
  }();
  return address - current_lane->stacks < span;
}

// Which of the bytes hold what their memory was filled with. Shared memory is written by kernels alone, so that the
// record of their writes says enough; global memory may have been written by PyTorch.
uint16_t poisoned(const Region& region, uint64_t address, unsigned size) {
  if (!region.fresh) return 0;
  if (!region.poison) return static_cast<uint16_t>((1u << size) - 1);
  uint16_t mask = 0, half;
  for (unsigned i = 0; i < size; i += 2) {
    const uint64_t first = (address + i) & ~uint64_t{1};
    if (first + 2 > region.end) {
      uint8_t last;
      std::memcpy(&last, reinterpret_cast<void*>(first), 1);
      half = static_cast<uint16_t>(last | (region.poison & 0xff00));
    } else {
      std::memcpy(&half, reinterpret_cast<void*>(first), 2);
    }
    if (half == region.poison) mask |= static_cast<uint16_t>((size == 1 ? 1u : 3u) << i);
  }
  return mask;
}

inline void record(uint64_t address, unsigned size, Kind kind, const void* site, bool quiet = false) {
  Lane* lane = current_lane;
  if (!lane || on_a_fibre(address)) return;  // local variables
  const uint64_t pc = reinterpret_cast<uint64_t>(site) - 1;
  Region* region = lane->regions->recent(pc);
  if (!region || address < region->start || address + size > region->end || address % size)
    region = checked_region(*lane, address, size, kind, pc);
  if (region->space == Space::other) return;
  Event& event = lane->record[lane->length++];
  event.key = Event::make_key(lane->depth, pc, kind, size);
  event.address = address - region->start + region->virtual_start;
  event.region = region;
  event.poison = kind == Kind::store ? 0 : poisoned(*region, address, size);
  event.size = static_cast<uint8_t>(size);
  event.kind = kind;
  event.quiet = quiet;
  event.fenced = lane->fenced;
  if (kind == Kind::store && region->space == Space::global) lane->fenced = false;
  if (lane->length == kRecordLength) stop_lane();
}

// A copy of a whole object whose type is aligned to less than its size, as an array of floats is: a GPU takes it in
// pieces of that alignment. It is not told here; most are of floats and ints.
void range(uint64_t address, uint64_t bytes, Kind kind, const void* site) {
  const uint64_t largest = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
  while (bytes) {
    uint64_t piece = largest;
    while (piece > bytes || address % piece) piece /= 2;
    record(address, static_cast<unsigned>(piece), kind, site);
    address += piece, bytes -= piece;
  }
}

// A copy by the C library. Clang leaves those of 16 bytes to it, which a float4 has.
void library_copy(uint64_t address, uint64_t bytes, Kind kind, const void* site) {
#ifdef __clang__
  if (bytes == 16) return record(address, 16, kind, site);
#endif
  range(address, bytes, kind, site);
}

// -fsanitize=bounds: what the compiler says of an index that is outside its array, local arrays included.
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

void index_out_of_bounds(const IndexOutOfBounds* what, uint64_t index, const void* site) {
  const Silence silence;
  // info: bit 0: signed; the rest: log2 of the width. Values up to 64 bits come in the argument itself.
  const unsigned width = 1u << (what->index->info >> 1);
  char number[32];
  if ((what->index->info & 1) && width <= 64)
    std::snprintf(number, sizeof number, "%lld", static_cast<long long>(index << (64 - width)) >> (64 - width));
  else
    std::snprintf(number, sizeof number, "%llu", static_cast<unsigned long long>(index));
  const std::string message = std::string("index ") + number + " is outside the array of type " + what->array->name;
  const SourceLocation& at = what->location;
  if (in_traced_block()) lane_fault("out-of-bounds", {reinterpret_cast<uint64_t>(site) - 1, at.file, at.line}, message);
  if (in_kernel()) fault("out-of-bounds", message + "\n  at " + at.file + ":" + std::to_string(at.line));
  // On the host: the compiler takes this call for one that never throws, so it is put on record and nothing else.
  Session* session = Session::active();
  if (!session) return;
  if (Finding* found = session->place("out-of-bounds", "", reinterpret_cast<uint64_t>(site) - 1, 0, 0)) {
    found->message = message + ", in host code";
    found->file = at.file, found->line = at.line;
  }
}

}  // namespace

}  // namespace trace
}  // namespace simt

using simt::trace::current_lane;
using simt::trace::Event;
using simt::trace::Kind;
using simt::trace::range;
using simt::trace::record;

#define SITE __builtin_return_address(0)
#define HOOK extern "C" SIMT_API

HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {
  if (current_lane) ++current_lane->depth;
}
HOOK void __tsan_func_exit() {
  if (current_lane) --current_lane->depth;
}
HOOK void __tsan_vptr_update(void**, void*) {}
HOOK void __tsan_vptr_read(void**) {}

HOOK void __sanitizer_cov_trace_pc() {
  simt::trace::Lane* lane = current_lane;
  if (!lane) return;
  Event& event = lane->record[lane->length++];
  event.key = Event::make_key(lane->depth, reinterpret_cast<uint64_t>(SITE) - 1, Kind::step, 0);
  event.kind = Kind::step;
  if (lane->length == simt::trace::kRecordLength) simt::trace::stop_lane();
}

#define ACCESS(name, size)                                                                                            \
  HOOK void __tsan_read##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE); }             \
  HOOK void __tsan_write##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE); }           \
  HOOK void __tsan_unaligned_read##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE); }   \
  HOOK void __tsan_unaligned_write##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE); } \
  HOOK void __tsan_volatile_read##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE); }    \
  HOOK void __tsan_volatile_write##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE); }  \
  HOOK void __tsan_read_write##name(void* p) {                                                                        \
    record(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE);                                                    \
    record(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE);                                                   \
  }
ACCESS(1, 1)
ACCESS(2, 2)
ACCESS(4, 4)
ACCESS(8, 8)
ACCESS(16, 16)

HOOK void __tsan_read_range(void* p, unsigned long n) { range(reinterpret_cast<uint64_t>(p), n, Kind::load, SITE); }
HOOK void __tsan_write_range(void* p, unsigned long n) { range(reinterpret_cast<uint64_t>(p), n, Kind::store, SITE); }

#define COPY(name, function)                                                              \
  HOOK void* name(void* to, const void* from, unsigned long n) {                          \
    simt::trace::library_copy(reinterpret_cast<uint64_t>(from), n, Kind::load, SITE);     \
    simt::trace::library_copy(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE);      \
    return std::function(to, from, n);                                                    \
  }
#define FILL(name)                                                                        \
  HOOK void* name(void* to, int value, unsigned long n) {                                 \
    simt::trace::library_copy(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE);      \
    return std::memset(to, value, n);                                                     \
  }
COPY(__tsan_memcpy, memcpy)
COPY(__tsan_memmove, memmove)
FILL(__tsan_memset)
COPY(__wrap_memcpy, memcpy)
COPY(__wrap_memmove, memmove)
FILL(__wrap_memset)

HOOK void __tsan_atomic_thread_fence(int) {
  if (current_lane) current_lane->fenced = true;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HOOK void __tsan_atomic_signal_fence(int) {}

// Read-modify-write operations are one atomic access; plain atomic loads and stores belong to loops around them.
#define ATOMIC(bits, type)                                                                                      \
  HOOK type __tsan_atomic##bits##_load(const volatile type* p, int) {                                           \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, true);                                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                             \
  HOOK void __tsan_atomic##bits##_store(volatile type* p, type v, int) {                                        \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, true);                                  \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                   \
  }                                                                                                             \
  HOOK type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                                     \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                        \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                         \
  }                                                                                                             \
  HOOK bool __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type v, int, int) { \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                        \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                                             \
  HOOK bool __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v, int, int) {   \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                        \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                                             \
  HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type v, int, int) {     \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                        \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
    return expected;                                                                                            \
  }                                                                                                             \
  FETCH(bits, type, add)                                                                                        \
  FETCH(bits, type, sub)                                                                                        \
  FETCH(bits, type, and)                                                                                        \
  FETCH(bits, type, or)                                                                                         \
  FETCH(bits, type, xor)                                                                                        \
  FETCH(bits, type, nand)
#define FETCH(bits, type, operation)                                                 \
  HOOK type __tsan_atomic##bits##_fetch_##operation(volatile type* p, type v, int) { \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);             \
    return __atomic_fetch_##operation(p, v, __ATOMIC_SEQ_CST);                       \
  }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

HOOK void __ubsan_handle_out_of_bounds(const void* what, uint64_t index) {
  simt::trace::index_out_of_bounds(static_cast<const simt::trace::IndexOutOfBounds*>(what), index, SITE);
}
HOOK void __ubsan_handle_out_of_bounds_abort(const void* what, uint64_t index) {
  simt::trace::index_out_of_bounds(static_cast<const simt::trace::IndexOutOfBounds*>(what), index, SITE);
}
