// hopper_fp8.h: wgmma for numbers of 8 bits, e4m3: 4 bits of exponent, 3 of fraction,
// up to 448, no infinity.
//
// An instruction multiplies 32 along k in the time that bfloat16 takes for 16: 32 bytes
// of a row, either way. Maps, barriers, descriptors and swizzles are those of hopper.h,
// which move and describe bytes. One thing is missing: 8-bit factors must both be
// K-major, so b is stored column by column, where bfloat16 may have it row by row (PTX
// ISA 9.0, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", read in November
// 2026).
//
// The sums are float32 registers, but the unit keeps fewer bits of them. It aligns the
// terms of an instruction, the sum so far among them, to the largest, and drops what
// lies more than 13 bits below its leading bit. NVIDIA does not document it: Zhang et
// al. measured it (SageAttention2, arXiv 2411.10958, November 2024), DeepSeek-V3's
// report says "around 14 bits" (arXiv 2412.19437, December 2024), and an H200 confirmed
// it here (November 2026).
#pragma once

#include "hopper.h"

namespace hopper {

// d += a * b, or d = a * b with add = 0. a: 64 rows of 32 elements, b: 256 columns of
// 32 elements, both with a descriptor of one panel. Elements are in d as those of
// wgmma_64x256x16.
#define HOPPER_8(i)                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
      "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HOPPER_32(i) HOPPER_8(i), HOPPER_8(i + 8), HOPPER_8(i + 16), HOPPER_8(i + 24)
__device__ __forceinline__ void wgmma_64x256x32(float (&d)[128], uint64_t a, uint64_t b,
                                                int add) {
  HOPPER_ASM(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%"
      "22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
      "%50,%51,%52,%53,%54,%55,%56,"
      "%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,"
      "%77,%78,%79,%80,%81,%82,%83,"
      "%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%"
      "103,%104,%105,%106,%107,%108,"
      "%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,"
      "%125,%126,%127}, "
      "%128, %129, add, 1, 1;\n"
      "}\n" : HOPPER_32(0),
      HOPPER_32(32), HOPPER_32(64), HOPPER_32(96) : "l"(a), "l"(b), "r"(add));
}
#undef HOPPER_8
#undef HOPPER_32

}  // namespace hopper
