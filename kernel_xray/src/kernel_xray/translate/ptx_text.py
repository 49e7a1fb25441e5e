"""The text of inline PTX as data: registers, labels, scopes and instructions, each with its predicate and operands.

The grammar is the part of the PTX ISA that appears in `asm` statements. Nothing here knows what an instruction does.
"""

import re
from dataclasses import dataclass


class PtxError(ValueError):
    """PTX that the simulator does not run. The message completes 'not supported by the simulator: '."""


@dataclass(frozen=True)
class Operand:
    """One operand.

    `parts` are the elements of a vector, the terms of an address, a tile's map and coordinates, or what `!` and `|`
    apply to.
    """

    kind: str  # "register", "integer", "float", "vector", "address", "tile", "not", "pair", "sink", "other"
    text: str
    parts: tuple["Operand", ...] = ()


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: tuple[Operand, ...]
    predicate: Operand | None = None


@dataclass(frozen=True)
class Registers:
    """The declaration `.reg .type names`."""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Scope:
    brace: str  # "{" or "}"


Statement = Instruction | Registers | Label | Scope

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(
    r"\s*(?:(?P<brace>[{}])|(?P<label>[A-Za-z_$%][\w$]*)\s*:(?!:)|(?P<body>[^;]*);|(?P<rest>.*\S.*))", re.DOTALL
)
_INSTRUCTION = re.compile(r"(?:@\s*(!?\s*%?[\w$]+)\s+)?([A-Za-z]\w*(?:\s*(?:\.|::)\w+)*)(.*)", re.DOTALL)
_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|[0-9]+U?|<<|>>|[-+*/%&|^~()]|\s)+$")  # or an expression
_FLOAT = re.compile(
    r"[-+]?\s*(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|[0-9]+[eE][-+]?[0-9]+|[0-9]*\.[0-9]*(?:[eE][-+]?[0-9]+)?)$"
)
_REGISTER = re.compile(r"%[0-9]+$|%?[A-Za-z_$][\w$]*(?:\.[xyzw])?$")
_TILE = re.compile(r"\[\s*([^,\]]+),\s*\{([^{}]*)\}\s*\]")  # a tensor map and the coordinates of a tile
_RANGE = re.compile(r"(%?[\w$]+)<(\d+)>$")


def parse(text: str) -> list[Statement]:
    """The statements of a template whose `%%` are `%` already. Raises PtxError."""
    statements: list[Statement] = []
    text, position = _COMMENT.sub(" ", text), 0
    while match := _STATEMENT.match(text, position):
        position = match.end()
        if match["brace"]:
            statements.append(Scope(match["brace"]))
        elif match["label"]:
            statements.append(Label(match["label"]))
        elif match["rest"]:
            raise PtxError(f"inline PTX whose last instruction, `{shortened(match['rest'])}`, has no semicolon")
        elif body := match["body"].strip():
            statements += _statement(body)
    return statements


def _statement(body: str) -> list[Statement]:
    if body.startswith(".pragma"):
        return []
    if body.startswith(".reg"):
        words = body.replace(".reg", ".reg ", 1).replace(",", " ").split()  # also `.reg.pred p`
        if len(words) < 3:
            raise PtxError(f"the inline PTX `{shortened(body)}`")
        return [Registers(words[1].lstrip("."), tuple(name for word in words[2:] for name in _names(word)))]
    match = _INSTRUCTION.match(body)
    if not match:
        raise PtxError(f"the inline PTX `{shortened(body)}`")
    predicate = _operand(match[1]) if match[1] else None
    return [Instruction(re.sub(r"\s", "", match[2]), tuple(_operand(part) for part in _split(match[3])), predicate)]


def _names(word: str) -> list[str]:
    """The registers that one word declares: `r<3>` is r0, r1, r2."""
    match = _RANGE.match(word)
    return [f"{match[1]}{i}" for i in range(int(match[2]))] if match else [word]


def _split(text: str) -> list[str]:
    """The parts between commas that are outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "{[(") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if text.strip() else []


def _operand(text: str) -> Operand:
    text = text.strip()
    if text == "_":
        return Operand("sink", text)
    if text[:1] == "{" and text[-1:] == "}":
        return Operand("vector", text, tuple(map(_operand, _split(text[1:-1]))))
    if text[:1] == "[" and text[-1:] == "]" and "," not in text:
        terms = re.sub(r"-\s*", "+-", text[1:-1].replace("+-", "-")).split("+")
        return Operand("address", text, tuple(map(_operand, terms)))
    if tile := _TILE.fullmatch(text):
        return Operand("tile", text, (_operand(tile[1]), *map(_operand, _split(tile[2]))))
    if text[:1] == "!":
        return Operand("not", text, (_operand(text[1:]),))
    for kind, pattern in (("float", _FLOAT), ("register", _REGISTER), ("integer", _INTEGER)):
        if pattern.match(text):
            return Operand(kind, text)
    if text.count("|") == 1:
        return Operand("pair", text, tuple(map(_operand, text.split("|"))))
    return Operand("other", text)


def shortened(text: str) -> str:
    """The text on one line, cut after 60 characters, for an error."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
