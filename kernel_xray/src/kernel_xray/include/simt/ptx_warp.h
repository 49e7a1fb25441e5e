// ptx_warp.h: special registers, collectives of a warp, barriers and the end of a thread in inline PTX.
//
// Deviations from CUDA: %smid is the block's number modulo %nsmid, the imaginary device's 108 SMs (device_types.h).
// Clocks count host time: %clock as clock64() does, %globaltimer in nanoseconds. A barrier without a number of threads,
// and barrier 0 for all of them, is __syncthreads, whatever its number; bar.red too. barrier.cluster.arrive with .relaxed
// releases what the thread has done, too, and barrier.cluster.wait of a thread that has not arrived arrives.
#pragma once

#include "ptx_memory.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// Special registers

SIMT_PTX uint64_t product_of(dim3 d) { return uint64_t{d.x} * d.y * d.z; }
SIMT_PTX uint32_t warps_of_block() {
  return static_cast<uint32_t>((product_of(block_dim()) + kWarpSize - 1) / kWarpSize);
}
SIMT_PTX uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
SIMT_PTX uint32_t sm_of_block() {
  const uint3 at = block_index();
  const dim3 grid = grid_dim();
  return static_cast<uint32_t>((at.x + uint64_t{grid.x} * (at.y + uint64_t{grid.y} * at.z)) % 108);
}

SIMT_PTX uint3 split(uint3 blocks, bool within) {  // into clusters, or the rest: within a cluster
  const dim3 by = cluster_dim();
  return within ? uint3{blocks.x % by.x, blocks.y % by.y, blocks.z % by.z}
                : uint3{blocks.x / by.x, blocks.y / by.y, blocks.z / by.z};
}

#define SIMT_PTX_SPECIAL(name, T, value) \
  SIMT_PTX T special_##name() { return static_cast<T>(value); }
#define SIMT_PTX_SPECIAL_3(name, value)           \
  SIMT_PTX_SPECIAL(name##_x, uint32_t, (value).x) \
  SIMT_PTX_SPECIAL(name##_y, uint32_t, (value).y) \
  SIMT_PTX_SPECIAL(name##_z, uint32_t, (value).z)
SIMT_PTX_SPECIAL_3(tid, thread_index())
SIMT_PTX_SPECIAL_3(ntid, block_dim())
SIMT_PTX_SPECIAL_3(ctaid, block_index())
SIMT_PTX_SPECIAL_3(nctaid, grid_dim())
SIMT_PTX_SPECIAL_3(clusterid, split(block_index(), false))
SIMT_PTX_SPECIAL_3(nclusterid, split({grid_dim().x, grid_dim().y, grid_dim().z}, false))
SIMT_PTX_SPECIAL_3(cluster_ctaid, split(block_index(), true))
SIMT_PTX_SPECIAL_3(cluster_nctaid, cluster_dim())
SIMT_PTX_SPECIAL(laneid, uint32_t, lane())
SIMT_PTX_SPECIAL(warpid, uint32_t, self().linear / kWarpSize)
SIMT_PTX_SPECIAL(nwarpid, uint32_t, warps_of_block())
SIMT_PTX_SPECIAL(smid, uint32_t, sm_of_block())
SIMT_PTX_SPECIAL(nsmid, uint32_t, 108)
SIMT_PTX_SPECIAL(gridid, uint64_t, 0)
SIMT_PTX_SPECIAL(clock, uint32_t, clock64())
SIMT_PTX_SPECIAL(clock_hi, uint32_t, clock64() >> 32)
SIMT_PTX_SPECIAL(clock64, uint64_t, clock64())
SIMT_PTX_SPECIAL(globaltimer, uint64_t, nanoseconds())
SIMT_PTX_SPECIAL(globaltimer_lo, uint32_t, nanoseconds())
SIMT_PTX_SPECIAL(globaltimer_hi, uint32_t, nanoseconds() >> 32)
SIMT_PTX_SPECIAL(dynamic_smem_size, uint32_t, shared_dynamic_bytes())
SIMT_PTX_SPECIAL(cluster_ctarank, uint32_t, cluster_rank())
SIMT_PTX_SPECIAL(cluster_nctarank, uint32_t, cluster_blocks())
SIMT_PTX_SPECIAL(lanemask_eq, uint32_t, 1u << lane())
SIMT_PTX_SPECIAL(lanemask_lt, uint32_t, (1u << lane()) - 1)
SIMT_PTX_SPECIAL(lanemask_le, uint32_t, (2u << lane()) - 1)
SIMT_PTX_SPECIAL(lanemask_gt, uint32_t, ~((2u << lane()) - 1))
SIMT_PTX_SPECIAL(lanemask_ge, uint32_t, ~((1u << lane()) - 1))
#undef SIMT_PTX_SPECIAL_3
#undef SIMT_PTX_SPECIAL

// ---------------------------------------------------------------------------------------------------------------
// Collectives

enum class Shuffle { up, down, bfly, idx };

// `limits`: bits 0 to 4 are the last lane to read from, bits 8 to 12 a mask of the bits that name a lane's segment.
template <Shuffle how, typename D, typename P>
SIMT_PTX void shuffle(D&& d, P&& in_range, uint32_t value, uint32_t b, uint32_t limits, uint32_t mask) {
  const int own = static_cast<int>(lane()), segment = limits >> 8 & 31, by = b & 31;
  const int first = own & segment, last = first | (static_cast<int>(limits & 31) & ~segment);
  const int from = how == Shuffle::up     ? own - by
                   : how == Shuffle::down ? own + by
                   : how == Shuffle::bfly ? own ^ by
                                          : first | (by & ~segment);
  const bool inside = how == Shuffle::up ? from >= last : from <= last;
  put<uint32_t>(d, detail::exchange(mask, value, static_cast<unsigned>(inside ? from : own)));
  put<bool>(in_range, inside);
}
#define SIMT_PTX_SHUFFLE(name)                                                                               \
  template <unsigned flags, typename D, typename P, typename A, typename B, typename C, typename M>          \
  SIMT_PTX void op_shfl_sync_##name(D&& d, P&& p, const A& a, const B& b, const C& c, const M& mask) {       \
    shuffle<Shuffle::name>(d, p, get<uint32_t>(a), get<uint32_t>(b), get<uint32_t>(c), get<uint32_t>(mask)); \
  }
SIMT_PTX_SHUFFLE(up)
SIMT_PTX_SHUFFLE(down)
SIMT_PTX_SHUFFLE(bfly)
SIMT_PTX_SHUFFLE(idx)
#undef SIMT_PTX_SHUFFLE

#define SIMT_PTX_VOTE(name, T, expression)                                                      \
  template <unsigned flags, typename D, typename M>                                             \
  SIMT_PTX void op_vote_sync_##name(D&& d, bool p, const M& m) {                                \
    const uint32_t mask = get<uint32_t>(m);                                                     \
    [[maybe_unused]] const uint32_t all = __ballot_sync(mask, 1), yes = __ballot_sync(mask, p); \
    put<T>(d, expression);                                                                      \
  }
SIMT_PTX_VOTE(ballot, uint32_t, yes)
SIMT_PTX_VOTE(any, bool, yes != 0)
SIMT_PTX_VOTE(all, bool, yes == all)
SIMT_PTX_VOTE(uni, bool, yes == 0 || yes == all)
#undef SIMT_PTX_VOTE

template <unsigned flags, typename D>
SIMT_PTX void op_activemask(D&& d) {
  put<uint32_t>(d, active_mask());
}
template <typename T, unsigned flags, typename D, typename A, typename M>
SIMT_PTX void op_match_any_sync(D&& d, const A& a, const M& mask) {
  put<uint32_t>(d, static_cast<uint32_t>(warp_collective(Collective::match_any, get<uint32_t>(mask), get<T>(a))));
}
template <typename T, unsigned flags, typename D, typename P, typename A, typename M>
SIMT_PTX void op_match_all_sync(D&& d, P&& p, const A& a, const M& mask) {
  const uint64_t same = warp_collective(Collective::match_all, get<uint32_t>(mask), get<T>(a));
  put<uint32_t>(d, static_cast<uint32_t>(same));
  put<bool>(p, same != 0);
}
#define SIMT_PTX_REDUCTION(name)                                            \
  template <typename T, unsigned flags, typename D, typename A, typename M> \
  SIMT_PTX void op_redux_sync_##name(D&& d, const A& a, const M& mask) {    \
    put<T>(d, __reduce_##name##_sync(get<uint32_t>(mask), get<T>(a)));      \
  }
SIMT_PTX_REDUCTION(add)
SIMT_PTX_REDUCTION(min)
SIMT_PTX_REDUCTION(max)
SIMT_PTX_REDUCTION(and)
SIMT_PTX_REDUCTION(or)
SIMT_PTX_REDUCTION(xor)
#undef SIMT_PTX_REDUCTION

// Of floats, by integers in the same order, of which 0 and ~0 are NaN: a lane with NaN gives the one that wins if NaN
// shall, else the one that loses.
template <bool maximum, unsigned flags, typename D, typename A, typename M>
SIMT_PTX void reduce_floats(D&& d, const A& a, const M& mask) {
  const uint32_t given = get<uint32_t>(a), word = flags & kAbs ? given & 0x7fffffffu : given;
  const bool nan = (word & 0x7fffffffu) > 0x7f800000u, wins = (flags & kNaN) != 0;
  const uint32_t key = nan ? (wins == maximum ? ~0u : 0) : word >> 31 ? ~word : word | 1u << 31;
  const uint32_t of =
      maximum ? __reduce_max_sync(get<uint32_t>(mask), key) : __reduce_min_sync(get<uint32_t>(mask), key);
  put<uint32_t>(d, of == 0 || of == ~0u ? 0x7fffffffu : of >> 31 ? of ^ 1u << 31 : ~of);
}
template <unsigned flags, typename D, typename A, typename M>
SIMT_PTX void op_redux_sync_float_min(D&& d, const A& a, const M& mask) {
  reduce_floats<false, flags>(d, a, mask);
}
template <unsigned flags, typename D, typename A, typename M>
SIMT_PTX void op_redux_sync_float_max(D&& d, const A& a, const M& mask) {
  reduce_floats<true, flags>(d, a, mask);
}

template <unsigned flags, typename D, typename P, typename M>
SIMT_PTX void op_elect_sync(D&& d, P&& p, const M& m) {  // the lowest lane of the mask
  const uint32_t mask = get<uint32_t>(m), leader = static_cast<uint32_t>(__builtin_ctz(mask | 1u << 31));
  __syncwarp(mask);
  put<uint32_t>(d, leader);
  put<bool>(p, leader == lane());
}

// ---------------------------------------------------------------------------------------------------------------
// Barriers and the end of a thread

SIMT_PTX_CALL_OF_NUMBER(bar_warp_sync, __syncwarp(n))

template <unsigned flags, typename Id>
SIMT_PTX void op_bar_sync(const Id&) {
  __syncthreads();
}
template <typename Id, typename N>
SIMT_PTX int at_barrier(const Id& id, const N& n, Vote vote, bool predicate) {
  const uint32_t number = get<uint32_t>(id), threads = get<uint32_t>(n);
  const bool all = number == 0 && threads == warps_of_block() * kWarpSize;
  return all ? block_barrier(vote, predicate) : named_barrier(number, threads, vote, predicate);
}
template <unsigned flags, typename Id, typename N>
SIMT_PTX void op_bar_sync(const Id& id, const N& n) {
  at_barrier(id, n, Vote::sync, false);
}
template <unsigned flags, typename Id, typename N>
SIMT_PTX void op_bar_arrive(const Id& id, const N& n) {
  named_arrive(get<uint32_t>(id), get<uint32_t>(n));
}
#define SIMT_PTX_BARRIER(name, T, vote)                                      \
  template <unsigned flags, typename D, typename Id>                         \
  SIMT_PTX void op_bar_red_##name(D&& d, const Id&, bool p) {                \
    put<T>(d, static_cast<T>(block_barrier(vote, p)));                       \
  }                                                                          \
  template <unsigned flags, typename D, typename Id, typename N>             \
  SIMT_PTX void op_bar_red_##name(D&& d, const Id& id, const N& n, bool p) { \
    put<T>(d, static_cast<T>(at_barrier(id, n, vote, p)));                   \
  }
SIMT_PTX_BARRIER(popc, uint32_t, Vote::count)
SIMT_PTX_BARRIER(and, bool, Vote::all)
SIMT_PTX_BARRIER(or, bool, Vote::any)
#undef SIMT_PTX_BARRIER

SIMT_PTX_CALL(cluster_arrive, cluster_arrive())
SIMT_PTX_CALL(cluster_wait, cluster_barrier())
SIMT_PTX_CALL(griddepcontrol_wait, wait_for_kernel_before())
SIMT_PTX_CALL(griddepcontrol_launch_dependents, let_next_kernel_begin())
SIMT_PTX_CALL_OF_NUMBER(setmaxnreg_inc, set_registers(n, true))
SIMT_PTX_CALL_OF_NUMBER(setmaxnreg_dec, set_registers(n, false))
template <unsigned flags, typename T>
SIMT_PTX void op_nanosleep(const T&) {
  yield_thread();
}
SIMT_PTX_CALL(trap, fault("trap", "the kernel executed the PTX instruction trap"))
SIMT_PTX_CALL(brkpt, fault("trap", "the kernel executed the PTX instruction brkpt, and no debugger is attached"))
SIMT_PTX_CALL(exit, exit_thread())

}  // namespace simt::ptx
