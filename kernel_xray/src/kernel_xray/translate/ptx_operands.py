"""The operands of an asm statement: the variables of the block that the statement becomes (ptx.py).

    "=r"(sum)    auto& simt_o0 = (sum); auto simt_0 = ::simt::ptx::op_undefined<'r'>();
                 ... ::simt::ptx::op_out<'r'>(simt_o0, simt_0);
    "l"(from)    auto simt_1 = ::simt::ptx::op_in<'l'>(from);

The tensor cores' instructions have up to 128 results, and CuTe has a function for each of hundreds of them, of which
a program calls one or two. So results come in eights where they can: a compiler reads that in a quarter of the time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from kernel_xray.translate.lexer import Token
from kernel_xray.translate.names import BUILT_IN
from kernel_xray.translate.ptx_text import PtxError

_TOGETHER = 8  # as op_in_8 and op_out_8 in include/simt/ptx_registers.h


@dataclass(frozen=True)
class AsmOperand:
    constraint: str  # "=r", "+f", "l"
    expression: str
    repeats: bool  # the name of a variable, which may be written twice


def asm_operand(tokens: list[Token], is_variable: bool) -> AsmOperand:
    """The operand; `is_variable`: if its expression is a single name, then that of a variable, not of a macro."""
    words = [token.text for token in tokens]
    if len(words) < 4 or tokens[0].kind != "string" or words[1] != "(" or words[-1] != ")":
        raise PtxError(f"an operand of inline PTX that is not written as a constraint and an expression (`{words[0]}`)")
    members = (".", "->", "::")
    spelled = [BUILT_IN.get(w, w) if words[k + 1] not in members else w for k, w in enumerate(words[2:-1])]
    repeats = is_variable and len(spelled) == 1 and spelled[0].isidentifier()
    return AsmOperand(words[0].strip('"').replace("&", ""), " ".join(spelled), repeats)


def variables(outputs: list[AsmOperand], inputs: list[AsmOperand]) -> tuple[list[str], list[str]]:
    """The statements before the instructions, which declare simt_0, simt_1 ..., and those after them."""
    before, after = [], []
    for first, together in _in_eights(outputs):
        letter = _letter(together[0].constraint[1:])
        names = [f"simt_{first + k}" for k in range(len(together))]
        results = []
        for k, operand in enumerate(together):
            direct = operand.repeats and len(together) > 1
            results.append(operand.expression if direct else f"simt_o{first + k}")
            before += [] if direct else [f"auto& {results[-1]} = ({operand.expression});"]
        pairs = ", ".join(f"{result}, {name}" for result, name in zip(results, names, strict=True))
        several = "_8" if len(together) > 1 else ""
        if several and together[0].constraint[0] == "+":
            before.append(f"::simt::ptx::Register<'{letter}'> {', '.join(names)};")
            before.append(f"::simt::ptx::op_in_8<'{letter}'>({pairs});")
        else:
            value = (
                f"op_in<'{letter}'>({results[0]})"
                if together[0].constraint[0] == "+"
                else f"op_undefined<'{letter}'>()"
            )
            before += [f"auto {name} = ::simt::ptx::{value};" for name in names]
        after.append(f"::simt::ptx::op_out{several}<'{letter}'>({pairs});")
    for i, operand in enumerate(inputs, len(outputs)):
        if operand.constraint in ("n", "i"):
            before.append(f"const long long simt_{i} = ({operand.expression});")
        else:
            before.append(f"auto simt_{i} = ::simt::ptx::op_in<'{_letter(operand.constraint)}'>({operand.expression});")
    return before, after


def _in_eights(outputs: list[AsmOperand]) -> Iterator[tuple[int, list[AsmOperand]]]:
    """The operands one by one, or eight neighbours with the same constraint, with the number of the first."""
    for _, run in groupby(enumerate(outputs), lambda item: item[1].constraint):
        numbered = list(run)
        while numbered:
            count = _TOGETHER if len(numbered) >= _TOGETHER else 1
            yield numbered[0][0], [operand for _, operand in numbered[:count]]
            numbered = numbered[count:]


def _letter(constraint: str) -> str:
    if constraint not in tuple("hrlfd"):
        raise PtxError(f"an operand of inline PTX with the constraint '{constraint}'")
    return constraint
