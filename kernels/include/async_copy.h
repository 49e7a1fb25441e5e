// async_copy.h: copies from global to shared memory that run while the thread does
// other work (cp.async, since compute capability 8.0). All PTX for them is in this
// file.
//
//   AsyncCopies copies;                         one thread's
//   copies.start<16>(&to, &from, inside);       4, 8 or 16 bytes; if not inside, writes
//                                               zeros and does not read `from`
//   copies.commit();                            closes the group of copies started
//                                               since the last commit
//   copies.wait<1>();                           returns when all groups but the latest
//                                               1 have arrived
//
// wait covers the thread's own copies: a __syncthreads after it makes all threads'
// copies visible to all. A copy does not pass through registers, so many can be in
// flight.
//
// In the simulator a copy's values are there only after the thread has waited for it;
// until then it is NaN. So a missing wait, or a stage that is filled while others read
// it, gives NaN. An X-ray sees the accesses where the copy starts, the earliest moment
// at which it may write: so it finds races. That a wait is missing, only the result
// shows. On GPUs before compute capability 8.0 a copy is done at once.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "vector.h"

namespace ladder {

#if __CUDA_ARCH__ < 800

class AsyncCopies {
 public:
  template <int bytes>
  __device__ void start(void* to, const void* from, bool inside) {
    using T = typename Word<bytes>::type;
    *static_cast<T*>(to) = inside ? *static_cast<const T*>(from) : T{};
  }
  __device__ void commit() {}
  template <int pending>
  __device__ void wait() {}
};

#else

class AsyncCopies {
 public:
  template <int bytes>
  __device__ void start(void* to, const void* from, bool inside) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16,
                  "cp.async copies 4, 8 or 16 bytes");
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    int read = inside ? bytes : 0;  // the rest becomes 0
    // Bypasses the L1: these elements are not read from there again.
    if constexpr (bytes == 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                   "r"(read)
                   : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                   "n"(bytes), "r"(read)
                   : "memory");
    }
  }
  __device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int pending>
  __device__ void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
  }
};

#endif

// Starts the copy of vector i of p, or copies it at once if it is too narrow for
// cp.async.
template <typename T, int bytes>
__device__ void copy_vector(AsyncCopies& copies, Vector<T, bytes>& to, const T* p,
                            int64_t i) {
  if constexpr (bytes >= 4) {
    copies.start<bytes>(&to, p + i * Vector<T, bytes>::size, true);
  } else {
    to = Vector<T, bytes>::load(p, i);
  }
}

}  // namespace ladder
