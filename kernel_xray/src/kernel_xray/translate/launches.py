"""Launches: `kernel<<<config>>>(arguments)` becomes a call of `simt::launcher` (include/simt/core.h).

    ::simt::launcher({"kernel", file, line}, ::simt::Config(config), <a lambda that calls kernel>)(arguments)

The text between the brackets goes to the compiler unchanged: nothing is split at commas, and no type is parsed. A
kernel declared with `__cluster_dims__(2, 1, 1)` gets these cluster dimensions at each launch in its file that names it.
If an argument is in braces, `.of(kernel)` precedes the arguments.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_xray.translate.declarations import cluster_dimensions, functions, host_functions, plain_kernels
from kernel_xray.translate.edits import OPENING, RewriteError, Text
from kernel_xray.translate.kernel_pointers import is_pointer, is_variable, kernel_names, literal
from kernel_xray.translate.refusals import reject

_NO_KERNEL = "a host function call cannot be configured: {} is not declared __global__"  # the beginning is nvcc's text
_BLANKS = re.compile(r"(?:\s|\\\r?\n|//[^\n]*|/\*.*?\*/)+", re.DOTALL)  # between the tokens of a kernel's name
_NO_NAMES = ("return", "else", "do", "case", "if", "while", "for", "switch")  # may precede a kernel's name


@dataclass(frozen=True)
class Declared:
    """What a launch has to know about the functions of its file."""

    kernels: set[str]  # that denote a single function
    named: set[str]  # all kernels, of the other files too
    host_functions: set[str]
    clusters: dict[str, str]  # kernel -> the dimensions of its clusters

    @classmethod
    def of(cls, text: Text, kernels: Mapping[str, int]) -> "Declared":
        """`kernels`: those of all files of the program, with the number of their definitions. Raises RewriteError."""
        declared = functions(text)
        overloaded = {name for name, definitions in kernels.items() if definitions > 1}
        host = host_functions(declared) - kernels.keys()
        named = kernel_names(text) | kernels.keys()
        return cls(plain_kernels(declared) - overloaded, named, host, cluster_dimensions(text))


def launch_bracket(text: Text, i: int) -> int | None:
    """Index of the last token of the `<<<` that begins at token i: formatters write it as `<< <`."""
    if text.text(i) == "<<" and text.text(i + 1) == "<" and text.text(i - 1) != "operator":
        return i + 1
    return i if text.text(i) == "<<<" else None


def rewrite_launch(text: Text, i: int, last: int, declared: Declared) -> None:
    """Rewrites the launch whose `<<<` is the tokens from i to `last`. Raises RewriteError."""
    opening = text.tokens[i]
    first = _callee_start(text, i)
    closing = _closing_bracket(text, last + 1)
    if first == i or closing is None:
        what = "has no kernel before it" if first == i else "has no matching `>>>`"
        raise RewriteError(f"the launch's `<<<` {what}", opening.line)
    arguments = closing + (2 if text.text(closing) == ">>" else 1)
    if text.text(arguments) != "(":
        raise RewriteError("the launch has no argument list: `>>>` must be followed by `(`", opening.line)
    name = text.text(first)
    if name in declared.host_functions and (first == i - 1 or text.text(first + 1) == "<"):
        reject(text, text.tokens[first], _NO_KERNEL.format(name))
    begin, end = text.tokens[first].start, text.tokens[last].end
    callee = _BLANKS.sub(" ", text.source[begin : opening.start]).strip()
    plain = callee.rpartition("::")[2] in declared.kernels
    address = f"reinterpret_cast<const void*>(&{callee})" if plain else "nullptr"
    of_kernel = callee.partition("<")[0].rpartition("::")[2].strip()
    pointer = is_pointer(text, first, i, declared.named)
    either = not pointer and plain and first == i - 1 and is_variable(text, first)  # which of the two is C++'s to say
    cluster = "" if pointer or either else declared.clusters.get(of_kernel, "")
    site = f"{{{literal(text, first, callee)}, __FILE__, __LINE__, {address}, ::dim3({cluster})}}"
    site = f"::simt::site_of(reinterpret_cast<const void*>(+{callee}), {site})" if either else site
    if pointer:
        text.replace_span(begin, begin, f"::simt::launcher_of({site}, ")
        text.replace_span(opening.start, end, f", ::simt::Config({_breaks(text, opening.start, end)}")
        begin, end = text.tokens[closing].start, text.tokens[arguments - 1].end
        text.replace_span(begin, end, f")){_breaks(text, begin, end)}")
        return
    zeros = _null_arguments(text, arguments)
    text.replace_span(begin, end, f"::simt::launcher({site}, ::simt::Config({_breaks(text, begin, end)}")
    typed = f".of({callee})" if _braced_argument(text, arguments) else ""
    call = f"{callee}(simt_arguments...)"
    if zeros:
        function = f"[&](auto... simt_a) -> decltype({callee}(simt_a...)) {{ {callee}(simt_a...); }}"
        call = f"::simt::call({function}, simt_arguments...)"
    call = f"if constexpr (simt_pass.plain) {call}; else simt_pass({callee}, simt_arguments...);"
    begin, end = text.tokens[closing].start, text.tokens[arguments - 1].end
    kept = _breaks(text, begin, end)
    text.replace_span(begin, end, f"), [=](auto simt_pass, auto&... simt_arguments) mutable {{ {call} }}){typed}{kept}")


def _breaks(text: Text, begin: int, end: int) -> str:
    """The line breaks of source[begin:end], which keep the number of lines."""
    return "".join(re.findall(r"\\\r?\n|\n", text.source[begin:end]))


def _closing_bracket(text: Text, k: int) -> int | None:
    """Index of the `>>>`, or of the `>>` of a formatter's `>> >`, that ends the configuration."""
    end = text.limit(k - 1)
    while k < end and text.text(k) != ";" and text.text(k) not in OPENING.values():
        if text.text(k) == ">>>" or (text.text(k) == ">>" and [*map(text.text, (k + 1, k + 2))] == [">", "("]):
            return k
        k = text.match(k) + 1 if text.text(k) in OPENING else k + 1
    return None


def _callee_start(text: Text, i: int) -> int:
    """Index of the first token of the kernel's name that ends just before token i: `a::b<c>`, `(*f)`, `table[k]`."""
    j = _component_start(text, i)
    while j < i:
        link = j - 1 - (text.text(j - 1) == "template")
        if text.text(link) not in ("::", ".", "->", "##"):
            break
        before = _component_start(text, link)
        if before == link:  # `::kernel`, of the global namespace
            return link
        j = before
    return j


def _component_start(text: Text, i: int) -> int:
    """Index of the first token of the `name`, `(...)`, or either with `<...>`, `[...]`, `(...)`, that ends before i."""
    j, called = i, False  # the brackets before those of a call may be the condition of an `if`
    while (last := text.text(j - 1)) in (">", ">>", ">>>", "]") or (last == ")" and not called):
        called |= last == ")"
        j = text.back_over_template(j - 1) if last.startswith(">") else text.back_over_brackets(j - 1)
    kind = text.tokens[j - 1].kind if j else ""
    pasted = kind == "number" and text.text(j - 2) == "##"  # `tag##2d_kernel`
    return j - 1 if pasted or (kind == "name" and text.text(j - 1) not in _NO_NAMES) else j


def _null_arguments(text: Text, i: int) -> bool:
    """Replaces each argument NULL by nullptr, and each 0 by a Zero: the launcher forwards them, as integers else.

    Returns whether there was a 0.
    """
    depth, zeros = 0, False
    for k in range(i, text.match(i)):
        depth += (text.text(k) in OPENING) - (text.text(k) in OPENING.values())
        if depth != 1 or text.text(k - 1) not in ("(", ",") or text.text(k + 1) not in (")", ","):
            continue
        if text.text(k) == "NULL":
            text.replace(text.tokens[k], "nullptr")
        elif text.text(k) == "0":
            text.replace(text.tokens[k], "::simt::Zero{}")
            zeros = True
    return zeros


def _braced_argument(text: Text, i: int) -> bool:
    """Whether an argument is `{...}`, which has no type of its own and takes the kernel parameter's."""
    depth = 0
    for k in range(i, text.match(i)):
        if text.text(k) == "{" and depth == 1 and text.text(k - 1) in ("(", ","):
            return True
        depth += (text.text(k) in OPENING) - (text.text(k) in OPENING.values())
    return False
