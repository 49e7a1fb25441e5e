// async_copy.h: copies from global to shared memory that run while the thread does other work (cp.async, since compute
// capability 8.0). All PTX for them is in this file.
//
//   AsyncCopies copies;                         one thread's
//   copies.start<16>(&to, &from, inside);       4, 8 or 16 bytes; if not inside, writes zeros and does not read `from`
//   copies.commit();                            closes the group of copies started since the last commit
//   copies.wait<1>();                           returns when all groups but the latest 1 have arrived
//
// wait covers the thread's own copies: a __syncthreads after it makes all threads' copies visible to all. A copy does
// not pass through registers, so many can be in flight.
//
// In the simulator a copy writes NaN when it starts and the values when the thread waits for it: a missing wait, or a
// buffer that is filled while others read it, gives NaN. In traced mode it copies at once, so that races are found, but
// a missing wait is not. On older GPUs it copies at once too.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "vector.h"

#if defined(__SIMT__) && !defined(SIMT_TRACED)
#include <vector>
#endif

namespace ladder {

#if defined(__SIMT__) && !defined(SIMT_TRACED)

class AsyncCopies {
 public:
  template <int bytes>
  void start(void* to, const void* from, bool inside) {
    memset(to, 0xff, bytes);  // NaN as float32 and as bfloat16
    in_flight_.push_back({to, inside ? from : nullptr, bytes, groups_});
  }
  void commit() { ++groups_; }

  template <int pending>
  void wait() {
    size_t done = 0;
    for (; done < in_flight_.size() && in_flight_[done].group + pending < groups_; ++done) {
      Copy& copy = in_flight_[done];
      if (copy.from) memcpy(copy.to, copy.from, copy.bytes);
      if (!copy.from) memset(copy.to, 0, copy.bytes);
    }
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + done);
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    int bytes, group;
  };
  std::vector<Copy> in_flight_;
  int groups_ = 0;
};

#elif defined(__SIMT__) || __CUDA_ARCH__ < 800

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
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    int read = inside ? bytes : 0;  // the rest becomes 0
    if constexpr (bytes == 16) {    // bypasses the L1: these elements are not read from there again
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(read) : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(bytes), "r"(read)
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

// Starts the copy of vector i of p, or copies it at once if it is too narrow for cp.async.
template <typename T, int bytes>
__device__ void copy_vector(AsyncCopies& copies, Vector<T, bytes>& to, const T* p, int64_t i) {
  if constexpr (bytes >= 4) {
    copies.start<bytes>(&to, p + i * Vector<T, bytes>::size, true);
  } else {
    to = Vector<T, bytes>::load(p, i);
  }
}

}  // namespace ladder
