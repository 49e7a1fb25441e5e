"""Machine code read from listings of our own kernels, and the choice of what nvcc did: no tool is needed here."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_xray.machine import toolchain
from kernel_xray.report import corrections, machine_code, symbols
from kernel_xray.report.corrections import Site
from kernel_xray.report.machine_code import Instruction

# Two kernels, shortened output of nvdisasm -gi of CUDA 13: a loop with a merged load, and a load under a condition.
LISTING = """
//--------------------- .text._Z3sumPKfPfi --------------------------
	.section	.text._Z3sumPKfPfi,"ax",@progbits
_Z3sumPKfPfi:
.text._Z3sumPKfPfi:
	//## File "/k/sum.h", line 7 inlined at "/k/sum.cu", line 20
	//## File "/k/sum.cu", line 20
        /*0000*/                   LDG.E.CONSTANT R3, desc[UR4][R2.64] ;
	//## File "/k/sum.cu", line 21
.L_x_1:
        /*0010*/                   LDS.128 R4, [R0] ;
        /*0020*/                   LDS R8, [R0+0x40] ;
        /*0030*/              @!PT LDS RZ, [RZ] ;
        /*0040*/                   LDGSTS.E.BYPASS.LTC128B.128 [R0], desc[UR4][R2.64] ;
        /*0050*/               @P0 BRA `(.L_x_1) ;
        /*0060*/                   STG.E.U16 desc[UR4][R2.64], R8 ;
        /*0070*/                   EXIT ;
.L_x_2:
        /*0080*/                   BRA `(.L_x_2);

//--------------------- .text._Z7guardedPKfPfi --------------------------
.text._Z7guardedPKfPfi:
	//## File "/k/sum.cu", line 30
        /*0000*/                   LDG.E R3, desc[UR4][R2.64] ;
        /*0010*/               @P0 BRA `(.L_x_3) ;
        /*0020*/                   LDG.E.64 R4, desc[UR4][R2.64] ;
        /*0030*/                   STG.E desc[UR4][R2.64], R8 ;
.L_x_3:
        /*0040*/                   EXIT ;
"""

# A load of line 4 behind the jump of line 5, for threads that do not enter its loop. That is two loops here, each with
# a jump over it; both store.
UNDER_A_LOOP = """
//--------------------- .text.scale --------------------------
.text.scale:
	//## File "/k/scale.cu", line 3
        /*0000*/               @P0 EXIT ;
	//## File "/k/scale.cu", line 5
        /*0010*/               @P1 EXIT ;
	//## File "/k/scale.cu", line 4
        /*0020*/                   LDG.E R3, desc[UR4][R2.64] ;
	//## File "/k/scale.cu", line 5
        /*0030*/               @P2 BRA `(.L_x_2) ;
.L_x_1:
	//## File "/k/scale.cu", line 6
        /*0040*/                   STG.E desc[UR4][R2.64], R8 ;
        /*0050*/               @P3 BRA `(.L_x_1) ;
.L_x_2:
        /*0060*/               @P4 EXIT ;
.L_x_3:
        /*0070*/                   STG.E desc[UR4][R2.64], R8 ;
        /*0080*/               @P5 BRA `(.L_x_3) ;
        /*0090*/                   EXIT ;
"""


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("STG", "STG", True),
        ("line 5\n        /*0010*/", "line 3\n        /*0010*/", False),  # the source has both conditions first
        ("    STG", "@P6 STG", False),  # not at each turn
        (
            "        /*0030*/",
            "        /*0028*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;\n        /*0030*/",
            False,
        ),
    ],
)
def test_a_load_behind_the_jump_of_a_later_line_is_its_loops(old, new, moved):
    assert old in UNDER_A_LOOP
    load, *_ = machine_code.parse(UNDER_A_LOOP.replace(old, new))["scale"].accesses
    assert load.guarded == moved


def test_what_is_issued_for_accesses_is_looked_for_in_the_whole_kernel():
    """Of four loads of an unrolled loop, nvcc notes three for one line of the source and one for the other."""
    theirs = [Instruction("LDG.E", 4, 1, False, (("k.cu", line),)) for line in (1, 1, 1, 2)]
    loads = [counts(4, 64, pc, space="global") for pc in (1, 2)]
    launch = {"kernel": "k", "file": "k.cu", "block": (32, 1, 1), "traced_blocks": 1}
    found = {"launches": [launch], "accesses": loads, "what_if": [], "links": []}
    stacks = {pc: [("_Z1kv", "k.cu", pc)] for pc in (1, 2)}
    corrected = corrections.correct(found, stacks, lambda _: {"_Z1kv": theirs})
    assert [access["made_by"] for access in corrected] == [theirs, theirs]
    assert {access["instance"] for access in corrected} == {"_Z1kv"}
    wrong = [replace(each, size=8) for each in theirs]
    assert not any("made_by" in access for access in corrections.correct(found, stacks, lambda _: {"_Z1kv": wrong}))


def test_a_manner_in_which_an_instruction_is_executed_half_a_time_is_not_chosen():
    """Of two loads, one is of the same word four times in the source: 8 in a turn of the loop, or 5."""
    theirs = code(*["LDS"] * 40, loop=1)
    first, again = site(1, 384, once=[counts(4, 96)]), site(2, 384)
    assert corrections.chosen([first, again], theirs, warps=8) == "once"
    apart = [*theirs[:20], *(replace(each, block=1) for each in theirs[20:])]  # executed by other warps
    assert corrections.chosen([first, again], apart, warps=8) == ""
    assert corrections.chosen([first, again], code(*["LDS"] * 64, loop=1), warps=8) == ""


@pytest.mark.parametrize(("stores", "loads"), [((2,), 32), ((1,), 64), ((3,), 64), ((2, 4), 64)])
def test_of_two_manners_counts_the_one_in_which_a_loop_has_one_number_of_turns(stores, loads):
    """A warp stores 64 times on each line and loads 64 times, half of that if it loads nothing twice."""
    lines = [("LDS", 0), *(("STS", line) for line, number in enumerate(stores, 1) for _ in range(number))]
    theirs = [Instruction(opcode, 4, 1, False, (("k.cu", line),)) for opcode, line in lines]
    load, *written = [counts(4, 64, line) | {"kind": "store" if line else "load"} for line in range(len(stores) + 1)]
    what_if = [{"manner": "once", "counts": counts(4, 32, 0)}, *({"manner": "once", "counts": s} for s in written)]
    launch = {"kernel": "k", "file": "k.cu", "block": (32, 1, 1), "traced_blocks": 1}
    found = {"launches": [launch], "accesses": [load, *written], "what_if": what_if, "links": []}
    stacks = {line: [("_Z1kv", "k.cu", line)] for line in range(len(stores) + 1)}
    found = corrections.correct(found, stacks, lambda _: {"_Z1kv": theirs})
    assert [access["requests"] for access in found if access["kind"] == "load"] == [loads]


def test_a_listing_gives_width_loop_and_lines_of_each_access():
    found = machine_code.parse(LISTING)["_Z3sumPKfPfi"].accesses
    assert [(i.opcode, i.size, i.loop) for i in found] == [
        ("LDG.E.CONSTANT", 4, 0),
        ("LDS.128", 16, 1),
        ("LDS", 4, 1),
        ("LDGSTS.E.BYPASS.LTC128B.128", 16, 1),  # and not the LDS that no thread executes
        ("STG.E.U16", 2, 0),
    ]
    assert found[0].stack == (("/k/sum.h", 7), ("/k/sum.cu", 20))
    assert found[1].stack == found[3].stack == (("/k/sum.cu", 21),)


def test_a_copy_is_a_load_of_global_and_a_store_to_shared_memory():
    copy = machine_code.parse(LISTING)["_Z3sumPKfPfi"].accesses[3]
    assert copy.does("global", "load") and copy.does("shared", "store")
    assert not copy.does("global", "store") and not copy.does("shared", "load")


def test_a_load_under_the_condition_of_the_store_that_follows():
    loads = [i for i in machine_code.parse(LISTING)["_Z7guardedPKfPfi"].accesses if i.does("global", "load")]
    assert [i.guarded for i in loads] == [False, True]


def counts(size: int, requests: int, pc: int = 1, **more) -> dict:
    zeros = dict.fromkeys(("sectors", "ideal_sectors", "ideal_wavefronts", "received"), 0)
    access = {"kernel": "k", "pc": pc, "kind": "load", "space": "shared", "size": size, "requests": requests}
    return zeros | access | {"lanes": 32 * requests, "wavefronts": requests * max(1, size // 4), "picture": []} | more


def code(*opcodes: str, loop: int = 0, guarded: bool = False) -> list[Instruction]:
    return [Instruction(o, machine_code._size(o), loop, guarded, (("k.cu", 1),)) for o in opcodes]


def site(pc: int = 1, requests: int = 64, **manners: list[dict]) -> Site:
    named = {name.replace("_", " "): found for name, found in manners.items()}
    unchanged = {name: [counts(4, requests, pc)] for name in (*corrections.MERGED, *corrections.FEWER)}
    return Site(counts(4, requests, pc), "k", [("k", "k.cu", 1)], frozenset({0}), unchanged | named)


def merging(pc: int = 1) -> Site:
    """A site whose 64 requests of 4 bytes make 32 of 8, or 16 of 16 bytes."""
    wide, wider = [counts(8, 32, pc)], [counts(16, 16, pc)]
    return site(pc, in_8=wide, in_16=wider, once_in_8=wide, once_in_16=wider)


@pytest.mark.parametrize(
    ("theirs", "manner"),
    [
        (code(*["LDS"] * 8, loop=1), ""),
        (code(*["LDS.64"] * 4, loop=1), "in 8"),
        (code(*["LDS.128"] * 2, loop=1), "in 16"),
        (code("LDS.64", "LDS.128", loop=1), None),  # proportions that no manner gives
        (code("LDS.U16", loop=1), None),
        ([], None),
        (code(*["LDS.128"] * 2), None),  # outside of a loop, one warp makes 2 requests with them, not 16
    ],
)
def test_the_widths_of_the_machine_code_choose_what_is_counted(theirs, manner):
    assert corrections.chosen([merging()], theirs, warps=1) == manner


def test_of_two_sites_on_one_line_only_one_is_merged():
    """32 LDS and 8 LDS.128 for two accesses of a loop of 32: proportions tell that one of them was merged by 4."""
    both = [merging(1), site(2)]
    assert corrections.chosen(both, code(*["LDS"] * 32, *["LDS.128"] * 8, loop=1), 1) == "in 16"
    assert corrections.chosen(both, code(*["LDS"] * 32, *["LDS.128"] * 9, loop=1), 1) is None
    result = corrections.corrected_counts(both, code(*["LDS"] * 32, *["LDS.128"] * 8, loop=1), 1)
    assert [(r["size"], r["requests"], r["nvcc"]) for r in result] == [
        (16, 16, "4 loads of 4 B became 1 of 16 B"),
        (4, 64, ""),
    ]


@pytest.mark.parametrize(
    ("theirs", "manner"),
    [
        (code(*["LDS"] * 4, loop=1) + code("LDS", loop=2), "in steps of 4"),
        (code(*["LDS"] * 2, loop=1) + code("LDS"), "in steps of 2"),
        (code(*["LDS"] * 2, loop=1) + code("LDS", loop=2), ""),
        (code(*["LDS"] * 16, loop=1) + code(*["LDS"] * 12) + code("LDS", loop=2), "in steps of 16"),
        (code("LDS", loop=1), ""),
        (code(*["LDS"] * 5, loop=1), ""),  # a loop of 5, and none for what is left
        (code(*["LDS"] * 16, loop=1) + code("LDS", loop=2), ""),
    ],
)
def test_an_unrolled_loop_is_known_by_the_loop_for_what_is_left(theirs, manner):
    assert corrections.chosen([site()], theirs, warps=1) == manner
    if len(theirs) > 1:
        assert corrections.chosen([site(), site(2)], theirs, warps=1) == ""  # whose the instructions are is not known
    twice = [*theirs, *(replace(i, loop=i.loop and i.loop + 2) for i in theirs)]  # two loops of one access, or of two
    assert corrections.chosen([site()], twice, warps=1) == corrections.chosen([site(), site(2)], twice, 1) == manner


def test_an_unrolled_loop_says_so_where_it_costs_requests():
    more = site(in_steps_of_4=[counts(4, 70)])
    (result,) = corrections.corrected_counts([more], code(*["LDS"] * 4, loop=1) + code("LDS", loop=2), 1)
    assert result["requests"] == 70 and result["nvcc"].startswith("nvcc unrolled the loop by 4;")


def test_what_cannot_be_corrected_keeps_its_counts_and_is_marked():
    (result,) = corrections.corrected_counts([merging()], code("LDS.64", "LDS.128"), 1)
    assert (result["size"], result["requests"]) == (4, 64)
    assert result["nvcc"] == "not corrected: the machine code has 1 LDS.128, 1 LDS.64 for this"


def test_a_repeated_load_is_made_once_only_where_the_machine_code_has_fewer():
    again = site(2, 4, once=[])
    first = site(1, 4)
    assert corrections.chosen([first, again], code("LDS", "LDS"), warps=4) == ""
    assert corrections.chosen([first, again], code("LDS"), warps=4) == "once"


def test_copies_write_shared_memory_without_a_store():
    stores = [Site(counts(16, 4, kind="store"), "k", [], frozenset({0}))]
    (copied,) = corrections.corrected_counts(stores, code("LDGSTS.E.128"), 4)
    assert (copied["requests"], copied["wavefronts"]) == (4, 0)
    (stored,) = corrections.corrected_counts(stores, code("STS.128"), 4)
    assert (stored["requests"], stored["wavefronts"], stored["nvcc"]) == (4, 16, "")


def test_a_function_is_named_without_namespaces_and_arguments():
    assert symbols.function_name("_Z14softmax_kernelIfLi4EEvPKT_") == "softmax_kernel"
    assert symbols.function_name("_ZN3ops3addIfEEvPT_") == "add"
    assert symbols.function_name("plain") == "plain"


@pytest.mark.skipif(not (shutil.which("c++filt") or shutil.which("llvm-cxxfilt")), reason="no demangler")
@pytest.mark.parametrize("depth", [1, 300])
def test_names_of_any_length_are_demangled(depth):
    name = f"_Z1fI{'1AI' * depth}i{'E' * depth}Evv"
    assert symbols.demangled(name).replace(" ", "") == f"voidf<{'A<' * depth}int{'>' * depth}>()"
    assert symbols.demangled(name[:-3]) == name[:-3]  # not a whole one


def test_a_missing_tool_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    with pytest.raises(RuntimeError, match="nvcc is not installed"):
        machine_code.tools()
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: tmp_path / "nvcc")
    monkeypatch.setattr(machine_code, "find_nvdisasm", lambda nvcc: None)
    with pytest.raises(RuntimeError, match="pip install triton"):
        machine_code.tools()


def test_nvdisasm_is_found_beside_nvcc_first(tmp_path):
    beside = tmp_path / "nvdisasm"
    beside.touch(mode=0o755)
    assert machine_code.find_nvdisasm(tmp_path / "nvcc") == beside


@pytest.mark.skipif(toolchain.find_nvcc() is None, reason="nvcc is not installed")
def test_a_file_that_nvcc_cannot_compile_is_an_error(tmp_path, monkeypatch):
    try:
        machine_code.tools()
    except RuntimeError as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("KERNEL_XRAY_CACHE", str(tmp_path))
    wrong = tmp_path / "wrong.cu"
    wrong.write_text("__global__ void k() { return 1 }")
    with pytest.raises(RuntimeError, match=r"nvcc could not compile .*wrong\.cu for sm_90a"):
        machine_code.of_file(wrong)
    right = tmp_path / "right.cu"
    right.write_text("__global__ void k(const float2* in, float* out) {\n  out[threadIdx.x] = in[threadIdx.x].x;\n}\n")
    (instructions,) = machine_code.of_file(right).values()
    assert [i.opcode.partition(".")[0] for i in instructions] == ["LDG", "STG"]
    assert {i.stack for i in instructions} == {((str(right), 2),)}
    monkeypatch.setattr(subprocess, "run", None)  # the second time, it is read from the cache
    assert list(machine_code.of_file(Path(right)).values()) == [instructions]
