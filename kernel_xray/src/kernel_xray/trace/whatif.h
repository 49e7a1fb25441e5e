// whatif.h: what the requests of a warp would cost if the compiler had arranged the accesses of its threads differently.
//
// nvcc merges the loads (or stores) of neighbouring elements by one thread into one wide access, loads once what a
// thread loads twice, moves a load that both branches make in front of them, moves a load under the condition of the
// store that needs it, and unrolls loops (unrolled.h). Which of these it has done, the machine code tells
// (kernel_xray/report/corrections.py); what it then costs depends on addresses, which only a run has. So a session that asks
// for it counts each Manner beside the requests of the source.
//
// Requests are rearranged within a window, which ends at a barrier and at a warp's collective. An access between two
// others that might overlap them keeps these apart. Requests merge only if their masks are equal and if in every lane
// their addresses lie at the same place in one aligned wide access, which is what nvcc has to prove.
//
// Limits: a window holds at most kWindow wide accesses, and a loop at most kIterations between two barriers. TMA, wgmma and atomics stay as they are in the source.
#pragma once

#include <array>
#include <deque>
#include <unordered_map>

#include "trace/metrics.h"
#include "trace/unrolled.h"

namespace simt::trace {

class WhatIf {
 public:
  WhatIf(Session& session, const std::string& kernel) : session_(session), kernel_(kernel) {}

  void add(unsigned warp, const Request& request);
  void end_window(unsigned warp);
  void end_windows();  // of all warps

 private:
  static constexpr size_t kWindow = 128, kIterations = 1024;

  struct Group {  // requests with one mask that make up one wide access, or a part of one
    Kind kind;
    Region* region;
    unsigned size, width;         // bytes of a lane's access, and of its wide access
    unsigned mask, filled;        // lanes; which parts of the wide access have been made
    unsigned storing;             // lanes that have stored to global memory since
    uint64_t low, high;           // the range of its addresses
    uint64_t address[kWarpSize];  // of the wide access, by lane
    std::vector<uint64_t> pcs;    // of its requests

    unsigned parts() const { return width / size; }
    bool same_access(const Group& other) const;
  };
  using Window = std::deque<Group>;
  struct Loop {  // in which a program counter is executed
    Group first;
    std::vector<Iteration> iterations;
  };
  struct Warp {
    std::array<Window, kManners> windows;
    std::unordered_map<uint64_t, Loop> loops;  // by program counter
    Group load{};                              // the latest from global memory
  };

  static Group group_of(const Request& request);
  void merge(Window& window, Group request, Manner manner);
  void join(Window& window, const Group& request);
  void unroll(Warp& warp, const Group& request);
  void end_loop(Loop& loop);
  void copy(const Group& load, const Group& store);
  void separate(Window& window, const Group& request, Manner manner);
  void finish(Group& group, Manner manner);
  void count_parts(const Group& group, unsigned first, unsigned n, Manner manner);

  Session& session_;
  const std::string& kernel_;
  std::unordered_map<unsigned, Warp> warps_;
};

}  // namespace simt::trace
