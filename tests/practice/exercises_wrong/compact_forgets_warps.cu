// Leaves out what the warps before keep: the warps of a block write over one another.
// expect: n = 255: .*race: a write to
__global__ void count_kernel(const float* x, int64_t n, int64_t* counts) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int kept = __syncthreads_count(i < n && x[i] > 0);
  if (threadIdx.x == 0) counts[blockIdx.x] = kept;
}

__global__ void compact_kernel(const float* x, int64_t n, const int64_t* first, float* out) {
  __shared__ int of_warps[kThreads / kWarp];
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  bool keep = i < n && x[i] > 0;
  unsigned kept = __ballot_sync(0xffffffff, keep);
  if (lane == 0) of_warps[warp] = __popc(kept);
  __syncthreads();
  int64_t place = first[blockIdx.x] + __popc(kept & ((1u << lane) - 1));
  if (keep) out[place] = x[i];
}
