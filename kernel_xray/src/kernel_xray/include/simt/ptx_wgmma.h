// ptx_wgmma.h: wgmma of inline PTX (wgmma.h). A product is complete when the instruction has been executed.
//
// An X-ray finds reads of shared memory that a GPU may do too early or too late, and a kernel without any wgmma.fence.
// Factors and sums in registers are not checked: a later wgmma.fence that is missing, and a wait that comes too late for
// them, are missed. ptxas reports sums that are used too soon.
#pragma once

#include "ptx_memory.h"
#include "wgmma.h"

namespace simt::ptx {

template <typename T>
struct WgmmaFormat;
template <>
struct WgmmaFormat<t_bf16> : WgmmaBf16 {};
template <>
struct WgmmaFormat<t_f16> : WgmmaF16 {};
template <>
struct WgmmaFormat<t_e4m3> : WgmmaE4m3 {};
template <>
struct WgmmaFormat<t_e5m2> : WgmmaE5m2 {};
template <>
struct WgmmaFormat<t_tf32> : WgmmaTf32 {};
template <>
struct WgmmaFormat<t_s8> : WgmmaInteger<int8_t> {};
template <>
struct WgmmaFormat<t_u8> : WgmmaInteger<uint8_t> {};

// The sums in a register: one, or two in half precision.
template <typename D>
inline constexpr int kSumsOfRegister = std::is_same_v<D, t_f16> ? 2 : 1;

#ifdef SIMT_TRACED  // by value from the library, as lane() is
SIMT_PTX unsigned thread_of_group() { return thread_copy().linear % 128; }
#else
SIMT_PTX unsigned thread_of_group() { return self().linear % 128; }
#endif

template <typename D, typename Value>
SIMT_NOT_TRACED __attribute__((noinline)) void begin_sums(Value* d, const uint64_t* registers, int count) {
  for (int i = 0; i < count; ++i) {
    const auto word = static_cast<uint32_t>(registers[i / kSumsOfRegister<D>]);
    if constexpr (std::is_same_v<D, t_f16>)
      d[i] = WgmmaF16::decode(word >> i % 2 * 16 & 0xffffu);
    else
      __builtin_memcpy(d + i, &word, sizeof word);
  }
}
template <typename D, typename R, typename Value>
SIMT_PTX void put_sum(R&& to, const Value* sums, int i, int count) {
  if constexpr (std::is_same_v<std::remove_reference_t<R>, uint32_t>) {
    if (count <= i) return;
    if constexpr (std::is_same_v<D, t_f16>)
      to = Binary16::encode(sums[2 * i]) | uint32_t{Binary16::encode(sums[2 * i + 1])} << 16;
    else
      to = bit_cast<uint32_t>(sums[i]);
  }
}

// What follows the sums: descriptors of a and b, or four registers of a and the descriptor of b; whether to add; but for
// integers, the signs of a and b; of 16-bit factors in shared memory, whether they are transposed.
template <typename A, typename B, bool a_in_registers>
struct Multiplication {
  using FormatA = WgmmaFormat<A>;
  using FormatB = WgmmaFormat<B>;
  using Value = typename FormatA::Value;
  const uint64_t* a;
  const uint64_t* rest;  // from b's descriptor on
  bool a_transposed, b_transposed;
  Value sign;

  SIMT_NOT_TRACED __attribute__((noinline)) Multiplication(const uint64_t* operands, int count)
      : a(operands), rest(operands + (a_in_registers ? 4 : 1)) {
    const auto* end = operands + count;
    b_transposed = rest + 4 < end && end[-1];
    a_transposed = !a_in_registers && rest + 4 < end && end[-2];
    sign = rest + 3 < end && rest[2] != rest[3] ? -1 : 1;
  }
  SIMT_NOT_TRACED __attribute__((noinline)) const char* refused() const {
    const char* of_a = a_in_registers ? nullptr : Descriptor(*a).refused();
    return of_a ? of_a : Descriptor(*rest).refused();
  }
  // Warp `warp` reads its 16 rows of a, and all of b.
  SIMT_NOT_TRACED __attribute__((noinline)) void tell(const char* memory, unsigned warp, uint32_t n) const {
    if (!a_in_registers)
      a_transposed ? tell_lines(memory, Descriptor(*a), 0, 16, 32 * warp, 32, true)
                   : tell_lines(memory, Descriptor(*a), 16 * warp, 16, 0, kFactorBytes, false);
    b_transposed ? tell_lines(memory, Descriptor(*rest), 0, 16, 0, 2 * n, true)
                 : tell_lines(memory, Descriptor(*rest), 0, n, 0, kFactorBytes, false);
  }
  SIMT_NOT_TRACED __attribute__((noinline)) void multiply(Value* d, int n, const Lanes<LeftRegisters>* lanes,
                                                          const char* memory, unsigned t) const {
    TwoRows<FormatA> rows;
    if (a_in_registers)
      gather_rows<FormatA>(rows, *lanes, t % kWarpSize);
    else
      a_transposed ? read_rows<FormatA, true>(rows, memory, Descriptor(*a), t)
                   : read_rows<FormatA, false>(rows, memory, Descriptor(*a), t);
    b_transposed ? add_products<FormatA, FormatB, true>(d, n, rows, memory, Descriptor(*rest), rest[1], sign, t)
                 : add_products<FormatA, FormatB, false>(d, n, rows, memory, Descriptor(*rest), rest[1], sign, t);
  }
};

template <typename S, typename D, typename A, typename B, unsigned flags, typename... R>
SIMT_PTX void op_wgmma(R&&... r) {
  using Value = typename WgmmaFormat<A>::Value;
  constexpr int sums = S::n / 2, own = sums / kSumsOfRegister<D>, count = static_cast<int>(sizeof...(R)) - own;
  constexpr bool integers = std::is_same_v<D, int32_t>, two_bytes = sizeof(typename WgmmaFormat<A>::Bits) == 2;
  constexpr int with_descriptors = integers ? 3 : two_bytes ? 7 : 5, with_registers = integers ? 6 : two_bytes ? 9 : 8;
  constexpr bool in_registers = count == with_registers;
  static_assert(in_registers || count == with_descriptors, "wgmma has another number of registers for this shape");
  const uint64_t all[] = {static_cast<uint64_t>(r)...};
  const Multiplication<A, B, in_registers> product(all + own, count);
  if (const char* why = product.refused()) fault("unsupported", why);
  const char* const memory = static_cast<const char*>(shared_dynamic());
  const unsigned t = thread_of_group();
  tell_product<A, 64 * S::n * kDepth<WgmmaFormat<A>>, 128>();
  if (t % kWarpSize == 0) {
    product.tell(memory, t / kWarpSize, S::n);
    async_product();
  }
  Value d[sums];
  begin_sums<D>(d, all, sums);
  if constexpr (in_registers) {
    const LeftRegisters left = {{static_cast<uint32_t>(all[own]), static_cast<uint32_t>(all[own + 1]),
                                 static_cast<uint32_t>(all[own + 2]), static_cast<uint32_t>(all[own + 3])}};
    const Lanes<LeftRegisters> lanes(left);
    product.multiply(d, S::n, &lanes, memory, t);
  } else {
    product.multiply(d, S::n, nullptr, memory, t);
  }
  int i = 0;
  (put_sum<D>(r, d, i++, own), ...);
}

SIMT_PTX_CALL(wgmma_fence, async_fence_registers())
SIMT_PTX_CALL(wgmma_commit, async_commit(Unit::product))
template <unsigned flags, typename N>
SIMT_PTX void op_wgmma_wait(const N& pending) {  // products are complete when all 4 warps have requested them
  async_wait(Unit::product, get<uint32_t>(pending));
  warp_group_barrier();
}

}  // namespace simt::ptx
