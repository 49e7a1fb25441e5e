"""A C++ lexer that loses nothing: the tokens' texts, joined, are the source again.

It distinguishes what a rewriter needs: comments, strings, numbers, names, punctuators and directives. CUDA's `<<<` and
`>>>` are punctuators here. Templates, macros and types are left to the compiler. A token knows the directive on whose
line it is, because a macro's body is rewritten like code, and the condition of an #if is not.
"""

import re
from typing import NamedTuple


class LexError(ValueError):
    """A comment that never ends. `line` counts from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


class Token(NamedTuple):
    """One token: its kind, its text and where it begins (offset in the source, line from 1)."""

    kind: str  # "space", "comment", "string", "number", "name", "punct", "include", "define", "directive"
    text: str
    start: int
    line: int
    directive: str = ""  # the directive that it is a part of: "define", "ifdef", ...; "" in code

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def blank(self) -> bool:
        """Whether a compiler would skip it."""
        return self.kind in ("space", "comment")


# Order matters: the first alternative that matches wins. A raw string's delimiter is matched by the back-reference.
_PATTERN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f\v]|\\\r?\n)+)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^ ()\\\t\n]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
  | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<punct><<<|>>>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
    """,
    re.VERBOSE | re.DOTALL,
)
# A directive begins a line. Those whose text is not C++ tokens, or whose `<` is not an operator, are one token, and so
# is the head of a #define: its name and parameters are not uses of these names.
_DIRECTIVE = re.compile(r"#[ \t]*(\w*)(?:\\\r?\n|[^\n])*")
_INCLUDE = re.compile(r"#[ \t]*include(?:_next)?[ \t]*(?:<[^>\n]*>|\"[^\"\n]*\")")
_OPAQUE = re.compile(r"#[ \t]*(?:error|warning|pragma|line|undef)\b(?:\\\r?\n|[^\n])*")
DEFINE = re.compile(r"#[ \t]*define[ \t]+(?P<name>\w+)(?P<parameters>\((?:\\\r?\n|[^()\n])*\))?")
_WHOLE = {"include": _INCLUDE, "directive": _OPAQUE, "define": DEFINE}  # kind of token -> what it matches


def tokenize(source: str) -> list[Token]:
    """Splits `source` into tokens. Raises LexError for a comment that never ends."""
    tokens: list[Token] = []
    position, line = 0, 1
    directive, directive_end = "", 0
    while position < len(source):
        for match in _PATTERN.finditer(source, position):  # until a directive that is one token
            kind, text, start = match.lastgroup or "punct", match[0], match.start()
            if start >= directive_end:
                directive = ""
            position = match.end()
            if text == "#" and _at_line_start(tokens):
                begun = _DIRECTIVE.match(source, start)
                assert begun is not None
                directive, directive_end = begun[1] or "#", begun.end()
                whole = next(((k, m) for k, pattern in _WHOLE.items() if (m := pattern.match(source, start))), None)
                if whole is not None:
                    kind, text, position = whole[0], whole[1][0], whole[1].end()
            elif kind in ("raw", "delimiter"):
                kind = "string"
            elif kind == "punct" and text in "\"'":  # it never ends: an error, or don't in the text of an #if 0
                end = source.find("\n", start)
                position = end if end >= 0 else len(source)
                kind, text = "string", source[start:position]
            elif text == "/" and source.startswith("*", position):
                raise LexError("the comment that begins here never ends", line)
            tokens.append(Token(kind, text, start, line, directive))
            if kind != "name" and kind != "punct":
                line += text.count("\n")
            if position != match.end():
                break
    return tokens


def _at_line_start(tokens: list[Token]) -> bool:
    """Whether only blanks and comments precede the next token on its line."""
    for token in reversed(tokens):
        if token.kind == "space" and re.search(r"(?<!\\)\n", token.text.replace("\\\r\n", "\\\n")):
            return True
        if not token.blank:
            return False
    return True
