// ptx_memory.h: addresses, loads, stores, atomics and fences of inline PTX.
//
// A generic or global address is a pointer. A shared address is what __cvta_generic_to_shared gives: an offset in the
// shared memory of a block, and the block's rank in the cluster; in 64 bits a pointer to the block's own shared memory
// will do, as on a GPU. Another address ends the kernel. A vector is one access of its full width.
//
// Deviations from CUDA: cache hints and eviction priorities do nothing; scopes matter to the tracer alone, and not those
// of accesses of 16 bytes; so does .volatile; vectors of .relaxed, .acquire and .release are read and written in one
// piece, but not atomically for the host.
// Accesses of 32 bytes run outside an X-ray only.
// In the fast mode a .relaxed or .acquire load first lets the block's other threads run, so that a thread may wait for
// them in a loop. isspacep.global is true wherever isspacep.shared is false, for local variables too.
#pragma once

#include "atomics.h"
#include "ptx_arithmetic.h"
#include "warp.h"

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// Addresses

template <typename Base, typename... Offsets>
SIMT_PTX Base op_address(Base base, Offsets... offsets) {
  return static_cast<Base>((base + ... + static_cast<Base>(offsets)));
}

constexpr uint64_t kSharedWindow = 227 * 1024;  // of one block
SIMT_PTX uint32_t shared_offset(uint64_t address) { return address & ((1u << kSharedRankShift) - 1); }

template <typename Space, typename Address>
SIMT_PTX char* pointer(Address address) {
  if constexpr (std::is_same_v<Space, t_shared>) {
    return shared_pointer(static_cast<uint64_t>(address));
  } else if constexpr (std::is_same_v<Space, t_shared_cluster>) {
    return shared_pointer_in_cluster(static_cast<uint64_t>(address));
  } else {
    static_assert(sizeof(Address) == 8, "a global or generic address of inline PTX has 64 bits: constraint l");
    return reinterpret_cast<char*>(static_cast<uintptr_t>(address));
  }
}

template <typename Space, typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_cvta_to(D&& d, const A& a) {
  if constexpr (std::is_same_v<Space, t_generic>)
    put<T>(d, get<T>(a));
  else
    put<T>(d, static_cast<T>(__cvta_generic_to_shared(pointer<t_generic>(get<T>(a)))));
}
template <typename Space, typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_cvta(D&& d, const A& a) {
  put<T>(d, static_cast<T>(reinterpret_cast<uintptr_t>(pointer<Space>(get<T>(a)))));
}
template <typename Space, unsigned flags, typename D, typename A>
SIMT_PTX void op_isspacep(D&& d, const A& a) {
  const uint64_t address = shared_address(pointer<t_generic>(get<uint64_t>(a)));
  const bool shared = address >> kSharedRankShift == cluster_rank() && shared_offset(address) < kSharedWindow;
  put<bool>(d, shared != std::is_same_v<Space, t_generic>);
}

// The address that a variable of this block has in block `rank` of the cluster.
template <typename Space, typename T, unsigned flags, typename D, typename A, typename R>
SIMT_PTX void op_mapa(D&& d, const A& a, const R& rank) {
  char* const there = static_cast<char*>(shared_dynamic_of(get<uint32_t>(rank)));
  char* const here = static_cast<char*>(shared_dynamic());
  if constexpr (std::is_same_v<Space, t_generic>)
    put<T>(d, static_cast<T>(reinterpret_cast<uintptr_t>(pointer<t_generic>(get<T>(a)) + (there - here))));
  else
    put<T>(d, static_cast<T>(shared_offset(get<T>(a)) | static_cast<T>(get<uint32_t>(rank)) << kSharedRankShift));
}

template <typename Space, typename T, unsigned flags, typename D, typename A>
SIMT_PTX void op_getctarank(D&& d, const A& a) {
  put<uint32_t>(d, static_cast<uint32_t>(shared_address(pointer<Space>(get<T>(a))) >> kSharedRankShift));
}

// ---------------------------------------------------------------------------------------------------------------
// Loads and stores

template <size_t bytes>
struct Word {
  typedef Bits<bytes> type __attribute__((may_alias));
};
template <>
struct Word<16> {
  typedef uint64_t type __attribute__((vector_size(16), may_alias));
};

// The bits of an access: of a word of 16 bytes, two halves.
struct Halves {
  uint64_t of[2];
};

// The traced mode reports a misaligned access itself.
template <size_t bytes>
SIMT_PTX char* aligned(char* p) {
#ifndef SIMT_TRACED
  if (reinterpret_cast<uintptr_t>(p) % bytes)
    fault("misaligned", "inline PTX accesses memory at an address that is not a multiple of the access's size");
#endif
  return p;
}

// Loads and stores are volatile here, so that none is left out; one without an order is not atomic for that.
constexpr unsigned kOrdered = kVolatile | kRelaxed | kAcquire | kRelease;
constexpr Scope scope_of(unsigned flags) {
  return flags & kCta ? Scope::block : flags & kCluster ? Scope::cluster : Scope::device;
}
template <unsigned flags>
using InOrder = InScope<flags & kOrdered ? scope_of(flags) : Scope::none>;

template <unsigned flags, size_t bytes>
SIMT_PTX Halves read(char* p) {
  using W = typename Word<bytes>::type;
  static_assert(bytes <= 16, "a load or store of inline PTX has at most 16 bytes");
  [[maybe_unused]] const InOrder<flags> in_scope;
  aligned<bytes>(p);
#ifndef SIMT_TRACED
  if constexpr (flags & (kRelaxed | kAcquire)) yield_thread();
#endif
  if constexpr (bytes == 16) {
    const W word = *reinterpret_cast<const volatile W*>(p);
    if constexpr (flags & kAcquire) __atomic_thread_fence(__ATOMIC_ACQ_REL);
    return {{word[0], word[1]}};
  } else if constexpr (flags & (kRelaxed | kAcquire)) {
    return {{__atomic_load_n(reinterpret_cast<W*>(p), __ATOMIC_ACQUIRE), 0}};
  } else {
    return {{*reinterpret_cast<const volatile W*>(p), 0}};
  }
}
template <unsigned flags, size_t bytes>
SIMT_PTX void write(char* p, Halves value) {
  using W = typename Word<bytes>::type;
  static_assert(bytes <= 16, "a load or store of inline PTX has at most 16 bytes");
  aligned<bytes>(p);
  [[maybe_unused]] const InOrder<flags> in_scope;
  if constexpr (flags & kRelease) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if constexpr (bytes == 16)
    *reinterpret_cast<volatile W*>(p) = W{value.of[0], value.of[1]};
  else if constexpr (flags & (kRelaxed | kRelease))
    __atomic_store_n(reinterpret_cast<W*>(p), static_cast<W>(value.of[0]), __ATOMIC_RELEASE);
  else
    *reinterpret_cast<volatile W*>(p) = static_cast<W>(value.of[0]);
}

// The bits of 32 bytes, of sm_100: two accesses of 16. The tracer has events of 16 bytes at most, and would count the two
// as requests that use half of each sector.
struct Wide {
  uint64_t of[4];
};
template <size_t bytes>
using AccessBits = std::conditional_t<bytes == 32, Wide, Halves>;
SIMT_PTX char* aligned_to_32(char* p) {
#ifdef SIMT_TRACED
  fault("unsupported", "not supported by the simulator: an X-ray of an access of 32 bytes by inline PTX");
#endif
  if (reinterpret_cast<uintptr_t>(p) % 32)
    fault("misaligned", "inline PTX accesses 32 bytes at an address that is not a multiple of 32");
  return p;
}

template <typename Space, typename T, unsigned flags, typename A, typename... D>
SIMT_PTX void op_ld(A address, D&&... d) {
  constexpr size_t bytes = sizeof(T) * sizeof...(D);
  char* const p = pointer<Space>(address);
  AccessBits<bytes> bits;
  if constexpr (bytes == 32) {
    const Halves low = read<flags, 16>(aligned_to_32(p)), high = read<flags, 16>(p + 16);
    bits = {{low.of[0], low.of[1], high.of[0], high.of[1]}};
  } else {
    bits = read<flags, bytes>(p);
  }
  unsigned at = 0;
  ((put_low<T>(d, bit_cast<T>(static_cast<Bits<sizeof(T)>>(bits.of[at / 64] >> at % 64))), at += 8 * sizeof(T)), ...);
}
template <typename Space, typename T, unsigned flags, typename A, typename... D>
SIMT_PTX void op_ldu(A address, D&&... d) {
  op_ld<Space, T, flags>(address, d...);
}
template <typename Space, typename T, unsigned flags, typename A, typename... S>
SIMT_PTX void op_st(A address, const S&... s) {
  constexpr size_t bytes = sizeof(T) * sizeof...(S);
  char* const p = pointer<Space>(address);
  AccessBits<bytes> bits{};
  unsigned at = 0;
  ((bits.of[at / 64] |= uint64_t{bit_cast<Bits<sizeof(T)>>(get_low<T>(s))} << at % 64, at += 8 * sizeof(T)), ...);
  if constexpr (bytes == 32) {
    write<flags, 16>(aligned_to_32(p), {{bits.of[0], bits.of[1]}});
    write<flags, 16>(p + 16, {{bits.of[2], bits.of[3]}});
  } else {
    write<flags, bytes>(p, bits);
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Atomics

// update(p) changes *p and returns what it was; the fences publish what the thread wrote before, and acquire.
template <typename Space, typename T, unsigned flags, typename D, typename Update>
SIMT_PTX void atomic(D&& d, char* p, Update update) {
  aligned<sizeof(T)>(p);
  [[maybe_unused]] const InScope<scope_of(flags)> in_scope;
  if constexpr (flags & kRelease) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const Bits<sizeof(T)> before = update(reinterpret_cast<typename Word<sizeof(T)>::type*>(p));
  if constexpr (flags & kAcquire) __atomic_thread_fence(__ATOMIC_ACQ_REL);
  put<Bits<sizeof(T)>>(d, before);
}

// atom.name and red.name; `after` is computed from the values x and y.
#define SIMT_PTX_ATOMIC_FORMS(name, update)                                                 \
  template <typename Space, typename T, unsigned flags, typename A, typename D, typename B> \
  SIMT_PTX void op_atom_##name(A address, D&& d, const B& b) {                              \
    const T y = get<T>(b);                                                                  \
    atomic<Space, T, flags>(d, pointer<Space>(address), [y](auto* p) { return update; });   \
  }                                                                                         \
  template <typename Space, typename T, unsigned flags, typename A, typename B>             \
  SIMT_PTX void op_red_##name(A address, const B& b) {                                      \
    op_atom_##name<Space, T, flags>(address, Sink(), b);                                    \
  }
#define SIMT_PTX_ATOMIC(name, after)                                                         \
  SIMT_PTX_ATOMIC_FORMS(name, detail::atomic_update(                                         \
                                  p, [y](auto bits)->Bits<sizeof(T)> {                       \
                                    const T x = bit_cast<T>(bits);                           \
                                    return bit_cast<Bits<sizeof(T)>>(static_cast<T>(after)); \
                                  }))
#define SIMT_PTX_ATOMIC_NATIVE(name, function) \
  SIMT_PTX_ATOMIC_FORMS(name, function(p, bit_cast<Bits<sizeof(T)>>(y), __ATOMIC_ACQ_REL))

template <typename T>
SIMT_PTX T sum(T x, T y) {
  return evaluate<0>([](auto a, auto b) { return a + b; }, x, y);
}
template <typename T>
SIMT_PTX T lower(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return x < y ? x : y;
  else
    return evaluate<0>([](auto a, auto b) { return minimum(a, b); }, x, y);
}
template <typename T>
SIMT_PTX T higher(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return x > y ? x : y;
  else
    return evaluate<0>([](auto a, auto b) { return -minimum(-a, -b); }, x, y);
}
SIMT_PTX_ATOMIC(min, lower(x, y))
SIMT_PTX_ATOMIC(max, higher(x, y))
SIMT_PTX_ATOMIC(inc, x >= y ? 0 : x + 1)
SIMT_PTX_ATOMIC(dec, x == 0 || x > y ? y : x - 1)
SIMT_PTX_ATOMIC_NATIVE(and, __atomic_fetch_and)
SIMT_PTX_ATOMIC_NATIVE(or, __atomic_fetch_or)
SIMT_PTX_ATOMIC_NATIVE(xor, __atomic_fetch_xor)
SIMT_PTX_ATOMIC_NATIVE(exch, __atomic_exchange_n)
SIMT_PTX_ATOMIC_NATIVE(add_whole, __atomic_fetch_add)
SIMT_PTX_ATOMIC(add_real, sum(x, y))
#undef SIMT_PTX_ATOMIC_NATIVE
#undef SIMT_PTX_ATOMIC
#undef SIMT_PTX_ATOMIC_FORMS

template <typename Space, typename T, unsigned flags, typename A, typename D, typename B>
SIMT_PTX void op_atom_add(A address, D&& d, const B& b) {
  if constexpr (std::is_integral_v<T>)
    op_atom_add_whole<Space, T, flags>(address, d, b);
  else
    op_atom_add_real<Space, T, flags>(address, d, b);
}
template <typename Space, typename T, unsigned flags, typename A, typename B>
SIMT_PTX void op_red_add(A address, const B& b) {
  op_atom_add<Space, T, flags>(address, Sink(), b);
}
// Of a vector: each element on its own, as on a GPU.
template <size_t i, typename First, typename... Others>
SIMT_PTX auto& pick(First& first, Others&... others) {
  if constexpr (i == 0)
    return first;
  else
    return pick<i - 1>(others...);
}
#define SIMT_PTX_EACH(name)                                                                                       \
  template <typename Space, typename T, unsigned flags, typename A, typename... B>                                \
  SIMT_PTX void op_red_each_##name(A address, const B&... b) {                                                    \
    aligned<sizeof(T) * sizeof...(B)>(pointer<Space>(address));                                                   \
    ((op_red_##name<Space, T, flags>(address, b), address += sizeof(T)), ...);                                    \
  }                                                                                                               \
  template <typename Space, typename T, unsigned flags, size_t... i, typename A, typename... R>                   \
  SIMT_PTX void each_##name(std::index_sequence<i...>, A address, R&... r) {                                      \
    aligned<sizeof(T) * sizeof...(i)>(pointer<Space>(address));                                                   \
    (op_atom_##name<Space, T, flags>(address + i * sizeof(T), pick<i>(r...), pick<sizeof...(i) + i>(r...)), ...); \
  }                                                                                                               \
  template <typename Space, typename T, unsigned flags, typename A, typename... R>                                \
  SIMT_PTX void op_atom_each_##name(A address, R&&... r) {                                                        \
    each_##name<Space, T, flags>(std::make_index_sequence<sizeof...(R) / 2>(), address, r...);                    \
  }
SIMT_PTX_EACH(add)
SIMT_PTX_EACH(min)
SIMT_PTX_EACH(max)
#undef SIMT_PTX_EACH
template <typename Space, typename T, unsigned flags, typename A, typename D, typename B, typename C>
SIMT_PTX void op_atom_cas(A address, D&& d, const B& compare, const C& value) {
  const T expected = get<T>(compare), desired = get<T>(value);
  atomic<Space, T, flags>(d, pointer<Space>(address), [=](auto* p) -> T {
    T before = expected;  // on failure the builtin stores the value found here
    __atomic_compare_exchange_n(p, &before, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return before;
  });
}

// ---------------------------------------------------------------------------------------------------------------
// Fences, and what has no effect here

template <unsigned flags>
SIMT_PTX void op_fence() {
  [[maybe_unused]] const InScope<scope_of(flags)> in_scope;
  __threadfence();
}
template <unsigned flags, typename... S>
SIMT_PTX void op_nothing(const S&...) {}
template <typename T, unsigned flags, typename... S>
SIMT_PTX void op_nothing(const S&...) {}
template <unsigned flags, typename D, typename... S>
SIMT_PTX void op_createpolicy(D&& policy, const S&...) {
  put<uint64_t>(policy, 0);
}
template <unsigned flags, typename A, typename D, typename... S>
SIMT_PTX void op_createpolicy_range(A, D&& policy, const S&...) {
  put<uint64_t>(policy, 0);
}

}  // namespace simt::ptx
