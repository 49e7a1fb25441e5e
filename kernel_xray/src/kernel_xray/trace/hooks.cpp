// hooks.cpp: what the compiler calls in a traced kernel: before each access, and at each basic block.
//
// A hook checks the access and appends an event to the running lane's record. This is the hottest code of the tracer: a
// lane that stays in one region per PC (Regions::recent) takes neither a lock nor a search.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "trace/checks.h"

namespace simt::trace {

namespace {

// In a cluster that is no longer watched, a lane stops only where it may wait for another thread.
void pause(Lane& lane, uint64_t pc) {
  lane.paused = true;
  lane.paused_pc = pc;
  stop_lane();
}

// Whether something comes before the lane's next event: it waits for its record to be replayed, or the value that it
// has stored is noted.
inline bool is_behind(const Lane& lane) { return lane.length == kRecordLength || lane.stored; }
void catch_up(Lane& lane) {
  if (lane.length == kRecordLength) stop_lane();
  if (lane.stored) lane.note_stored_value();
}

// What few accesses need stands behind calls at the end of a function: with others g++ would save and restore six
// registers for each access.
[[gnu::noinline]] void record_behind(Lane* lane, uint64_t address, unsigned size, Kind kind, const void* site,
                                     Form form);

// Whether an aligned access of this size, a power of two, lies in the region.
inline bool holds(const Region* region, uint64_t address, unsigned size) {
  return region && address >= region->start && address + size <= region->end && !(address & (size - 1));
}

inline void append(Lane& lane, Region* region, uint64_t address, unsigned size, Kind kind, uint64_t pc, Form form) {
  if (region->space == Space::other) return;
  Event& event = lane.record[lane.length++];
  event.key = Event::make_key(lane.depth, pc, kind, size);
  event.address = address - region->start + region->virtual_start;
  event.region = region;
  event.value = 0;
  event.size = static_cast<uint8_t>(size);
  event.kind = kind;
  event.form = form;
  const bool strong =
      kind == Kind::atomic || form == Form::ordered || (form == Form::is_volatile && region->space == Space::global);
  event.scope = strong ? lane.scope : Scope::none;
  if ((kind == Kind::store || lane.filmed) && form != Form::piece) {
    lane.stored = &event;
    lane.stored_at = reinterpret_cast<const void*>(address);
  }
}

[[gnu::noinline]] void record_of(Lane* lane, uint64_t address, unsigned size, Kind kind, const void* site, Form form) {
  const uint64_t pc = pc_of(site);
  Region* const region = lane->regions->recent(pc);
  if (lane->unwatched || is_behind(*lane) || !holds(region, address, size))
    return record_behind(lane, address, size, kind, site, form);
  append(*lane, region, address, size, kind, pc, form);
}

void record_behind(Lane* lane, uint64_t address, unsigned size, Kind kind, const void* site, Form form) {
  const uint64_t pc = pc_of(site);
  if (lane->unwatched) {
    if (form >= Form::is_volatile) pause(*lane, pc);
    return;
  }
  Region* region = lane->regions->recent(pc);
  if (!holds(region, address, size)) region = checked_region(*lane, address, size, kind, pc);
  if (region->space == Space::other) return;
  catch_up(*lane);
  append(*lane, region, address, size, kind, pc, form);
}

// Most accesses are of local variables, which need no more than this.
inline void record(uint64_t address, unsigned size, Kind kind, const void* site, Form form = Form::plain) {
  Lane* const lane = current_lane;
  if (lane && address - lane->stack >= Stacks::kStackBytes) record_of(lane, address, size, kind, site, form);
}

// A copy of a whole object whose alignment is less than its size, such as an array of floats: a GPU copies it in pieces
// of that alignment. The hook is not told the alignment; most such objects consist of floats and ints.
void range(uint64_t address, uint64_t bytes, Kind kind, const void* site) {
  const uint64_t largest = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
  while (bytes) {
    uint64_t size = largest;
    while (size > bytes || address % size) size /= 2;
    record(address, static_cast<unsigned>(size), kind, site, Form::piece);
    address += size;
    bytes -= size;
  }
}

// A copy by the C library. Clang calls it for copies of 16 bytes, the size of a float4.
void library_copy(uint64_t address, uint64_t bytes, Kind kind, const void* site) {
#ifdef __clang__
  if (bytes == 16) return record(address, 16, kind, site, Form::piece);
#endif
  range(address, bytes, kind, site);
}

// An access of a type whose alignment is less than the size. Clang makes one of two neighbours, such as the ints of a
// struct that is copied, where a GPU's compiler leaves two.
inline void unaligned(uint64_t address, unsigned size, Kind kind, const void* site) {
#ifdef __clang__
  if (address % size) return range(address, size, kind, site);
#endif
  record(address, size, kind, site);
}

// The start of a basic block, or a fence.
inline void append_mark(Lane& lane, Kind kind, const void* site) {
  Event& event = lane.record[lane.length++];
  event.key = Event::make_key(lane.depth, pc_of(site), kind, 0);
  event.kind = kind;
  if (kind == Kind::fence) event.scope = std::max(lane.scope, Scope::block);
}

[[gnu::noinline]] void mark_behind(Lane* lane, Kind kind, const void* site) {
  if (lane->unwatched) return;
  catch_up(*lane);
  append_mark(*lane, kind, site);
}

inline void record_mark(Kind kind, const void* site) {
  Lane* const lane = current_lane;
  if (!lane) return;
  if (lane->unwatched || is_behind(*lane)) return mark_behind(lane, kind, site);
  append_mark(*lane, kind, site);
}

}  // namespace

void Lane::begin_record() {
  std::copy(record + position, record + length, record);
  if (filmed) {
    values.resize(kRecordLength);
    std::copy(values.begin() + position, values.begin() + length, values.begin());
    std::fill(values.begin() + (length - position), values.end(), Value{});
  }
  checked = std::max(checked, position) - position;
  length -= position;
  position = 0;
}

void Lane::mark_copy() {
  if (unwatched || !length || record[length - 1].kind != Kind::store) return;
  record[length - 1].form = Form::copy;
  if (stored) note_stored_value();  // the simulator is about to hide it
}

void Lane::land(void* to, unsigned bytes, const void* site) {
  simt::trace::record(reinterpret_cast<uint64_t>(to), bytes, Kind::store, site, Form::landed);
}

void Lane::note_stored_value() {
  uint64_t words[2] = {};
  const auto copy = [&](auto size) { std::memcpy(words, stored_at, size()); };
  switch (stored->size) {  // of known size: no call
    case 1:
      copy(std::integral_constant<size_t, 1>{});
      break;
    case 2:
      copy(std::integral_constant<size_t, 2>{});
      break;
    case 4:
      copy(std::integral_constant<size_t, 4>{});
      break;
    case 8:
      copy(std::integral_constant<size_t, 8>{});
      break;
    default:
      copy(std::integral_constant<size_t, 16>{});
  }
  if (filmed) values[static_cast<size_t>(stored - record)] = {{words[0], words[1]}, true};
  if (stored->kind != Kind::store) {
    stored = nullptr;
    return;
  }
  const uint64_t hash = (words[0] * 0x9e3779b97f4a7c15u + words[1]) * 0xbf58476d1ce4e5b9u;
  stored->value = static_cast<uint16_t>(hash >> 48 ? hash >> 48 : 1);
  stored = nullptr;
}

}  // namespace simt::trace

using simt::trace::current_lane;
using simt::trace::Form;
using simt::trace::Kind;
using simt::trace::range;
using simt::trace::record;
using simt::trace::unaligned;

void simt::set_scope(Scope scope) noexcept {
  if (current_lane) current_lane->scope = std::min(scope, Scope::device);
}

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

HOOK void __sanitizer_cov_trace_pc() { simt::trace::record_mark(Kind::step, SITE); }

#define VOLATILE(name, size, kind) \
  HOOK void name##size(void* p) { record(reinterpret_cast<uint64_t>(p), size, kind, SITE, Form::is_volatile); }
#define ACCESS(name, size)                                                                                             \
  VOLATILE(__tsan_volatile_read, size, Kind::load)                                                                     \
  VOLATILE(__tsan_volatile_write, size, Kind::store)                                                                   \
  VOLATILE(__tsan_unaligned_volatile_read, size, Kind::load)                                                           \
  VOLATILE(__tsan_unaligned_volatile_write, size, Kind::store)                                                         \
  HOOK void __tsan_read##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE); }              \
  HOOK void __tsan_write##name(void* p) { record(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE); }            \
  HOOK void __tsan_unaligned_read##name(void* p) { unaligned(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE); } \
  HOOK void __tsan_unaligned_write##name(void* p) {                                                                    \
    unaligned(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE);                                                 \
  }                                                                                                                    \
  HOOK void __tsan_read_write##name(void* p) {                                                                         \
    record(reinterpret_cast<uint64_t>(p), size, Kind::load, SITE);                                                     \
    record(reinterpret_cast<uint64_t>(p), size, Kind::store, SITE);                                                    \
  }
ACCESS(1, 1)
ACCESS(2, 2)
ACCESS(4, 4)
ACCESS(8, 8)
ACCESS(16, 16)

HOOK void __tsan_read_range(void* p, unsigned long n) { range(reinterpret_cast<uint64_t>(p), n, Kind::load, SITE); }
HOOK void __tsan_write_range(void* p, unsigned long n) { range(reinterpret_cast<uint64_t>(p), n, Kind::store, SITE); }

#define COPY(name, function)                                                          \
  HOOK void* name(void* to, const void* from, unsigned long n) {                      \
    simt::trace::library_copy(reinterpret_cast<uint64_t>(from), n, Kind::load, SITE); \
    simt::trace::library_copy(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE);  \
    return std::function(to, from, n);                                                \
  }
#define FILL(name)                                                                   \
  HOOK void* name(void* to, int value, unsigned long n) {                            \
    simt::trace::library_copy(reinterpret_cast<uint64_t>(to), n, Kind::store, SITE); \
    return std::memset(to, value, n);                                                \
  }
COPY(__tsan_memcpy, memcpy)
COPY(__tsan_memmove, memmove)
FILL(__tsan_memset)
COPY(__wrap_memcpy, memcpy)
COPY(__wrap_memmove, memmove)
FILL(__wrap_memset)

#ifdef __linux__  // where the linker directs calls here: TRACED_LINKING in build/flags.py
#define STORES(p) record(reinterpret_cast<uint64_t>(p), sizeof *(p), Kind::store, SITE)
#define SECOND_RESULTS(T, suffix)                            \
  HOOK T __wrap_frexp##suffix(T x, int* power) {             \
    STORES(power);                                           \
    return std::frexp(x, power);                             \
  }                                                          \
  HOOK T __wrap_modf##suffix(T x, T* whole) {                \
    STORES(whole);                                           \
    return std::modf(x, whole);                              \
  }                                                          \
  HOOK T __wrap_remquo##suffix(T x, T y, int* quotient) {    \
    STORES(quotient);                                        \
    return std::remquo(x, y, quotient);                      \
  }                                                          \
  HOOK void __wrap_sincos##suffix(T x, T* sine, T* cosine) { \
    STORES(sine);                                            \
    *sine = std::sin(x);                                     \
    STORES(cosine);                                          \
    *cosine = std::cos(x);                                   \
  }
SECOND_RESULTS(double, )
SECOND_RESULTS(float, f)
#endif

HOOK void __tsan_atomic_thread_fence(int) {
  if (current_lane) current_lane->fences = true;
  simt::trace::record_mark(Kind::fence, SITE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HOOK void __tsan_atomic_signal_fence(int) {}

// A read-modify-write operation is one atomic access. A relaxed load is not counted (quiet): it is the first half of the
// simulator's own way of an update, whose other half is a weak compare-and-swap (atomics.h). An update that adds 0 only
// reads.
#define ATOMIC(bits, type)                                                                                      \
  HOOK type __tsan_atomic##bits##_load(const volatile type* p, int order) {                                     \
    if (order == __ATOMIC_RELAXED)                                                                              \
      record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, Form::quiet);                         \
    else                                                                                                        \
      record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::load, SITE, Form::ordered);                         \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                             \
  HOOK void __tsan_atomic##bits##_store(volatile type* p, type v, int) {                                        \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::store, SITE, Form::ordered);                          \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                   \
  }                                                                                                             \
  HOOK type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                                     \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, Form::exchange);                        \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                         \
  }                                                                                                             \
  HOOK bool __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type v, int, int) { \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, Form::swap);                            \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                                             \
  HOOK bool __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v, int, int) {   \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, Form::update);                          \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                                             \
  HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type v, int, int) {     \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, Form::swap);                            \
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
    const auto form = v ? Form::update : Form::atomic;                               \
    record(reinterpret_cast<uint64_t>(p), bits / 8, Kind::atomic, SITE, form);       \
    return __atomic_fetch_##operation(p, v, __ATOMIC_SEQ_CST);                       \
  }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

HOOK void __ubsan_handle_out_of_bounds(const void* what, uint64_t index) {
  simt::trace::index_out_of_bounds(what, index, SITE);
}
HOOK void __ubsan_handle_out_of_bounds_abort(const void* what, uint64_t index) {
  simt::trace::index_out_of_bounds(what, index, SITE);
}
