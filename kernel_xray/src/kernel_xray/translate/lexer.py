"""A C++ lexer that loses nothing: the tokens' texts, joined, are the source again.

It distinguishes what a rewriter needs: comments, strings, numbers, names, punctuators and directives. CUDA's `<<<` and
`>>>` are punctuators here. Templates, macros and types are left to the compiler. A token knows the directive on whose
line it is, because a macro's body is rewritten like code, and the condition of an #if is not.
"""

import re
from dataclasses import dataclass


class LexError(ValueError):
    """A comment that never ends. `line` counts from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Token:
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
    position, line, line_start = 0, 1, True
    directive, directive_end = "", 0
    while position < len(source):
        kind, match = "", None
        if position >= directive_end:
            directive = ""
        if line_start and (begun := _DIRECTIVE.match(source, position)):
            directive, directive_end = begun[1] or "#", begun.end()
            matches = ((kind, pattern.match(source, position)) for kind, pattern in _WHOLE.items())
            kind, match = next((found for found in matches if found[1]), ("", None))
        if match is None:
            if source.startswith("/*", position) and source.find("*/", position + 2) < 0:
                raise LexError("the comment that begins here never ends", line)
            match = _PATTERN.match(source, position)
            assert match is not None  # the last alternative matches any character
            kind = match.lastgroup or "punct"
            kind = "string" if kind in ("raw", "delimiter") else kind
        text = match.group()
        if kind == "punct" and text in "\"'":  # it never ends: an error, or a word such as don't in text of an #if 0
            end = source.find("\n", position)
            kind, text = "string", source[position : end if end >= 0 else len(source)]
        tokens.append(Token(kind, text, position, line, directive))
        if kind == "space":
            line_start = line_start or bool(re.search(r"(?<!\\)\n", text.replace("\\\r\n", "\\\n")))
        elif kind != "comment":
            line_start = False
        position += len(text)
        line += text.count("\n")
    return tokens
