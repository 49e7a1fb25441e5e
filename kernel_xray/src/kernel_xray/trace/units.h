// units.h: the units that read and write memory for a thread and may be late: TMA, the tensor cores of wgmma and of
// tcgen05, and stores into another block's shared memory.
//
// The functions of async.h do a unit's work at once; this class models how late a GPU may do it.
//   A TMA load runs in the slot of its mbarrier, from its issue on. Its epoch is released to the mbarrier, so that a
//     wait for the phase orders it (mbarriers.h).
//   A send to another block (st.async) runs in the slot of its mbarrier too. The wait also orders what its thread did
//     before. On a GPU that is so for reads whose values the thread has used; nothing makes its writes visible.
//   A TMA store runs in a slot of its thread. cp.async.bulk.wait_group orders its reads of shared memory, and only them: none of the
//     waits here tells when its writes are done, so they have an epoch that no clock ever knows.
//   A tcgen05.mma reads in the slot of its thread's stores. An arrival of tcgen05.commit releases the epoch of the thread's
//     last one, and what the thread knows. What it writes is in columns.h.
//   A wgmma reads for its thread, in the thread's slot. It may read at any time up to wgmma.wait_group, so its reads
//     are checked twice: when it is issued, and again when the thread waits for it.
// All of them use the async proxy: a thread's writes are visible to them only after a proxy fence (`fence`).
//
// Limits: accesses are checked in pieces of 16 bytes, or of 8 for a send; groups are waited for in order; the
// accumulators of wgmma are registers, which are not checked; only a first product without any wgmma.fence is a fault.
#pragma once

#include "../include/simt/async.h"
#include "trace/mbarriers.h"
#include "trace/footprint.h"

namespace simt::trace {

struct Piece {  // of memory, that a unit reads or writes
  uint64_t address;
  size_t bytes;
  bool write;
};

class Units {
 public:
  Units(Cluster& cluster, Clocks& clocks, Races& races, MBarriers& mbarriers, Footprint& footprint)
      : cluster_(cluster), clocks_(clocks), races_(races), mbarriers_(mbarriers), footprint_(footprint) {}
  void begin_cluster();

  // On the fibre of the calling thread. First come the pieces of memory of an operation, then the operation itself, by
  // then with the thread's record replayed.
  void add_piece(Piece piece);
  void add_zeros(size_t bytes);
  void load(void* barrier, int bytes, Copy copy);
  void send(void* barrier, int bytes);
  void store();
  void product();
  Epoch multiply(const ProxyClocks& known);  // tcgen05.mma, by a thread that knows this
  void commit_products(void* barrier);       // tcgen05.commit
  void fence_registers();
  void commit(Unit unit);
  void wait(Unit unit, unsigned pending);
  void fence();

  unsigned tiles_of(unsigned i) const { return issued_[i].tiles; }  // that thread i has had loaded

  // Thread i has ended; so may its block, and with it the shared memory that a store or a product still reads.
  void check_exit(unsigned i);

 private:
  struct Read {  // by a wgmma that may still be running
    Piece piece;
    uint64_t pc;
    unsigned group;
  };
  struct Issued {                 // what a thread has issued and not waited for
    std::vector<Piece> pieces;    // of the operation that it is about to issue
    std::vector<uint64_t> zeros;  // bytes of them, row by row
    uint64_t sectors = 0;         // of its last tile
    uint32_t tiles = 0;           // whose load it has requested
    std::vector<Read> reads;
    bool registers_fenced = false;            // by wgmma.fence
    unsigned groups = 0;                      // of wgmma that are closed
    std::vector<uint32_t> stores;             // the store clock when each group of stores was closed
    uint32_t store_clock = 0, read_done = 0;  // now; up to where the reads of stores are known to be done
    uint64_t store_pc = 0;                    // of the last store
    uint32_t last_store = 0;                  // its clock
    uint32_t multiplied = 0, committed = 0;   // the store clock at the last tcgen05.mma; the last that was committed
    uint64_t multiply_pc = 0;
  };
  Issued& issued() { return issued_[cluster_.running()]; }
  void deliver(void* barrier, int bytes, bool sent);
  void access(const Accessor& accessor, const Piece& piece, uint64_t pc);
  void count_tile(Kind kind, Copy copy);
  void film_tile(Kind kind);
  void wait_for_stores(unsigned pending);
  void wait_for_products(unsigned pending);

  static constexpr uint32_t kNever = ~0u;  // the clock of writes whose end no thread learns

  Cluster& cluster_;
  Clocks& clocks_;
  Races& races_;
  MBarriers& mbarriers_;
  Footprint& footprint_;
  std::vector<Issued> issued_ = std::vector<Issued>(kMaxClusterThreads);  // by thread
};

}  // namespace simt::trace
