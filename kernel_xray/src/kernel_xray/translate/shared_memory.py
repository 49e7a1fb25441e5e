"""Shared memory: `__shared__` declarations become references into the block's arena (include/simt/core.h).

    __shared__ T a[m], b;       typedef T A[m], B; auto& a = <the place of an A in the arena>; auto& b = ...;
    extern __shared__ T s[];    typedef T S[]; auto& s = <the launch's dynamic shared memory>;

The typedef repeats the declaration with new names: no type is parsed, only the declared names. Outside a function, the
variable becomes an object that finds its place in the arena of the block that asks (names.py).
"""

from kernel_xray.translate.edits import OPENING, RewriteError, Text
from kernel_xray.translate.refusals import refuse

_SPECIFIERS = ("extern", "static", "volatile", "const", "inline", "alignas", "__align__", "__attribute__")
_ALIGNMENTS = ("alignas", "__align__")
_ALIAS = "a macro of another file that stands for __shared__; write __shared__"


def shared_words(text: Text) -> set[str]:
    """`__shared__`, and the macros of this text that stand for it."""
    heads = [k for k, token in enumerate(text.tokens) if token.kind == "define" and text.limit(k + 1) == k + 2]
    return {"__shared__"} | {text.text(k).split()[-1] for k in heads if text.text(k + 1) == "__shared__"}


def rewrite_shared(text: Text, i: int, at_namespace_scope: bool) -> list[str]:
    """Rewrites the declaration whose `__shared__` is token i; returns the names that it declares outside functions.

    Raises RewriteError.
    """
    first, end = _start(text, i), text.limit(i)
    semicolon = text.find(i + 1, ";", end)
    if semicolon is None and not text.in_macro(i):
        raise RewriteError("the __shared__ declaration never ends: `;` is missing", text.tokens[i].line)
    last = end if semicolon is None else semicolon
    dynamic = any(text.text(k) == "extern" for k in range(first, last))
    declaration, declared, alignment = _with_aliases(text, first, last, i)
    if not declared and text.in_macro(i):
        refuse(text, text.tokens[i], _ALIAS)
        return []
    if not declared:
        raise RewriteError("cannot find the name that the __shared__ declaration declares", text.tokens[i].line)
    statements = [f"typedef {declaration}"]
    for name, alias, site in declared:
        if at_namespace_scope:
            kind = f"DynamicShared<{alias}>" if dynamic else f"StaticShared<{alias}, {alignment}>"
            statements.append(f"static const ::simt::{kind} {name}{{}}")
        elif dynamic:
            statements.append(f"auto& {name} = *reinterpret_cast<{alias}*>(::simt::shared_dynamic())")
        else:
            statements.append(
                f"static ::simt::SharedSite {site}; auto& {name} = *static_cast<{alias}*>("
                f"::simt::shared_static(&{site}, sizeof({alias}), "
                f"alignof({alias}) > {alignment} ? alignof({alias}) : {alignment}))"
            )
    begin = text.tokens[first].start
    close = text.tokens[last - 1].end if semicolon is None else text.tokens[semicolon].end
    code = "; ".join(statements) + (";" if semicolon is not None else "")
    line_break = "\\\n" if text.in_macro(i) else "\n"
    code += line_break * (text.source.count("\n", begin, close) - code.count("\n"))
    text.replace_span(begin, close, code)
    return [name for name, _, _ in declared] if at_namespace_scope else []


def _start(text: Text, i: int) -> int:
    """Index of the first token of the declaration: `extern float __shared__ s[]` begins before `__shared__`."""
    first = i
    while first > 0:
        k = first - 1
        token = text.tokens[k]
        if token.text == ")":  # alignas(16)
            k = text.back_over_brackets(k) - 1
        elif token.text in (">", ">>"):
            k = text.back_over_template(k)
        same_place = token.directive == text.tokens[i].directive and token.kind != "define"
        # A name on a line of its own may be a macro, and is left alone.
        a_type = token.kind == "name" or token.text in ("::", "*", "&", ">", ">>")
        a_type = a_type and token.text != "else" and token.line == text.tokens[first].line
        if not same_place or not (text.text(k) in _SPECIFIERS or a_type):
            break
        first = k
    return first


def _with_aliases(text: Text, first: int, last: int, shared: int) -> tuple[str, list[tuple[str, str, str]], str]:
    """The declaration of tokens [first, last) as that of types: its text, its names, its alignment.

    Each name comes with those of its type and of its site. In a macro that has it as a parameter they contain it, so
    that the macro can be used twice in a scope.
    """
    alignment, declared, pieces = "1", [], []
    parameters = text.parameters(first) if text.in_macro(first) else set()
    k, expecting_name = first, True
    position = text.tokens[first].start
    while k < last:
        token = text.tokens[k]
        word = token.text
        pieces.append(text.source[position : token.start])
        position = token.end
        if k == shared or word in ("static", "extern", "inline"):
            k += 1
            continue
        if word in _ALIGNMENTS and text.text(k + 1) == "(":
            end = text.match(k + 1)
            alignment = text.source[text.tokens[k + 1].start : text.tokens[end].end]
            k, position = end, text.tokens[end].end
        elif word in OPENING or (word == "<" and text.tokens[k - 1].kind == "name"):
            end = text.match(k) if word in OPENING else text.template_end(k)
            inner = [t for t in range(k, end) if text.tokens[t].kind == "name"]
            if word == "(" and expecting_name and inner and text.text(k - 1) != "__attribute__":  # `float (*rows)[4]`
                raise RewriteError("write the __shared__ declaration with a typedef, not with brackets", token.line)
            pieces.append(text.source[token.start : text.tokens[end].end])
            k, position = end, text.tokens[end].end
        elif word == ",":
            expecting_name = True
            pieces.append(word)
        elif word == "=":
            raise RewriteError("a __shared__ variable cannot have an initialiser", token.line)
        elif token.kind == "name" and expecting_name and (text.text(k + 1) in ("[", ",", ";") or k + 1 == last):
            alias = f"simt_shared_##{word}" if word in parameters else f"simt_shared_{token.start}_t"
            site = f"simt_site_##{word}" if word in parameters else f"{alias}_site"
            declared.append((word, alias, site))
            pieces.append(alias)
            expecting_name = False
        else:
            pieces.append(word)
        k += 1
    return "".join(pieces).strip(), declared, alignment
