// cuda_barrier.h: cuda::barrier of a block, cuda::memcpy_async and cuda::pipeline (<cuda/barrier>, <cuda/pipeline>).
//
// A barrier is an mbarrier in shared memory (async.h). Copies are done at once by the threads that ask for them; as on a
// GPU, a thread may read what others have copied only behind the barrier, or after the pipeline's wait. A traced kernel
// that does not wait is a race.
//
// Deviations from CUDA: barriers of other scopes, arrive_and_drop, completion functions, and a pipeline whose threads
// have roles do not compile. Copies by the TMA unit (cuda::device) are in cuda_bulk.h.
#pragma once

#include "async.h"
#include "cuda_scopes.h"
#include "warp.h"

namespace cuda {

template <thread_scope scope, typename Completion = void*>
class barrier {
  static_assert(scope == thread_scope_block || sizeof(Completion*) == 0,
                "not supported by the simulator: a barrier of a scope other than cuda::thread_scope_block");
  static_assert(::std::is_same_v<Completion, void*>,
                "not supported by the simulator: a barrier with a completion function");

 public:
  using arrival_token = unsigned;  // the phase of the arrival

  barrier() = default;
  explicit barrier(::std::ptrdiff_t expected) { init(this, expected); }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  friend void init(barrier* at, ::std::ptrdiff_t expected) {
    ::simt::mbarrier_init(&at->state_, static_cast<unsigned>(expected));
  }
  static constexpr ::std::ptrdiff_t max() { return (1 << 20) - 1; }

  [[nodiscard]] arrival_token arrive(::std::ptrdiff_t count = 1) {
    const arrival_token phase = ::simt::mbarrier_phase(&state_);
    for (; count > 0; --count) ::simt::mbarrier_arrive(&state_, 0);
    return phase;
  }
  void wait(arrival_token&& phase) const { wait_parity(phase % 2); }
  void wait_parity(bool parity) const { ::simt::mbarrier_wait(const_cast<uint64_t*>(&state_), parity); }
  void arrive_and_wait() { wait(arrive()); }
  template <typename T = void>
  void arrive_and_drop() {
    static_assert(sizeof(T*) == 0, "not supported by the simulator: barrier::arrive_and_drop");
  }

 private:
  alignas(8) uint64_t state_;
};

// A number of bytes that is a multiple of the alignment of both sides of a copy.
template <::std::size_t alignment>
struct aligned_size_t {
  static constexpr ::std::size_t align = alignment;
  ::std::size_t value;
  explicit constexpr aligned_size_t(::std::size_t bytes) : value(bytes) {}
  constexpr operator ::std::size_t() const { return value; }
};

}  // namespace cuda

namespace simt {

// Thread `rank` of `threads` copies its share, in pieces of 16, 4 or 1 bytes.
inline void copy_share(void* to, const void* from, size_t bytes, size_t rank, size_t threads) {
  const uintptr_t places = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  const auto copy = [=](auto zero) {
    using T = decltype(zero);
    for (size_t i = rank; i < bytes / sizeof(T); i += threads) static_cast<T*>(to)[i] = static_cast<const T*>(from)[i];
  };
  typedef unsigned Piece __attribute__((vector_size(16), may_alias));
  typedef unsigned Word __attribute__((may_alias));
  places % 16 == 0 ? copy(Piece()) : places % 4 == 0 ? copy(Word()) : copy(char());
}

}  // namespace simt

namespace cuda {

// For one thread, and shared among a group's; the barrier or pipeline says when the copy has arrived.
template <typename Synchronised>
void memcpy_async(void* to, const void* from, ::std::size_t bytes, Synchronised&) {
  ::simt::copy_share(to, from, bytes, 0, 1);
}
template <typename Group, typename Synchronised>
void memcpy_async(const Group& group, void* to, const void* from, ::std::size_t bytes, Synchronised&) {
  ::simt::copy_share(to, from, bytes, group.thread_rank(), group.size());
}

enum class pipeline_role { producer, consumer };

// For each stage a barrier that the copies fill, and one that its readers release.
template <thread_scope scope, unsigned char stages>
struct pipeline_shared_state {
  static_assert(scope == thread_scope_block || scope == thread_scope_thread,
                "not supported by the simulator: a pipeline of a scope other than block or thread");
  alignas(8) uint64_t full[stages], empty[stages];
};

template <thread_scope scope>
class pipeline {
 public:
  void producer_acquire() {
    if (full_) ::simt::mbarrier_wait(empty_ + head_ % stages_, head_ / stages_ % 2 ^ 1);
  }
  void producer_commit() {
    if (full_) ::simt::mbarrier_arrive(full_ + head_ % stages_, 0);
    ++head_;
  }
  void consumer_wait() {
    if (full_) ::simt::mbarrier_wait(full_ + tail_ % stages_, tail_ / stages_ % 2);
  }
  void consumer_release() {
    if (full_) ::simt::mbarrier_arrive(empty_ + tail_ % stages_, 0);
    ++tail_;
  }
  void quit() {}

  pipeline() = default;
  pipeline(uint64_t* full, uint64_t* empty, unsigned stages) : full_(full), empty_(empty), stages_(stages) {}

 private:
  uint64_t *full_ = nullptr, *empty_ = nullptr;  // null: of one thread, whose copies are done
  unsigned stages_ = 1, head_ = 0, tail_ = 0;
};

inline pipeline<thread_scope_thread> make_pipeline() { return {}; }

// For all threads of the group, which all produce and consume.
template <typename Group, thread_scope scope, unsigned char stages>
pipeline<scope> make_pipeline(const Group& group, pipeline_shared_state<scope, stages>* state) {
  if (group.thread_rank() == 0)
    for (unsigned i = 0; i < stages; ++i) {
      ::simt::mbarrier_init(state->full + i, static_cast<unsigned>(group.size()));
      ::simt::mbarrier_init(state->empty + i, static_cast<unsigned>(group.size()));
    }
  group.sync();
  return {state->full, state->empty, stages};
}
template <typename Group, thread_scope scope, unsigned char stages, typename Role>
pipeline<scope> make_pipeline(const Group&, pipeline_shared_state<scope, stages>*, Role) {
  static_assert(sizeof(Role*) == 0, "not supported by the simulator: a pipeline whose threads have roles");
}

// Waits for all stages but the latest `prior`; the copies of one thread are done.
template <unsigned char prior>
void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>&) {}

}  // namespace cuda
