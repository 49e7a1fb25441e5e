// trace.h: the traced mode, which sees every access that a kernel makes to memory.
//
// A traced kernel is compiled with -fsanitize=thread -fsanitize-coverage=trace-pc. The hooks that the compiler calls
// (trace_hooks.cpp) check each address at once, before the access happens, and append it to the lane's record. When
// the lanes of a warp have all stopped (at a barrier, at the end, or with a full record), trace_warp.cpp plays their
// records back in step, as a warp would have executed them: of all lanes, those go on that are deepest in calls and
// have the lowest program counter. Lanes that do the same thing in one step make one request, which is counted
// (trace_metrics.cpp) and checked for races and uninitialised reads (trace_races.cpp).
//
// Because the verdict on a race compares what the kernel ordered, not what happened first, it does not depend on the
// order in which lanes and warps take their turns. That order is drawn from a seed all the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "block.h"

namespace simt {
namespace trace {

enum class Kind : uint8_t { load, store, atomic, step };  // step: a basic block, for keeping lanes together

struct Region;

struct Event {
  Region* region = nullptr;
  uint64_t address = 0;  // virtual, as the region places it
  uint64_t pc = 0;
  uint32_t size = 0;
  Kind kind = Kind::step;
  uint8_t depth = 0;    // of calls
  bool quiet = false;   // an atomic load or store that is part of another operation: not counted
  bool fenced = false;  // the lane has fenced since its last plain store
};

constexpr size_t kRecordLength = 4096;  // events that a lane may be ahead of its warp

struct Lane {  // a lane of the warp that has its turn
  std::unique_ptr<Event[]> record{new Event[kRecordLength]};
  uint32_t length = 0, position = 0;
  uint32_t depth = 0;
  bool fenced = false;
};

// ---------------------------------------------------------------------------------------------------------------
// Regions: what an address belongs to.

enum class Space : uint8_t { global, shared, other };

struct Region {
  uint64_t start, end;  // [start, end)
  uint64_t virtual_start;  // 512-byte aligned, as a GPU's allocator would have placed it
  Space space;
  bool fresh;              // allocated by the program itself: reading it before writing is a fault
  std::string name;
  std::vector<bool> written;  // by bytes, if fresh
};

class Regions {
 public:
  void add(uint64_t start, uint64_t bytes, Space space, bool fresh, std::string name, uint64_t shared_offset = 0);
  void remove(uint64_t start);
  Region* find(uint64_t address);     // the one that holds the address, or null
  std::string describe(uint64_t address);  // where an address outside all regions lies
  
 private:
  std::map<uint64_t, Region> map_;  // by start
  Region* last_ = nullptr;
  uint64_t next_virtual_ = 1 << 20;
};

// ---------------------------------------------------------------------------------------------------------------
// Findings

struct Counts {  // for one program counter and kind
  std::string kernel;
  Space space = Space::other;
  uint64_t requests = 0, sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0, lanes = 0;
};

struct Finding {
  std::string kind, kernel, message;
  uint64_t pc = 0;
  uint3 block{}, thread{};
  uint64_t other_pc = 0;  // of a race: the access before
};

struct Picture {  // the first requests of a program counter: address of each lane, for drawing
  uint32_t size = 0;
  std::vector<std::pair<unsigned, uint64_t>> lanes;  // lane and virtual address (shared: offset)
};

struct LaunchInfo {
  std::string kernel, file;
  int line = 0;
  dim3 grid{1}, block{1};
  uint64_t blocks = 0, traced_blocks = 0;
  uint64_t steps = 0, lane_steps = 0;  // for the mean of active lanes
  size_t shared_static = 0, shared_dynamic = 0;
};

class Session {  // between trace_begin and trace_end
 public:
  static Session* active();
  uint64_t seed = 0, max_blocks = 64, budget = 100'000'000;
  Regions regions;
  std::map<std::tuple<std::string, uint64_t, Kind>, Counts> counts;
  std::map<std::pair<std::string, uint64_t>, Picture> pictures;
  std::vector<Finding> findings;
  std::vector<LaunchInfo> launches;
  uint64_t random();

  void report(Finding finding);  // once for each kind and place
};

struct Request {  // what the lanes of a warp ask for together; events of one program counter and size
  const Event* events[kWarpSize];
  unsigned lanes[kWarpSize];
  unsigned count = 0;
};
void count(Session& session, const std::string& kernel, const Request& request);

// ---------------------------------------------------------------------------------------------------------------
// Races: who accessed a byte last, and what is ordered before what.

struct Clock {  // one lane's knowledge of the other lanes of its warp
  uint32_t of[kWarpSize];
};

struct Access {
  uint32_t block = 0, epoch = 0, clock = 0;  // epoch: barriers passed; clock: warp synchronisations passed
  uint16_t thread = 0;
  bool atomic = false, valid = false;
  uint64_t pc = 0;
};

struct Cell {
  Access write, read, other_read;
};

// What is known of other blocks: all accesses of epochs before `epoch`, and those of `thread` up to `clock` in it.
struct Known {
  uint32_t epoch, clock, thread;
};
using Knowledge = std::unordered_map<uint32_t, Known>;  // by block
void join(Knowledge& into, const Knowledge& from);

struct Who {  // the lane that accesses, and what it knows
  uint32_t block, epoch, clock, thread;
  const Clock* warp;  // of the lane: what it knows of its warp
  const Knowledge* block_knows;
  Knowledge* lane_knows;
};

class Races {
 public:
  // Records the access; returns the earlier access that it races with, or null.
  const Access* access(const Who& who, const Event& event);

 private:
  struct Page {
    unsigned shift = 2;  // a cell stands for 2^shift bytes
    std::vector<Cell> cells;
  };
  static constexpr unsigned kPageShift = 10;
  Page& page(uint64_t number, unsigned shift);
  static bool ordered(const Access& before, const Who& who);

  std::unordered_map<uint64_t, Page> pages_;
  std::unordered_map<uint64_t, Knowledge> locations_;  // what atomics on an address have released
  Access found_;
};

bool launch(const Job& job, FaultRecord& fault);  // runs the grid on the calling thread; false after a fault

extern __thread Lane* current_lane SIMT_TLS;    // null unless the thread runs traced device code
void stop_lane();                               // lets the scheduler read the record
[[noreturn]] void access_fault(const char* kind, uint64_t pc, const std::string& message);

// The device side in a traced block; core.h's functions come here if `in_traced_block()`.
bool in_traced_block();
int barrier(Vote vote, int predicate, const void* site);
uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
unsigned active(const void* site);
void yield();
void* shared_static(const SharedSite* site, size_t bytes, size_t alignment);

}  // namespace trace
}  // namespace simt
