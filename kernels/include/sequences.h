// sequences.h: where the sequences of a batch lie, for attention on Hopper: in a
// dimension of their own if they have one length, or packed, one after the other.
//
// Packed sequences are a batch of 1. Sequence i has rows starts[i] to starts[i + 1] of
// all. What a block works on is a tile of one sequence. No table says which: tile t of
// sequence i is number starts[i] / rows + i + t, for tiles of `rows` rows. So far the
// sequences before it have at most as many tiles, since each but the first can begin
// one that it does not fill. Some numbers are no tile's, at most one for a sequence.
//
// A tensor map ends a tile at the end of its dimension, but not at the end of one of
// its sequences, and what lies behind is the next sequence, which may hold NaN. So the
// map of a packed tensor has two dimensions for rows, both with their pitch. Row r of a
// sequence of `length` rows that ends before row `end` is kFar - length + r in the
// first, whose size is kFar, so it is outside if r >= length, and `end` in the second.
// That is kFar rows too many: a third one adds kFar steps, each a pitch short of 2^34
// bytes, which makes 2^64 bytes of both, and addresses are counted modulo 2^64. (A map
// that begins as many bytes before the tensor faults if no memory is there.)
#pragma once

#include "attention.h"
#include "hopper_matmul.h"

namespace ladder {

constexpr int kFar = 1 << 30;

// In a tensor map a sequence's rows begin with `row` of matrix `batch`.
struct Sequence {
  int length, batch, row;
};

// The sequences of q, or of k and v, if all have one length.
struct EqualLengths {
  static constexpr bool packed = false;
  int length;

  // How many numbers tiles of a head have.
  __host__ __device__ int tiles(int rows) const { return ceil_div(length, rows); }
  // The sequence that has tile `number`, counted within matrix `batch`, and the number
  // of its first tile.
  __device__ int sequence_of(int number, int rows) const { return 0; }
  __device__ int first_tile(int sequence, int rows) const { return 0; }
  __device__ Sequence sequence(int batch, int) const { return {length, batch, 0}; }
  // Elements to the first row of a sequence.
  __device__ static int64_t offset(const Sequence& s, const Strides& strides) {
    return s.batch * strides.batch;
  }
  hopper::TileMap map(const Tensor& t, int box_rows) const {
    return hopper::tile_map_4d(t, box_rows);
  }
  // Requests a tile of a sequence that begins with its row `first`.
  template <typename Panels>
  __device__ static void load(Panels& to, const hopper::TileMap& map,
                              hopper::Barrier& barrier, const Sequence& s, int head,
                              int first) {
    hopper::load_panels(to, map, barrier, s.batch, head, s.row + first);
  }
};

struct Packed {
  static constexpr bool packed = true;
  const int* starts;
  int sequences, rows_in_all;

  __host__ __device__ int tiles(int rows) const {
    return rows_in_all / rows + sequences;
  }
  // Starts that are none, of a faulty caller, lead to no access outside the tensors.
  __device__ int start(int sequence) const {
    return min(max(starts[sequence], 0), rows_in_all);
  }
  __device__ int first_tile(int sequence, int rows) const {
    return start(sequence) / rows + sequence;
  }
  // A whole warp: all lanes look at a 32nd of what is left.
  __device__ int sequence_of(int number, int rows) const {
    int begin = 0, end = sequences;
    while (end - begin > 1) {
      int step = ceil_div(end - begin, 32), at = begin + threadIdx.x % 32 * step;
      bool before = at < end && first_tile(at, rows) <= number;
      begin += (31 - __clz(__ballot_sync(kAll, before) | 1)) * step;
      end = min(end, begin + step);
    }
    return begin;
  }
  __device__ Sequence sequence(int, int i) const {
    int first = start(i), end = max(first, start(i + 1));
    return {end - first, end, kFar - (end - first)};
  }
  __device__ static int64_t offset(const Sequence& s, const Strides& strides) {
    return (s.batch - s.length) * strides.token;
  }
  hopper::TileMap map(const Tensor& t, int box_rows) const {
    int64_t token = stride(t, 2), short_of = (int64_t(1) << 34) / 2;  // elements
    return hopper::encode_map<5>(
        t.const_data_ptr(), {t.size(3), kFar, t.size(1), rows_in_all + 1, kFar + 1},
        {token, stride(t, 1), token, short_of - token}, box_rows);
  }
  template <typename Panels>
  __device__ static void load(Panels& to, const hopper::TileMap& map,
                              hopper::Barrier& barrier, const Sequence& s, int head,
                              int first) {
    hopper::load_panels(to, map, barrier, kFar, s.batch, head, s.row + first);
  }
};

// other: what takes all other inputs.
inline Sizes check_hopper(const Tensor& q, const Tensor& k, const Tensor& v,
                          const char* other) {
  Sizes size = check_attention(q, k, v, true);
  check_input(q, "q", ScalarType::BFloat16, true);
  STD_TORCH_CHECK(64 <= size.d && size.d <= 128 && size.d % 8 == 0,
                  "q must have 64 to 128 columns, a multiple of 8, got ", size.d,
                  "; use ", other);
  return size;
}

inline Packed packed(const std::optional<Tensor>& starts, const char* name,
                     const Tensor& of, const char* name_of) {
  STD_TORCH_CHECK(starts, name, " must be given with the other one's starts, got None");
  check_input(*starts, name, ScalarType::Int);
  STD_TORCH_CHECK(starts->dim() == 1 && starts->numel() > 0, name,
                  " must have an element for each sequence and one more, got shape ",
                  shape_of(*starts));
  check_same_device(*starts, name, of, name_of);
  STD_TORCH_CHECK(of.size(0) == 1, name_of, " must have a batch of 1 with ", name,
                  ", got shape ", shape_of(of));
  return {data<int>(*starts), int(starts->numel() - 1), int(of.size(2))};
}

// Calls run with the lengths of q and of k, and with the mask. Packed sequences have a
// window, if of all keys.
template <typename Run>
void with_sequences(const Tensor& q, const Tensor& k, const Sizes& size, bool causal,
                    std::optional<int64_t> left, std::optional<int64_t> right,
                    const std::optional<Tensor>& starts,
                    const std::optional<Tensor>& starts_kv, Run run) {
  if (!starts && !starts_kv) {
    return with_mask(size, causal, left, right, [&](auto mask) {
      run(EqualLengths{size.tokens}, EqualLengths{size.tokens_kv}, mask);
    });
  }
  Packed of_q = packed(starts, "starts", q, "q"),
         of_k = packed(starts_kv, "starts_kv", k, "k");
  STD_TORCH_CHECK(of_q.sequences == of_k.sequences,
                  "starts and starts_kv must have one length, got ", of_q.sequences + 1,
                  " and ", of_k.sequences + 1);
  run(of_q, of_k, window(size, causal, left, right));
}

// Whether all queries see as many keys.
inline bool uniform(const Mask& mask) { return !mask.causal; }
inline bool uniform(const Band&) { return false; }

// Of how many of `heads` heads the work tiles alternate: those whose `bytes` bytes each
// fit in the L2 cache. If tiles take the same time, or are few to a head, only as many
// as run at a time: what they share is used while it is in the cache. Of others, the
// long ones of many heads come first, and the short ones keep all SMs busy.
inline int heads_at_once(int64_t heads, int64_t bytes, int64_t tiles_of_head,
                         bool same_time) {
  if (same_time || tiles_of_head <= 4)
    heads = std::min(heads, ceil_div(int64_t(sms()), tiles_of_head));
  return int(std::clamp<int64_t>(kL2Bytes / bytes, 1, heads));
}

}  // namespace ladder
