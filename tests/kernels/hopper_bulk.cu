// hopper_bulk.cu: to = from, through shared memory, by hopper_bulk.h: each half for itself, or by way of the other block.
// `wrong` plants a mistake.
#include "case.h"
#include "hopper_bulk.h"

enum { kNothing, kNoWait, kMisaligned, kNoFence };
constexpr int kBytes = 512;

__global__ void copy_kernel(float* to, const float* from, int wrong) {
  __shared__ __align__(16) float piece[kBytes / 4 + 4];
  __shared__ hopper::Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(full, kBytes);
    hopper::load_bytes(piece + (wrong == kMisaligned), from, kBytes, full);
  }
  __syncthreads();
  if (wrong != kNoWait) hopper::wait(full, 0);
  to[threadIdx.x] = piece[threadIdx.x];
}

// Each of two blocks sends one half of `from` to the other, which writes it.
__global__ void __cluster_dims__(2, 1, 1) send_kernel(float* to, const float* from, int wrong) {
  extern __shared__ __align__(1024) float memory[];
  constexpr int kHalf = kBytes / 4 / 2;
  float *sent = memory, *received = memory + kHalf;
  auto& arrived = *reinterpret_cast<hopper::Barrier*>(memory + 2 * kHalf + 4);
  int thread = threadIdx.x, rank = hopper::cluster_rank(), other = rank ^ 1;
  if (thread == 0) {
    hopper::init(arrived, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(arrived, kBytes / 2);
  }
  sent[thread] = from[rank * kHalf + thread];
  if (wrong != kNoFence) hopper::fence_before_store();
  hopper::cluster_sync();
  if (thread == 0) hopper::send_bytes(other, received + (wrong == kMisaligned), sent, kBytes / 2, arrived);
  if (wrong != kNoWait) hopper::wait(arrived, 0);
  to[other * kHalf + thread] = received[thread];
  hopper::cluster_sync();  // a block outlives what is sent from it
}

// Of both: to and from, of 128 floats; `wrong`.
CASE(send) {
  send_kernel<<<2, kBytes / 4 / 2, kBytes + 64>>>(call.data<float>(0), call.data<float>(1), call.number(0));
}
CASE(copy) { copy_kernel<<<1, kBytes / 4>>>(call.data<float>(0), call.data<float>(1), call.number(0)); }
