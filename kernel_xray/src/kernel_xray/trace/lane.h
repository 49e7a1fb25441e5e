// lane.h: what one lane has done since it was resumed: a record of events, which the hooks append to (hooks.cpp).
//
// An event is an access to memory or the start of a basic block. Its key orders the events of a warp (replay.h).
// Limits: a local variable's accesses are not recorded, and a lane can run ahead of its warp by kRecordLength events.
#pragma once

#include <cstdint>
#include <vector>

#include "threads/block.h"

namespace simt::trace {

struct Region;
class Regions;

enum class Kind : uint8_t {
  load,
  store,
  atomic,
  step,       // the start of a basic block: keeps the lanes of a warp in step
  tile_load,  // by TMA
  tile_store,
  fence,  // __threadfence
};

enum class Form : uint8_t {
  plain,
  piece,        // of a larger object
  copy,         // what a cp.async writes
  landed,       // the same write once more, where its thread waits for it: for races alone, not counted
  is_volatile,  // from here on other threads may wait for it
  ordered,
  atomic,
  quiet,     // an atomic load that is part of another operation: not counted
  swap,      // an atomic compare-and-swap of the kernel
  update,    // an atomic update that a GPU makes too, in whatever order threads run; no poll, no exchange
  exchange,  // may give memory its first value: who calls atomicExch need not use the old one
};

struct Event {
  uint64_t key;      // the lower key comes first in a warp: deeper in calls, then lower PC, then kind and size
  uint64_t address;  // virtual, as its region defines it
  Region* region;
  uint16_t value;  // of a plain store: a hash of what it stored; 0: not known
  uint8_t size;
  Kind kind;
  Form form;    // of an access
  Scope scope;  // of an atomic access, of a volatile one to global memory, which counts as atomic, and of a fence

  bool strong() const { return scope != Scope::none; }  // the memory model's word for such an access

  static uint64_t make_key(uint32_t depth, uint64_t pc, Kind kind, unsigned size) {
    return uint64_t{depth < 255 ? 255 - depth : 0} << 56 | (pc & kPcMask) << 8 | unsigned(kind) << 5 | size;
  }
  uint64_t pc() const { return key >> 8 & kPcMask; }
  static constexpr uint64_t kPcMask = (uint64_t{1} << 48) - 1;
};

struct Value {  // of one access: its bytes, if they are known
  uint64_t words[2] = {};
  bool known = false;
};

constexpr size_t kRecordLength = 512;  // events that a lane may be ahead of its warp
constexpr unsigned kFar = 64;          // events by which the replay looks ahead where lanes diverge

struct Lane {                         // a lane of the warp that is running
  Event* record = nullptr;            // of kRecordLength events
  uint32_t length = 0, position = 0;  // events recorded; events replayed
  uint32_t checked = 0;               // events already checked for races
  uint32_t depth = 0;                 // of calls
  Scope scope = Scope::device;        // of its atomic accesses and fences
  bool unwatched = false;             // nothing is recorded any more: the cluster has used up its budget
  bool fences = false;                // it has executed a fence
  bool paused = false;                // it has stopped where it may wait for another thread
  uint64_t paused_pc = 0;
  Event* stored = nullptr;  // the last plain store, whose value is not known yet; of a filmed lane the last access
  const void* stored_at = nullptr;
  uint64_t unknown = 0;  // an address that the launching thread has to ask Python about
  uint64_t stack = 0;    // the low end of its fibre's stack
  Regions* regions = nullptr;
  bool filmed = false;        // the values of all accesses are noted (film.h)
  std::vector<Value> values;  // of the events in the record, if filmed

  // Whether it stopped at a full record, of which fewer than `events` are left: there is more to look ahead at.
  bool short_of(unsigned events) const { return length == kRecordLength && length - position < events; }
  // Makes room for what it does next, behind the events that are left.
  void begin_record();
  void mark_copy();                                       // the access that it has just made is that of a cp.async
  void land(void* to, unsigned bytes, const void* site);  // a copy is there: the lane has waited for it
  void note_stored_value();  // a hook precedes its store, so the value is read at the lane's next event
};

extern __thread Lane* current_lane SIMT_TLS;  // null unless a traced lane is running

// While one lives, the hooks record nothing and the watchdog does not interrupt. The tracer may call code that an
// instrumented library defines as well (a template of the standard library: the loader keeps one copy), and it must not
// be abandoned halfway, with a lock held.
class Silence {
 public:
  Silence() : lane_(current_lane), worker_(in_kernel() ? current_worker : nullptr) { begin(); }
  ~Silence() {
    current_lane = lane_;
    if (worker_) worker_->enter_fibre(true);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  void begin() {  // again, after the lane was suspended and resumed
    current_lane = nullptr;
    if (worker_) worker_->enter_fibre(false);
  }

 private:
  Lane* lane_;
  Worker* worker_;
};

inline uint64_t pc_of(const void* site) { return reinterpret_cast<uint64_t>(site) - 1; }

}  // namespace simt::trace
