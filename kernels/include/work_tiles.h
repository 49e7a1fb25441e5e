// work_tiles.h: the tile scheduler of attention_hopper.cu. A work tile is a block's
// queries of one head with the keys that they see. A block computes one after the
// other; its producer chooses, and tells the consumers in shared memory.
//
// Which tiles a block takes: first the tile of its own number. Then, if all take the
// same time, every gridDim.x-th; else the next that no block has taken, by a counter in
// global memory, so that no SM waits for one with more to do.
#pragma once

#include <cstring>

#include "hopper.h"
#include "sequences.h"

namespace ladder {

constexpr int kKeysOfTile = 128;

// Queries from `first` on of a head's sequence, and whole tiles of its keys from key
// `begin` to key `end`, none if these are the same.
struct WorkTile {
  Sequence q;
  int head, first, begin, end, length_kv;  // up to here, what consumers need: 32 bytes
  Sequence kv;
  int head_kv;
};
constexpr int kNoMore = -1;  // the end of what follows the last one

// The time of all work tiles of `rows` queries, in those of one with all keys.
inline double waves(const Sizes& size, const Mask& mask, int rows) {
  double tiles = size.heads * ceil_div(int64_t(size.tokens), int64_t(rows));
  if (uniform(mask)) return std::ceil(tiles / sms());
  double seen = (size.tokens + rows + kKeysOfTile) / (2.0 * size.tokens);
  return std::max(1.0, tiles * seen / sms());
}

// The order of work tiles of `rows` queries: those of `at_once` heads together, some
// neighbours of each in turn, which read the same keys at the same time. The last
// queries come first: if causal, they take longest, and the short tiles at the end keep
// all SMs busy.
template <int rows, typename Lengths>
struct TileScheduler {
  static constexpr int kNeighbours = 4;
  Lengths of_q, of_kv;
  Sizes size;
  int at_once, of_batch;  // heads
  int* taken = nullptr;   // how many tiles blocks have taken beyond their first
  template <typename Mask>
  TileScheduler(Lengths of_q, Lengths of_kv, const Sizes& size, int of_batch,
                const Mask& mask)
      : of_q(of_q), of_kv(of_kv), size(size), of_batch(of_batch) {
    int64_t bytes = int64_t(size.tokens_kv) * size.d * 2 * 2;  // of k and v
    at_once = size.group * heads_at_once(size.heads / size.group, bytes,
                                         size.group * of_q.tiles(rows), uniform(mask));
  }
  // How many numbers tiles have.
  __host__ __device__ int64_t numbers() const { return size.heads * of_q.tiles(rows); }
  // How many blocks there are. A counter for the tiles beyond their first is kept in
  // `counter`, on q's device.
  template <typename Mask>
  unsigned blocks(const Mask& mask, const Tensor& q, std::optional<Tensor>& counter) {
    unsigned one_each = grid_of(numbers());
    if (one_each <= (uniform(mask) ? 1 : 2) * unsigned(sms())) return one_each;
    if (!uniform(mask)) {
      counter = torch::stable::new_zeros(q, {1}, ScalarType::Int);
      taken = data<int>(*counter);
    }
    return sms();
  }
  // A warp. Some numbers of packed sequences are no tile's: there, first is outside.
  template <typename Mask>
  __device__ WorkTile tile(int number, Mask mask) const {
    int numbers = of_q.tiles(rows), head = number / (numbers * at_once) * at_once;
    int heads = min(at_once, int(size.heads) - head);
    number -= head * numbers;
    int from = number / (heads * kNeighbours) * kNeighbours;
    int neighbours = min(kNeighbours, numbers - from);
    number -= heads * from;
    head += number / neighbours;
    number = from + number % neighbours;
    int batch = head / of_batch;
    head -= batch * of_batch;
    int i = of_q.sequence_of(number, rows);
    Sequence q = of_q.sequence(batch, i), kv = of_kv.sequence(batch, i);
    if constexpr (Lengths::packed) mask = mask.aligned(q.length, kv.length);
    number -= of_q.first_tile(i, rows);
    int first = (ceil_div(q.length, rows) - 1 - number) * rows;
    Range range = mask.keys_of(first, first + rows - 1);
    int begin = range.begin / kKeysOfTile * kKeysOfTile;
    int tiles = range.end > begin ? ceil_div(range.end - begin, kKeysOfTile) : 0;
    int end = begin + tiles * kKeysOfTile;
    return {q, head, first, begin, end, kv.length, kv, head / size.group};
  }
  // A warp. The number that the block takes after `number`.
  __device__ int64_t next(int64_t number) const {
    if (!taken) return number + gridDim.x;
    int before = 0;
    if (threadIdx.x % 32 == 0) before = atomicAdd(taken, 1);
    return int64_t(gridDim.x) + __shfl_sync(kAll, before, 0);
  }
};

// The ring of a block's work tiles in shared memory: those with keys. The n-th is in
// stage n % stages, in a phase of parity n / stages % 2.
struct WorkTiles {
  static constexpr int stages = 2;
  int4 work[stages][2];
  hopper::Barrier full[stages], empty[stages];

  // One thread. consumers: how many warps call read.
  __device__ void init(int consumers) {
    for (int stage = 0; stage < stages; ++stage) {
      hopper::init(full[stage], 1);
      hopper::init(empty[stage], consumers);
    }
  }

  // The producer, a warp. Calls load(work tile, n) in one thread; where no key
  // is seen, it calls skip(work tile) instead, in all.
  template <typename Scheduler, typename Mask, typename Load, typename Skip>
  __device__ void produce(const Scheduler& scheduler, const Mask& mask, Load load,
                          Skip skip) {
    unsigned n = 0;
    bool more = true;
    for (int64_t number = blockIdx.x; more; number = scheduler.next(number)) {
      WorkTile tile = {};
      tile.end = kNoMore;
      more = number < scheduler.numbers();
      if (more) {
        tile = scheduler.tile(int(number), mask);
        if (tile.first < 0 || tile.first >= tile.q.length) continue;
        if (tile.begin == tile.end) {
          skip(tile);
          continue;
        }
      }
      if (hopper::elected()) {
        hopper::wait(empty[n % stages], n / stages % 2 ^ 1);
        int4 halves[2];
        memcpy(halves, &tile, sizeof halves);
        for (int i = 0; i < 2; ++i) work[n % stages][i] = halves[i];
        hopper::arrive(full[n % stages]);
        if (more) load(tile, n);
      }
      ++n;
    }
  }

  // A warp of a consumer. Reads the n-th work tile into `to`, but for kv, or returns
  // false: there are no more.
  __device__ __forceinline__ bool read(WorkTile& to, unsigned n) {
    hopper::wait(full[n % stages], n / stages % 2);
    int4 halves[2] = {work[n % stages][0], work[n % stages][1]};
    __syncwarp();
    if (threadIdx.x % 32 == 0) hopper::arrive(empty[n % stages]);
    WorkTile tile;
    memcpy(&tile, halves, sizeof halves);
    if (tile.end != kNoMore) to = tile;
    return tile.end != kNoMore;
  }
};

}  // namespace ladder
