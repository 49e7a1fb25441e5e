// sends.cu: the blocks of a cluster send each other values (cluster.h): one right answer, or one planted fault.
#include "case.h"
#include "cluster.h"

using ladder::Cluster;
using ladder::Mailbox;

enum Wrong { nothing, no_wait, too_few, too_many, one_array, one_mailbox,
             no_init, no_sync, odd_slot, wrong_rank, early, leaves };
constexpr int kWarps = 2;

template <typename W>
struct alignas(2 * sizeof(W)) Pair {
  W one, two;
};

// out[turn][block]: the sum of what all warps of the block's cluster have sent for this turn.
template <typename W, int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) sums_kernel(W* out, int turns, int wrong) {
  constexpr int values = blocks * kWarps;
  __shared__ Pair<W> sent[2][values + 1];
  __shared__ Mailbox mailbox[2];
  int rank = Cluster::rank(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int expected = int(sizeof(Pair<W>)) * (values - (wrong == too_few) + (wrong == too_many));
  if (threadIdx.x == 0 && wrong != no_init) {
    for (Mailbox& one : mailbox) Cluster::init(one, expected);
  }
  if (wrong != no_sync) Cluster::sync();
  if (wrong == early && rank == 0) return;
  for (int turn = 0; turn < turns; ++turn) {
    auto& array = sent[wrong == one_array ? 0 : turn % 2];
    Mailbox& received = mailbox[wrong == one_mailbox ? 0 : turn % 2];
    int place = rank * kWarps + warp, to = lane + (wrong == wrong_rank);
    auto* slot = reinterpret_cast<Pair<W>*>(&array[place].one + (wrong == odd_slot));
    if (lane < blocks) Cluster::send(*slot, to, Pair<W>{W(turn), W(place)}, received);
    if (wrong == leaves && rank == 0 && turn + 1 == turns) return;
    if (wrong != no_wait) Cluster::wait(received, turn / 2 % 2);
    if (threadIdx.x == 0) Cluster::expect_bytes(received, expected);
    W sum = lane < values ? array[lane].one + array[lane].two : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x == 0) out[turn * gridDim.x + blockIdx.x] = sum;
  }
}

// numbers: the type of the values, the blocks of a cluster (2, 4 or 8), the clusters, the turns, what is wrong.
CASE(sums) {
  with_type<float, double>(call.number(0), [&](auto number) {
    using W = decltype(number);
    int turns = int(call.number(3)), wrong = int(call.number(4));
    unsigned blocks = unsigned(call.number(1)), grid = blocks * unsigned(call.number(2));
    if (blocks == 2) sums_kernel<W, 2><<<grid, 32 * kWarps>>>(call.data<W>(0), turns, wrong);
    if (blocks == 4) sums_kernel<W, 4><<<grid, 32 * kWarps>>>(call.data<W>(0), turns, wrong);
    if (blocks == 8) sums_kernel<W, 8><<<grid, 32 * kWarps>>>(call.data<W>(0), turns, wrong);
  });
}
