"""The basic blocks of a kernel's machine code: how many instructions of each unit a warp issues in each.

A warp that enters a basic block issues all of its instructions, those that no lane executes among them.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

ISSUE = "issue"  # every instruction
# By the names in 'Instruction Set Reference', CUDA Binary Utilities 13.0. Moves are not counted: nvcc makes them for
# whichever unit is free.
_UNITS = {
    "float32": r"(FADD|FMUL|FFMA)(32I)?",
    "float64": r"DADD|DMUL|DFMA",
    "integer": r"IADD3|LOP3|ISETP|SHF",
    "special": r"MUFU",
    "bits": r"POPC|FLO|BREV",
    "mma": r"HMMA\.16816|HMMA\.1688\.F32\.TF32|IMMA\.16832",  # mma.sync and wmma; wgmma's begin otherwise
}
_ENDS = re.compile(r"(BRA|BRX|BRXU|JMP|JMX|JMXU|CALL|RET|EXIT|KILL|BSYNC|BREAK|WARPSYNC|RPCMOV)(\.|$)")
_ANYWHERE = re.compile(r"(BRX|BRXU|JMP|JMX|JMXU|CALL)(\.|$)")  # jumps whose target is not read here
_OWN = "$__internal"  # functions that nvcc adds, for a division: a kernel's accesses are not in them


@dataclass(frozen=True)
class Block:
    """One basic block."""

    issued: dict[str, int]  # instructions, by unit; those of ISSUE are all
    repeated: bool  # a thread may come to it more than once


def blocks(
    codes: Mapping[int, tuple[str, str]], labels: set[int], loops: list[tuple[int, int]]
) -> tuple[list[Block], dict[int, int]]:
    """The basic blocks of a function, its entry first, and the block of each instruction.

    codes    opcode and operands of each instruction, by its place in the listing, in order
    labels   places to which a jump may lead
    loops    from the target of each jump backwards to the jump
    """
    anywhere = any(_ANYWHERE.match(opcode) and _OWN not in operands for opcode, operands in codes.values())
    index, of = -1, {}
    before, ended = -1, True
    for at, (opcode, _) in codes.items():
        if ended or any(before < label < at for label in labels):
            index += 1
        of[at] = index
        before, ended = at, bool(_ENDS.match(opcode))
    counts = [Counter[str]() for _ in range(index + 1)]
    repeated = [anywhere] * (index + 1)
    for at, (opcode, _) in codes.items():
        counts[of[at]].update([ISSUE, *_units(opcode)])
        repeated[of[at]] |= any(begin <= at <= end for begin, end in loops)
    return [Block(dict(c), again) for c, again in zip(counts, repeated, strict=True)], of


def _units(opcode: str) -> list[str]:
    return [unit for unit, pattern in _UNITS.items() if re.match(rf"({pattern})(\.|$)", opcode)]
