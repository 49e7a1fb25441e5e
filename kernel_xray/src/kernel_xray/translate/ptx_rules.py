"""The PTX instructions that the simulator runs, each with the function of include/simt/ptx.h that it becomes.

A rule has the number of operands and the opcode in the manner of the PTX ISA, with a blank before each part:

    3 add|sub .rn|rz|rm|rp? .ftz? .sat? <f32        add.rz.ftz.f32 d, a, b  ->  op_add<t_f32, kRz | kFtz>(d, a, b)

    .a|b      becomes part of the function's name, or a flag if it is one of FLAGS
    <a|b      becomes a template argument: a type, a state space, a shape, a comparison
    ~a|b      has no effect here: cache hints; `~*` is any part
    ?         the part may be missing; a word after it takes its place
    = name    the function's name, if it is not the opcode's

A `p` after the number: the first operand may be a pair `d|p`. Words in capitals are defined in _WORDS.
"""

import re
from dataclasses import dataclass

# What these parts are in simt/ptx_registers.h.
FLAGS = {
    "rn": "0", "full": "0", "rz": "kRz", "rm": "kRm", "rp": "kRp", "rna": "kAway",
    "rni": "kIntegral", "rzi": "kIntegral | kRz", "rmi": "kIntegral | kRm", "rpi": "kIntegral | kRp",
    "ftz": "kFtz", "sat": "kSat", "satfinite": "kFinite", "relu": "kRelu", "NaN": "kNaN", "approx": "kApprox",
    "abs": "kAbs", "xorsign": "kXorSign",
    "volatile": "kVolatile", "relaxed": "kRelaxed", "acquire": "kAcquire", "release": "kRelease",
    "acq_rel": "kAcquire | kRelease",
    "cta_group::1": "0", "cta_group::2": "kPair", "pack::16b": "kPack", "unpack::16b": "kPack",
    "cta": "kCta", "cluster": "kCluster", "gpu": "0", "gl": "0", "sys": "0",
}  # fmt: skip

_WORDS = {
    "INT": "u16|s16|u32|s32|u64|s64",
    "WORD": "u32|s32|u64|s64",
    "HALF": "f16|f16x2|bf16|bf16x2",
    "BITS": "b16|b32|b64",
    "FLOAT": "f32|f64",
    "MEMORY": "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64",
    "NUMBER": "u8|s8|u16|s16|u32|s32|u64|s64|f16|bf16|f32|f64",
    "RND": "rn|rz|rm|rp",
    "SCOPE": "cta|cluster|gpu|sys",
    "SPACE": "global|shared|shared::cta|shared::cluster",
    "REDUCE": "add|min|max|inc|dec|and|or|xor",
    "RANK": "1d|2d|3d|4d|5d",
    "SHARED": "shared|shared::cta|shared::cluster",
    "BYTES": "mbarrier::complete_tx::bytes",
    "CTAS": "cta_group::1|cta_group::2",
    "COLLECTOR": "|".join(f"collector::a::{use}" for use in ("fill", "use", "lastuse", "discard")),
    "XN": "x1|x2|x4|x8|x16|x32|x64|x128",
    "ORDER": "relaxed|acquire|release|acq_rel",
    **{f"M64K{k}": "|".join(f"m64n{n}k{k}" for n in range(8, 257, 8)) for k in (8, 16, 32)},
    "CMP": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan",
}

_RULES = """
3 add|sub|div|rem|min|max <INT
3 add|sub .sat <s32
3 add|sub|addc|subc .cc <WORD
3 addc|subc <WORD
3 mul .lo|hi <INT
3 mul .wide <u16|s16|u32|s32
4 mad .lo|hi <INT
4 mad .wide <u16|s16|u32|s32
4 mad|madc .lo|hi .cc <WORD
4 madc .lo|hi <WORD
4 sad <INT
2 abs|neg <s16|s32|s64
3 add|sub|mul .RND? .ftz? .sat? <f32
3 add|sub|mul .RND? <f64
3 add|sub|mul .rn? .ftz? .sat? <f16|f16x2
3 add|sub|mul .rn? <bf16|bf16x2
4 fma|mad .RND .ftz? .sat? <f32
4 fma|mad .RND <f64
4 fma .rn .ftz? .sat? .relu? <HALF
3 add|sub|mul .RND? .ftz? <f32x2
4 fma .RND .ftz? <f32x2
3 div .approx|full .ftz? <f32
3 div .RND .ftz? <f32
3 div .RND <f64
2 rcp|sqrt .approx|rn|rz|rm|rp .ftz? <f32
2 rcp|sqrt .RND <f64
2 rsqrt|sin|cos|lg2|ex2 .approx .ftz? <f32
2 rsqrt .approx <f64
2 tanh .approx <f32|f16|f16x2|bf16|bf16x2
2 ex2 .approx .ftz? <HALF
2 abs|neg .ftz? <f32|f16|f16x2
2 abs|neg <f64|bf16|bf16x2
3-4 min|max .ftz? .NaN? .xorsign? .abs? <f32
3 min|max <f64
3 min|max .ftz? .NaN? .xorsign? .abs? <HALF
3 copysign <FLOAT
2 testp .finite|infinite|number|notanumber|normal|subnormal <FLOAT

2 mov <pred|BITS|INT|FLOAT
2 popc|clz|brev <b32|b64
2 bfind .shiftamt? <WORD
4 bfe <WORD
5 bfi <b32|b64
4 fns <b32
3 and|or|xor <pred|BITS
2 not <pred|BITS
2 cnot <BITS
5 lop3 <b32
3 shl <BITS
3 shr <BITS|INT
4 shf .l|r .clamp|wrap <b32
4 prmt <b32 .f4e|b4e|rc8|ecl|ecr|rc16?
3 szext .wrap|clamp <u32|s32
3 bmsk .wrap|clamp <b32
4 dp4a <u32|s32 <u32|s32
4 dp2a .lo|hi <u32|s32 <u32|s32
4 vadd2|vsub2|vavrg2|vmin2|vmax2|vabsdiff2 <u32|s32 ~u32|s32 ~u32|s32 .add?
4 vadd4|vsub4|vavrg4|vmin4|vmax4|vabsdiff4 <u32|s32 ~u32|s32 ~u32|s32 .add?

4 selp <BITS|INT|FLOAT
4 slct .ftz? <BITS|INT|FLOAT <s32|f32
3p setp <CMP .ftz? <BITS|INT|FLOAT|f16|bf16
4p setp <CMP .and|or|xor .ftz? <BITS|INT|FLOAT|f16|bf16
3 set <CMP .ftz? <u32|s32|f32 <BITS|INT|FLOAT
2 cvt .rn|rz|rm|rp|rni|rzi|rmi|rpi? .ftz? .sat? <NUMBER <NUMBER
2 cvt .rn|rz .relu? .satfinite? <f16|bf16 <f32
2 cvt .rn|rz|rna .relu? .satfinite? <tf32 <f32
3 cvt .rn|rz .relu? .satfinite? <f16x2|bf16x2 <f32
3 cvt .rn ~satfinite .relu? <e4m3x2|e5m2x2 <f32
2 cvt .rn ~satfinite .relu? <e4m3x2|e5m2x2 <f16x2
2 cvt .rn .relu? <f16x2 <e4m3x2|e5m2x2
3-4 cvt.pack .sat <u8|s8|u16|s16 ~s32 ~b32?

2 cvta .to? <SPACE <u32|u64
2 isspacep <SPACE
3 mapa <shared::cluster?generic <u32|u64
2 getctarank <shared::cluster?generic <u32|u64
2 ld|ldu ~weak? .volatile|relaxed|acquire? .SCOPE? <SPACE?generic ~ca|cg|cs|lu|cv? ~nc? ~v2|v4|v8? <MEMORY
2 st ~weak? .volatile|relaxed|release? .SCOPE? <SPACE?generic ~wb|cg|cs|wt? ~v2|v4|v8? <MEMORY
3 atom .ORDER? .SCOPE? <SPACE?generic .add <u32|s32|u64|f32|f64
3 atom .ORDER? .SCOPE? <SPACE?generic .add ~noftz <HALF
3 atom .ORDER? .SCOPE? <SPACE?generic .min|max <WORD
3 atom .ORDER? .SCOPE? <SPACE?generic .and|or|xor|exch <b32|b64
3 atom .ORDER? .SCOPE? <SPACE?generic .inc|dec <u32
4 atom .ORDER? .SCOPE? <SPACE?generic .cas <BITS
2 red .ORDER? .SCOPE? <SPACE?generic .add <u32|s32|u64|f32|f64
2 red .ORDER? .SCOPE? <SPACE?generic .add ~noftz <HALF
2 red .ORDER? .SCOPE? <SPACE?generic .min|max <WORD
2 red .ORDER? .SCOPE? <SPACE?generic .and|or|xor <b32|b64
2 red .ORDER? .SCOPE? <SPACE?generic .inc|dec <u32
3 atom .ORDER? .SCOPE? <global?generic .add|min|max ~noftz? ~v2|v4|v8 <f32|HALF = atom_each
3 atom .ORDER? .SCOPE? <global?generic ~v2|v4|v8 <f32|HALF .add|min|max ~noftz? = atom_each
2 red .ORDER? .SCOPE? <global?generic .add|min|max ~noftz? ~v2|v4|v8 <f32|HALF = red_each
2 red .ORDER? .SCOPE? <global?generic ~v2|v4|v8 <f32|HALF .add|min|max ~noftz? = red_each
0 membar .cta|gl|sys = fence
0 fence ~sc|acq_rel|acquire|release? .SCOPE
2 fence ~proxy ~tensormap::generic ~acquire ~SCOPE = nothing
0 fence ~proxy ~* ~*? ~*? ~*? = fence_proxy
0 fence ~mbarrier_init ~release ~cluster = fence_proxy
1 prefetch|prefetchu ~* ~*? = nothing
2 cp.async.bulk.prefetch ~L2 ~global = nothing
1 cp.async.bulk.prefetch.tensor ~RANK ~L2 ~global ~tile? = nothing
1-3 createpolicy ~fractional|cvt ~L2? ~b64 = createpolicy
4 createpolicy ~range ~global? ~b64 = createpolicy_range

3-4 cp.async ~ca|cg ~shared|shared::cta ~global
0 cp.async.commit_group|cp.async.wait_all
1 cp.async.wait_group
1 cp.async.mbarrier.arrive .noinc? <SHARED?generic ~b64
4 cp.async.bulk <shared::cta|shared::cluster ~global ~BYTES
5 cp.async.bulk <shared::cluster ~global ~BYTES ~multicast::cluster = cp_async_bulk_multicast
4 cp.async.bulk <shared::cluster ~shared::cta ~BYTES = cp_async_bulk_send
3 cp.async.bulk ~global ~shared::cta ~bulk_group = cp_async_bulk_store
3 cp.async.bulk.tensor <RANK .CTAS? <shared::cta|shared::cluster ~global ~tile? ~BYTES .CTAS? = tile_load
4 cp.async.bulk.tensor <RANK .CTAS? <shared::cluster ~global ~tile? ~BYTES ~multicast::cluster .CTAS? = tiles
2 cp.async.bulk.tensor <RANK ~global ~shared::cta ~tile? ~bulk_group = tile_store
2 cp.reduce.async.bulk.tensor <RANK ~global ~shared::cta .REDUCE ~tile? ~bulk_group = tile_reduce
3 cp.reduce.async.bulk ~global ~shared::cta ~bulk_group .REDUCE ~noftz? <WORD|b32|b64|f16|bf16|f32|f64 = bulk_reduce
0 cp.async.bulk.commit_group
1 cp.async.bulk.wait_group ~read?
3 st.async ~weak? <shared::cluster ~BYTES ~v2|v4? <WORD|b32|b64|f32|f64
2 mbarrier.init <SHARED?generic ~b64
1 mbarrier.inval <SHARED?generic ~b64 = nothing
2-3 mbarrier.arrive|mbarrier.arrive_drop ~noComplete? ~release|relaxed? ~cta|cluster? <SHARED?generic ~b64
3 mbarrier.arrive.expect_tx|mbarrier.arrive_drop.expect_tx ~release|relaxed? ~cta|cluster? <SHARED?generic ~b64
2 mbarrier.expect_tx|mbarrier.complete_tx ~relaxed? ~cta|cluster? <SHARED?generic ~b64
3 mbarrier.test_wait ~parity? ~acquire|relaxed? ~cta|cluster? <SHARED?generic ~b64 = mbarrier_test
3-4 mbarrier.try_wait ~parity? ~acquire|relaxed? ~cta|cluster? <SHARED?generic ~b64 = mbarrier_try

2 ldmatrix.sync.aligned ~m8n8 ~x1|x2|x4 .trans? <SHARED?generic ~b16 = ldmatrix
2 stmatrix.sync.aligned ~m8n8 ~x1|x2|x4 .trans? <SHARED?generic ~b16 = stmatrix
2 movmatrix.sync.aligned ~m8n8 ~trans ~b16 = movmatrix
4 mma.sync.aligned <m16n8k8|m16n8k16 ~row ~col <f32|f16 <f16 <f16 <f32|f16 = mma
4 mma.sync.aligned <m16n8k8|m16n8k16 ~row ~col <f32 <bf16 <bf16 <f32 = mma
4 mma.sync.aligned <m16n8k4|m16n8k8 ~row ~col <f32 <tf32 <tf32 <f32 = mma
4 mma.sync.aligned <m16n8k16|m16n8k32 ~row ~col <f32|f16 <e4m3|e5m2 <e4m3|e5m2 <f32|f16 = mma
4 mma.sync.aligned <m8n8k4|m16n8k4|m16n8k8|m16n8k16 ~row ~col ~rn? <f64 <f64 <f64 <f64 ~rn? = mma
4 mma.sync.aligned <m8n8k16|m16n8k16|m16n8k32 ~row ~col .satfinite? <s32 <s8|u8 <s8|u8 <s32 = mma
4 mma.sync.aligned <m8n8k32|m16n8k32|m16n8k64 ~row ~col .satfinite? <s32 <s4|u4 <s4|u4 <s32 = mma
4 mma.sync.aligned <m8n8k128|m16n8k128|m16n8k256 ~row ~col <s32 <b1 <b1 <s32 .xor|and ~popc = mma

0 wgmma.fence.sync.aligned = wgmma_fence
0 wgmma.commit_group.sync.aligned = wgmma_commit
1 wgmma.wait_group.sync.aligned = wgmma_wait
7-8 wgmma.mma_async.sync.aligned <M64K16 <f32|f16 <f16 <f16 = wgmma
7-8 wgmma.mma_async.sync.aligned <M64K16 <f32 <bf16 <bf16 = wgmma
6 wgmma.mma_async.sync.aligned <M64K8 <f32 <tf32 <tf32 = wgmma
6 wgmma.mma_async.sync.aligned <M64K32 <f32|f16 <e4m3|e5m2 <e4m3|e5m2 = wgmma
4 wgmma.mma_async.sync.aligned <M64K32 <s32 <s8|u8 <s8|u8 = wgmma

2 tcgen05.alloc .CTAS ~sync ~aligned <SHARED?generic ~b32
2 tcgen05.dealloc .CTAS ~sync ~aligned ~b32
0 tcgen05.relinquish_alloc_permit .CTAS ~sync ~aligned
2-3 tcgen05.ld ~sync ~aligned <32x32b|16x64b|16x128b|16x256b|16x32bx2 ~XN .pack::16b? ~b32
2-3 tcgen05.st ~sync ~aligned <32x32b|16x64b|16x128b|16x256b|16x32bx2 ~XN .unpack::16b? ~b32
0 tcgen05.wait::ld|tcgen05.wait::st ~sync ~aligned = tcgen05_wait
0 tcgen05.fence::before_thread_sync|tcgen05.fence::after_thread_sync = nothing
5-7 tcgen05.mma .CTAS <kind::f16|kind::tf32|kind::f8f6f4|kind::i8 ~COLLECTOR?
1 tcgen05.commit .CTAS ~mbarrier::arrive::one <SHARED?generic ~b64
2 tcgen05.commit .CTAS ~mbarrier::arrive::one <SHARED?generic ~multicast::cluster ~b64 = tcgen05_commit_multicast

5p shfl.sync .up|down|bfly|idx ~b32
3 vote.sync .any|all|uni ~pred
3 vote.sync .ballot ~b32
1 activemask ~b32
3 match.any.sync <b32|b64
3p match.all.sync <b32|b64
3 redux.sync .add|min|max <u32|s32
3 redux.sync .and|or|xor <b32
3 redux.sync .min|max .abs? .NaN? ~f32 = redux_sync_float
2p elect.sync
1 bar.warp.sync = bar_warp_sync
1-2 bar.sync|bar.cta.sync|barrier.sync|barrier.cta.sync ~aligned? = bar_sync
2 bar.arrive|bar.cta.arrive|barrier.arrive|barrier.cta.arrive ~aligned? = bar_arrive
3-4 bar.red|bar.cta.red|barrier.red|barrier.cta.red ~aligned? .popc ~aligned? ~u32 = bar_red
3-4 bar.red|bar.cta.red|barrier.red|barrier.cta.red ~aligned? .and|or ~aligned? ~pred = bar_red
0 barrier.cluster.arrive ~release|relaxed? ~aligned? = cluster_arrive
0 barrier.cluster.wait ~acquire? ~aligned? = cluster_wait
1 nanosleep ~u32
0 trap|brkpt|exit
0 griddepcontrol.wait|griddepcontrol.launch_dependents
1 setmaxnreg .inc|dec ~sync ~aligned ~u32
"""


@dataclass(frozen=True)
class Rule:
    fewest: int  # operands
    most: int
    paired: bool
    opcode: re.Pattern[str]
    parts: tuple[tuple[str, str], ...]  # "." or "<", and what takes the place of a missing part
    name: str


def _rule(line: str) -> Rule:
    line, _, name = line.partition(" = ")
    count, root, *parts = line.split()
    counts = [int(n) for n in count.rstrip("p").split("-")]
    pattern = f"({'|'.join(map(re.escape, root.split('|')))})"
    kept = []
    for part in parts:
        kind, (choices, optional, default) = part[0], part[1:].partition("?")
        words = [word for choice in choices.split("|") for word in _WORDS.get(choice, choice).split("|")]
        text = r"[\w:]+" if choices == "*" else "|".join(map(re.escape, words))
        pattern += rf"(?:\.{'(?:' if kind == '~' else '('}{text})){'?' if optional else ''}"
        if kind != "~":
            kept.append((kind, default))
    return Rule(counts[0], counts[-1], count.endswith("p"), re.compile(pattern + "$"), tuple(kept), name)


RULES = [_rule(line) for line in _RULES.splitlines() if line]
