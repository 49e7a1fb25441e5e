// hopper_wgmma.h: wgmma of 64 x n x 16 for those n that a kernel here uses, of the
// multiples of 8 up to 256; a from registers too, for a chain of products as in
// attention, with n = 64, 96 or 128.
//
//   wgmma_shared      both factors in shared memory
//   wgmma_e4m3        the same for factors of 8 bits
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
#include "mma_sync.h"

namespace hopper {

#define HOPPER_SUM_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define HOPPER_SUM_8(i) HOPPER_SUM_4(i), HOPPER_SUM_4(i + 4)
#define HOPPER_SUM_16(i) HOPPER_SUM_8(i), HOPPER_SUM_8(i + 8)
#define HOPPER_SUM_32(i) HOPPER_SUM_16(i), HOPPER_SUM_16(i + 16)
#define HOPPER_NAMES_12 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11"
#define HOPPER_NAMES_16 HOPPER_NAMES_12 ",%12,%13,%14,%15"
#define HOPPER_NAMES_24 HOPPER_NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define HOPPER_NAMES_32 HOPPER_NAMES_24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define HOPPER_NAMES_36 HOPPER_NAMES_32 ",%32,%33,%34,%35"
#define HOPPER_NAMES_44 HOPPER_NAMES_36 ",%36,%37,%38,%39,%40,%41,%42,%43"
#define HOPPER_NAMES_48 HOPPER_NAMES_44 ",%44,%45,%46,%47"
#define HOPPER_NAMES_56 HOPPER_NAMES_48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define HOPPER_NAMES_60 HOPPER_NAMES_56 ",%56,%57,%58,%59"
#define HOPPER_NAMES_64 HOPPER_NAMES_60 ",%60,%61,%62,%63"
#define HOPPER_NAMES_68 HOPPER_NAMES_64 ",%64,%65,%66,%67"
#define HOPPER_NAMES_76 HOPPER_NAMES_68 ",%68,%69,%70,%71,%72,%73,%74,%75"
#define HOPPER_NAMES_80 HOPPER_NAMES_76 ",%76,%77,%78,%79"
#define HOPPER_NAMES_84 HOPPER_NAMES_80 ",%80,%81,%82,%83"
#define HOPPER_NAMES_96 \
  HOPPER_NAMES_84       \
  ",%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define HOPPER_NAMES_128                                                         \
  HOPPER_NAMES_96                                                                \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// n, the elements along k and their types, the names of the sums and the text of the
// operands that follow them
#define HOPPER_WGMMA_OF(n, k, names, add, operands)                 \
  "{\n"                                                             \
  ".reg .pred add;\n"                                               \
  "setp.ne.b32 add, " add                                           \
  ", 0;\n"                                                          \
  "wgmma.mma_async.sync.aligned.m64n" n k " {" names "}, " operands \
  ";\n"                                                             \
  "}\n"
#define HOPPER_WGMMA(n, names, add, operands) \
  HOPPER_WGMMA_OF(n, "k16.f32.bf16.bf16", names, add, operands)

// wgmma_shared for one n: the names of its sums, and the numbers of the operands that
// follow them.
#define HOPPER_SHARED(n, names, a_, b_, add_, at_, bt_, ...)      \
  HOPPER_ASM(HOPPER_WGMMA(#n, names, "%" #add_,                   \
                          "%" #a_ ", %" #b_ ", add, 1, 1, %" #at_ \
                          ", %" #bt_) : __VA_ARGS__ : "l"(a),     \
             "l"(b), "r"(add), "n"(int(a_transposed)), "n"(int(b_transposed)))

// d += a * b, or d = a * b with add = 0. a, b: descriptors.
template <int n, bool a_transposed, bool b_transposed>
__device__ __forceinline__ void wgmma_shared(float (&d)[n / 2], uint64_t a, uint64_t b,
                                             int add) {
  if constexpr (n == 24) {
    HOPPER_SHARED(24, HOPPER_NAMES_12, 12, 13, 14, 15, 16, HOPPER_SUM_8(0),
                  HOPPER_SUM_4(8));
  } else if constexpr (n == 32) {
    HOPPER_SHARED(32, HOPPER_NAMES_16, 16, 17, 18, 19, 20, HOPPER_SUM_16(0));
  } else if constexpr (n == 48) {
    HOPPER_SHARED(48, HOPPER_NAMES_24, 24, 25, 26, 27, 28, HOPPER_SUM_16(0),
                  HOPPER_SUM_8(16));
  } else if constexpr (n == 64) {
    HOPPER_SHARED(64, HOPPER_NAMES_32, 32, 33, 34, 35, 36, HOPPER_SUM_32(0));
  } else if constexpr (n == 72) {
    HOPPER_SHARED(72, HOPPER_NAMES_36, 36, 37, 38, 39, 40, HOPPER_SUM_32(0),
                  HOPPER_SUM_4(32));
  } else if constexpr (n == 88) {
    HOPPER_SHARED(88, HOPPER_NAMES_44, 44, 45, 46, 47, 48, HOPPER_SUM_32(0),
                  HOPPER_SUM_8(32), HOPPER_SUM_4(40));
  } else if constexpr (n == 96) {
    HOPPER_SHARED(96, HOPPER_NAMES_48, 48, 49, 50, 51, 52, HOPPER_SUM_32(0),
                  HOPPER_SUM_16(32));
  } else if constexpr (n == 112) {
    HOPPER_SHARED(112, HOPPER_NAMES_56, 56, 57, 58, 59, 60, HOPPER_SUM_32(0),
                  HOPPER_SUM_16(32), HOPPER_SUM_8(48));
  } else if constexpr (n == 120) {
    HOPPER_SHARED(120, HOPPER_NAMES_60, 60, 61, 62, 63, 64, HOPPER_SUM_32(0),
                  HOPPER_SUM_16(32), HOPPER_SUM_8(48), HOPPER_SUM_4(56));
  } else if constexpr (n == 128) {
    HOPPER_SHARED(128, HOPPER_NAMES_64, 64, 65, 66, 67, 68, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32));
  } else if constexpr (n == 136) {
    HOPPER_SHARED(136, HOPPER_NAMES_68, 68, 69, 70, 71, 72, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32), HOPPER_SUM_4(64));
  } else if constexpr (n == 152) {
    HOPPER_SHARED(152, HOPPER_NAMES_76, 76, 77, 78, 79, 80, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32), HOPPER_SUM_8(64), HOPPER_SUM_4(72));
  } else if constexpr (n == 160) {
    HOPPER_SHARED(160, HOPPER_NAMES_80, 80, 81, 82, 83, 84, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32), HOPPER_SUM_16(64));
  } else if constexpr (n == 168) {
    HOPPER_SHARED(168, HOPPER_NAMES_84, 84, 85, 86, 87, 88, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32), HOPPER_SUM_16(64), HOPPER_SUM_4(80));
  } else if constexpr (n == 192) {
    HOPPER_SHARED(192, HOPPER_NAMES_96, 96, 97, 98, 99, 100, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32), HOPPER_SUM_32(64));
  } else if constexpr (n == 256) {
    HOPPER_SHARED(256, HOPPER_NAMES_128, 128, 129, 130, 131, 132, HOPPER_SUM_32(0),
                  HOPPER_SUM_32(32), HOPPER_SUM_32(64), HOPPER_SUM_32(96));
  } else {
    static_assert(n == 0, "add this n to the list");
  }
}

// The same for factors of 8 bits (hopper_fp8.h), 32 elements along k, of which neither
// is transposed.
#define HOPPER_E4M3(n, names, a_, b_, add_, ...)                                      \
  HOPPER_ASM(HOPPER_WGMMA_OF(#n, "k32.f32.e4m3.e4m3", names, "%" #add_,               \
                             "%" #a_ ", %" #b_ ", add, 1, 1") : __VA_ARGS__ : "l"(a), \
             "l"(b), "r"(add))

template <int n>
__device__ __forceinline__ void wgmma_e4m3(float (&d)[n / 2], uint64_t a, uint64_t b,
                                           int add) {
  if constexpr (n == 24) {
    HOPPER_E4M3(24, HOPPER_NAMES_12, 12, 13, 14, HOPPER_SUM_8(0), HOPPER_SUM_4(8));
  } else if constexpr (n == 32) {
    HOPPER_E4M3(32, HOPPER_NAMES_16, 16, 17, 18, HOPPER_SUM_16(0));
  } else if constexpr (n == 64) {
    HOPPER_E4M3(64, HOPPER_NAMES_32, 32, 33, 34, HOPPER_SUM_32(0));
  } else if constexpr (n == 96) {
    HOPPER_E4M3(96, HOPPER_NAMES_48, 48, 49, 50, HOPPER_SUM_32(0), HOPPER_SUM_16(32));
  } else if constexpr (n == 112) {
    HOPPER_E4M3(112, HOPPER_NAMES_56, 56, 57, 58, HOPPER_SUM_32(0), HOPPER_SUM_16(32),
                HOPPER_SUM_8(48));
  } else if constexpr (n == 128) {
    HOPPER_E4M3(128, HOPPER_NAMES_64, 64, 65, 66, HOPPER_SUM_32(0), HOPPER_SUM_32(32));
  } else if constexpr (n == 160) {
    HOPPER_E4M3(160, HOPPER_NAMES_80, 80, 81, 82, HOPPER_SUM_32(0), HOPPER_SUM_32(32),
                HOPPER_SUM_16(64));
  } else if constexpr (n == 192) {
    HOPPER_E4M3(192, HOPPER_NAMES_96, 96, 97, 98, HOPPER_SUM_32(0), HOPPER_SUM_32(32),
                HOPPER_SUM_32(64));
  } else if constexpr (n == 256) {
    HOPPER_E4M3(256, HOPPER_NAMES_128, 128, 129, 130, HOPPER_SUM_32(0),
                HOPPER_SUM_32(32), HOPPER_SUM_32(64), HOPPER_SUM_32(96));
  } else {
    static_assert(n == 0, "add this n to the list");
  }
}

// wgmma_shared, or wgmma_e4m3.
template <int n, bool a_transposed, bool b_transposed, bool e4m3>
__device__ __forceinline__ void wgmma(float (&d)[n / 2], uint64_t a, uint64_t b,
                                      int add) {
  if constexpr (e4m3) {
    wgmma_e4m3<n>(d, a, b, add);
  } else {
    wgmma_shared<n, a_transposed, b_transposed>(d, a, b, add);
  }
}

// wgmma_shared with a in registers, two elements in each. In thread t of the warp
// group, a[i] has those in columns t % 4 * 2 + i / 2 * 8 and the next, and in row 16 *
// (t / 32) + t % 32 / 4 + i % 2 * 8: as sums lie, for 16 columns. The registers must
// not change until a wait has returned. After a change, wgmma_fence comes before the
// product.
template <int n, bool b_transposed>
__device__ __forceinline__ void wgmma_registers(float (&d)[n / 2],
                                                const uint32_t (&a)[4], uint64_t b,
                                                int add) {
  static_assert(n == 64 || n == 96 || n == 128, "add this n to the list");
  if constexpr (n == 64) {
    HOPPER_ASM(
        HOPPER_WGMMA(
            "64", HOPPER_NAMES_32, "%37",
            "{%32, %33, %34, %35}, %36, add, 1, 1, %38") : HOPPER_SUM_32(0) : "r"(a[0]),
        "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(int(b_transposed)));
  } else if constexpr (n == 96) {
    HOPPER_ASM(
        HOPPER_WGMMA("96", HOPPER_NAMES_48, "%53",
                     "{%48, %49, %50, %51}, %52, add, 1, 1, %54") : HOPPER_SUM_32(0),
        HOPPER_SUM_16(32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),
        "r"(add), "n"(int(b_transposed)));
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

#undef HOPPER_SUM_4
#undef HOPPER_SUM_8
#undef HOPPER_SUM_16
#undef HOPPER_SUM_32
#undef HOPPER_NAMES_12
#undef HOPPER_NAMES_16
#undef HOPPER_NAMES_24
#undef HOPPER_NAMES_32
#undef HOPPER_NAMES_36
#undef HOPPER_NAMES_44
#undef HOPPER_NAMES_48
#undef HOPPER_NAMES_56
#undef HOPPER_NAMES_60
#undef HOPPER_NAMES_64
#undef HOPPER_NAMES_68
#undef HOPPER_NAMES_76
#undef HOPPER_NAMES_80
#undef HOPPER_NAMES_84
#undef HOPPER_NAMES_96
#undef HOPPER_NAMES_128
#undef HOPPER_WGMMA
#undef HOPPER_WGMMA_OF
#undef HOPPER_SHARED
#undef HOPPER_E4M3

// A warp. 16 rows, from `row` on, of a tile in panels of 64 columns, which TMA has
// swizzled: a[i] is a factor of wgmma_registers, of 16 columns.
template <int columns, int rows>
__device__ __forceinline__ void load_factors(
    uint32_t (&a)[columns / 16][4],
    const bfloat16 (&panels)[(columns + 63) / 64][rows][64], int row) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < columns; i += 16) {
    auto line = reinterpret_cast<const uint4*>(panels[i / 64][row + lane % 16]);
    ladder::load_matrices(a[i / 16], line + ((i % 64 / 8 + lane / 16) ^ lane % 8));
  }
}

}  // namespace hopper
