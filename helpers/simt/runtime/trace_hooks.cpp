// trace_hooks.cpp: what the compiler calls in a traced kernel, before each access and at each basic block.
#include <dlfcn.h>

#include <cstring>

#include "trace.h"

namespace simt {
namespace trace {

namespace {

const char* verb(Kind kind) {
  return kind == Kind::load ? "reads " : kind == Kind::store ? "writes " : "atomically updates ";
}

std::string bytes(uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

// The region of an access that is allowed; null if it is none that counts (a constant, a parameter). Ends the block
// otherwise.
Region* checked_region(uint64_t address, unsigned size, Kind kind, uint64_t pc) {
  Session* session = Session::active();
  Region* region = session->regions.find(address);
  if (!region) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(address), &info)) return nullptr;  // of a loaded library: a global of its own
    access_fault("out-of-bounds", pc, verb(kind) + bytes(size) + " " + session->regions.describe(address));
  }
  if (address + size > region->end)
    access_fault("out-of-bounds", pc, verb(kind) + bytes(size) + ", of which " + bytes(address + size - region->end) +
                                          " past the end of " + region->name);
  if (address % size && (size & (size - 1)) == 0)
    access_fault("misaligned", pc, verb(kind) + bytes(size) + " at once, " + bytes(address - region->start) +
                                       " into " + region->name + ": the address is no multiple of " +
                                       std::to_string(size));
  return region->space == Space::other ? nullptr : region;
}

bool on_a_fibre(uint64_t address) {
  const Stacks& stacks = current_worker->stacks;
  const auto low = reinterpret_cast<uint64_t>(stacks.low(0));
  return address - low < reinterpret_cast<uint64_t>(stacks.low(kMaxThreads)) - low;
}

void record(uint64_t address, unsigned size, Kind kind, const void* site, bool quiet = false) {
  Lane* lane = current_lane;
  if (!lane || on_a_fibre(address)) return;  // local variables
  const uint64_t pc = reinterpret_cast<uint64_t>(site) - 1;
  Region* region = checked_region(address, size, kind, pc);
  if (!region) return;
  Event& event = lane->record[lane->length++];
  event.region = region;
  event.address = address - region->start + region->virtual_start;
  event.pc = pc;
  event.size = size;
  event.kind = kind;
  event.depth = static_cast<uint8_t>(lane->depth < 255 ? lane->depth : 255);
  event.quiet = quiet;
  event.fenced = lane->fenced;
  if (kind == Kind::store && region->space == Space::global) lane->fenced = false;
  if (lane->length == kRecordLength) stop_lane();
}

void range(uint64_t address, uint64_t bytes, Kind kind, const void* site) {
  while (bytes) {  // as a GPU would: in the largest pieces that the address allows
    uint64_t piece = 16;
    while (piece > bytes || address % piece) piece /= 2;
    record(address, static_cast<unsigned>(piece), kind, site);
    address += piece, bytes -= piece;
  }
}

}  // namespace

}  // namespace trace
}  // namespace simt

using simt::trace::current_lane;
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
  simt::trace::Event& event = lane->record[lane->length++];
  event.pc = reinterpret_cast<uint64_t>(SITE) - 1;
  event.depth = static_cast<uint8_t>(lane->depth < 255 ? lane->depth : 255);
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

HOOK void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
  range(reinterpret_cast<uint64_t>(from), n, Kind::load, SITE);
  range(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE);
  return std::memcpy(to, from, n);
}
HOOK void* __tsan_memmove(void* to, const void* from, unsigned long n) {
  range(reinterpret_cast<uint64_t>(from), n, Kind::load, SITE);
  range(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE);
  return std::memmove(to, from, n);
}
HOOK void* __tsan_memset(void* to, int value, unsigned long n) {
  range(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE);
  return std::memset(to, value, n);
}

HOOK void __tsan_atomic_thread_fence(int) {
  if (current_lane) current_lane->fenced = true;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HOOK void __tsan_atomic_signal_fence(int) {}

// Read-modify-write operations are one atomic access; plain atomic loads and stores belong to loops around them.
#define ATOMIC(bits, type)                                                                                            \
  HOOK type __tsan_atomic##bits##_load(const volatile type* p, int) {                                                 \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, true);                                        \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                      \
  }                                                                                                                   \
  HOOK void __tsan_atomic##bits##_store(volatile type* p, type v, int) {                                              \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, true);                                        \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                         \
  }                                                                                                                   \
  HOOK type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                                           \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                              \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                   \
  HOOK bool __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type v, int, int) {       \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                              \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
  }                                                                                                                   \
  HOOK bool __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v, int, int) {         \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                              \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
  }                                                                                                                   \
  HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type v, int, int) {           \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                              \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
    return expected;                                                                                                  \
  }                                                                                                                   \
  FETCH(bits, type, add)                                                                                              \
  FETCH(bits, type, sub)                                                                                              \
  FETCH(bits, type, and)                                                                                              \
  FETCH(bits, type, or)                                                                                               \
  FETCH(bits, type, xor)                                                                                              \
  FETCH(bits, type, nand)
#define FETCH(bits, type, operation)                                                                                  \
  HOOK type __tsan_atomic##bits##_fetch_##operation(volatile type* p, type v, int) {                                  \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE);                                              \
    return __atomic_fetch_##operation(p, v, __ATOMIC_SEQ_CST);                                                        \
  }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
