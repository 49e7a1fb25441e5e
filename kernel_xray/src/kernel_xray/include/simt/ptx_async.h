// ptx_async.h: cp.async, cp.async.bulk without a tensor map, st.async and mbarrier of inline PTX.
//
// A cp.async copies when it starts, and takes the values away (NaN) until the thread waits for it: so a missing wait, or
// a buffer that is filled while others read it, gives NaN. An X-ray sees the accesses at the earliest moment at which
// they may happen: so it finds races. That a wait is missing, only the result shows. An mbarrier is that of async.h; its
// state, which arrive returns, is the number of its phase.
//
// cp.async.bulk copies at once, like the loads and stores of tiles in async.h.
//
// Deviations from CUDA: cp.async.mbarrier.arrive waits for the thread's copies itself. try_wait, and test_wait if the
// thread asks for the same phase again, let the block's other threads run; traced, or in a loop of the same asm
// statement, they wait until the phase is complete. The other limits are those of async.h.
#pragma once

#include "async.h"
#include "ptx_memory.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// cp.async

template <size_t bytes>
SIMT_PTX void start_copy(char* to, char* from, uint32_t present) {
  Halves value{};  // zeros follow the bytes that are present
  if (present) aligned<bytes>(from);
  if (present == bytes)
    value = read<0, bytes>(from);
  else
    for (uint32_t i = 0; i < present; ++i) value.of[i / 8] |= read<0, 1>(from + i).of[0] << i % 8 * 8;
  write<0, bytes>(to, value);
  copy_hide(to, bytes);
}

template <unsigned flags, typename To, typename From, typename Bytes, typename Present>
SIMT_PTX void op_cp_async(To to, From from, const Bytes& bytes, const Present& present) {
  char *const target = pointer<t_shared>(to), *const source = pointer<t_global>(from);
  uint32_t count = get<uint32_t>(bytes);
  if constexpr (std::is_same_v<Present, bool>)  // ignore-src
    count = present ? 0 : count;
  else
    count = get<uint32_t>(present) < count ? get<uint32_t>(present) : count;
  if (bytes == 16)
    start_copy<16>(target, source, count);
  else if (bytes == 8)
    start_copy<8>(target, source, count);
  else if (bytes == 4)
    start_copy<4>(target, source, count);
  else
    fault("misaligned", "cp.async copies 4, 8 or 16 bytes");
}
template <unsigned flags, typename To, typename From, typename Bytes>
SIMT_PTX void op_cp_async(To to, From from, const Bytes& bytes) {
  op_cp_async<flags>(to, from, bytes, bytes);
}
SIMT_PTX_CALL(cp_async_commit_group, copy_commit())
SIMT_PTX_CALL_OF_NUMBER(cp_async_wait_group, copy_wait(n))
template <unsigned flags>
SIMT_PTX void op_cp_async_wait_all() {
  copy_commit();
  copy_wait(0);
}

// ---------------------------------------------------------------------------------------------------------------
// cp.async.bulk

SIMT_NOT_TRACED __attribute__((noinline)) inline void copy_bulk(char* to, const char* from, uint32_t bytes) {
  using W = typename Word<16>::type;
  for (uint32_t at = 0; at < bytes; at += 16) *reinterpret_cast<W*>(to + at) = *reinterpret_cast<const W*>(from + at);
}
// tell(bytes) says what kind of work this is.
template <typename Tell>
SIMT_PTX void bulk(char* to, char* from, uint32_t bytes, Tell tell, bool reads = true) {
  if (reinterpret_cast<uintptr_t>(to) % 16 || reinterpret_cast<uintptr_t>(from) % 16 || bytes % 16)
    fault("misaligned", "cp.async.bulk copies whole pieces of 16 bytes between multiples of 16 bytes");
  if (reads) async_reads(from, bytes);
  async_writes(to, bytes);
  tell(static_cast<int>(bytes));
  copy_bulk(to, from, bytes);
}
template <typename Space, unsigned flags, typename To, typename From, typename Barrier, typename Size>
SIMT_PTX void op_cp_async_bulk(To to, From from, Barrier barrier, const Size& size) {
  bulk(pointer<Space>(to), pointer<t_global>(from), get<uint32_t>(size),
       [=](int bytes) { async_load(pointer<Space>(barrier), bytes, Copy::own); });
}
// Into the same place of every block of the cluster whose rank is a set bit of the mask; it is read once.
template <typename Space, unsigned flags, typename To, typename From, typename Barrier, typename Size, typename Mask>
SIMT_PTX void op_cp_async_bulk_multicast(To to, From from, Barrier barrier, const Size& size, const Mask& mask) {
  Copy copy = Copy::first;
  for (unsigned rank = 0; rank < 16; ++rank) {
    if (!(get<uint16_t>(mask) >> rank & 1)) continue;
    char* const there = static_cast<char*>(shared_dynamic_of(rank));
    bulk(
        there + shared_offset(to), pointer<t_global>(from), get<uint32_t>(size),
        [=](int bytes) { async_load(there + shared_offset(barrier), bytes, copy); }, copy == Copy::first);
    copy = Copy::further;
  }
}
// From this block to one of the cluster.
template <typename Space, unsigned flags, typename To, typename From, typename Barrier, typename Size>
SIMT_PTX void op_cp_async_bulk_send(To to, From from, Barrier barrier, const Size& size) {
  bulk(pointer<Space>(to), pointer<t_shared>(from), get<uint32_t>(size),
       [=](int bytes) { async_load(pointer<Space>(barrier), bytes, Copy::sent); });
}
template <unsigned flags, typename To, typename From, typename Size>
SIMT_PTX void op_cp_async_bulk_store(To to, From from, const Size& size) {
  bulk(pointer<t_global>(to), pointer<t_shared>(from), get<uint32_t>(size), [](int) { async_store(); });
}
SIMT_PTX_CALL(cp_async_bulk_commit_group, async_commit(Unit::store))
SIMT_PTX_CALL_OF_NUMBER(cp_async_bulk_wait_group, async_wait(Unit::store, n))

// ---------------------------------------------------------------------------------------------------------------
// st.async: stores into another block of the cluster, whose mbarrier counts the bytes

template <typename W, size_t count>
SIMT_NOT_TRACED __attribute__((noinline)) void store_words(char* to, const W (&words)[count]) {
  __builtin_memcpy(to, words, sizeof words);
}
template <typename Space, typename T, unsigned flags, typename To, typename Barrier, typename... S>
SIMT_PTX void op_st_async(To to_, Barrier barrier, const S&... s) {
  const T words[] = {get<T>(s)...};
  char* const to = pointer<Space>(to_);
  if (reinterpret_cast<uintptr_t>(to) % sizeof words)
    fault("misaligned", "st.async: a value is sent to a multiple of its size");
  async_writes(to, sizeof words);
  async_send(pointer<Space>(barrier), sizeof words);
  store_words(to, words);
}

// ---------------------------------------------------------------------------------------------------------------
// mbarrier

template <typename Space, unsigned flags, typename A, typename N>
SIMT_PTX void op_mbarrier_init(A address, const N& arrivals) {
  mbarrier_init(pointer<Space>(address), get<uint32_t>(arrivals));
}
template <typename Space, unsigned flags, typename A, typename D, typename N = long long>
SIMT_PTX void op_mbarrier_arrive(A address, D&& state, const N& count = 1) {
  char* const barrier = pointer<Space>(address);
  put<uint64_t>(state, mbarrier_phase(barrier));
  for (uint32_t i = get<uint32_t>(count); i > 0; --i) mbarrier_arrive(barrier, 0);
}
template <typename Space, unsigned flags, typename A, typename D, typename N>
SIMT_PTX void op_mbarrier_arrive_expect_tx(A address, D&& state, const N& bytes) {
  char* const barrier = pointer<Space>(address);
  put<uint64_t>(state, mbarrier_phase(barrier));
  mbarrier_arrive(barrier, get<int32_t>(bytes));
}
template <typename Space, unsigned flags, typename A, typename D, typename N = long long>
SIMT_PTX void op_mbarrier_arrive_drop(A address, D&& state, const N& count = 1) {
  for (uint32_t i = get<uint32_t>(count); i > 0; --i) mbarrier_drop(pointer<Space>(address));
  op_mbarrier_arrive<Space, flags>(address, state, count);
}
template <typename Space, unsigned flags, typename A, typename D, typename N>
SIMT_PTX void op_mbarrier_arrive_drop_expect_tx(A address, D&& state, const N& bytes) {
  mbarrier_drop(pointer<Space>(address));
  op_mbarrier_arrive_expect_tx<Space, flags>(address, state, bytes);
}
template <typename Space, unsigned flags, typename A, typename N>
SIMT_PTX void op_mbarrier_expect_tx(A address, const N& bytes) {
  mbarrier_expect(pointer<Space>(address), get<int32_t>(bytes));
}
template <typename Space, unsigned flags, typename A, typename N>
SIMT_PTX void op_mbarrier_complete_tx(A address, const N& bytes) {
  mbarrier_expect(pointer<Space>(address), -get<int32_t>(bytes));
}
// Of a phase that is named by its parity in 32 bits, or by the state that an arrival has returned.
template <typename Phase>
SIMT_PTX unsigned parity_of(const Phase& phase) {
  return static_cast<unsigned>(sizeof(Phase) == 4 ? phase : phase & 1);
}
template <typename Space, unsigned flags, typename A, typename P, typename Phase>
SIMT_PTX void op_mbarrier_test(A address, P&& complete, const Phase& phase) {
  put<bool>(complete, mbarrier_test(pointer<Space>(address), parity_of(phase)));
}
template <typename Space, unsigned flags, typename A, typename P, typename Phase, typename... Hint>
SIMT_PTX void op_mbarrier_try(A address, P&& complete, const Phase& phase, const Hint&...) {
  put<bool>(complete, mbarrier_try(pointer<Space>(address), parity_of(phase)));
}
template <typename Space, unsigned flags, typename A, typename P, typename Phase, typename... Hint>
SIMT_PTX void op_mbarrier_wait(A address, P&& complete, const Phase& phase, const Hint&...) {
  mbarrier_wait(pointer<Space>(address), parity_of(phase));
  put<bool>(complete, true);
}

// Arrives when the thread's copies have arrived. Without .noinc the phase expects one arrival more, which this one is.
template <typename Space, unsigned flags, typename A>
SIMT_PTX void op_cp_async_mbarrier_arrive(A) {
  op_cp_async_wait_all<0>();
}
template <typename Space, unsigned flags, typename A>
SIMT_PTX void op_cp_async_mbarrier_arrive_noinc(A address) {
  op_cp_async_wait_all<0>();
  mbarrier_arrive(pointer<Space>(address), 0);
}

SIMT_PTX_CALL(fence_proxy, async_fence())

}  // namespace simt::ptx
