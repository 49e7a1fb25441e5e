// hopper_wgmma.h: wgmma of 64 x n x 16 with n = 64, 128, 192 or 256; a from registers
// too, for a chain of products as in attention, with n = 64 or 128.
//
//   wgmma_shared      both factors in shared memory
//   wgmma_registers   a in registers: the result of one product is a factor of the next
//   wgmma_wait_for    waits for groups of products, with the sums as an operand
//
// In shared memory a factor may lie either way, "transposed" or not:
//
//   a   64 x 16   not transposed: 64 rows of 16 elements ("K-major")
//                 transposed: 16 rows of 64 ("M-major")
//   b   16 x n    not transposed: n rows of 16 elements ("K-major")
//                 transposed: 16 rows of n ("N-major")
//
// A row lies in TMA's swizzled rows of 128 bytes (hopper.h), so a factor that is
// transposed has panels of 64 columns, and its descriptor has the bytes between panels.
// In a factor that is not, the next 16 along k are 32 bytes further; in one that is
// transposed, 16 rows. The sums d lie as those of wgmma_64x256x16, with n / 8 groups of
// 4 instead of 32.
#pragma once

#include "hopper.h"

namespace hopper {

#define HOPPER_SUM_8(i)                                                       \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
      "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HOPPER_SUM_32(i) \
  HOPPER_SUM_8(i), HOPPER_SUM_8(i + 8), HOPPER_SUM_8(i + 16), HOPPER_SUM_8(i + 24)
#define HOPPER_NAMES_32                                    \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define HOPPER_NAMES_64                                               \
  HOPPER_NAMES_32                                                     \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define HOPPER_NAMES_96                                               \
  HOPPER_NAMES_64                                                     \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
  "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define HOPPER_NAMES_128                                                     \
  HOPPER_NAMES_96                                                            \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110," \
  "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,"   \
  "%125,%126,%127"
// n, the names of the sums and the text of the operands that follow them
#define HOPPER_WGMMA(n, names, add, operands)                                      \
  "{\n"                                                                            \
  ".reg .pred add;\n"                                                              \
  "setp.ne.b32 add, " add                                                          \
  ", 0;\n"                                                                         \
  "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.bf16.bf16 {" names "}, " operands \
  ";\n"                                                                            \
  "}\n"

// d += a * b, or d = a * b with add = 0. a, b: descriptors.
template <int n, bool a_transposed, bool b_transposed>
__device__ __forceinline__ void wgmma_shared(float (&d)[n / 2], uint64_t a, uint64_t b,
                                             int add) {
  static_assert(n % 64 == 0 && n <= 256, "products of 64 x 64 x 16 to 64 x 256 x 16");
  if constexpr (n == 64) {
    HOPPER_ASM(
        HOPPER_WGMMA("64", HOPPER_NAMES_32, "%34",
                     "%32, %33, add, 1, 1, %35, %36") : HOPPER_SUM_32(0) : "l"(a),
        "l"(b), "r"(add), "n"(int(a_transposed)), "n"(int(b_transposed)));
  } else if constexpr (n == 128) {
    HOPPER_ASM(HOPPER_WGMMA("128", HOPPER_NAMES_64, "%66",
                            "%64, %65, add, 1, 1, %67, %68") : HOPPER_SUM_32(0),
               HOPPER_SUM_32(32) : "l"(a), "l"(b), "r"(add), "n"(int(a_transposed)),
               "n"(int(b_transposed)));
  } else if constexpr (n == 192) {
    HOPPER_ASM(HOPPER_WGMMA("192", HOPPER_NAMES_96, "%98",
                            "%96, %97, add, 1, 1, %99, %100") : HOPPER_SUM_32(0),
               HOPPER_SUM_32(32), HOPPER_SUM_32(64) : "l"(a), "l"(b), "r"(add),
               "n"(int(a_transposed)), "n"(int(b_transposed)));
  } else {
    HOPPER_ASM(HOPPER_WGMMA("256", HOPPER_NAMES_128, "%130",
                            "%128, %129, add, 1, 1, %131, %132") : HOPPER_SUM_32(0),
               HOPPER_SUM_32(32), HOPPER_SUM_32(64), HOPPER_SUM_32(96) : "l"(a), "l"(b),
               "r"(add), "n"(int(a_transposed)), "n"(int(b_transposed)));
  }
}

// The same with a in registers, two elements in each. In thread t of the warp group,
// a[i] has those in columns t % 4 * 2 + i / 2 * 8 and the next, and in row 16 * (t /
// 32) + t % 32 / 4 + i % 2 * 8: as sums lie, for 16 columns. The registers must not
// change until a wait has returned. After a change, wgmma_fence comes before the
// product.
template <int n, bool b_transposed>
__device__ __forceinline__ void wgmma_registers(float (&d)[n / 2],
                                                const uint32_t (&a)[4], uint64_t b,
                                                int add) {
  static_assert(n == 64 || n == 128, "products of 64 x 64 x 16 and of 64 x 128 x 16");
  if constexpr (n == 64) {
    HOPPER_ASM(
        HOPPER_WGMMA(
            "64", HOPPER_NAMES_32, "%37",
            "{%32, %33, %34, %35}, %36, add, 1, 1, %38") : HOPPER_SUM_32(0) : "r"(a[0]),
        "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(int(b_transposed)));
  } else {
    HOPPER_ASM(
        HOPPER_WGMMA("128", HOPPER_NAMES_64, "%69",
                     "{%64, %65, %66, %67}, %68, add, 1, 1, %70") : HOPPER_SUM_32(0),
        HOPPER_SUM_32(32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),
        "r"(add), "n"(int(b_transposed)));
  }
}

// wgmma_wait for all but the latest `groups` groups. d, whose products are complete
// then, is an operand of the empty statements, so that the compiler moves no read of d
// before the wait.
template <int groups, int n>
__device__ __forceinline__ void wgmma_wait_for(float (&d)[n]) {
  wgmma_wait<groups>();
#pragma unroll
  for (int i = 0; i < n; ++i) HOPPER_ASM("" : "+f"(d[i])::"memory");
}

#undef HOPPER_SUM_8
#undef HOPPER_SUM_32
#undef HOPPER_NAMES_32
#undef HOPPER_NAMES_64
#undef HOPPER_NAMES_96
#undef HOPPER_NAMES_128
#undef HOPPER_WGMMA

}  // namespace hopper
