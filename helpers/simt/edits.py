"""A source text being rewritten: its tokens, functions to navigate them, and the edits so far."""

from helpers.simt.lexer import Token, tokenize

OPENING = {"(": ")", "[": "]", "{": "}"}


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
        self.edits: list[tuple[int, int, str]] = []  # start, end, replacement; insertions have start == end

    # -- finding -----------------------------------------------------------------------------------------------------

    def text(self, i: int) -> str:
        """The text of token i; "" outside the source."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def match(self, i: int) -> int:
        """Index of the bracket that closes the one at token i."""
        depth = 0
        for k in range(i, len(self.tokens)):
            text = self.text(k)
            depth += text in OPENING
            depth -= text in OPENING.values()
            if depth == 0:
                return k
        raise RewriteError(f"`{self.text(i)}` is never closed", self.tokens[i].line)

    def find(self, i: int, wanted: str) -> int | None:
        """Index of the next `wanted` outside brackets that open after token i; None if there is none."""
        while i < len(self.tokens):
            text = self.text(i)
            if text == wanted:
                return i
            if text in OPENING.values():
                return None
            i = self.match(i) + 1 if text in OPENING else i + 1
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
