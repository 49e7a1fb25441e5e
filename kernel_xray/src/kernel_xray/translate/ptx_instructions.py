"""From an instruction of PTX to the C++ statement that runs it: finds its rule (ptx_rules.py) and lays out the call.

Addresses are passed first, then the other operands in order, vectors element by element.
"""

import re
from collections.abc import Callable

from kernel_xray.translate.ptx_rules import FLAGS, RULES
from kernel_xray.translate.ptx_text import Instruction, Operand, PtxError

# Instructions whose parts may come in any order, as ptxas accepts (ld.global.acquire.gpu), and the order of the rules.
_SORTED = ("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix")
_RANKS = [
    *("sync", "aligned", "m8n8", "x1|x2|x4", "trans", "weak|volatile|relaxed|acquire|release|acq_rel"),
    *("cta|cluster|gpu|sys", "global|shared|shared::cta|shared::cluster"),
]


def call(instruction: Instruction, value: Callable[[Operand], str], waits: bool = False) -> str:
    """The C++ statement for an instruction, without its predicate. Raises PtxError if no rule fits.

    value  the C++ expression of a register, special register or number
    waits  the template has a branch: an mbarrier is tested until its phase is complete
    """
    operands = list(instruction.operands)
    opcode, hints = _canonical(instruction.opcode)
    if "L2::cache_hint" in hints:
        operands = operands[:-1]  # without the policy
    rule, match = next(((r, m) for r in RULES if (m := r.opcode.match(opcode))), (None, None))
    if rule is None or match is None:
        raise PtxError(f"the inline PTX instruction {_short(instruction.opcode)}")
    if not rule.fewest <= len(operands) <= rule.most:
        raise PtxError(f"the inline PTX instruction {instruction.opcode} with {len(operands)} operands")
    name, types, flags = [match[1].replace(".", "_")], [], []
    for (kind, default), word in zip(rule.parts, match.groups()[1:], strict=True):
        if kind == "<":
            types.append(f"::simt::ptx::{_type(word or default)}")
        elif word in FLAGS:
            flags += [f"::simt::ptx::{flag}" for flag in FLAGS[word].split(" | ") if flag != "0"]
        elif word:
            name.append(word)
    if rule.name:
        name[0] = rule.name
    if waits and rule.name in ("mbarrier_test", "mbarrier_try"):
        name = ["mbarrier_wait"]
    name, operands = _moved_vector(name, operands)
    arguments = ", ".join([*types, " | ".join(flags) or "0"])
    return f"::simt::ptx::op_{'_'.join(name)}<{arguments}>({', '.join(_values(operands, rule.paired, value))});"


def _type(word: str) -> str:
    """A template argument: `m16n8k8` is Shape<16, 8, 8>, `u32` is t_u32."""
    shape = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word)
    return f"Shape<{', '.join(shape.groups())}>" if shape else f"t_{word.replace('::', '_')}"


def _canonical(opcode: str) -> tuple[str, list[str]]:
    """The opcode without cache hints and with its parts in the order of the rules; the hints."""
    root, *parts = opcode.split(".")
    hints = [part for part in parts if re.match(r"L[12]::", part)]
    parts = [part for part in parts if part not in hints]
    if root in _SORTED and parts[0] != "async":
        ranks = [words.split("|") for words in _RANKS]
        parts.sort(key=lambda part: next((i for i, words in enumerate(ranks) if part in words), len(ranks)))
    return ".".join([root, *parts]), hints


def _moved_vector(name: list[str], operands: list[Operand]) -> tuple[list[str], list[Operand]]:
    """mov to or from a vector: the single register comes first, so that the elements can be a list."""
    if name != ["mov"] or all(operand.kind != "vector" for operand in operands):
        return name, operands
    if operands[0].kind == "vector":
        return ["unpack"], operands[::-1]
    return ["pack"], operands


def _values(operands: list[Operand], paired: bool, value: Callable[[Operand], str]) -> list[str]:
    """The arguments of the call."""
    addresses: list[str] = []
    others: list[str] = []
    for i, operand in enumerate(operands):
        if operand.kind == "address":
            base, *offsets = map(value, operand.parts)
            addresses.append(f"::simt::ptx::op_address({', '.join([base, *offsets])})")
            continue
        if operand.kind == "tile":
            addresses.append(f"::simt::ptx::op_address({value(operand.parts[0])})")
        parts = operand.parts[1:] if operand.kind == "tile" else operand.parts
        parts = parts if operand.kind in ("vector", "pair", "tile") else (operand,)
        if operand.kind == "pair" and (i or not paired):
            raise PtxError(f"the operand `{operand.text}` of inline PTX")
        others += ["::simt::ptx::Sink()" if part.kind == "sink" else _source(part, value) for part in parts]
        if paired and i == 0 and operand.kind != "pair":
            others.append("::simt::ptx::Sink()")
    return addresses + others


def _source(operand: Operand, value: Callable[[Operand], str]) -> str:
    return f"!{value(operand.parts[0])}" if operand.kind == "not" else value(operand)


def _short(opcode: str) -> str:
    """The opcode; of an unknown instruction, only as far as it says what is done: wgmma.mma_async without shapes."""
    root = opcode.split(".")[0]
    known = any(rule.opcode.pattern.startswith((f"({root}|", f"({root})", f"({root}\\.")) for rule in RULES)
    return opcode if known else re.split(r"\.(?:sync|aligned)\b", opcode)[0]
