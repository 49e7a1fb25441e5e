"""Shared memory: `__shared__` declarations become references into the block's arena (include/simt/core.h).

    __shared__ T a[m], b;       typedef T A[m], B; auto& a = <the place of an A in the arena>; auto& b = ...;
    extern __shared__ T s[];    typedef T S[]; auto& s = <the launch's dynamic shared memory>;

The typedef repeats the declaration with new names: no type is parsed, only the declared names.
"""

from helpers.simt.edits import OPENING, RewriteError, Text


def rewrite_shared(text: Text, i: int, at_namespace_scope: bool) -> None:
    """Rewrites the declaration whose `__shared__` is token i. Raises RewriteError."""
    first = i
    while text.text(first - 1) in ("extern", "static", "volatile", "const"):
        first -= 1
    last = text.find(i + 1, ";")
    if last is None:
        raise RewriteError("the __shared__ declaration never ends: `;` is missing", text.tokens[i].line)
    dynamic = any(text.text(k) == "extern" for k in range(first, last))
    declaration, declared, alignment = _with_aliases(text, first, last)
    if not declared:
        raise RewriteError("cannot find the name that the __shared__ declaration declares", text.tokens[i].line)
    code = f"typedef {declaration};"
    for name, alias in declared:
        if at_namespace_scope:
            if not dynamic:
                raise RewriteError("a __shared__ variable must be declared in a kernel", text.tokens[i].line)
            code += f" static const ::simt::DynamicShared<{alias}> {name}{{}};"
        elif dynamic:
            code += f" auto& {name} = *reinterpret_cast<{alias}*>(::simt::shared_dynamic());"
        else:
            code += (
                f" static ::simt::SharedSite {alias}_site; auto& {name} = *static_cast<{alias}*>("
                f"::simt::shared_static(&{alias}_site, sizeof({alias}), "
                f"alignof({alias}) > {alignment} ? alignof({alias}) : {alignment}));"
            )
    code += "\n" * (text.source.count("\n", text.tokens[first].start, text.tokens[last].end) - code.count("\n"))
    text.replace_span(text.tokens[first].start, text.tokens[last].end, code)


def _with_aliases(text: Text, first: int, last: int) -> tuple[str, list[tuple[str, str]], str]:
    """The declaration of tokens [first, last) with new names: its text, (name, new name) pairs, its alignment."""
    alignment, declared, pieces = "1", [], []
    k, expecting_name = first, True
    position = text.tokens[first].start
    while k < last:
        token = text.tokens[k]
        word = token.text
        pieces.append(text.source[position : token.start])
        position = token.end
        if word in ("__shared__", "static", "extern"):
            k += 1
            continue
        if word in ("__align__", "alignas") and text.text(k + 1) == "(":
            end = text.match(k + 1)
            alignment = text.source[text.tokens[k + 1].start : text.tokens[end].end]
            k, position = end, text.tokens[end].end
        elif word in OPENING or (word == "<" and text.tokens[k - 1].kind == "name"):
            end = text.match(k) if word in OPENING else text.template_end(k)
            inner = [t for t in range(k, end) if text.tokens[t].kind == "name"]
            if word == "(" and expecting_name and inner:  # `float (*rows)[4]`
                raise RewriteError("write the __shared__ declaration with a typedef, not with brackets", token.line)
            pieces.append(text.source[token.start : text.tokens[end].end])
            k, position = end, text.tokens[end].end
        elif word == ",":
            expecting_name = True
            pieces.append(word)
        elif word == "=":
            raise RewriteError("a __shared__ variable cannot have an initialiser", token.line)
        elif token.kind == "name" and expecting_name and text.text(k + 1) in ("[", ",", ";"):
            alias = f"simt_shared_{token.start}_t"
            declared.append((word, alias))
            pieces.append(alias)
            expecting_name = False
        else:
            pieces.append(word)
        k += 1
    return "".join(pieces).strip(), declared, alignment
