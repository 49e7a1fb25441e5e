// session.h: one X-ray, from simt_trace_begin to simt_trace_end: what was counted and what was found.
//
// Costs are kept per kernel, program counter and kind of access; findings per kind and place. The report keeps the
// finding of the first thread in the grid, so that it does not depend on the order in which threads ran.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/film.h"
#include "trace/regions.h"

namespace simt::trace {

// The cost in all blocks, from those that were traced: blocks between two traced ones are taken to cost the mean of both.
struct Estimate {
  double total = 0, error = 0;         // of the launches that have ended
  uint64_t before = 0;                 // the cost when the launch or, of a sample, the cluster began
  std::map<uint64_t, double> sampled;  // by cluster of this launch, what it cost
  // Requests and cost: in all when the cluster began, and those of the launch's first cluster.
  std::pair<uint64_t, uint64_t> begun, first;
};

struct Counts {  // of one program counter and kind
  Space space = Space::other;
  uint64_t requests = 0, sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0, lanes = 0;
  uint64_t received = 0;  // of tiles: sectors, once for each block that gets them
  uint64_t passes = 0;    // over the banks of the L1 cache, at least
  uint32_t size = 0;
  Estimate estimate;
  std::vector<std::pair<unsigned, uint64_t>> picture;  // the fullest request: lanes and their virtual addresses
  uint64_t cost() const { return space == Space::shared ? wavefronts : sectors; }
  std::pair<uint64_t, uint64_t> both() const { return {requests, cost()}; }
};

// How a compiler might have arranged the accesses of the source (whatif.h).
enum class Manner : uint8_t {
  in_4,  // neighbours merged into accesses of up to 4 bytes, or 8, or 16
  in_8,
  in_16,
  once,  // what a thread has loaded is not loaded again
  once_in_4,
  once_in_8,
  once_in_16,
  guarded,  // only threads load that then store to global memory
  guarded_in_4,
  guarded_in_8,
  guarded_in_16,
  joined,      // loads of two branches become one
  copied,      // loads that a store to shared memory follows, as copies past the L1
  unrolled_2,  // loops, in steps of this number of iterations (unrolled.h)
  unrolled_4,
  unrolled_16,
};
constexpr unsigned kManners = 16;

struct Finding {
  std::string kind, kernel, message;
  bool remark = false;            // worth knowing, but not a fault
  uint64_t pc = 0, other_pc = 0;  // other_pc: the other access of a race, or the other barrier of a divergent one
  uint64_t position = 0;          // of the thread in the grid
  unsigned rank = 0;              // of several findings on one line, the one with the lowest rank is reported
  uint3 block{}, thread{};
  std::string file;  // where the compiler names the place itself; otherwise the program counters do
  unsigned line = 0;
};

struct LaunchInfo {
  // `kernel`: the text of the launch and, if it may be of a template or is a pointer's, " @" and the code that runs it.
  std::string kernel, file;
  int line = 0;
  dim3 grid{1}, block{1};
  uint64_t blocks = 0, traced_blocks = 0;
  std::set<uint64_t> pcs;              // of its first events: they tell the instance of a template
  uint64_t entry = 0;                  // of the kernel that a pointer held, if its name is not known
  uint64_t cut_blocks = 0;             // traced blocks whose trace ended before they did
  uint64_t steps = 0, lane_steps = 0;  // their ratio is the mean number of active lanes
  size_t shared_static = 0, shared_dynamic = 0;
  uint64_t loading = 0, storing = 0;         // threads that load from global memory, and that store to it
  uint64_t most_loads = 0, most_stores = 0;  // of one thread
  // Sectors, each once (footprint.h): read before they were written, written; those of all memory that was read from.
  uint64_t sectors_read = 0, sectors_written = 0, sectors_readable = 0;
  uint64_t least_read = 0;        // of the sectors read, those of the cluster that is the first to read the fewest
  double cost = 0, all_cost = 0;  // of a sample: of its blocks, and of all blocks as they are estimated
  bool even = false;  // all traced blocks, each a cluster of its own, made the same requests at the same cost
  // Multiply-adds of tensor cores, by type: of all traced blocks, and of the block that has the fewest.
  uint64_t products[kTensorTypes] = {}, least_products[kTensorTypes] = {};
  uint64_t sms_told = 0;      // SMs of the device, if the function has asked before the launch; else 0
  uint64_t special = 0;       // results of special-function units
  uint64_t most_updates = 0;  // atomic updates of the word of global memory that has most; those of a warp are one
};

struct Writer {  // the last one of some bytes of global memory
  std::string kernel;
  uint64_t size, block, thread;  // bytes; the block's number in the grid, the thread's in the block
};

class KernelBefore;

class Session {
 public:
  static Session* active();
  std::shared_ptr<const KernelBefore> before;  // of the next launch; null if that begins after its end
  uint64_t seed = 0, max_blocks = 64, budget = 0;
  int sms = 0;                              // of the device; 0: the simulator's own
  uint64_t sms_told = 0;                    // to the function that is X-rayed, which may size its grids by it
  bool only_sample = false;                 // blocks that are not traced do not run
  double seconds = 0;                       // of processor time; until then blocks are traced beyond their budget
  bool (*ask)(uint64_t address) = nullptr;  // Python looks for tensors it has not registered; true if it found some
  Regions regions;
  std::vector<uint64_t> borrowed;  // regions of cudaMalloc, whose memory may be freed and reused after the launch
  std::map<std::tuple<std::string, uint64_t, Kind>, Counts> counts;  // by kernel, program counter and kind
  bool asks_what_if = false;                                         // whether to count what other manners cost, too
  std::map<std::tuple<std::string, uint64_t, Kind, Manner, unsigned>, Counts> what_if;  // ..., and bytes of an access
  std::set<std::tuple<uint64_t, uint64_t, Manner>> links;  // program counters whose requests became one
  bool asks_who_wrote = false;
  std::map<std::pair<std::string, uint64_t>, Writer> writers;  // by the region's name and the offset in it
  std::vector<Finding> findings;
  std::vector<LaunchInfo> launches;
  Film film;
  uint64_t random();
  void launch_begins();
  void launch_ends();
  bool has_time() const;  // during a launch
  // Says on a terminal how far a block is that takes long.
  void tell(const std::string& kernel, uint64_t block, uint64_t steps);
  void link(uint64_t pc, uint64_t other, Manner manner) {
    if (pc != other) links.insert({std::min(pc, other), std::max(pc, other), manner});
  }

  // The finding to fill in for this kind and place, or null if a thread at an earlier `position` in the grid has it.
  Finding* place(const char* kind, const std::string& kernel, uint64_t pc, uint64_t other_pc, uint64_t position,
                 bool remark);

 private:
  double spent_ = 0, began_ = 0;  // processor seconds: of earlier launches; of this thread as the launch began
  bool told_ = false;
};

}  // namespace simt::trace
