// barriers.h: how threads wait for each other at the barriers of blocks, clusters, warp groups and warps.
//
// A thread that reaches a barrier is suspended. Between turns the scheduler opens each barrier that all threads have
// reached, which joins the threads' clocks (clocks.h). If nothing opens and no thread can run, that is a deadlock.
//
// Faults: threads that pass one barrier at different __syncthreads in the source; lanes that a mask does not name; warps
// that ask for more registers than a block can have, of which one waits for ever (setmaxnreg, once a warp). A
// remark: threads that have ended without reaching the barrier, which does not wait for them, as on GPUs since Volta.
// Deviation: __activemask answers with the lanes that ask at the same place while no other thread can go on.
#pragma once

#include "trace/clocks.h"

namespace simt::trace {

class Barriers {
 public:
  Barriers(Cluster& cluster, Clocks& clocks) : cluster_(cluster), clocks_(clocks) {}

  void begin_cluster();
  void end_cluster();

  // On the fibre of the calling thread.
  int block(Vote vote, int predicate, const void* site);
  void cluster_arrive();
  void cluster(const void* site);
  void warp_group(const void* site);
  unsigned named(unsigned id, unsigned threads, int predicate, const void* site);  // of how many it holds
  void arrive(unsigned id, unsigned threads);
  uint64_t collective(Collective what, unsigned mask, uint64_t value, unsigned operand, const void* site);
  unsigned active(const void* site);
  void set_registers(unsigned number, bool more, const void* site);  // of a thread of the running warp
  void max_registers(unsigned number) { at_first_ = number; }        // of a thread of the kernel, when it begins
  void launch_bounds(unsigned threads, unsigned blocks);             // which leave it a part of an SM's

  // For the scheduler.
  bool open();                 // the barriers that every thread has reached; false if there was none
  bool answer(unsigned warp);  // the collectives that all lanes of the mask have reached; false if there was none
  bool answer_active();        // __activemask; false if no thread has asked

 private:
  struct Named {  // the threads that have reached a barrier of inline PTX, and what they know
    unsigned count = 0, threads = 0, trues = 0;
    ProxyClocks clocks;
  };
  struct Split {  // the cluster's barrier: threads may arrive at it and wait for the others later
    unsigned phase = 0;
    bool split = false;  // whether a thread has arrived in this phase without waiting
    // In which phase, plus one, a thread has arrived without having passed the barrier; or 0.
    std::vector<unsigned> arrived = std::vector<unsigned>(kMaxClusterThreads);
    ProxyClocks arriving, released;  // what threads knew when they arrived: in this phase, and in the one before
  };
  struct Asked {                // for registers, by a warp
    unsigned registers = 0;     // a thread; 0: for none
    uint64_t increased_at = 0;  // the program counter of its setmaxnreg.inc, or 0
    bool again = false;
  };
  Named& reach(unsigned id, unsigned threads);
  void open_block(unsigned rank);
  void film_barrier(unsigned begin, unsigned end);
  bool open_cluster();
  bool open_warp_groups();
  bool open_named();
  void open_named(Named& barrier, unsigned rank, unsigned id);
  void open_collective(unsigned warp, unsigned lanes, Collective what);

  Cluster& cluster_;
  Clocks& clocks_;
  Named named_[kMaxClusterBlocks][kNamedBarriers];
  Split cluster_barrier_;
  unsigned at_first_ =
      0;  // registers of a thread when its kernel begins; 0: nvcc does not know, and ignores setmaxnreg
  std::vector<Asked> asked_ = std::vector<Asked>(kMaxClusterThreads / kWarpSize);  // by warp
};

}  // namespace simt::trace
