"""Names whose meaning depends on the thread that reads them: threadIdx, blockIdx, blockDim, gridDim, and variables
declared `__shared__` outside a function.

A use of such a name becomes a call of `simt::here` (include/simt/core.h); a declaration, a member, a capture or a
parameter of a macro keeps the name. C++ itself then looks the name up: a host variable named blockDim, as CUDA allows
it, is passed to `simt::here` too, which returns it unchanged.
"""

from kernel_xray.translate.edits import OPENING, Text

# Macros of the same length as the name, so that columns in the compiler's messages stay (include/simt/keywords.h).
BUILT_IN = {"threadIdx": "simt_tIdx", "blockIdx": "simt_bIx", "blockDim": "simt_bDm", "gridDim": "simt_gD"}

_OPERATORS = ("return", "else", "do", "case", "throw", "sizeof", "co_return", "co_yield", "and", "or", "not")
_DECLARED = (";", "=", ",", ")", "[", "(", "{", ":")  # may follow the name in its declaration


def is_use(text: Text, i: int) -> bool:
    """Whether the name at token i is read or written there. Where it cannot be known, either answer is right."""
    before, after = text.text(i - 1), text.text(i + 1)
    if before in (".", "->", "::"):
        return False
    if after in (".", "->"):
        return True
    k = i - 1
    while text.text(k) in ("*", "&", "&&"):
        k -= 1
    if text.text(k) == "[" and after in ("]", ","):
        return not _captures(text, k)
    if before == ":" and after in ("(", "{"):  # the initialiser of a member
        return False
    if text.text(k) == ",":
        return not _in_declaration(text, i, k)
    if before == "{":
        return "enum" not in (text.text(i - 2), text.text(i - 3), text.text(i - 4))
    typed = text.text(k) == ">" or (k >= 0 and text.tokens[k].kind == "name" and text.text(k) not in _OPERATORS)
    return not (typed and (k == i - 1 or after in _DECLARED))


def _captures(text: Text, i: int) -> bool:
    """Whether the bracket at token i begins a lambda."""
    before = text.tokens[i - 1] if i else None
    return before is None or (before.kind == "punct" and before.text not in (")", "]")) or before.text in _OPERATORS


def _in_declaration(text: Text, i: int, comma: int) -> bool:
    """Whether the name after a comma is declared, as in `dim3 grid(2), block(3);`, and is not one of several values."""
    depth, k = 0, comma
    while k >= 0 and text.tokens[k].directive == text.tokens[i].directive and text.tokens[k].kind != "define":
        word = text.text(k)
        depth += (word in OPENING.values()) - (word in OPENING)
        if depth < 0 or (depth == 0 and word in (";", "}") and text.text(k + 1) != ","):
            break
        k -= 1
    if text.text(k) == "(":
        return False
    if text.text(k) == "[":
        return _captures(text, k)
    if "enum" in (text.text(k - 1), text.text(k - 2), text.text(k - 3)):
        return True
    first, second = text.tokens[k + 1], text.text(k + 2)
    listed = first.kind == "name" and first.text not in _OPERATORS
    listed = listed and (second in ("*", "&", "::", "<") or text.tokens[k + 2].kind == "name")
    return listed or text.text(i + 1) in ("(", "{")
