"""Inline PTX: how the rewriter translates an asm statement, what it refuses, and what an X-ray sees of it."""

import re
from pathlib import Path

import pytest
import torch
from simt_programs import CASES, line_marked, load_cases
from translations import last_line

import kernel_xray
from kernel_xray import UnsupportedError, load_inline, xray
from kernel_xray.translate.ptx_macros import Macros
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
        ('asm("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, 8}], [%1];" :: "l"(m), "r"(a), "r"(x));',
         "op_tile_store<t_2d, 0>(op_address(simt_0), op_address(simt_1), simt_2, (8ll))"),
        ('asm("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster'
         '.L2::cache_hint [%0], [%1, {%2}], [%3], %4, %5;" :: "r"(a), "l"(m), "r"(x), "r"(b), "h"(s), "l"(c));',
         "op_tiles<t_1d, t_shared_cluster, 0>(op_address(simt_0), op_address(simt_1), op_address(simt_3), simt_2, "
         "simt_4)"),
        ('asm("cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2}], '
         '[%3];" :: "r"(a), "l"(m), "r"(x), "r"(b));',
         "op_tile_load<t_1d, t_shared_cta, kPair>(op_address(simt_0), op_address(simt_1), op_address(simt_3), simt_2)"),
        ('asm("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(m) : "memory");',
         "op_nothing<0>(op_address(simt_0), (128ll))"),
        ('asm("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" :: "r"(to), '
         '"l"(x), "l"(y), "r"(b));',
         "op_st_async<t_shared_cluster, t_b64, 0>(op_address(simt_0), op_address(simt_3), simt_1, simt_2)"),
        ('asm("wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e4m3 {%0, %1, %2, %3}, %4, %5, 1, 1, -1;" : "+f"(d[0]), '
         '"+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));',
         "op_wgmma<Shape<64, 8, 32>, t_f32, t_e5m2, t_e4m3, 0>(simt_0, simt_1, simt_2, simt_3, simt_4, simt_5, (1ll), "
         "(1ll), (-1ll))"),
        ('asm("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, {%5, %6}, '
         'p; }" :: "r"(d), "l"(a), "l"(b), "r"(i), "r"(s), "r"(m), "r"(n));',
         "op_tcgen05_mma<t_kind_f16, kPair>(op_address(simt_0), simt_1, simt_2, simt_3, simt_5, simt_6, simt_p_)"),
        ('asm("tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(t));',
         "op_tcgen05_ld<t_16x256b, kPack>(op_address(simt_2), simt_0, simt_1)"),
        ('asm("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" '
         ':: "r"(b), "h"(m));', "op_tcgen05_commit_multicast<t_shared_cluster, 0>(op_address(simt_0), simt_1)"),
        ('asm("mov.b64 {%0, %1}, %2;" : "=r"(a), "=r"(b) : "l"(c));', "op_unpack<t_b64, 0>(simt_2, simt_0, simt_1)"),
        ('asm("mov.b64 %0, {%1, %2};" : "=l"(c) : "r"(a), "r"(b));', "op_pack<t_b64, 0>(simt_0, simt_1, simt_2)"),
        ('asm(R"(\n add.u32 %0, %1, (1 << 4) + 0x2U; // a comment\n)" : "=r"(c) : "r"(a));',
         "op_add<t_u32, 0>(simt_0, simt_1, ((1ll << 4ll) + 0x2ll))"),
        ('asm("{ .reg.b32 t<2>; not.b32 t1, %1; mov.b32 %0, t1; }" : "=r"(c) : "r"(a));',
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


MACROS = """
#if defined(HAS_IT)
#define UNIT(...) asm volatile(__VA_ARGS__)
#else
#define UNIT(...) __trap()
#endif
#define NAMES "%0, %1"
#define TWO(i) "=r"(d[i]), "=r"(d[i + 1])
#define LOAD(type, p) \\
  UNIT("ld.global.v2." #type " {" NAMES "}, [%2];" : TWO(0) : "l"(p))
#define SYNC(id) asm volatile("bar.sync " #id ";")
"""


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ('asm("mov.b64 {" NAMES "}, %2;" : TWO(4) : "l"(x));', "op_unpack<t_b64, 0>(simt_2, simt_0, simt_1)"),
        ('UNIT("membar.gl;" ::: "memory");', "op_fence<0>()"),
        ("LOAD(u32, q + 1);", "op_ld<t_global, t_u32, 0>(op_address(simt_2), simt_0, simt_1)"),
        ("SYNC(2);", "op_bar_sync<0>((2ll))"),
        ("#define IF(q) if (q) LOAD(u32, q)", "op_ld<t_global, t_u32, 0>(op_address(simt_2), simt_0, simt_1)"),
    ],
)
def test_macros_around_asm_are_expanded(statement, call):
    source = f"{MACROS}void f() {{\n{statement}\n}}\n"
    text = rewrite(source)
    assert call in calls(source) and "GCC error" not in text
    assert "#define UNIT(...) asm volatile(__VA_ARGS__)" in text  # unused from here on
    assert text.removeprefix(HEAD).count("\n") == source.count("\n")


def test_macros_of_other_files_of_the_program_are_known():
    text = rewrite('void f() { UNIT("bar.sync 0;"); }', macros=Macros([MACROS]))
    assert "op_bar_sync<0>" in text


@pytest.mark.parametrize(
    ("definitions", "statement", "reason"),
    [
        ('#define N "1"\n#undef N\n#define N "2"', 'asm("bar.sync " N ";");', "`N` is part of it"),
        ("#define JOINED(a, b) a##b", 'asm("bar.sync " JOINED("1", ) ";");', "`JOINED` is part of it"),
        ("#define ONE(x) TWO(x)\n#define TWO(x) ONE(x)", 'asm("bar.sync 0;" : ONE(x));', "(`ONE`)"),
        ("#define UNIT(...) asm(__VA_ARGS__)", 'UNIT("tcgen05.shift.down [%0];" :: "r"(x));', "tcgen05.shift"),
    ],
)
def test_macros_that_do_not_help(definitions, statement, reason):
    text = rewrite(f"{definitions}\nvoid f() {{ {statement} }}\n")
    (sentence,) = re.findall(rf'::simt::not_translated\("{REFUSAL}(.*?)", __FILE__, __LINE__\);', text)
    assert reason in sentence and "GCC error" not in text


@pytest.mark.parametrize(
    "source", ['asm volatile("" ::: "memory");', 'asm("");', '__asm__ volatile ("\\n" : : : "memory");']
)
def test_compiler_barriers_stay(source):
    assert rewrite(source) == source


REFUSED = {
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc;": (
        'asm("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0}, %1, %2, p;" :: "f"(x));'
    ),
    "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16;": (
        'asm("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%0}, %1, %2, p, 1, 1, 0, 0;" :: "f"(x));'
    ),
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16;": (
        'asm("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0}, %1, %2, %3, 0, p, 1, 1;" :: "f"(x));'
    ),
    "m64n8k16.f32.bf16.bf16 with 6 operands": (
        'asm("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0}, %1, %2, p, 1, 1;" :: "f"(x));'
    ),
    "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes;": (
        'asm("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes '
        '[%0], [%1, {%3, %3, %3, %3}], [%2], {%4, %4};" :: "r"(x));'
    ),
    "cp.reduce.async.bulk.tensor.2d.global": (
        'asm("cp.reduce.async.bulk.tensor.2d.global.shared::cta.mul.bulk_group [%0, {%1, %1}], [%2];" :: "r"(x));'
    ),
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e2m3.f32": (
        'asm("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e2m3.f32 {%0}, {%1}, {%2}, {%3};" :: "f"(x));'
    ),
    "tcgen05.shift.cta_group::1.down": 'asm("tcgen05.shift.cta_group::1.down [%0];" :: "r"(x));',
    "tcgen05.mma.ws.cta_group::1.kind::f16": (
        'asm("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %1, %0, p;" :: "r"(x), "l"(y));'
    ),
    "cvt.rn.satfinite.e2m3x2.f32": 'asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(x), "f"(y));',
    "mbarrier.pending_count": 'asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(x) : "l"(state));',
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


BRANCHES = """\
void f(int x) {
  asm volatile("bar.sync 0;"
#if A
               "membar.gl;"
#ifdef __CUDACC__
               "nop;"
#endif
#elif B
               "exit;"
#endif
               ::: "memory"); g(x);
#if A
  h();
#endif
}"""


def test_the_preprocessor_chooses_among_branches_in_a_statement():
    text = rewrite(BRANCHES).removeprefix(HEAD)
    kept = [re.sub(r".*not_translated.*", "nop", line) for line in text.split("\n")]
    kept = [re.sub(r"__extension__.*", " ".join(re.findall(r"op_(\w+)", line)), line) for line in kept if line.strip()]
    directives = (
        "# if A,# ifdef __SIMTCC__,nop,# else,bar_sync fence,#endif,# elif B,bar_sync exit,# else,bar_sync,#endif"
    )
    begin = kept.index("# if A")
    assert [line for line in kept[begin:-6] if line != "#line 2"] == directives.split(",")
    assert kept[-5:] == ["; g(x);", "#if A", "  h();", "#endif", "}"]
    assert last_line(text) == last_line(BRANCHES)


def test_a_statement_that_ends_in_a_branch_is_refused():
    text = rewrite('void f() {\n  asm("bar.sync 0;"\n#if A\n);\n#else\n"exit;");\n#endif\n}')
    assert f'GCC error \\"{REFUSAL}inline PTX that ends in a branch of an #if' in text


@pytest.mark.skipif(kernel_xray.target == "gpu", reason="ptxas refuses it")
def test_what_is_not_translated_is_refused_where_it_is_executed():
    source = Path(__file__).with_name("not_translated.cu")

    def run(*arguments):
        return kernel_xray.program(source, *arguments, traced=True)

    assert run().stdout == "7"
    refused = "{}: not supported by the simulator: the inline PTX instruction %s; keep it behind a function"
    for given, kind, mark, message in (
        ("x", "unsupported", "replace", refused % "tensormap.replace"),
        ("xx", "unsupported", "unknown", refused % "wgmma.fence.unknown"),
        ("xxx", "trap", "break", "no debugger is attached"),
    ):
        ended, line = run(*given), line_marked(source, mark)
        assert (ended.status, ended.stdout, ended.fault.kind) == (1, str(len(given)), kind)
        words = message.format(f"{source.name}:{line}")
        assert words in str(ended.fault) and words in ended.stderr
        found = [(fault.kind, Path(fault.file).name, fault.line) for fault in ended.report.faults]
        assert found == [(kind, source.name, line)]


def test_a_refusal_names_its_line_and_registers_of_another_width_are_refused_as_by_ptxas():
    wrong = {
        'asm("add.u32 %0, %1, 1;" : "=r"(p[0]) : "r"(x));': "the size of an asm operand differs",
        'asm("add.u64 %0, %1, 1;" : "=l"(x) : "r"(p[0]));': "the width of a register of inline PTX differs",
        'asm("ld.global.u32 %0, [%1];" : "=r"(p[0]) : "r"(p[1]));': "address of inline PTX has 64 bits",
        'asm("add.f32 %0, %0, 1;" : "+f"(f));': "needs a point",
    }
    source = "__global__ void k(int* p, long long x, float f) {\n" + "\n".join(wrong) + "\n}\n"
    source += '#if 0\n  asm("wgmma.fence;");\n#endif\nasm("tensormap.replace [%0];");\n'
    with pytest.raises(UnsupportedError, match=r":10: .*the inline PTX instruction tensormap.replace;") as caught:
        load_inline("ptx_wrong", "", source, no_implicit_headers=True, traced=True)  # the simulator everywhere
    for line, message in enumerate(wrong.values(), 2):
        assert message in caught.value.output
        assert re.search(rf":{line}:\d+:\s+(required from|note: in instantiation)", caught.value.output), line


def test_results_come_in_eights():
    """Of variables, which are named again; what is another expression or has another constraint comes by itself."""
    operands = [*(f'"+f"(d{i})' for i in range(9)), *(f'"=r"(e[{i}])' for i in range(8))]
    registers = ", ".join(f"%{i}" for i in range(16))
    source = (
        f'asm("tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{registers}}}, [%17];" : {", ".join(operands)} : "r"(from));'
    )
    code = rewrite(source).replace("::simt::ptx::", "")
    pairs = ", ".join(f"d{i}, simt_{i}" for i in range(8))
    assert f"op_in_8<'f'>({pairs});" in code and f"op_out_8<'f'>({pairs});" in code
    assert (
        "auto& simt_o8 = (d8); auto simt_8 = op_in<'f'>(simt_o8);" in code and "op_out<'f'>(simt_o8, simt_8);" in code
    )
    pairs = ", ".join(f"simt_o{i}, simt_{i}" for i in range(9, 17))
    assert "auto& simt_o9 = (e [ 0 ]);" in code
    assert f"op_out_8<'r'>({pairs});" in code and "op_in_8<'r'>" not in code
    macro = "#define d0 values[next++]\n" + source
    assert "auto& simt_o0 = (d0);" in rewrite(macro)


# ----------------------------------------------------------------------------------------------------------------------
# X-rays


def floats(n):
    return torch.arange(float(n))


@pytest.mark.slow  # a build; test_pipeline.py has both orders of mbarriers and of what threads write for units
def test_barriers_and_units_order_what_threads_access():
    memory = load_cases(CASES / "ptx_memory.cu", "ptx_memory_traced", traced=True)
    values = torch.arange(192, dtype=torch.int32)
    for copied in (False, True):
        out = torch.zeros_like(values)
        assert not xray(memory.mbarriers, [values, out], [copied]).faults
        assert out.view(6, 32).equal(values.view(6, 32).flip(1))
    for name, *tensors in (
        ("votes", torch.zeros(192, 4, dtype=torch.int32)),
        ("vector_atomics", *torch.zeros(2, 8), torch.zeros(64, 6), torch.zeros(64, 2, dtype=torch.int32)),
    ):
        assert not xray(getattr(memory, name), tensors, []).faults
        if name == "votes":
            assert [(tensors[0] & 0xFFFF)[i].tolist() for i in (0, 191)] == [[50, 64, 64, 64], [0, 6, 26, 46]]
    refused = {(each.kind, each.message) for each in xray(memory.wide, [floats(264), torch.zeros(256)], [0]).faults}
    assert refused == {("unsupported", f"{REFUSAL}an X-ray of an access of 32 bytes by inline PTX")}
    assert not xray(memory.sent, [torch.zeros(16, dtype=torch.int32)], []).faults  # 4 bytes at the end of an array
    out = torch.zeros(128)
    assert not xray(memory.bulk, [floats(128), out], [True]).faults and out[4] == 5
    (fault,) = xray(memory.bulk, [floats(128), out], [False]).faults
    assert fault.kind == "race" and "no fence makes what threads write known to units" in fault.message
