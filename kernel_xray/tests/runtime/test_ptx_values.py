"""Inline PTX that computes, and intrinsics: each instruction or function against a reference, in one table.

Thread i of a kernel applies each instruction of its table to element i of the inputs and writes the results side by
side. On a GPU the same kernels run on the hardware: the references are the PTX ISA's, not the simulator's.
"""

import math
import operator
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import torch
from simt_programs import load_cases, side_by_side

import kernel_xray

pytestmark = pytest.mark.slow  # values of 200 instructions; the lessons and kernels/ compute with what they use of them

NEAREST, ZERO, DOWN, UP = range(4)
SOURCE = """
#include "case.h"
__global__ void values_kernel(const T* as, const T* bs, const T* cs, T* d, int count) {
#if MINIMUM_ARCH == 0 || __CUDA_ARCH__ >= MINIMUM_ARCH || defined(__SIMT__)
  const int i = threadIdx.x;
  const T a = as[i], b = bs[i], c = cs[i];
  LOCALS
  d += i * count;
  STATEMENTS
#endif
}
CASE(values) {
  values_kernel<<<1, call.size(0)>>>(call.data<T>(0), call.data<T>(1), call.data<T>(2), call.data<T>(3),
                                     static_cast<int>(call.number(0)));
}
"""


@dataclass(frozen=True)
class Kernel:
    """A table's key is an instruction, without operands if they are the result and the inputs in order; an intrinsic,
    or a whole call of one; or C++ that stores to *d++. Its value has the inputs, as expressions in C++ and in Python
    alike, and the reference, of these."""

    type: str
    letter: str  # PTX's constraint for a, b and c
    table: dict
    locals: str = ""  # other names for parts of the inputs, in C++
    local_letter: str = "r"
    minimum_arch: int = 0

    def statement(self, instruction, inputs):
        if "d++" in instruction:
            return instruction
        if instruction.startswith("__"):
            return f"*d++ = {instruction if '(' in instruction else f'{instruction}({inputs})'};"
        inputs = inputs.split(", ")
        if "%" not in instruction:
            instruction += "".join(f"{',' * (i > 0)} %{i}" for i in range(len(inputs) + 1)) + ";"
        letters = [self.letter if re.search(r"\b[abc]\b", x) else self.local_letter for x in inputs]
        given = ", ".join(f'"{letter}"({x})' for letter, x in zip(letters, inputs, strict=True))
        return f'asm("{instruction}" : "={self.letter}"(*d++) : {given});'

    def source(self):
        values = {"T": self.type, "MINIMUM_ARCH": str(self.minimum_arch), "LOCALS": self.locals}
        statements = [self.statement(instruction, inputs) for instruction, (inputs, _) in self.table.items()]
        values["STATEMENTS"] = "\n  ".join(statements)
        return re.sub(rf"\b({'|'.join(values)})\b", lambda found: values[found[0]], SOURCE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    def build(name):
        source = tmp_path_factory.mktemp(name) / "values.cu"
        source.write_text(KERNELS[name].source())
        return load_cases(source, f"ptx_values_{name}")

    with side_by_side(build, KERNELS) as operators:
        yield operators


def run(built, kernel, *inputs):
    """The results as rows, one per thread; a column for each instruction."""
    count = len(KERNELS[kernel].table)
    out = np.zeros((len(inputs[0]), count), inputs[0].dtype)
    tensors = [torch.from_numpy(x.copy()).to(kernel_xray.device) for x in (*inputs, out)]
    built(kernel).values(tensors, [count])
    return tensors[-1].cpu().numpy()


def expected(kernel, a, b, c, **parts):
    """Each instruction, and its reference's results for arrays of inputs."""
    for name, (expressions, reference) in KERNELS[kernel].table.items():
        with np.errstate(all="ignore"):
            yield name, reference(*eval(f"({expressions},)", {"a": a, "b": b, "c": c, **parts}))


# ----------------------------------------------------------------------------------------------------------------------
# Integers. References take and give Python's integers, which are cut to the width afterwards.


def signed(x, bits=32):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def on_signed(function, bits=32):
    return lambda *values: function(*(signed(v, bits) for v in values))


def on_halves(function, is_signed):
    def of_words(*words):
        lower, upper = (
            function(*halves) for halves in zip(*(lanes(word, 16, is_signed) for word in words), strict=True)
        )
        return lower % 2**16 + upper % 2**16 * 2**16

    return of_words


def clamp(x, low, high):
    return min(max(x, low), high)


def cut(quotient_or_rest):
    """Division that rounds toward zero."""

    def divide(x, y):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient if quotient_or_rest == "div" else x - quotient * y

    return divide


def bit_field(x, position, length, bits, is_signed):
    """The loop of the PTX ISA."""
    position, length, most = position & 255, length & 255, bits - 1
    sign = 0 if not is_signed or length == 0 else x >> min(position + length - 1, most) & 1
    return sum((x >> (position + i) & 1 if i < length and position + i <= most else sign) << i for i in range(bits))


def inserted(a, b, position, length, bits):
    for i in range(min(length & 255, bits)):
        if (position & 255) + i < bits:
            at = (position & 255) + i
            b = b & ~(1 << at) | (a >> i & 1) << at
    return b


def leading_zeros(x, bits):
    return bits - x.bit_length()


def first_bit(x):
    return (x & -x).bit_length()


def top_bit(x):
    return max(x if x >= 0 else ~x, 0).bit_length() - 1


def lanes(word, bits, is_signed=False):
    parts = [word >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [signed(p, bits) if is_signed else p for p in parts]


def packed(parts, bits):
    return sum((p & ((1 << bits) - 1)) << bits * i for i, p in enumerate(parts))


def permuted(a, b, selector):
    source = [*lanes(a, 8), *lanes(b, 8)]
    chosen = [(source[n & 7], n >> 3) for n in lanes(selector, 4)[:4]]
    return packed([255 * (byte >> 7) if sign else byte for byte, sign in chosen], 8)


def each(function, bits, is_signed=False):
    return lambda a, b, c: packed(map(function, lanes(a, bits, is_signed), lanes(b, bits, is_signed)), bits)


def dot(a, b, c):
    return c + sum(map(operator.mul, a, b))


def nth_set(mask, base, offset):
    step = -1 if offset < 0 else 1
    left = abs(offset) or 1
    for bit in range(base, -1 if step < 0 else 32, step):
        left -= mask >> bit & 1
        if left == 0:
            return bit
        if offset == 0:
            break
    return -1


def reverse(x, bits):
    return int(f"{x:0{bits}b}"[::-1], 2)


def bounded(function):
    return on_signed(lambda a, b: clamp(function(a, b), -(2**31), 2**31 - 1))


def three_words(a, low, high):
    low_sum = a + low
    middle = a + high + (low_sum >> 32)
    return low_sum % 2**32 + (middle % 2**32 << 32) + (middle >> 32)


def product_chain(a, b, c):
    low = (a * b) % 2**64 + c
    high = (a * b >> 64) + c + (low >> 64)
    return low % 2**64 ^ high % 2**64


COUNT_BITS = r"""
  uint32_t rest = a;  // a loop, and a register assembled from an operand that is read and written
  asm("{\n"
      "  .reg .pred more;\n"
      "  mov.u32 %0, 0;\n"
      "again:  // comments end with the line\n"
      "  setp.ne.u32 more, %1, 0;\n"
      "  @!more bra.uni done;\n"
      "  { .reg .b32 %%less; sub.u32 %%less, %1, 1; and.b32 %1, %1, %%less; }\n"
      "  add.u32 %0, %0, 1;\n"
      "  bra again;\n"
      "done:\n"
      "}"
      : "=&r"(*d++), "+r"(rest));
  asm volatile("" : "+r"(rest) : : "memory");"""
WORDS = {
    "add.u32": ("a, b", operator.add),
    "add.sat.s32": ("a, b", bounded(operator.add)),
    "sub.s32": ("a, b", operator.sub),
    "sub.sat.s32": ("a, b", bounded(operator.sub)),
    "mul.lo.u32": ("a, b", operator.mul),
    "mul.hi.u32": ("a, b", lambda a, b: a * b >> 32),
    "mul.hi.s32": ("a, b", on_signed(lambda a, b: a * b >> 32)),
    "mad.lo.s32": ("a, b, c", lambda a, b, c: a * b + c),
    "mad.hi.u32": ("a, b, c", lambda a, b, c: (a * b >> 32) + c),
    "sad.s32": ("a, b, c", on_signed(lambda a, b, c: abs(a - b) + c)),
    "div.u32": ("a, c | 1", operator.floordiv),
    "div.s32": ("a, c >> 3 | 1", on_signed(cut("div"))),
    "rem.s32": ("a, c >> 3 | 1", on_signed(cut("rem"))),
    "abs.s32": ("a", on_signed(abs)),
    "neg.s32": ("a", operator.neg),
    "min.s32": ("a, b", on_signed(min)),
    "max.u32": ("a, b", max),
    "popc.b32": ("a", int.bit_count),
    "clz.b32": ("a", lambda a: leading_zeros(a, 32)),
    "brev.b32": ("a", lambda a: reverse(a, 32)),
    "bfind.u32": ("a", top_bit),
    "bfind.s32": ("a", on_signed(top_bit)),
    "bfind.shiftamt.u32": ("a", lambda a: 31 - top_bit(a) if a else -1),
    "bfe.u32": ("a, c % 40, b", lambda *abc: bit_field(*abc, 32, False)),
    "bfe.s32": ("a, c % 40, b % 40", lambda *abc: bit_field(*abc, 32, True)),
    "bfi.b32": ("a, b, c % 40, c >> 8", lambda *abcd: inserted(*abcd, 32)),
    "and.b32": ("a, b", operator.and_),
    "or.b32 %0, %1, 0xf0U;": ("a", lambda a: a | 0xF0),
    "xor.b32": ("a, b", operator.xor),
    "not.b32": ("a", operator.inv),
    "cnot.b32": ("a % 3", operator.not_),
    "lop3.b32 %0, %1, %2, %3, 0xe8;": ("a, b, c", lambda a, b, c: a & b | a & c | b & c),
    "lop3.b32 %0, %1, %2, %3, 0x96;": ("a, b, c", lambda a, b, c: a ^ b ^ c),
    "shl.b32": ("a, c % 40", operator.lshift),
    "shr.u32": ("a, c % 40", operator.rshift),
    "shr.s32": ("a, c % 40", on_signed(operator.rshift)),
    "shf.l.wrap.b32": ("a, b, c % 40", lambda a, b, by: (b << 32 | a) << by % 32 >> 32),
    "shf.r.wrap.b32": ("a, b, c % 40", lambda a, b, by: (b << 32 | a) >> by % 32),
    "shf.l.clamp.b32": ("a, b, c % 40", lambda a, b, by: (b << 32 | a) << min(by, 32) >> 32),
    "shf.r.clamp.b32": ("a, b, c % 40", lambda a, b, by: (b << 32 | a) >> min(by, 32)),
    "prmt.b32": ("a, b, c", permuted),
    **{
        f"prmt.b32.{mode}": ("a, b, c", lambda a, b, c, four=selectors: permuted(a, b, four[c % 4]))
        for mode, selectors in {
            "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
            "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
            "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
        }.items()
    },
    "szext.wrap.u32": ("a, c", lambda a, n: a % 2 ** (n % 32)),
    "szext.clamp.s32": ("a, c % 40", lambda a, n: bit_field(a, 0, n, 32, True)),
    "bmsk.wrap.b32": ("a, c", lambda at, n: (2 ** (n % 32) - 1) << at % 32),
    "bmsk.clamp.b32": ("a % 40, c % 40", lambda at, n: (2**n - 1) << at),
    "dp4a.s32.u32": ("a, b, c", lambda a, b, c: dot(lanes(a, 8, True), lanes(b, 8), c)),
    "dp4a.u32.u32": ("a, b, c", lambda a, b, c: dot(lanes(a, 8), lanes(b, 8), c)),
    "dp2a.hi.s32.s32": ("a, b, c", lambda a, b, c: dot(lanes(a, 16, True), lanes(b, 8, True)[2:], c)),
    "vabsdiff4.u32.u32.u32.add": (
        "a, b, c", lambda a, b, c: c + sum(map(abs, map(operator.sub, lanes(a, 8), lanes(b, 8)))),
    ),
    "vabsdiff4.u32.u32.u32": ("a, b, c", each(lambda x, y: abs(x - y), 8)),
    "vmax2.s32.s32.s32": ("a, b, c", each(max, 16, True)),
    "vadd4.u32.u32.u32": ("a, b, c", each(operator.add, 8)),
    "fns.b32": ("a, b % 32, int(c % 7) - 3", nth_set),
    "cvt.u32.u8": ("a", lambda a: a & 255),
    "cvt.s32.s16": ("a", lambda a: signed(a, 16)),
    "cvt.sat.u8.s32": ("a >> 3", lambda a: clamp(a, 0, 255)),
    "cvt.pack.sat.s8.s32.b32": (
        "a, b % 200, c", lambda a, b, c: packed([clamp(b, -128, 127), clamp(signed(a), -128, 127), c, c >> 8], 8),
    ),
    "{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, low}; }": (
        "a", lambda a: packed(lanes(a, 16)[::-1], 16),
    ),
    "{ .reg .b8 p<4>; mov.b32 {p0, p1, p2, p3}, %1; mov.b32 %0, {p3, p2, p1, p0}; }": (
        "a", lambda a: packed(lanes(a, 8)[::-1], 8),
    ),
    "{ .reg .pred p, q; setp.lt.s32 p|q, %1, %2; selp.b32 %0, 1, 2, p; @q add.u32 %0, %0, 4; }": (
        "a, b", on_signed(lambda a, b: 1 if a < b else 6),
    ),
    "{ .reg .pred p, q; setp.hi.u32 p, %1, %2; setp.eq.and.b32 q, %3, 3, !p; selp.u32 %0, 1, 0, q; }": (
        "a, b, c % 4", lambda a, b, c: c == 3 and not a > b,
    ),
    "set.ge.u32.s32": ("a, b", on_signed(lambda a, b: -(a >= b))),
    "slct.b32.s32": ("a, b, c", lambda a, b, c: a if signed(c) >= 0 else b),
    COUNT_BITS: ("a", int.bit_count),
    "__ffs": ("a", first_bit),
    "__byte_perm": ("a, b, c", lambda a, b, c: permuted(a, b, c & 0x7777)),
    "__mul24": ("a, b", lambda a, b: signed(a, 24) * signed(b, 24)),
    "__umul24": ("a, b", lambda a, b: a % 2**24 * (b % 2**24)),
    "__usad": ("a, b, c", lambda a, b, c: abs(a - b) + c),
    "__hadd(int(a), int(b))": ("a, b", on_signed(lambda a, b: (a + b) >> 1)),
    "__rhadd(int(a), int(b))": ("a, b", on_signed(lambda a, b: (a + b + 1) >> 1)),
    "__uhadd": ("a, b", lambda a, b: (a + b) >> 1),
    "__urhadd": ("a, b", lambda a, b: (a + b + 1) >> 1),
    "__dp4a(int(a), int(b), int(c))": ("a, b, c", lambda a, b, c: dot(lanes(a, 8, True), lanes(b, 8, True), c)),
    "__dp2a_lo": ("a, b, c", lambda a, b, c: dot(lanes(a, 16), lanes(b, 8)[:2], c)),
    "__dp2a_hi": ("a, b, c", lambda a, b, c: dot(lanes(a, 16), lanes(b, 8)[2:], c)),
    "__dp2a_lo(short2{short(a), short(a >> 16)}, char4{char(b), char(b >> 8), 99, 99}, int(c))": (
        "a, b, c", lambda a, b, c: dot(lanes(a, 16, True), lanes(b, 8, True)[:2], c),
    ),
    "__viaddmin_s32(int(a), int(b), int(c))": ("a, b, c", on_signed(lambda a, b, c: min(signed(a + b), c))),
    "__viaddmax_u32": ("a, b, c", lambda a, b, c: max((a + b) % 2**32, c)),
    "__vimax3_s32_relu(int(a), int(b), int(c))": ("a, b, c", on_signed(lambda a, b, c: max(a, b, c, 0))),
    "__viaddmax_s16x2": ("a, b, c", on_halves(lambda a, b, c: max(signed(a + b, 16), c), True)),
    "__viaddmin_s16x2_relu": ("a, b, c", on_halves(lambda a, b, c: max(min(signed(a + b, 16), c), 0), True)),
    "__vimin3_u16x2": ("a, b, c", on_halves(min, False)),
    "__vimin_s16x2_relu": ("a, b", on_halves(lambda a, b: max(min(a, b), 0), True)),
    "bool first; const int most = __vibmax_s32(int(a), int(b), &first); *d++ = 2 * unsigned(most) + first;": (
        "a, b", on_signed(lambda a, b: 2 * max(a, b) + (a >= b)),
    ),
    "bool p, q; const unsigned least = __vibmin_u16x2(a, b, &p, &q); *d++ = least + 2 * p + q;": (
        "a, b",
        lambda a, b: on_halves(min, False)(a, b) + 2 * (a >> 16 <= b >> 16) + (a % 2**16 <= b % 2**16),
    ),
    "__float_as_uint(__int2float_rn(int(a)))": ("a", lambda a: as_float(NEAREST, signed(a))),
    "__float_as_uint(__int2float_ru(int(a)))": ("a", lambda a: as_float(UP, signed(a))),
    "__float_as_uint(__int2float_rd(int(a)))": ("a", lambda a: as_float(DOWN, signed(a))),
    "__float_as_uint(__int2float_rz(int(a)))": ("a", lambda a: as_float(ZERO, signed(a))),
    "__float_as_uint(__uint2float_rn(a))": ("a", lambda a: as_float(NEAREST, a)),
    "__float_as_int(__int_as_float(int(a)))": ("a", operator.pos),
    "__float_as_uint(__uint_as_float(a))": ("a", operator.pos),
    "__double2hiint(__hiloint2double(a, b))": ("a, b", lambda a, b: a),
    "__double2loint(__hiloint2double(a, b))": ("a, b", lambda a, b: b),
}  # fmt: skip
WORDS |= {  # intrinsics that have an instruction
    intrinsic: WORDS[instruction]
    for intrinsic, instruction in {
        "__popc": "popc.b32", "__clz": "clz.b32", "__brev": "brev.b32", "__fns": "fns.b32", "__mulhi": "mul.hi.s32",
        "__umulhi": "mul.hi.u32", "__sad": "sad.s32", "__dp4a": "dp4a.u32.u32",
        "__funnelshift_l": "shf.l.wrap.b32", "__funnelshift_r": "shf.r.wrap.b32",
        "__funnelshift_lc": "shf.l.clamp.b32", "__funnelshift_rc": "shf.r.clamp.b32",
    }.items()
}  # fmt: skip

THREE_WORDS = """
  uint32_t low, middle, high;
  asm("add.cc.u32 %0, %3, %4; addc.cc.u32 %1, %3, %5; addc.u32 %2, 0, 0;"
      : "=r"(low), "=r"(middle), "=r"(high)
      : "r"(a1), "r"(b1), "r"(b2));
  *d++ = low + (uint64_t(middle) << 32) + high;
  uint64_t more;"""
PARTS = "const uint32_t a1 = uint32_t(a), b1 = uint32_t(b), b2 = uint32_t(b >> 32), shift = uint32_t(c % 70);"
LONG_WORDS = {
    "add.u64": ("a, b", operator.add),
    "mul.lo.u64": ("a, b", operator.mul),
    "mul.hi.u64": ("a, b", lambda a, b: a * b >> 64),
    "mul.hi.s64": ("a, b", on_signed(lambda a, b: a * b >> 64, 64)),
    "mul.wide.u32": ("a1, b1", operator.mul),
    "mul.wide.s32": ("a1, b1", on_signed(operator.mul)),
    "mad.wide.u32": ("a1, b1, c", lambda a, b, c: a * b + c),
    "shl.b64": ("a, shift", operator.lshift),
    "shr.s64": ("a, shift", on_signed(operator.rshift, 64)),
    "bfe.u64": ("a, shift, b1 % 70", lambda *abc: bit_field(*abc, 64, False)),
    "bfi.b64": ("a, b, shift, b1 % 70", lambda *abcd: inserted(*abcd, 64)),
    "{ .reg .u32 n; popc.b64 n, %1; cvt.u64.u32 %0, n; }": ("a", int.bit_count),
    "{ .reg .u32 n; clz.b64 n, %1; cvt.u64.u32 %0, n; }": ("a", lambda a: leading_zeros(a, 64)),
    "brev.b64": ("a", lambda a: reverse(a, 64)),
    "mov.b64 %0, {%1, %2};": ("b1, a1", lambda low, high: high << 32 | low),
    "{ .reg .b32 low, high; mov.b64 {low, high}, %1; mov.b64 %0, {high, low}; }": ("a", lambda a: a >> 32 | a << 32),
    "cvt.s64.s32": ("a1", signed),
    "add.u64 %0, %1, 0xfedcba9876543210;": ("a", lambda a: a + 0xFEDCBA9876543210),
    # Carry chains: in one statement, over several ones, with borrows, and in a product of two words.
    THREE_WORDS: ("a1, b1, b2", three_words),
    'asm volatile("add.cc.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b)); more = cs[i];': ("a, b", operator.add),
    'asm volatile("addc.u64 %0, %1, 0;" : "=l"(*d++) : "l"(more));': ("a, b, c", lambda a, b, c: c + (a + b >> 64)),
    'asm volatile("sub.cc.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));': ("a, b", operator.sub),
    'asm volatile("subc.u64 %0, %1, 1;" : "=l"(*d++) : "l"(more));': ("a, b, c", lambda a, b, c: c - 1 - (a < b)),
    "{ .reg .u64 t; mad.lo.cc.u64 %0, %1, %2, %3; madc.hi.u64 t, %1, %2, %3; xor.b64 %0, %0, t; }": (
        "a, b, c", product_chain,
    ),
    "__popcll": ("a", int.bit_count),
    "__clzll": ("a", lambda a: leading_zeros(a, 64)),
    "__brevll": ("a", lambda a: reverse(a, 64)),
    "__ffsll": ("a", first_bit),
    "__umul64hi": ("a, b", lambda a, b: a * b >> 64),
    "__mul64hi": ("a, b", on_signed(lambda a, b: a * b >> 64, 64)),
    "__double_as_longlong(__longlong_as_double(a))": ("a", operator.pos),
    "__double_as_longlong(__ull2double_rd(a))": ("a", lambda a: as_double(DOWN, a)),
    "__double2hiint(__longlong_as_double(a))": ("a", lambda a: signed(a >> 32)),
    "__double2loint(__longlong_as_double(a))": ("a", signed),
}  # fmt: skip


def words(bits):
    edges = [0, 1, 2, 3, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2**bits - 2, 0x7F, 0x80, 0x8000]
    random = np.random.default_rng(bits)
    dtype = np.uint32 if bits == 32 else np.uint64
    drawn = random.integers(0, 2**bits, (3, 400), dtype=dtype) >> random.integers(0, bits, (3, 400), dtype=dtype)
    pairs = np.array([(x, y, z) for x in edges for y in edges for z in edges[1:6]], dtype)[:600].T
    return np.concatenate([drawn, pairs], axis=1)


def named(a, b, c):
    """What the expressions of LONG_WORDS name."""
    return {"a": a, "b": b, "c": c, "a1": a % 2**32, "b1": b % 2**32, "b2": b >> 32, "shift": c % 70}


@pytest.mark.parametrize(("kernel", "bits"), [("words", 32), ("long_words", 64)])
def test_integers(built, kernel, bits):
    inputs = words(bits)
    results = run(built, kernel, *inputs)
    rows = [named(*map(int, values)) for values in zip(*inputs, strict=True)]
    for got, (name, (expressions, reference)) in zip(results.T, KERNELS[kernel].table.items(), strict=True):
        code = compile(f"({expressions},)", name, "eval")
        want = [int(reference(*eval(code, row))) % 2**bits for row in rows]
        wrong = [i for i, (g, w) in enumerate(zip(got.tolist(), want, strict=True)) if g != w]
        assert not wrong, (name, [hex(x[wrong[0]]) for x in inputs], hex(got[wrong[0]]), hex(want[wrong[0]]))
        assert len(set(want)) > 1, name


# ----------------------------------------------------------------------------------------------------------------------
# Floating point. References take and give arrays.

FORMATS = {"f16": (11, -24, 65504.0), "bf16": (8, -133, float.fromhex("0x1.fep127")), "tf32": (11, -136, math.inf)}
FORMATS |= {
    "f32": (24, -149, float.fromhex("0x1.fffffep127")),
    "f64": (53, -1074, float.fromhex("0x1.fffffffffffffp1023")),
}
AWAY = 4  # to nearest, ties away from zero


def rounded(x, mode, kind):
    """The Fraction x in a format, as a float."""
    digits, least, largest = FORMATS[kind]
    if x == 0:
        return 0.0
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    exponent += (abs(x) >= Fraction(2) ** (exponent + 1)) - (abs(x) < Fraction(2) ** exponent)
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    steps = x / unit
    down = math.floor(steps)
    if mode == NEAREST:
        whole = round(steps)
    elif mode == AWAY:
        whole = math.floor(abs(steps) + Fraction(1, 2)) * (1 if x > 0 else -1)
    else:
        whole = down if mode == DOWN or (mode == ZERO and x > 0) else math.ceil(steps)
    result = whole * unit
    if abs(result) <= Fraction(largest) if largest != math.inf else True:
        return float(result)
    inward = mode == ZERO or (mode == UP and x < 0) or (mode == DOWN and x > 0)
    return math.copysign(largest if inward else math.inf, x)


def exact(mode, function, kind="f32"):
    """A function of Fractions, rounded once; where an argument is not finite, or b is 0, that of floats."""

    def one(*values):
        if all(map(math.isfinite, values)) and not (function is operator.truediv and values[1] == 0):
            return rounded(function(*map(Fraction, values)), mode, kind)
        return float(function(*map(np.float64, values)))

    return lambda *arrays: np.array([one(*values) for values in zip(*map(np.ndarray.tolist, arrays), strict=True)])


def as_float(mode, x):
    """The bits of the integer x as a float."""
    return int(np.float32(rounded(Fraction(x), mode, "f32")).view(np.uint32))


def as_double(mode, x):
    return int(np.float64(rounded(Fraction(x), mode, "f64")).view(np.uint64))


def flushed(x):
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def whole(x, function, low, high):
    return np.clip(np.nan_to_num(function(x.astype(np.float64)), nan=0.0), low, high)


def fused(x, y, z):
    return x * y + z


def unit(x):
    return np.clip(np.nan_to_num(x, nan=0.0), 0, 1)


def number(a, b, choose):
    """Of a number and NaN: the number."""
    return choose(np.where(np.isnan(a), b, a), np.where(np.isnan(b), a, b))


SELECT = "; selp.f32 %0, 0f3f800000, 0f00000000, p; }"
FLOATS = {
    "add.f32": ("a, b", operator.add),
    "add.rz.f32": ("a, b", exact(ZERO, operator.add)),
    "sub.rm.f32": ("a, b", exact(DOWN, operator.sub)),
    "mul.rp.f32": ("a, b", exact(UP, operator.mul)),
    "mul.rn.ftz.f32": ("a, b", lambda a, b: flushed(flushed(a) * flushed(b))),
    "add.sat.f32": ("a, b", lambda a, b: unit(a + b)),
    "fma.rn.f32": ("a, b, c", exact(NEAREST, fused)),
    "fma.rz.f32": ("a, b, c", exact(ZERO, fused)),
    "div.rn.f32": ("a, b", operator.truediv),
    "div.rm.f32": ("a, b", exact(DOWN, operator.truediv)),
    "rcp.rn.f32": ("a", lambda a: np.float32(1) / a),
    "sqrt.rn.f32": ("a", np.sqrt),
    "min.f32": ("a, b", lambda a, b: number(a, b, np.minimum)),
    "max.NaN.f32": ("a, b", np.maximum),
    "abs.f32": ("a", np.abs),
    "neg.ftz.f32": ("a", lambda a: -flushed(a)),
    "copysign.f32": ("a, b", lambda a, b: np.copysign(b, a)),
    "add.f32 %0, %1, 0f3F800000;": ("a", lambda a: a + np.float32(1)),
    "add.f32 %0, %1, 1e3;": ("a", lambda a: a + np.float32(1000)),
    "mul.f32 %0, %1, .5;": ("a", lambda a: a * np.float32(0.5)),
    "mul.f32 %0, %1, -2.5;": ("a", lambda a: a * np.float32(-2.5)),
    "cvt.rni.f32.f32": ("a", np.rint),
    "cvt.rpi.f32.f32": ("a", np.ceil),
    "cvt.sat.f32.f32": ("a", unit),
    "{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h; }": ("a", lambda a: a.astype(np.float16)),
    "{ .reg .b16 h; cvt.rz.f16.f32 h, %1; cvt.f32.f16 %0, h; }": ("a", exact(ZERO, operator.pos, "f16")),
    "{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; mov.b32 %0, {0, h}; }": ("a", exact(NEAREST, operator.pos, "bf16")),
    "{ .reg .f64 w; cvt.f64.f32 w, %1; mul.rn.f64 w, w, 0d3FF0000010000000; cvt.rn.f32.f64 %0, w; }": (
        "a", lambda a: (a.astype(np.float64) * (1 + 2.0**-24)).astype(np.float32),
    ),
    "{ .reg .s32 n; cvt.rzi.s32.f32 n, %1; cvt.rn.f32.s32 %0, n; }": (
        "a", lambda a: whole(a, np.trunc, -(2**31), 2**31 - 1).astype(np.float32),
    ),
    "{ .reg .u32 n; cvt.rmi.u32.f32 n, %1; cvt.rz.f32.u32 %0, n; }": (
        "a", lambda a: exact(ZERO, operator.pos)(whole(a, np.floor, 0, 2**32 - 1)),
    ),
    "{ .reg .b32 t; cvt.rna.tf32.f32 t, %1; mov.b32 %0, t; }": ("a", exact(AWAY, operator.pos, "tf32")),
    "{ .reg .pred p; setp.lt.f32 p, %1, %2" + SELECT: ("a, b", operator.lt),
    "{ .reg .pred p; setp.geu.f32 p, %1, %2" + SELECT: ("a, b", lambda a, b: ~(a < b)),
    "set.ne.f32.f32": ("a, b", lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)),
    "{ .reg .pred p; testp.subnormal.f32 p, %1" + SELECT: ("a", lambda a: (a != 0) & (np.abs(a) < 2.0**-126)),
}  # fmt: skip

DOUBLES = {
    "add.rn.f64": ("a, b", operator.add),
    "mul.rz.f64": ("a, b", exact(ZERO, operator.mul, "f64")),
    "fma.rn.f64": ("a, b, c", exact(NEAREST, fused, "f64")),
    "div.rn.f64": ("a, b", operator.truediv),
    "sqrt.rn.f64": ("a", np.sqrt),
    "max.f64": ("a, b", lambda a, b: number(a, b, np.maximum)),
    "{ .reg .s64 n; cvt.rzi.s64.f64 n, %1; cvt.rn.f64.s64 %0, n; }": (
        "a", lambda a: np.trunc(np.where(np.isnan(a), -(2.0**63), np.clip(a, -(2.0**63), 2.0**63))),
    ),
    "{ .reg .b32 low, high; mov.b64 {low, high}, %1; mov.b64 %0, {low, high}; }": ("a", operator.pos),
}  # fmt: skip


MODES = {"rn": NEAREST, "rz": ZERO, "rd": DOWN, "ru": UP}
FLOATS |= {
    f"__f{name}_{suffix}": (inputs, exact(mode, function))
    for name, inputs, function in [
        ("add", "a, b", operator.add), ("sub", "a, b", operator.sub), ("mul", "a, b", operator.mul),
        ("div", "a, b", operator.truediv), ("maf", "a, b, c", fused),
    ]
    for suffix, mode in MODES.items()
}  # fmt: skip
ROUNDINGS = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
FLOATS |= {
    f"__float2{name}_{suffix}": ("a", lambda a, f=function, low=low, high=high: whole(a, f, low, high))
    for name, low, high in (("int", -(2**31), 2**31 - 1), ("uint", 0, 2**32 - 1))
    for suffix, function in ROUNDINGS.items()
}
FLOATS |= {
    "__float2ull_ru": ("a", lambda a: np.where(np.isnan(a), 2.0**63, whole(a, np.ceil, 0, 2.0**64))),
    "__float2ll_rn": ("a", lambda a: np.where(np.isnan(a), -(2.0**63), whole(a, np.rint, -(2.0**63), 2.0**63))),
    "__frcp_ru": ("a", lambda a: exact(UP, operator.truediv)(np.ones_like(a), a)),
    "__double2float_ru(a * 1.1)": ("a", lambda a: exact(UP, operator.pos)(a.astype(np.float64) * 1.1)),
    "__double2float_rd(a * 1.1)": ("a", lambda a: exact(DOWN, operator.pos)(a.astype(np.float64) * 1.1)),
}
DOUBLES |= {
    "__ddiv_ru": ("a, b", exact(UP, operator.truediv, "f64")),
    "__ddiv_rd": ("a, b", exact(DOWN, operator.truediv, "f64")),
    "__double2int_rz": ("a", lambda a: np.where(np.isnan(a), -(2.0**31), whole(a, np.trunc, -(2**31), 2**31 - 1))),
    "__double2uint_rn": ("a", lambda a: np.where(np.isnan(a), 2.0**31, whole(a, np.rint, 0, 2**32 - 1))),
    "__double2ll_rd": ("a", lambda a: np.where(np.isnan(a), -(2.0**63), whole(a, np.floor, -(2.0**63), 2.0**63))),
}


def reals(dtype):
    random = np.random.default_rng(7)
    wide = random.standard_normal((3, 500)) * 2.0 ** random.integers(-30, 31, (3, 500))
    near = random.integers(-40, 40, (3, 200)) / 16  # ties
    special = [0.0, -0.0, 1.0, -1.0, 1e-40, -3e-39, 3e38, -3e38, 65520.0, 6e-8, math.inf, -math.inf, math.nan]
    pairs = np.array([(x, y, special[(i + j) % 9]) for i, x in enumerate(special) for j, y in enumerate(special)]).T
    return np.concatenate([wide, near, pairs], axis=1).astype(dtype)


def same(got, want):
    return (got == want) | (np.isnan(got) & np.isnan(want))


@pytest.mark.parametrize(("kernel", "dtype"), [("floats", np.float32), ("doubles", np.float64)])
def test_floating_point(built, kernel, dtype):
    inputs = reals(dtype)
    results = run(built, kernel, *inputs)
    for got, (name, want) in zip(results.T, expected(kernel, *inputs), strict=True):
        want = np.asarray(want).astype(dtype)
        wrong = np.flatnonzero(~same(got, want))
        assert not wrong.size, (name, inputs[:, wrong[0]], got[wrong[0]], want[wrong[0]])
        assert np.unique(want).size > 1, name


@pytest.mark.skipif(
    kernel_xray.target == "gpu" and torch.cuda.get_device_capability() < (10, 0), reason="needs compute capability 10.0"
)
def test_pairs_of_floats(built):
    a, b, c = (np.ascontiguousarray(x[:868].reshape(-1, 2)) for x in reals(np.float32))
    words = [x.view(np.uint64).ravel() for x in (a, b, c)]
    results = run(built, "float_pairs", *words)
    for got, (name, want) in zip(results.T, expected("float_pairs", *(x.ravel() for x in (a, b, c))), strict=True):
        assert same(np.ascontiguousarray(got).view(np.float32), np.asarray(want).astype(np.float32)).all(), name


def test_minimum_of_zeros_and_signs(built):
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    results = run(built, "floats", zeros, zeros[[0, 0, 1, 1]], zeros)
    names = list(FLOATS)
    assert np.signbit(results[:, names.index("min.f32")]).tolist() == [False, True, True, True]
    assert np.signbit(results[:, names.index("max.NaN.f32")]).tolist() == [False, False, False, True]
    assert np.signbit(results[:, names.index("copysign.f32")]).tolist() == np.signbit(zeros).tolist()
    sines = run(built, "approximations", zeros, zeros, zeros)[:, list(APPROXIMATIONS).index("sin.approx.f32")]
    assert np.signbit(sines).tolist() == np.signbit(zeros).tolist()


def three_extremes(a, b, c):
    """Of elements at even places the largest number; of those at odd places the smallest size."""
    sizes = np.minimum(np.minimum(abs(a), abs(b)), abs(c))
    return np.where(np.arange(len(a)) % 2, sizes, number(number(a, b, np.maximum), c, np.maximum))


FLOAT_PAIRS = {
    "add.rz.f32x2": FLOATS["add.rz.f32"],
    "{ .reg .b32 p<6>; mov.b64 {p0, p1}, %1; mov.b64 {p2, p3}, %2; mov.b64 {p4, p5}, %3; max.f32 p0, p0, p2, p4; "
    "min.NaN.abs.f32 p1, p1, p3, p5; mov.b64 %0, {p0, p1}; }": ("a, b, c", three_extremes),
    "mul.ftz.f32x2": FLOATS["mul.rn.ftz.f32"],
    "fma.rn.f32x2": FLOATS["fma.rn.f32"],
}
APPROXIMATIONS = {
    "ex2.approx.ftz.f32": ("a", np.exp2),
    "lg2.approx.f32": ("b", np.log2),
    "rcp.approx.ftz.f32": ("b", np.reciprocal),
    "rsqrt.approx.f32": ("b", lambda b: 1 / np.sqrt(b)),
    "sqrt.approx.ftz.f32": ("b", np.sqrt),
    "sin.approx.f32": ("a", np.sin),
    "cos.approx.ftz.f32": ("a", np.cos),
    "tanh.approx.f32": ("a", np.tanh),
    "div.approx.f32": ("a, b", operator.truediv),
    "div.full.f32": ("a, b", operator.truediv),
}
# The largest errors that the PTX ISA allows: relative, absolute.
ALLOWED = [(2.0**-22, 0), (2.0**-22, 2.0**-22), *[(2.0**-22, 0)] * 3, *[(0, 2.0**-20.5)] * 2]
ALLOWED += [(2.0**-10, 0), *[(2.0**-21, 0)] * 2]


def test_approximations(built):
    random = np.random.default_rng(3)
    a, b = random.uniform(-3.1, 3.1, 1000).astype(np.float32), random.uniform(0.01, 100, 1000).astype(np.float32)
    results = run(built, "approximations", a, b, b)
    wanted = expected("approximations", a.astype(np.float64), b.astype(np.float64), b)
    for i, (got, (name, want), allowed) in enumerate(zip(results.T, wanted, ALLOWED, strict=True)):
        np.testing.assert_allclose(got, want, *allowed, err_msg=name)
        others = [j for j in range(len(ALLOWED)) if {i, j} != {8, 9} and i != j]
        assert not any(np.allclose(results[:, j], got, *allowed) for j in others), name


# ----------------------------------------------------------------------------------------------------------------------
# 16-bit numbers, two in a word


def as_f16(word):
    return word.view(np.float16).astype(np.float64).reshape(-1, 2)


def as_f32(word):
    return word.view(np.float32)


def as_bf16(word):
    with np.errstate(invalid="ignore"):  # signalling NaN
        return (word.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(-1, 2)


def as_number(word):
    return low_word(word.astype(np.float64))


def on_pairs(function, decode, kind):
    return lambda *words: (decode, exact(NEAREST, function, kind)(*(decode(w).ravel() for w in words)).reshape(-1, 2))


def chosen(function, decode):
    return lambda *words: (decode, function(*(decode(w) for w in words)))


def low_word(values):
    return np.stack([values, np.zeros_like(values)], 1)


def floats_to(decode, kind):
    def convert(a, b):
        return decode, np.stack([exact(NEAREST, operator.pos, kind)(word.view(np.float32)) for word in (b, a)], 1)

    return convert


def with_relu(reference):
    def apply(*words):
        decode, values = reference(*words)
        return decode, np.where(np.isnan(values), values, np.maximum(values, 0))

    return apply


def half_flushed(x):
    return np.where(np.abs(x) < 2.0**-14, 0, x)


def finite(reference, most):
    def apply(*words):
        decode, values = reference(*words)
        return decode, np.clip(values, -most, most)

    return apply


def as_eights(dtype, most, relu):
    """Floats to numbers of 8 bits, and back to pairs of f16."""

    def convert(a, b):
        pairs = np.stack([word.view(np.float32) for word in (b, a)], 1)
        narrow = torch.from_numpy(np.clip(pairs, 0 if relu else -most, most)).to(dtype)
        return as_f16, narrow.double().numpy()

    return convert


CONVERT = "{ .reg .b16 h; .reg .f32 x, y; mov.b32 x, %1; mov.b32 y, %2; cvt.rn"
HALVES = {
    "add.f16x2": ("a, b", on_pairs(operator.add, as_f16, "f16")),
    "sub.rn.f16x2": ("a, b", on_pairs(operator.sub, as_f16, "f16")),
    "mul.f16x2": ("a, b", on_pairs(operator.mul, as_f16, "f16")),
    "fma.rn.f16x2": ("a, b, c", on_pairs(fused, as_f16, "f16")),
    "fma.rn.relu.f16x2": ("a, b, c", with_relu(on_pairs(fused, as_f16, "f16"))),
    "max.f16x2": ("a, b", chosen(lambda x, y: number(x, y, np.maximum), as_f16)),
    "min.NaN.f16x2": ("a, b", chosen(np.minimum, as_f16)),
    "neg.f16x2": ("a", chosen(np.negative, as_f16)),
    "abs.ftz.f16x2": ("a", chosen(lambda x: np.where(abs(x) < 2.0**-14, 0, abs(x)), as_f16)),
    "add.ftz.sat.f16x2": (
        "a, b", chosen(lambda x, y: unit(half_flushed(np.float16(half_flushed(x) + half_flushed(y)))), as_f16),
    ),
    "fma.rn.bf16x2": ("a, b, c", on_pairs(fused, as_bf16, "bf16")),
    "max.bf16x2": ("a, b", chosen(lambda x, y: number(x, y, np.maximum), as_bf16)),
    'asm("add.f16 %0, %1, %2;" : "=h"(*reinterpret_cast<uint16_t*>(d++)) : "h"(a1), "h"(b1));': (
        "a1, b1", on_pairs(operator.add, as_f16, "f16"),
    ),
    "{ .reg .pred p; setp.gt.f16 p, %1, %2; selp.u32 %0, 1, 0, p; }": (
        "a1, b1", lambda a, b: (as_number, low_word((as_f16(a) > as_f16(b))[:, 0].astype(np.float64))),
    ),
    CONVERT + ".f16x2.f32 %0, x, y; }": ("a, b", floats_to(as_f16, "f16")),
    CONVERT + ".relu.bf16x2.f32 %0, x, y; }": ("a, b", with_relu(floats_to(as_bf16, "bf16"))),
}  # fmt: skip

NARROWER = {
    CONVERT + ".satfinite.f16x2.f32 %0, x, y; }": ("a, b", finite(floats_to(as_f16, "f16"), 65504)),
    **{
        CONVERT + f".satfinite{relu}.{kind}x2.f32 h, x, y; cvt.rn.f16x2.{kind}x2 %0, h; }}": (
            "a, b", as_eights(getattr(torch, f"float8_{name}"), most, relu),
        )
        for kind, name, most in (("e4m3", "e4m3fn", 448), ("e5m2", "e5m2", 57344)) for relu in ("", ".relu")
    },
    "max.NaN.xorsign.abs.bf16x2": (
        "a, b", chosen(lambda x, y: np.maximum(abs(x), abs(y)) * np.copysign(1, x) * np.copysign(1, y), as_bf16),
    ),
    "{ .reg .f32 x, y; mov.b32 x, %1; mov.b32 y, %2; min.xorsign.abs.f32 %0, x, y; }": (
        "a, b", chosen(lambda x, y: number(abs(x), abs(y), np.minimum) * np.copysign(1, x) * np.copysign(1, y), as_f32),
    ),
    "{ .reg .f32 x; mov.b32 x, %1; cvt.rz.tf32.f32 %0, x; }": (
        "a", lambda a: (as_f32, exact(ZERO, operator.pos, "tf32")(as_f32(a))),
    ),
}  # fmt: skip

KERNELS = {
    "words": Kernel("uint32_t", "r", WORDS),
    "long_words": Kernel("uint64_t", "l", LONG_WORDS, PARTS),
    "floats": Kernel("float", "f", FLOATS),
    "doubles": Kernel("double", "d", DOUBLES),
    "float_pairs": Kernel("uint64_t", "l", FLOAT_PAIRS, minimum_arch=1000),
    "approximations": Kernel("float", "f", APPROXIMATIONS),
    "halves": Kernel("uint32_t", "r", HALVES, "const uint16_t a1 = uint16_t(a), b1 = uint16_t(b);", "h"),
    "narrower": Kernel("uint32_t", "r", NARROWER, minimum_arch=900),
}


HOPPER = kernel_xray.target == "simulator" or torch.cuda.get_device_capability() >= (9, 0)
OF_HOPPER = pytest.param("narrower", marks=pytest.mark.skipif(not HOPPER, reason="needs compute capability 9.0"))


@pytest.mark.parametrize("kernel", ["halves", OF_HOPPER])
def test_pairs_of_16_bits(built, kernel):
    random = np.random.default_rng(11)
    words = random.integers(0, 2**32, (3, 700), dtype=np.uint32)
    words[:, :300] = random.integers(0x3800, 0x4400, (3, 600), dtype=np.uint16).view(np.uint32)  # moderate numbers
    words[:, 300:340] = (
        random.choice([0, 0x8000, 0x7C00, 0xFC00, 0x7F80, 0x7FFF, 1, 0x3C00], (3, 80)).astype(np.uint16).view(np.uint32)
    )
    results = run(built, kernel, *words)
    parts = {"a1": words[0] & 0xFFFF, "b1": words[1] & 0xFFFF}
    for got, (name, (decode, want)) in zip(results.T, expected(kernel, *words, **parts), strict=True):
        with np.errstate(all="ignore"):
            values = decode(np.ascontiguousarray(got))
        wrong = np.argwhere(~same(values, want))
        assert not wrong.size, (name, [hex(w[wrong[0][0]]) for w in words], values[wrong[0][0]], want[wrong[0][0]])
        assert np.unique(want).size > 1, name
