"""The fewest instructions that warps issue: basic blocks of listings, and bounds that are computed by hand."""

import pytest

from kernel_xray.report import issued, machine_code
from kernel_xray.report.basic_blocks import Block
from kernel_xray.report.facts import Issued
from kernel_xray.report.machine_code import Instruction

# A loop in steps of two with what is left, and a division's function; another listing calls a function of the source.
LISTING = """
//--------------------- .text.sum --------------------------
.text.sum:
        /*0000*/                   IMAD R3, R3, UR5, R4 ;
        /*0010*/               @P0 EXIT ;
        /*0020*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_u16) ;
.L_x_1:
        /*0030*/                   LDG.E R3, desc[UR4][R2.64] ;
        /*0040*/                   LDG.E R4, desc[UR4][R2.64+0x4] ;
        /*0050*/                   FFMA.FTZ R5, R3, R4, R5 ;
        /*0060*/              @!PT LDS RZ, [RZ] ;
        /*0070*/               @P0 BRA `(.L_x_1) ;
        /*0080*/                   LDG.E R3, desc[UR4][R2.64] ;
        /*0090*/                   MUFU.EX2 R5, R3 ;
        /*00a0*/                   STG.E desc[UR4][R2.64], R5 ;
        /*00b0*/                   EXIT ;
"""


def blocks(listing):
    return [(block.issued, block.repeated) for block in machine_code.parse(listing)["sum"].blocks]


def test_a_block_ends_at_a_jump_and_at_a_label_and_only_loops_repeat_one():
    looped = {"issue": 5, "float32": 1}
    assert blocks(LISTING) == [
        ({"issue": 2}, False),
        ({"issue": 1}, False),
        (looped, True),
        ({"issue": 4, "special": 1}, False),
    ]
    assert [i.block for i in machine_code.parse(LISTING)["sum"].accesses] == [2, 2, 3, 3]


@pytest.mark.parametrize(
    ("opcode", "unit"),
    [
        ("FFMA.FTZ", "float32"), ("FFMA32I", "float32"), ("MUFU.EX2", "special"), ("POPC", "bits"), ("FLO.U32", "bits"),
        ("HMMA.16816.F32.BF16", "mma"), ("HMMA.1688.F32.TF32", "mma"), ("IMMA.16832.S8.S8", "mma"),
        ("HMMA.1688.F32", ""), ("HGMMA.64x256x16.F32.BF16", ""), ("FADDX", ""), ("MUFUX.EX2", ""),
    ],
)  # fmt: skip
def test_an_opcode_is_of_one_unit_at_most(opcode, unit):
    ((of_units, _),) = blocks(LISTING.partition("        /*0010*/")[0].replace("IMAD", opcode))
    assert set(of_units) == {"issue", unit} - {""}


def test_any_block_may_repeat_where_it_is_not_known_where_a_jump_leads():
    for jump in ("CALL.REL.NOINC `(_Z3fooi)", "BRX R2 -0x100"):
        other = LISTING.replace("CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_u16)", jump)
        assert other != LISTING and all(repeated for _, repeated in blocks(other))


def load(block):
    return Instruction("LDG.E", 4, 0, False, (), block)


def access(requests, theirs, lanes=None, **more):
    lanes = 32 * requests if lanes is None else lanes
    made = {"made_by": theirs, "instance": "_Z1k"}
    return {"kernel": "k", "size": 4, "requests": requests, "lanes": lanes} | made | more


ENTRY, LOOP = Block({"issue": 7, "integer": 2}, False), Block({"issue": 20, "float32": 8}, True)
LEFT = Block({"issue": 3}, True)


def least(*accesses, blocks=(ENTRY, LOOP, LEFT)):
    launches = [{"kernel": "k", "file": "k.cu", "block": (64, 1, 1), "traced_blocks": 5}]
    found = issued.least({"launches": launches, "accesses": accesses}, lambda _: {"_Z1k": blocks})
    assert {each.kernel for each in found} <= {"k"}
    return {each.unit: each.number for each in found}


def test_a_block_is_issued_as_often_as_its_load():
    """10 warps enter once; 500 requests of two loads a turn are 250 turns."""
    assert least(access(500, [load(1), load(1)])) == {"issue": 10 * 7 + 250 * 20, "integer": 20, "float32": 250 * 8}


def test_loads_that_share_a_block_do_not_count_it_twice():
    one, other = [load(1)], [load(1)]
    assert least(access(250, one), access(240, other))["issue"] == 10 * 7 + 250 * 20
    assert least(access(250, one), access(260, other))["issue"] == 10 * 7 + 260 * 20


def test_where_a_load_may_be_in_two_blocks_the_cheaper_one_counts():
    """One of 20 instructions for two loads costs 10 a load, the other 3; it has no arithmetic."""
    assert least(access(500, [load(1), load(1), load(2)])) == {"issue": 10 * 7 + 500 * 3, "integer": 20}


def test_outside_of_loops_a_thread_executes_a_load_once_at_most():
    """Each of 320 threads, so 10 full requests; the other 490 are in the loop. Of half-full ones at least 240."""
    theirs = [load(0), load(1)]
    assert least(access(500, theirs))["issue"] == 10 * 7 + 490 * 20
    assert least(access(500, theirs, lanes=8000))["float32"] == 240 * 8


def test_nothing_is_said_of_what_is_not_known():
    unknown = {"kernel": "k", "size": 4, "requests": 500, "lanes": 16_000}
    assert least(unknown) == {}
    assert least(access(500, [load(1)]), access(5, [load(1)], instance="_Z1j")) == {}
    assert least(access(500, [load(1)]), unknown)["issue"] == 10 * 7 + 500 * 20


@pytest.mark.parametrize("times", [1, 3])
def test_the_records_are_of_a_kernel_and_a_unit(times):
    launches = [{"kernel": "k", "file": "k.cu", "block": (32, 1, 1), "traced_blocks": times}]
    found = {"launches": launches, "accesses": [access(times, [load(0)])]}
    assert issued.least(found, lambda _: {"_Z1k": [Block({"issue": 7}, False)]}) == [Issued("k", "issue", 7 * times)]
