// attention_key_work.h: the tile scheduler of attention_hopper_backward.cu. A work tile
// is 128 keys of a head with the queries that see them. A block computes one after the
// other: its producer takes the next by a counter in global memory, so that no SM waits
// for one with more to do, and tells the other roles in shared memory.
#pragma once

#include "hopper_matmul.h"
#include "sequences.h"

namespace ladder {

constexpr int kKeysOfGroup = 64, kKeysOfBlock = hopper::kConsumers * kKeysOfGroup;
// a consumer's subtile of a tile of grad_q: kSubtile x kSubtile elements.
constexpr int kSubtile = 64;
template <int d>
constexpr int kQueriesOfTile = hopper::kConsumers * kSubtile * kSubtile / d;

// The tiles of queries that a block loops over: from the last one down, each of all
// `heads` heads of the group. first_head: of those of all batches. numbers: how many
// tiles of a head have; first: that of the sequence's first tile.
struct TileIterator {
  int first_head, heads, numbers, first, tile, head;
  __device__ void advance() {
    if (++head == heads) {
      head = 0;
      --tile;
    }
  }
  __device__ int number() const { return (first_head + head) * numbers + first + tile; }
};

constexpr int kNoMore = -1;

// What a block works on at a time: keys from `first` on of a sequence, with a tile of
// queries in each of `steps` steps.
struct WorkTile {
  Sequence q, kv;
  int head_kv, first, steps;  // steps: kNoMore after the last work tile
  TileIterator iterator;
};

// The order of work tiles: those of `at_once` heads alternate, if causal the longest
// first. taken: how many were taken, in global memory.
template <int d, typename Lengths, typename Mask>
struct TileScheduler {
  Lengths of_q, of_kv;
  Sizes size;
  int heads_kv, at_once;  // heads_kv: of a batch
  Mask mask;
  int* taken;

  __device__ int numbers() const {
    return int(size.heads) / size.group * of_kv.tiles(kKeysOfBlock);
  }
  // A warp. The next work tile. Some numbers of packed sequences are no tile's.
  __device__ bool next(WorkTile& work) const {
    int number = 0;
    if (threadIdx.x % 32 == 0) number = atomicAdd(taken, 1);
    number = __shfl_sync(kAll, number, 0);
    if (number >= numbers()) return false;
    work = tile(number);
    return true;
  }
  __device__ Mask mask_of(const Sequence& q, const Sequence& kv) const {
    if constexpr (Lengths::packed) return mask.aligned(q.length, kv.length);
    return mask;
  }
  __device__ WorkTile tile(int number) const {
    constexpr int queries = kQueriesOfTile<d>;
    int numbers = of_kv.tiles(kKeysOfBlock),
        head = number / (numbers * at_once) * at_once;
    int heads = min(at_once, int(size.heads) / size.group - head);
    number -= head * numbers;
    head += number % heads;
    number /= heads;
    int i = of_kv.sequence_of(number, kKeysOfBlock);
    Sequence q = of_q.sequence(head / heads_kv, i),
             kv = of_kv.sequence(head / heads_kv, i);
    int first = (number - of_kv.first_tile(i, kKeysOfBlock)) * kKeysOfBlock;
    Range range = mask_of(q, kv).queries_of(first, first + kKeysOfBlock - 1);
    int begin = max(range.begin, 0) / queries,
        end = ceil_div(min(range.end, q.length), queries);
    bool none = Lengths::packed && (first < 0 || first >= kv.length);
    return {q,
            kv,
            head % heads_kv,
            first,
            none ? 0 : max(end - begin, 0) * size.group,
            {head * size.group, size.group, of_q.tiles(queries),
             of_q.first_tile(i, queries), end - 1, 0}};
  }
};

}  // namespace ladder
