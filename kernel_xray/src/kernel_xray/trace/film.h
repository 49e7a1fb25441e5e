// film.h: what the warps of a few chosen blocks did, step by step: requests to memory, basic blocks, barriers.
//
// A frame is one step of one warp: the lanes that took part and, of a request, each lane's address and value. Frames of
// a warp are in the order in which it executed them (replay.h); frames of different warps are in one possible order. No
// frame is kept beyond the limit; how many were left out is counted. Nothing is recorded unless a film was asked for.
#pragma once

#include <string>
#include <vector>

#include "trace/regions.h"

namespace simt::trace {

struct Request;

struct Frame {
  enum class What : uint8_t { request, step, block_barrier, warp_operation, tile };
  What what = What::step;
  Kind kind = Kind::step;  // of a request or tile
  Space space = Space::other;
  uint32_t size = 0;               // bytes of a lane's access, or of a tile
  uint64_t launch = 0, block = 0;  // the launch's number in the session, the block's in the grid
  uint32_t warp = 0, mask = 0;     // the warp's number in the block; the lanes that took part
  uint64_t pc = 0;
  uint64_t start = 0;               // the virtual address of the region's first byte
  uint64_t sectors = 0;             // of a tile
  std::string region;               // what the first lane's address belongs to
  std::vector<uint64_t> addresses;  // virtual, of the lanes in `mask`
  std::vector<Value> values;        // what was loaded or stored; after an atomic operation
  bool whole = false;               // whether the values are known: not those of copies of larger objects
};

class Film {
 public:
  // Films the blocks with these numbers, of each launch, up to `limit` frames.
  void ask(const uint64_t* blocks, uint64_t count, uint64_t limit) {
    blocks_.assign(blocks, blocks + count);
    limit_ = limit;
  }
  bool wants(uint64_t block) const;
  // Keeps a frame. With a request, which `lanes` of its warp made: the frame shows that request.
  void add(Frame frame);
  void add(Frame frame, const Request& request, const Lane* lanes);

  std::vector<Frame> frames;
  uint64_t left_out = 0;

 private:
  std::vector<uint64_t> blocks_;
  uint64_t limit_ = 0;
};

}  // namespace simt::trace
