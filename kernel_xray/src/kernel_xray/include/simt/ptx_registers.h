// ptx_registers.h: the operands of inline PTX. The rewriter (kernel_xray/translate/ptx.py) turns each `asm` statement into calls
// of the functions `op_...` in the ptx_*.h headers, one for each instruction.
//
// The model. A register is a variable that holds bits: uint16_t, uint32_t, uint64_t, or bool for a predicate. An
// instruction's type says how it reads them, as in PTX. A number in the text is a long long, a float or a double. As
// ptxas does, an instruction refuses a register of another width than its type's; only loads, stores and conversions
// may use a wider one.
//
// Deviations from CUDA: a register that nothing has set holds ones (NaN as float, -1 as an integer), and the carry flag
// lasts until the thread's next `.cc` instruction, even across asm statements.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core.h"
#include "narrow_formats.h"

#define SIMT_PTX __attribute__((always_inline)) inline

namespace simt::ptx {

// ---------------------------------------------------------------------------------------------------------------
// Types, state spaces, flags: the names that the rewriter writes. They begin with t_ and k because programs define
// macros such as u32 and max.

template <typename Format>
struct Narrow {  // a 16-bit floating-point number
  uint16_t bits;
};
template <typename Format_>
struct Eight {  // one of 8 bits
  using Format = Format_;
  uint8_t bits;
};
template <typename Element>
struct Pair {  // two numbers in a register of twice the size
  Element low, high;
};
template <typename T>
inline constexpr bool is_narrow = false;
template <typename Format>
inline constexpr bool is_narrow<Narrow<Format>> = true;
template <typename Format>
inline constexpr bool is_narrow<Pair<Narrow<Format>>> = true;
template <typename T>
inline constexpr bool is_eight = false;
template <typename Format>
inline constexpr bool is_eight<Eight<Format>> = true;
template <typename T>
inline constexpr bool is_pair = false;
template <typename Element>
inline constexpr bool is_pair<Pair<Element>> = true;
template <int bits, bool with_sign>
struct Few {};  // one of several integers in a byte
template <typename T>
inline constexpr bool is_few = false;
template <int bits, bool with_sign>
inline constexpr bool is_few<Few<bits, with_sign>> = true;
struct Tf32 {  // a float whose last 13 bits tensor cores ignore
  uint32_t bits;
};

using t_pred = bool;
using t_u8 = uint8_t;
using t_b8 = uint8_t;
using t_s8 = int8_t;
using t_u16 = uint16_t;
using t_b16 = uint16_t;
using t_s16 = int16_t;
using t_u32 = uint32_t;
using t_b32 = uint32_t;
using t_s32 = int32_t;
using t_u64 = uint64_t;
using t_b64 = uint64_t;
using t_s64 = int64_t;
using t_f32 = float;
using t_f64 = double;
using t_tf32 = Tf32;
using t_f16 = Narrow<Binary16>;
using t_bf16 = Narrow<Brain16>;
using t_f16x2 = Pair<t_f16>;
using t_bf16x2 = Pair<t_bf16>;
using t_f32x2 = Pair<float>;
using t_s4 = Few<4, true>;
using t_u4 = Few<4, false>;
using t_b1 = Few<1, false>;
using t_e4m3 = Eight<E4M3>;
using t_e5m2 = Eight<E5M2>;
using t_e4m3x2 = Pair<Eight<E4M3>>;
using t_e5m2x2 = Pair<Eight<E5M2>>;

struct t_generic {};
using t_global = t_generic;
struct t_shared {};          // 32-bit or 64-bit offsets in the block's shared memory
struct t_shared_cluster {};  // the same, also of other blocks of the cluster
using t_shared_cta = t_shared;

template <int rows, int columns, int depth>
struct Shape {  // of a product of matrices
  static constexpr int m = rows, n = columns, k = depth;
};

enum : unsigned {
  kRz = 1,  // rounding: the lowest two bits; 0 is to nearest, even
  kRm = 2,
  kRp = 3,
  kAway = 4,  // to nearest, ties away from zero
  kIntegral = 8,
  kFtz = 16,
  kSat = 32,
  kRelu = 64,
  kNaN = 128,
  kApprox = 256,
  kVolatile = 512,
  kRelaxed = 1024,
  kAcquire = 2048,
  kRelease = 4096,
  kCta = 8192,
  kCluster = 16384,
  kPair = 32768,     // .cta_group::2: of two blocks of the cluster
  kPack = 65536,     // two halves of 16 bits in a register
  kFinite = 131072,  // beyond the largest number: that one
  kAbs = 262144,
  kXorSign = 524288,  // the result is negative if one operand is
};

constexpr Round round_of(unsigned flags) {
  return (flags & 3) == kRz   ? Round::zero
         : (flags & 3) == kRm ? Round::down
         : (flags & 3) == kRp ? Round::up
                              : Round::nearest;
}

// ---------------------------------------------------------------------------------------------------------------
// The variables of an asm statement, by constraint

template <char constraint>
struct Constraint;
template <>
struct Constraint<'h'> {
  using type = uint16_t;
};
template <>
struct Constraint<'r'> {
  using type = uint32_t;
};
template <>
struct Constraint<'f'> : Constraint<'r'> {};
template <>
struct Constraint<'l'> {
  using type = uint64_t;
};
template <>
struct Constraint<'d'> : Constraint<'l'> {};
template <char constraint>
using Register = typename Constraint<constraint>::type;

template <char constraint, typename T>
constexpr void check_variable() {
  constexpr bool floating = constraint == 'f' || constraint == 'd';
  static_assert(std::is_scalar_v<T>, "an operand of asm must be a number or a pointer");
  static_assert(sizeof(T) == sizeof(Register<constraint>), "the size of an asm operand differs from its constraint's");
  static_assert(std::is_floating_point_v<T> == floating,
                "the constraints f and d are for float and double, h, r and l for integers");
}

template <char constraint>
SIMT_PTX Register<constraint> op_undefined() {
  return static_cast<Register<constraint>>(~uint64_t{0});
}
template <char constraint, typename T>
SIMT_PTX Register<constraint> op_in(T value) {
  check_variable<constraint, T>();
  return bit_cast<Register<constraint>>(value);
}
template <char constraint, typename T, typename R>
SIMT_PTX void op_out(T& variable, R value) {
  using Value = std::remove_cv_t<T>;
  check_variable<constraint, Value>();
  variable = bit_cast<Value>(value);
}

// Eight variables and their registers at once.
#define SIMT_EIGHT_VARIABLES \
  T0 &v0, R &r0, T1 &v1, R &r1, T2 &v2, R &r2, T3 &v3, R &r3, T4 &v4, R &r4, T5 &v5, R &r5, T6 &v6, R &r6, T7 &v7, R &r7
template <char c, typename R, typename T0, typename T1, typename T2, typename T3, typename T4, typename T5, typename T6,
          typename T7>
SIMT_PTX void op_in_8(SIMT_EIGHT_VARIABLES) {
  r0 = op_in<c>(v0), r1 = op_in<c>(v1), r2 = op_in<c>(v2), r3 = op_in<c>(v3);
  r4 = op_in<c>(v4), r5 = op_in<c>(v5), r6 = op_in<c>(v6), r7 = op_in<c>(v7);
}
template <char c, typename R, typename T0, typename T1, typename T2, typename T3, typename T4, typename T5, typename T6,
          typename T7>
SIMT_PTX void op_out_8(SIMT_EIGHT_VARIABLES) {
  op_out<c>(v0, r0), op_out<c>(v1, r1), op_out<c>(v2, r2), op_out<c>(v3, r3);
  op_out<c>(v4, r4), op_out<c>(v5, r5), op_out<c>(v6, r6), op_out<c>(v7, r7);
}
#undef SIMT_EIGHT_VARIABLES

// ---------------------------------------------------------------------------------------------------------------
// Operands of an instruction

struct Sink {};  // `_`: a result that is not wanted

template <size_t bytes>
using Bits =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

// The value of a register of the type's width, or wider, or of a number in the text.
template <typename T, typename S>
SIMT_PTX T get_low(const S& source) {
  if constexpr (std::is_same_v<T, bool>) {
    return source != 0;
  } else if constexpr (std::is_floating_point_v<S>) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(source);
    else
      return bit_cast<T>(source);
  } else {
    static_assert(!std::is_same_v<S, long long> || !std::is_floating_point_v<T>,
                  "a floating-point number of inline PTX needs a point or the form 0f3f800000");
    static_assert(sizeof(S) >= sizeof(T), "a register of inline PTX is narrower than the instruction's type");
    return bit_cast<T>(static_cast<Bits<sizeof(T)>>(source));
  }
}
template <typename T, typename S>
SIMT_PTX T get(const S& source) {
  static_assert(std::is_same_v<S, long long> || std::is_floating_point_v<S> || sizeof(S) == sizeof(T),
                "the width of a register of inline PTX differs from the instruction's type");
  return get_low<T>(source);
}

// Sets a register of the type's width, or a wider one: integers are extended.
template <typename T, typename D>
SIMT_PTX void put_low(D&& destination, T value) {
  using R = std::remove_reference_t<D>;
  if constexpr (!std::is_same_v<R, Sink>) {
    static_assert(sizeof(R) >= sizeof(T), "a register of inline PTX is narrower than the instruction's type");
    if constexpr (std::is_integral_v<T>)
      destination = static_cast<R>(value);
    else
      destination = static_cast<R>(bit_cast<Bits<sizeof(T)>>(value));
  }
}
template <typename T, typename D>
SIMT_PTX void put(D&& destination, T value) {
  using R = std::remove_reference_t<D>;
  static_assert(std::is_same_v<R, Sink> || sizeof(R) == sizeof(T),
                "the width of a register of inline PTX differs from the instruction's type");
  put_low<T>(destination, value);
}

// An instruction that is one call: without operands, or with the number n.
#define SIMT_PTX_CALL(name, call) \
  template <unsigned flags>       \
  SIMT_PTX void op_##name() {     \
    call;                         \
  }
#define SIMT_PTX_CALL_OF_NUMBER(name, call)    \
  template <unsigned flags, typename N>        \
  SIMT_PTX void op_##name(const N& operand) {  \
    const uint32_t n = get<uint32_t>(operand); \
    call;                                      \
  }

// PTX's CC.CF, one for each thread.
#ifdef SIMT_TRACED
#define SIMT_PTX_STATE SIMT_NOT_TRACED __attribute__((noinline)) inline
#else
#define SIMT_PTX_STATE SIMT_PTX
#endif
SIMT_PTX_STATE bool carry() { return current_thread->carry; }
SIMT_PTX_STATE void set_carry(bool value) { current_thread->carry = value; }

}  // namespace simt::ptx
