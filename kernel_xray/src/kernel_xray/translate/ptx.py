"""Inline PTX: an `asm` statement becomes a block that calls a function of include/simt/ptx.h for each instruction.

    asm("add.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));

    __extension__({ auto& simt_o0 = (sum); auto simt_0 = ::simt::ptx::op_undefined<'r'>();
      auto simt_1 = ::simt::ptx::op_in<'r'>(a); auto simt_2 = ::simt::ptx::op_in<'r'>(b);
      ::simt::ptx::op_add<::simt::ptx::t_u32, 0>(simt_0, simt_1, simt_2); ::simt::ptx::op_out<'r'>(simt_o0, simt_0); });

All of it is on the line of `asm`, in macro bodies too; a statement expression, because its commas must not separate the
arguments of a macro. An `asm` that cannot be translated is refused with a sentence that names the reason: in a function
when it is executed, since much code that is compiled never runs; elsewhere when it is compiled.
"""

import re

from kernel_xray.translate.edits import OPENING, Text
from kernel_xray.translate.lexer import Token
from kernel_xray.translate.ptx_branches import in_branches
from kernel_xray.translate.ptx_instructions import call
from kernel_xray.translate.ptx_macros import Macros
from kernel_xray.translate.ptx_operands import AsmOperand, asm_operand, variables
from kernel_xray.translate.ptx_text import (
    Instruction,
    Label,
    Operand,
    PtxError,
    Registers,
    Scope,
    Statement,
    parse,
    shortened,
)
from kernel_xray.translate.refusals import REFUSAL, refuse

_QUALIFIERS = ("volatile", "__volatile__", "__volatile", "inline", "__inline__")
_BEFORE_STATEMENTS = ("{", "}", ";", ")", ":", "else", "do")
HEADER = '#include "simt/ptx.h"\n'
_INCLUDE = (0, 0, f"{HEADER}#line 1\n")  # an edit of the text's first line
_HELP = "; keep it behind a function with a second body for the simulator (#ifdef __SIMT__)"

_TYPES = {"pred": "bool"} | {f"{kind}{bits}": f"uint{bits}_t" for kind in "bus" for bits in (8, 16, 32, 64)}
_TYPES |= {"f16": "uint16_t", "bf16": "uint16_t", "f16x2": "uint32_t", "f32": "uint32_t", "f64": "uint64_t"}
_SPECIAL = (
    *(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    *(f"{name}.{axis}" for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for axis in "xyz"),
    *("laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "clock", "clock_hi", "clock64"),
    *("globaltimer", "globaltimer_lo", "globaltimer_hi", "dynamic_smem_size", "cluster_ctarank"),
    "cluster_nctarank",
    *(f"lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")),
)


def rewrite_asm(text: Text, i: int, macros: Macros, in_function: bool) -> None:
    """Rewrites or refuses the statement whose `asm`, or macro in its place (`macros.statements`), is token i.

    Raises RewriteError for brackets that never close.
    """
    token, opening = text.tokens[i], i + 1
    while text.text(opening) in _QUALIFIERS:
        opening += 1
    executed = in_function and _begins_statement(text, i) and text.text(opening) == "("

    def translated(statement: list[Token]) -> str | None:
        try:
            return _translated(macros.statement(statement), macros, text.in_macro(i))
        except PtxError as error:
            if not executed:
                raise
            return f'::simt::not_translated("{REFUSAL}{_sentence(error)}", __FILE__, __LINE__)'

    try:
        if text.text(opening) != "(":
            raise PtxError("`asm` that is not a statement with inline PTX")
        closing = text.match(opening)
        code = in_branches(text.tokens[i : closing + 1], translated)
    except PtxError as error:
        refuse(text, token, _sentence(error))
        return
    if code:
        span = token.start, text.tokens[closing].end
        lines = re.findall(r"\\\r?\n|\n", text.source[slice(*span)])  # their number stays
        text.replace_span(*span, code + "".join(lines))
        if _INCLUDE not in text.edits:
            text.edits.append(_INCLUDE)


def _sentence(error: PtxError) -> str:
    return str(error).replace('"', "'").replace("\\", "/") + _HELP


def _begins_statement(text: Text, i: int) -> bool:
    """Whether token i is the first of a statement, or of a macro's text; unlike `asm` behind a variable's name."""
    before = text.tokens[i - 1] if i else None
    outside = before is None or (before.directive != text.tokens[i].directive) or before.kind in ("define", "directive")
    return outside or text.text(i - 1) in _BEFORE_STATEMENTS


# ----------------------------------------------------------------------------------------------------------------------
# The statement


def _translated(statement: list[Token], macros: Macros, in_macro: bool) -> str | None:
    """The C++ for the statement; None if it may stay: a compiler barrier."""
    words = [token.text for token in statement]
    if ")" not in words:
        raise PtxError("`asm` with a string that its line cuts off")
    inside = statement[words.index("(") + 1 : len(words) - 1 - words[::-1].index(")")]
    template, *sections = _sections(macros.expanded(inside))
    source = _template(template[0] if template else [])
    operands = [
        [asm_operand(tokens, not (in_macro or macros.names(tokens))) for tokens in section] for section in sections[:2]
    ]
    outputs, inputs = (*operands, [], [])[:2]
    if not source.strip() and not outputs and not inputs:
        return None
    statements = parse(source.replace("%%", "%").replace("%=", "0"))
    fences = any(token.text == '"memory"' for section in sections[2:] for tokens in section for token in tokens)
    return _block(statements, outputs, inputs, fences)


def _sections(inside: list[Token]) -> list[list[list[Token]]]:
    """The tokens between colons, and in each section those between commas; what is in brackets separates nothing."""
    sections: list[list[list[Token]]] = [[[]]]
    depth = 0
    for token in inside:
        depth += (token.text in OPENING) - (token.text in OPENING.values())
        if depth == 0 and token.text in (":", "::"):
            sections += [[[]] for _ in token.text]
        elif depth == 0 and token.text == ",":
            sections[-1].append([])
        else:
            sections[-1][-1].append(token)
    return [[tokens for tokens in section if tokens] for section in sections]


def _template(tokens: list[Token]) -> str:
    """The value of the string literals. Raises PtxError for other tokens: only the preprocessor knows the text then."""
    pieces = []
    for token in tokens:
        raw = re.fullmatch(r'R"([^(]*)\((.*)\)\1"', token.text, re.DOTALL)
        if raw:
            pieces.append(raw[2])
        elif token.kind == "string" and token.text.startswith('"'):
            text = re.sub(r"\\\r?\n", "", token.text[1:-1])
            pieces.append(re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text))
        else:
            raise PtxError(f"inline PTX whose text is not a literal (`{token.text}` is part of it)")
    return "".join(pieces)


# ----------------------------------------------------------------------------------------------------------------------
# The block


def _block(statements: list[Statement], outputs: list[AsmOperand], inputs: list[AsmOperand], fences: bool) -> str:
    before, after = variables(outputs, inputs)
    registers = {f"%{i}": f"simt_{i}" for i in range(len(outputs) + len(inputs))}
    body, labels = _body(statements, registers)
    declared = [f"__label__ {', '.join(labels)};"] if labels else []
    barrier = ['__asm__ __volatile__("" ::: "memory");'] if fences else []
    return " ".join(["__extension__({", *declared, *before, *barrier, *body, *barrier, *after, "})"])


def _body(statements: list[Statement], registers: dict[str, str]) -> tuple[list[str], list[str]]:
    """The C++ statements and the labels among them. Adds the declared registers to `registers`."""
    declared = [name for s in statements if isinstance(s, Registers) for name in s.names]
    registers |= {name: f"simt_{_plain(name)}_" for name in declared}
    labels = {s.name: f"simt_{_plain(s.name)}_label" for s in statements if isinstance(s, Label)}
    code = []
    for statement in statements:
        if isinstance(statement, Scope):
            code.append(statement.brace)
        elif isinstance(statement, Label):
            code.append(f"{labels[statement.name]}:;")
        elif isinstance(statement, Instruction):
            code.append(_instruction(statement, registers, labels))
        elif statement.type in _TYPES:
            code.append(f"{_TYPES[statement.type]} {', '.join(registers[name] for name in statement.names)};")
        else:
            raise PtxError(f"inline PTX with registers of type .{statement.type}")
    return code, list(labels.values())


def _plain(name: str) -> str:
    return re.sub(r"[%$]", "S", name)


def _instruction(instruction: Instruction, registers: dict[str, str], labels: dict[str, str]) -> str:
    def value(operand: Operand) -> str:
        return _value(operand, registers)

    if instruction.opcode in ("bra", "bra.uni"):
        target = instruction.operands[0].text if instruction.operands else ""
        if target not in labels:
            raise PtxError(f"a branch of inline PTX to `{target}`, which is not a label in the same asm statement")
        code = f"goto {labels[target]};"
    else:
        code = call(instruction, value, waits=bool(labels))
    if instruction.predicate is None:
        return code
    negated = instruction.predicate.kind == "not"
    condition = value(instruction.predicate.parts[0] if negated else instruction.predicate)
    return f"if ({'!' if negated else ''}{condition}) {{ {code} }}"


def _value(operand: Operand, registers: dict[str, str]) -> str:
    """The C++ expression for a register or a number. Raises PtxError for other names, such as those of variables."""
    word = operand.text
    if operand.kind == "integer":
        numbers = re.sub(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)U?", r"\1ll", word)
        return f"static_cast<long long>({numbers})"
    if operand.kind == "float":
        word = re.sub(r"0[fF]([0-9a-fA-F]{8})$", r"::simt::bit_cast<float>(0x\1u)", word)
        return re.sub(r"0[dD]([0-9a-fA-F]{16})$", r"::simt::bit_cast<double>(0x\1ull)", word)
    if word in registers:
        return registers[word]
    if word.startswith("%") and word[1:] in _SPECIAL:
        return f"::simt::ptx::special_{word[1:].replace('.', '_')}()"
    if word == "WARP_SZ":
        return "32ll"
    what = "name" if operand.kind == "register" else "operand"
    raise PtxError(f"the {what} `{shortened(word)}` in inline PTX")
