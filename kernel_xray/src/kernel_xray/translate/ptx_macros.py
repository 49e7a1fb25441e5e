"""Macros around inline PTX, which the preprocessor would expand only after the translation.

    #define NAMES "%0, %1"                                  a part of the text of an asm statement, or of its operands
    #define HOPPER_ASM(...) asm volatile(__VA_ARGS__)       stands for an asm statement: each use is translated

A macro with several definitions, in branches of an #if, has the one that is an asm statement. `##` is not expanded.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_xray.translate.edits import OPENING
from kernel_xray.translate.lexer import DEFINE, Token, tokenize

ASM = ("asm", "__asm__", "__asm")
DEFINITION = re.compile(rf"^[ \t]*(?=#)(?P<head>{DEFINE.pattern})(?P<body>(?:\\\r?\n|[^\n])*)", re.MULTILINE)
_REST = "__VA_ARGS__"


@dataclass(frozen=True)
class Macro:
    parameters: tuple[str, ...] | None  # None: it is used without brackets
    body: tuple[Token, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.body)

    def applied(self, arguments: list[list[Token]]) -> list[Token]:
        """The body with arguments in the place of parameters."""
        names = self.parameters or ()
        given = dict(zip(names, arguments, strict=False))
        if names[-1:] == (_REST,):
            given[_REST] = _joined(arguments[len(names) - 1 :])
        result: list[Token] = []
        for token in self.body:
            if token.text in given and result and result[-1].text == "#":
                text = " ".join(each.text for each in given[token.text])
                result[-1] = Token("string", '"' + re.sub(r'(["\\])', r"\\\1", text) + '"', token.start, token.line)
            else:
                result += given.get(token.text, [token])
        return result


class Macros:
    """The macros of a program's texts."""

    def __init__(self, texts: Iterable[str]):
        texts, found = list(texts), defaultdict(list)
        for text in texts if any("asm" in text for text in texts) else ():
            for match in DEFINITION.finditer(text):
                found[match["name"]].append(macro_of(match["parameters"], match["body"]))
        self._macros = {name: macro for name, macros in found.items() if (macro := _chosen(macros))}
        self.statements: set[str] = set()  # macros whose uses are asm statements that only the arguments complete
        while more := {name for name in self._macros if name not in self.statements and self._stands_for_asm(name)}:
            self.statements |= more

    def _stands_for_asm(self, name: str) -> bool:
        words = [word for word in self._macros[name].words if word not in ("volatile", ";")]
        if not self._macros[name].parameters or words[1:2] != ["("] or words[-1] != ")":
            return False
        text = words[: next((i for i, word in enumerate(words) if word in (":", "::")), -1)]
        parameters = self._macros[name].parameters or ()
        return words[0] in self.statements or (words[0] in ASM and any(word in parameters for word in text))

    def names(self, tokens: list[Token]) -> bool:
        """Whether one of the tokens is the name of a macro."""
        return any(token.text in self._macros for token in tokens)

    def statement(self, tokens: list[Token]) -> list[Token]:
        """The asm statement, from `asm` on, that a macro of this kind with its arguments stands for."""
        while tokens[0].text not in ASM:
            arguments, _ = arguments_of(tokens, 1)
            tokens = self._macros[tokens[0].text].applied(arguments)
        return tokens

    def reached_from(self, words: Iterable[str]) -> list[tuple[str, Macro, bool]]:
        """The macros that a text with these words can use, in order; whether each stands for an asm statement."""
        found: set[str] = set()
        waiting = {word for word in words if word in self._macros}
        while waiting:
            found |= waiting
            named = {word for name in waiting for word in self._macros[name].words}
            waiting = (named & self._macros.keys()) - found
        return [(name, self._macros[name], name in self.statements) for name in sorted(found)]

    def expanded(self, tokens: list[Token], within: frozenset[str] = frozenset()) -> list[Token]:
        """The tokens with macros outside brackets expanded; `within`: those that are being expanded already."""
        result: list[Token] = []
        i, depth = 0, 0
        while i < len(tokens):
            token = tokens[i]
            depth += (token.text in OPENING) - (token.text in OPENING.values())
            macro = None if depth or token.text in within else self._macros.get(token.text)
            i += 1
            if macro is None or "##" in macro.words:
                result.append(token)
                continue
            arguments: list[list[Token]] = []
            if macro.parameters is not None:
                if i == len(tokens) or tokens[i].text != "(":
                    result.append(token)
                    continue
                arguments, i = arguments_of(tokens, i)
            result += self.expanded(macro.applied(arguments), within | {token.text})
        return result


def macro_of(parameters: str | None, body: str) -> Macro:
    names = None if parameters is None else tuple(re.findall(r"\w+|\.\.\.", parameters))
    names = names and tuple(_REST if name == "..." else name for name in names)
    return Macro(names, tuple(token for token in tokenize(body) if not token.blank))


def _chosen(macros: list[Macro]) -> Macro | None:
    different = {(macro.parameters, macro.words): macro for macro in macros}
    with_asm = [macro for macro in different.values() if any(word in ASM for word in macro.words)]
    candidates = list(different.values()) if len(different) == 1 else with_asm
    return candidates[0] if len(candidates) == 1 else None


def arguments_of(tokens: list[Token], opening: int) -> tuple[list[list[Token]], int]:
    """The arguments in the brackets that open at a token, and the index past them."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for i in range(opening, len(tokens)):
        word = tokens[i].text
        depth += (word in OPENING) - (word in OPENING.values())
        if depth == 0:
            return arguments, i + 1
        if word == "," and depth == 1:
            arguments.append([])
        elif i > opening:
            arguments[-1].append(tokens[i])
    return arguments, len(tokens)


def _joined(arguments: list[list[Token]]) -> list[Token]:
    """Arguments with the commas that separated them."""
    comma = Token("punct", ",", 0, 0)
    return [token for k, argument in enumerate(arguments) for token in ([comma] if k else []) + argument]
