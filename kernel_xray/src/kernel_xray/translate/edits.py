"""A source text being rewritten: its tokens, functions to navigate them, and the edits so far."""

import re

from kernel_xray.translate.lexer import DEFINE, Token, tokenize

OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(OPENING.values())


class RewriteError(ValueError):
    """Malformed text, which no compiler would accept either. `line` counts from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


class Text:
    """`tokens` are the tokens of `source` without blanks; the positions below are indices into them."""

    def __init__(self, source: str):
        self.source = source
        self.tokens = [t for t in tokenize(source) if not t.blank]
        self._words = [t.text for t in self.tokens]
        self._skipped = _other_branches(self.tokens)
        self._places: dict[str, list[int]] = {}
        self.edits: list[tuple[int, int, str]] = []  # start, end, replacement; insertions have start == end

    # -- finding -----------------------------------------------------------------------------------------------------

    def text(self, i: int) -> str:
        """The text of token i; "" outside the source."""
        return self._words[i] if 0 <= i < len(self._words) else ""

    def places(self, word: str) -> list[int]:
        """The indices of all tokens with this text."""
        if not self._places:
            for i, each in enumerate(self._words):
                self._places.setdefault(each, []).append(i)
        return self._places.get(word, [])

    def match(self, i: int) -> int:
        """Index of the bracket that closes the one at token i."""
        depth, k = 0, i
        while k < len(self._words):
            word = self._words[k]
            if word in OPENING:
                depth += 1
            elif word in _CLOSING:
                depth -= 1
                if depth == 0:
                    return k
            k = self._skipped.get(k + 1, k + 1)
        raise RewriteError(f"`{self.text(i)}` is never closed", self.tokens[i].line)

    def in_macro(self, i: int) -> bool:
        """Whether token i is in the body of a macro."""
        return 0 <= i < len(self.tokens) and self.tokens[i].directive == "define" and self.tokens[i].kind != "define"

    def limit(self, i: int) -> int:
        """Index past the end of what token i can belong to: of its macro's body, or of the text."""
        outside = (k for k in range(i + 1, len(self.tokens)) if not self.in_macro(k))
        return next(outside, len(self.tokens)) if self.in_macro(i) else len(self.tokens)

    def parameters(self, i: int) -> set[str]:
        """The parameters of the macro in whose body token i is."""
        while self.in_macro(i):
            i -= 1
        head = DEFINE.fullmatch(self.text(i))
        return set(re.findall(r"\w+", head["parameters"] or "")) | {"__VA_ARGS__"} if head else set()

    def find(self, i: int, wanted: str, end: int | None = None) -> int | None:
        """Index of the next `wanted` before `end`, outside brackets that open after token i; None if there is none."""
        while i < (len(self.tokens) if end is None else end):
            text = self.text(i)
            if text == wanted:
                return i
            if text in OPENING.values():
                return None
            i = self.match(i) + 1 if text in OPENING else i + 1
            i = self._skipped.get(i, i)
        return None

    def template_end(self, i: int) -> int:
        """Index of the `>` (or `>>`) that closes the template arguments which open at token i."""
        depth = 0
        for k in range(i, len(self.tokens)):
            text = self.text(k)
            if set(text) == {"<"}:
                depth += len(text)
            elif set(text) == {">"}:
                depth -= len(text)
                if depth <= 0:
                    return k
        raise RewriteError("template arguments never end", self.tokens[i].line)

    def back_over_template(self, j: int) -> int:
        """Index of the `<` of the template arguments that close at token j."""
        depth = 0
        while j >= 0:
            text = self.text(j)
            if text in (")", "]", "}"):
                j = self.back_over_brackets(j)
            elif text and set(text) == {">"}:
                depth += len(text)
            elif text and set(text) == {"<"}:
                depth -= len(text)
                if depth <= 0:
                    return j
            elif text in (";", "{"):
                break
            j -= 1
        raise RewriteError("cannot find where the kernel's template arguments begin", self.tokens[max(j, 0)].line)

    def back_over_brackets(self, j: int) -> int:
        """Index of the bracket that token j closes."""
        depth = 0
        for k in range(j, -1, -1):
            text = self.text(k)
            depth += text in (")", "]", "}")
            depth -= text in ("(", "[", "{")
            if depth == 0:
                return k
        raise RewriteError(f"`{self.text(j)}` has no opening bracket", self.tokens[j].line)

    # -- changing ----------------------------------------------------------------------------------------------------

    def replace(self, token: Token, text: str) -> None:
        """Replaces the token by `text`."""
        self.edits.append((token.start, token.end, text))

    def replace_span(self, start: int, end: int, text: str) -> None:
        """Replaces source[start:end] by `text`; edits inside it are dropped."""
        self.edits.append((start, end, text))

    def result(self) -> str:
        """The source with all edits applied."""
        pieces, position = [], 0
        for start, end, text in sorted(self.edits, key=lambda edit: (edit[0], edit[1])):
            if start < position:  # inside text that another edit has replaced
                continue
            pieces += [self.source[position:start], text]
            position = end
        return "".join(pieces) + self.source[position:]


def _other_branches(tokens: list[Token]) -> dict[int, int]:
    """For the `#` of each #elif and #else the index past its #endif: only one branch of an #if is compiled."""
    ends: dict[int, int] = {}
    begun: list[list[int]] = []  # the other branches of each #if that is open
    for k, token in enumerate(tokens):
        if token.text != "#":
            continue
        if token.directive in ("if", "ifdef", "ifndef"):
            begun.append([])
        elif token.directive in ("elif", "else") and begun:
            begun[-1].append(k)
        elif token.directive == "endif" and begun:
            ends |= dict.fromkeys(begun.pop(), k + 2)
    return ends
