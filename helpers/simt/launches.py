"""Launches: `kernel<<<config>>>(arguments)` becomes a call of `simt::launcher` (include/simt/core.h).

    ::simt::launcher({"kernel", file, line}, ::simt::Config(config), [=](auto&... a) mutable { kernel(a...); })(args)

The text between the brackets goes to the compiler unchanged: nothing is split at commas, and no type is parsed. A
kernel declared with `__cluster_dims__(2, 1, 1)` gets these cluster dimensions at each launch in its file that names it.
If an argument is in braces, `.of(kernel)` precedes the arguments.
"""

import re

from helpers.simt.edits import OPENING, RewriteError, Text

_NO_NAMES = ("return", "else", "do", "case", "if", "while", "for", "switch")  # may precede a kernel's name


def rewrite_launch(text: Text, i: int, kernels: set[str], clusters: dict[str, str]) -> None:
    """Rewrites the launch whose `<<<` is token i. Raises RewriteError.

    kernels   names that denote a single function
    clusters  kernel -> the dimensions of its clusters
    """
    opening = text.tokens[i]
    first = _callee_start(text, i)
    closing = text.find(i + 1, ">>>")
    if first == i or closing is None:
        what = "has no kernel before it" if first == i else "has no matching `>>>`"
        raise RewriteError(f"the launch's `<<<` {what}", opening.line)
    if text.text(closing + 1) != "(":
        raise RewriteError("the launch has no argument list: `>>>` must be followed by `(`", opening.line)
    _null_arguments(text, closing + 1)
    begin = text.tokens[first].start
    callee = re.sub(r"\s+|\\\r?\n", " ", text.source[begin : opening.start]).strip()
    broken = text.source[begin : opening.end]
    kept = "".join(re.findall(r"\\\r?\n|\n", broken))  # keeps the number of lines
    name = callee.replace("\\", "").replace('"', "'")
    address = f"reinterpret_cast<const void*>(&{callee})" if callee.rpartition("::")[2] in kernels else "nullptr"
    cluster = clusters.get(callee.partition("<")[0].rpartition("::")[2].strip(), "")
    site = f'{{"{name}", __FILE__, __LINE__, {address}, ::dim3({cluster})}}'
    head = f"::simt::launcher({site}, ::simt::Config({kept}"
    text.replace_span(begin, opening.end, head)
    typed = f".of({callee})" if _braced_argument(text, closing + 1) else ""
    body = f"), [=](auto&... simt_arguments) mutable {{ {callee}(simt_arguments...); }}){typed}"
    text.replace(text.tokens[closing], body)


def _callee_start(text: Text, i: int) -> int:
    """Index of the first token of the kernel's name that ends just before token i: `a::b<c>`, `(*f)`, `table[k]`."""
    j = _component_start(text, i)
    while j < i:
        link = j - 1 - (text.text(j - 1) == "template")
        if text.text(link) not in ("::", ".", "->"):
            break
        before = _component_start(text, link)
        if before == link:  # `::kernel`, of the global namespace
            return link
        j = before
    return j


def _component_start(text: Text, i: int) -> int:
    """Index of the first token of the `name`, `name<...>`, `name[...]`, `name(...)` or `(...)` that ends before i."""
    j = i
    while text.text(j - 1) in (">", ">>", ">>>", "]"):
        j = text.back_over_brackets(j - 1) if text.text(j - 1) == "]" else text.back_over_template(j - 1)
    if text.text(j - 1) == ")":
        j = text.back_over_brackets(j - 1)
    if j > 0 and text.tokens[j - 1].kind == "name" and text.text(j - 1) not in _NO_NAMES:
        j -= 1
    return j


def _null_arguments(text: Text, i: int) -> None:
    """Replaces each argument NULL by nullptr: the launcher forwards it, and a forwarded NULL is an integer."""
    depth = 0
    for k in range(i, text.match(i)):
        depth += (text.text(k) in OPENING) - (text.text(k) in OPENING.values())
        alone = text.text(k - 1) in ("(", ",") and text.text(k + 1) in (")", ",")
        if text.text(k) == "NULL" and depth == 1 and alone:
            text.replace(text.tokens[k], "nullptr")


def _braced_argument(text: Text, i: int) -> bool:
    """Whether an argument is `{...}`, which has no type of its own and takes the kernel parameter's."""
    depth = 0
    for k in range(i, text.match(i)):
        if text.text(k) == "{" and depth == 1 and text.text(k - 1) in ("(", ","):
            return True
        depth += (text.text(k) in OPENING) - (text.text(k) in OPENING.values())
    return False


def cluster_dimensions(text: Text) -> dict[str, str]:
    """The kernels declared with `__cluster_dims__`, each with the text in its brackets. Raises RewriteError."""
    found: dict[str, str] = {}
    for i, token in enumerate(text.tokens):
        if token.text != "__cluster_dims__" or text.text(i + 1) != "(":
            continue
        opening, k = text.tokens[i + 1], text.match(i + 1)
        dimensions = " ".join(text.source[opening.end : text.tokens[k].start].split())
        while k < len(text.tokens) and (text.text(k) != "(" or text.text(k - 1).startswith("__")):
            k = text.match(k) + 1 if text.text(k) == "(" else k + 1
        name = text.text(k - 1) if k < len(text.tokens) else ""
        if found.setdefault(name, dimensions) != dimensions:
            raise RewriteError(f"two kernels named `{name}` have clusters of different dimensions", token.line)
    return found


def plain_kernels(text: Text) -> set[str]:
    """The names of the kernels that are not templates and are defined once: a kernel's attributes apply to these."""
    names: list[str] = []
    for i, token in enumerate(text.tokens):
        if token.text != "__global__":
            continue
        k = i + 1
        while k < len(text.tokens) and text.text(k) not in ("(", ";", "{"):
            if text.text(k + 1) == "(" and text.text(k).startswith("__"):  # __launch_bounds__(256)
                k = text.match(k + 1)
            k += 1
        if text.text(k) != "(" or text.text(text.match(k) + 1) != "{":
            continue
        templated = any(text.text(j) in (">", ">>") for j in range(max(0, i - 3), i))
        names += [text.text(k - 1)] * (2 if templated else 1)
    return {name for name in names if names.count(name) == 1}
