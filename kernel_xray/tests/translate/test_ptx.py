"""Inline PTX: how the rewriter translates an asm statement, what it refuses, and what an X-ray sees of it."""

import re

import pytest
import torch
from simt_programs import CASES, load_cases

import kernel_xray
from kernel_xray import BuildError, UnsupportedError, load_inline, xray
from kernel_xray.translate.refusals import REFUSAL
from kernel_xray.translate.rewriter import rewrite

HEAD = '#include "simt/ptx.h"\n#line 1\n'


def calls(source):
    """The functions that a translation calls, with their template arguments and arguments, without the namespace."""
    text = rewrite(source)
    assert text.startswith(HEAD) and "asm(" not in text
    return re.findall(r"(op_\w+<[^;]*\));", text.replace("::simt::ptx::", "").replace("static_cast<long long>", ""))


# ----------------------------------------------------------------------------------------------------------------------
# Statements


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ('asm("add.u32 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));', "op_add<t_u32, 0>(simt_0, simt_1, simt_2)"),
        ('__asm__ __volatile__ ("add.rz.ftz.f32 %0, %0, 0f3F800000;" : "+f"(x));',
         "op_add<t_f32, kRz | kFtz>(simt_0, simt_0, ::simt::bit_cast<float>(0x3F800000u))"),
        ('asm("mov.u32 %0, %%tid.x;" : "=r"(x));', "op_mov<t_u32, 0>(simt_0, special_tid_x())"),
        ('asm("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2+8];" : "=r"(x), "=r"(y) : "l"(p));',
         "op_ld<t_global, t_u32, 0>(op_address(simt_2, (8ll)), simt_0, simt_1)"),
        ('asm("st.global.release.gpu.b32 [%0], -1;" :: "l"(p) : "memory");',
         "op_st<t_global, t_b32, kRelease>(op_address(simt_0), (-1ll))"),
        ('asm("cp.async.ca.shared::cta.global [%0], [%1], %2, %3;" :: "r"(a), "l"(b), "n"(8), "r"(n));',
         "op_cp_async<0>(op_address(simt_0), op_address(simt_1), simt_2, simt_3)"),
        ('asm("atom.global.add.f32 _, [%0], %1;" :: "l"(p), "f"(x));',
         "op_atom_add<t_global, t_f32, 0>(op_address(simt_0), Sink(), simt_1)"),
        ('asm("ldmatrix .sync.aligned.x4.m8n8 .shared.b16.trans {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), '
         '"=r"(d) : "r"(p));', "op_ldmatrix_trans<t_shared, 0>(op_address(simt_4), simt_0, simt_1, simt_2, simt_3)"),
        ('asm("mov.b64 {%0, %1}, %2;" : "=r"(a), "=r"(b) : "l"(c));', "op_unpack<t_b64, 0>(simt_2, simt_0, simt_1)"),
        ('asm("mov.b64 %0, {%1, %2};" : "=l"(c) : "r"(a), "r"(b));', "op_pack<t_b64, 0>(simt_0, simt_1, simt_2)"),
        ('asm(R"(\n add.u32 %0, %1, (1 << 4) + 0x2U; // a comment\n)" : "=r"(c) : "r"(a));',
         "op_add<t_u32, 0>(simt_0, simt_1, ((1ll << 4ll) + 0x2ll))"),
        ('asm("{ .reg .b32 t<2>; not.b32 t1, %1; mov.b32 %0, t1; }" : "=r"(c) : "r"(a));',
         "op_not<t_b32, 0>(simt_t1_, simt_1)"),
    ],
)  # fmt: skip
def test_translations(source, call):
    assert call in calls(f"void f() {{ {source} }}")


def test_predicates_and_labels():
    text = rewrite(
        'asm("{ .reg .pred %%p, q; setp.lt.and.s32 %%p|q, %0, 3, !q; @!%%p bra.uni L%=; @q trap; L%=: }" :: "r"(n));'
    )
    assert "{ bool simt_Sp_, simt_q_;" in text
    assert "op_setp_and<::simt::ptx::t_lt, ::simt::ptx::t_s32, 0>(simt_Sp_, simt_q_, simt_0, " in text
    assert "), !simt_q_); if (!simt_Sp_) { goto simt_L0_label; } if (simt_q_) { ::simt::ptx::op_trap<0>(); }" in text
    assert "__label__ simt_L0_label;" in text and "simt_L0_label:;" in text


def test_lines_stay_in_place_and_macros_stay_macros():
    source = r"""#define LOAD(d, p) \
  asm volatile("ld.global.u32 %0, [%1];" \
    : "=r"(d) \
    : "l"(p))
int one;
void f() {
  asm("add.u32 %0,"
      "%1, 1;"
      : "=r"(a)  // a comment
      : "r"(b[i, j]));
}  // last
"""
    text = rewrite(source)
    assert text.startswith(HEAD) and text.count('#include "simt/ptx.h"') == 1
    lines = text.removeprefix(HEAD).split("\n")
    wanted = source.split("\n")
    assert len(lines) == len(wanted)
    assert all(line.endswith("\\") for line in lines[:3]) and lines[4] == "int one;" and lines[-2] == "}  // last"
    assert "op_ld<" in lines[1] and "= (d);" in lines[1] and "op_in<'r'>(b [ i , j ])" in lines[6]


@pytest.mark.parametrize(
    "source", ['asm volatile("" ::: "memory");', 'asm("");', '__asm__ volatile ("\\n" : : : "memory");']
)
def test_compiler_barriers_stay(source):
    assert rewrite(source) == source


REFUSED = {
    "wgmma.mma_async;": 'asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0}, %1, %2;" :: "f"(x));',
    "cp.async.bulk.tensor.2d.shared::cta": 'asm("cp.async.bulk.tensor.2d.shared::cta.global [%0, {%1}];" :: "r"(x));',
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32": (
        'asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0}, {%1}, {%2}, {%3};" :: "f"(x));'
    ),
    "tcgen05.alloc": 'asm("tcgen05.alloc.sync.aligned [%0];" :: "r"(x));',
    "cvt.rn.satfinite.e4m3x2.f32": 'asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(x), "f"(y));',
    "bar.arrive": 'asm("bar.arrive 1, 64;");',
    "add.u32 with 2 operands": 'asm("add.u32 %0, %1;" : "=r"(x) : "r"(y));',
    "`SHAPE` is part of it": 'asm("mma.sync.aligned." SHAPE ".row.col %0;" : "=r"(x));',
    "`__VA_ARGS__` is part of it": "asm volatile(__VA_ARGS__);",
    "`#` is part of it": 'asm("bar.sync " #id ";");',
    "(`OPERANDS`)": 'asm("add.u32 %0, %1, 1;" : OPERANDS(x) : "r"(y));',
    "the name `variable`": 'asm("mov.u32 %0, variable;" : "=r"(x));',
    "constraint 'a'": 'asm volatile("rdtsc;" : "=a"(low), "=d"(high));',
    "constraint '0'": 'asm("add.u32 %0, %0, %1;" : "=r"(x) : "r"(a), "0"(b));',
    "`nop`, has no semicolon": 'asm("nop");',
    "registers of type .v2": 'asm("{ .reg .v2 .u32 t; }");',
    "a branch of inline PTX to `out`": 'asm("bra out;");',
    "the inline PTX `.shared .b32 x`": 'asm(".shared .b32 x;");',
    "not a statement": 'asm goto("bra %l0;" :::: there);',
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(reason):
    text = rewrite(REFUSED[reason])
    assert REFUSED[reason] in text  # untouched, behind the refusal
    (sentence,) = re.findall(rf'_Pragma\("GCC error \\"{REFUSAL}(.*?)\\""\)', text)
    assert reason in f"{sentence};" and sentence.endswith("(#ifdef __SIMT__)")
    assert "simt/ptx.h" not in text


@pytest.mark.skipif(kernel_xray.target == "gpu", reason="ptxas has words of its own")
def test_errors_name_the_line_and_the_instruction():
    source = '__global__ void k(int* p) {\n#if 0\n  asm("wgmma.fence;");\n#endif\n  asm("tensormap.replace [%0];"); }'
    with pytest.raises(UnsupportedError, match=r":5: .*the inline PTX instruction tensormap.replace;"):
        load_inline("ptx_refused", "", source, no_implicit_headers=True)


def test_registers_of_another_width_are_refused_as_by_ptxas():
    wrong = {
        'asm("add.u32 %0, %1, 1;" : "=r"(p[0]) : "r"(x));': "the size of an asm operand differs",
        'asm("add.u64 %0, %1, 1;" : "=l"(x) : "r"(p[0]));': "the width of a register of inline PTX differs",
        'asm("ld.global.u32 %0, [%1];" : "=r"(p[0]) : "r"(p[1]));': "address of inline PTX has 64 bits",
        'asm("add.f32 %0, %0, 1;" : "+f"(f));': "needs a point",
    }
    source = "__global__ void k(int* p, long long x, float f) {\n" + "\n".join(wrong) + "\n}\n"
    with pytest.raises(BuildError) as caught:
        load_inline("ptx_wrong", "", source, no_implicit_headers=True, traced=True)  # the simulator everywhere
    for line, message in enumerate(wrong.values(), 2):
        assert message in caught.value.output
        assert re.search(rf":{line}:\d+:\s+(required from|note: in instantiation)", caught.value.output), line


# ----------------------------------------------------------------------------------------------------------------------
# X-rays


def floats(n):
    return torch.arange(float(n))


def test_barriers_and_units_order_what_threads_access():
    memory = load_cases(CASES / "ptx_memory.cu", "ptx_memory_traced", traced=True)
    values = torch.arange(192, dtype=torch.int32)
    for copied in (False, True):
        out = torch.zeros_like(values)
        assert not xray(memory.mbarriers, [values, out], [copied]).faults
        assert out.view(6, 32).equal(values.view(6, 32).flip(1))
    out = torch.zeros(128)
    assert not xray(memory.bulk, [floats(128), out], [True]).faults and out[4] == 5
    (fault,) = xray(memory.bulk, [floats(128), out], [False]).faults
    assert fault.kind == "race" and "no fence makes what threads write known to units" in fault.message
