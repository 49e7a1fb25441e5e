"""Branches of an `#if` inside an asm statement: the statement is translated once for each, between the same directives.

    asm("bar.sync 0;"            #if WITH_FENCE
    #if WITH_FENCE                 <asm("bar.sync 0;" "membar.gl;")>
        "membar.gl;"     becomes #else
    #endif                         <asm("bar.sync 0;")>
    );                           #endif

So the preprocessor decides, which alone knows what the conditions are.
"""

from collections.abc import Callable

from kernel_xray.translate.lexer import Token
from kernel_xray.translate.ptx_text import PtxError
from kernel_xray.translate.twins import TWINS

_MOST = 4  # directives #if in one statement: each may double the code
_BEGIN = ("if", "ifdef", "ifndef")


Translate = Callable[[list[Token]], str | None]  # None: the statement may stay, a compiler barrier


def in_branches(statement: list[Token], translate: Translate) -> str | None:
    """The translation of the statement's tokens, all of which counts as the line of the first."""
    if not 0 < sum(map(_begins, statement)) <= _MOST:
        return translate(statement)  # which refuses a `#`
    line = f"#line {statement[0].line}\n"
    return f"\n{line}{_in_branches(statement, translate, line)}\n{line}"


def _in_branches(statement: list[Token], translate: Translate, line: str) -> str:
    first = next((k for k, token in enumerate(statement) if _begins(token)), None)
    if first is None:
        return translate(statement) or '__asm__ __volatile__("" ::: "memory")'
    heads, branches, depth, k = list[str](), list[list[Token]](), 0, first
    while k < len(statement):
        end, kind = _directive_end(statement, k), statement[k].directive
        depth += _begins(statement[k])
        own = end > k and depth == 1
        depth -= end > k and kind == "endif"
        if own and kind == "endif":
            break
        if own:
            heads.append(" ".join(TWINS.get(token.text, token.text).strip() for token in statement[k:end]))
            branches.append([])
        else:
            branches[-1] += statement[k : max(end, k + 1)]
        k = max(end, k + 1)
    else:
        raise PtxError("inline PTX that ends in a branch of an #if")
    if heads[-1].split()[1] != "else":
        heads, branches = [*heads, "# else"], [*branches, []]
    codes = [_in_branches([*statement[:first], *branch, *statement[end:]], translate, line) for branch in branches]
    return "".join(f"{head}\n{line}{code}\n" for head, code in zip(heads, codes, strict=True)) + "#endif"


def _begins(token: Token) -> bool:
    return token.text == "#" and token.directive in _BEGIN


def _directive_end(tokens: list[Token], k: int) -> int:
    """Index past the directive of an #if that begins at token k; k if none begins there."""
    if tokens[k].text != "#" or tokens[k].directive not in (*_BEGIN, "elif", "else", "endif"):
        return k
    end = k + 1
    while end < len(tokens) and tokens[end].directive and tokens[end].text != "#":
        end += 1
    return end
