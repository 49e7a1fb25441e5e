"""Kernels as pointers: their names in `cudaLaunchKernel(kernel, ...)` and `(void*)kernel`.

    (void*)kernel<float>     becomes     (void*)::simt::known("kernel<float>", kernel<float>)

A launch through a `void*` needs the kernel's type; `known` (include/simt/runtime_launch.h) remembers it. The run-time
finds the name of the kernel that a variable holds.
"""

import re

from kernel_xray.translate.edits import Text

_LAUNCHES = {  # the function, and which of its arguments is the kernel
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
    "cudaLaunchKernelEx": 1,
    "cudaLaunchKernelExC": 1,
}
_NO_TYPES = (  # may precede the name of a kernel
    *(
        "return",
        "else",
        "do",
        "case",
        "goto",
        "throw",
        "new",
        "delete",
        "sizeof",
        "void",
        "typename",
        "class",
        "struct",
    ),
    *("using", "namespace", "operator", "template", "and", "or", "not", "co_return", "co_yield", "co_await"),
)
BEGINNINGS = frozenset(("(", "reinterpret_cast", *_LAUNCHES))  # the words of which `visit` may be told


class KernelPointers:
    """Marks the kernels of one text, of which `kernels` has all names."""

    def __init__(self, text: Text, kernels: set[str]):
        self.text, self.kernels = text, kernels
        self.marked: set[int] = set()

    def visit(self, i: int) -> None:
        """Marks the kernel that the call or the cast at token i, one of BEGINNINGS, names, if it is one."""
        text = self.text
        which = _LAUNCHES.get(text.text(i))
        if which is not None and text.text(i + 1) == "(":
            comma = text.find(i + 2, ",") if which else i + 1
            if comma is not None:
                self._mark(_after_cast(text, comma + 1) or comma + 1, known=False)
        elif (k := _after_cast(text, i)) is not None:
            self._mark(k, known=True)

    def _mark(self, first: int, known: bool) -> None:
        """Marks the name that begins at token `first`. `known`: only if it is a kernel's, or a variable's with one."""
        text = self.text
        while text.text(first) == "(":
            first += 1
        begin = k = first + (text.text(first) == "&")
        last = None
        while True:
            k += text.text(k) in ("::", "##")
            if k >= len(text.tokens) or text.tokens[k].kind not in ("name", "number"):
                return
            last, k = k, k + 1
            if text.text(k) == "<" and (not known or text.text(last) in self.kernels):
                k = text.template_end(k) + 1
            if text.text(k) not in ("::", "##"):
                break
        name = text.text(last)
        if first in self.marked or text.text(k) not in (",", ")", ";", "}"):
            return
        kernel = name in self.kernels
        if known and not kernel and not _holds_kernel(text, first, self.kernels):
            return
        self.marked.add(first)
        start, end = text.tokens[begin].start, text.tokens[k - 1].end
        pointer = not kernel and is_pointer(text, begin, k, self.kernels)
        spelled = "nullptr" if pointer else literal(text, first, text.source[start:end])
        start = text.tokens[first].start
        text.replace_span(start, start, f"::simt::known({spelled}, ")
        text.replace_span(end, end, ")")


def _after_cast(text: Text, i: int) -> int | None:
    """Index of the token after `(void*)` or `reinterpret_cast<void*>(`, const or not; None for any other token."""
    opening = i + 1 if text.text(i) == "reinterpret_cast" else i
    closing = {"(": ")", "<": ">"}.get(text.text(opening))
    if closing is None or (opening == i) != (closing == ")"):
        return None
    k = opening + 1
    words = []
    while text.text(k) in ("const", "void", "*"):
        words.append(text.text(k))
        k += 1
    if text.text(k) != closing or [word for word in words if word != "const"] != ["void", "*"]:
        return None
    return k + 1


def is_pointer(text: Text, first: int, end: int, kernels: set[str]) -> bool:
    """Whether the tokens from `first` up to `end`, which a launch names, are not a kernel's name but an expression."""
    if text.text(first) == "(" and text.match(first) == end - 1:
        return is_pointer(text, first + 1 + (text.text(first + 1) == "&"), end - 1, kernels)
    given = text.text(end - 1).startswith(">")  # template arguments
    end = text.back_over_template(end - 1) if given else end
    k = first
    while k < end and (text.tokens[k].kind in ("name", "number") or text.text(k) in ("::", "##")):
        k += 1
        if text.text(k) == "<" and k < end:
            k = text.template_end(k) + 1
    return k < end or (not given and text.text(k - 1) not in kernels and is_variable(text, k - 1))


def is_variable(text: Text, i: int) -> bool:
    """Whether the text declares the name at token i as a variable, a parameter or a member, or assigns to it."""
    if text.in_macro(i) and text.text(i) in text.parameters(i):
        return False
    return any(_is_declared(text, k) for k in text.places(text.text(i)))


def _is_declared(text: Text, k: int) -> bool:
    before, after = text.text(k - 1), text.text(k + 1)
    if after == "=":
        return before not in (".", "->", "::", *_NO_TYPES)
    if before == "*" and text.text(k - 2) == "(" and after == ")":  # void (*name)(float*)
        return True
    if before in ("[", ",") and after in ("]", ","):  # auto& [name, other]
        while text.text(k - 1) == "," or text.tokens[k - 1].kind == "name":
            k -= 1
        return text.text(k - 1) == "[" and "auto" in (text.text(k - 2), text.text(k - 3))
    k -= 1
    while text.text(k) in ("*", "&", "&&", "const"):
        k -= 1
    typed = text.text(k) == ">" or (text.text(k) and text.tokens[k].kind == "name" and text.text(k) not in _NO_TYPES)
    return bool(typed) and after in (",", ")", ";", ":", ">", "{", "[")


def literal(text: Text, first: int, name: str) -> str:
    """A kernel's name as a string literal. In a macro, it contains what is given for the macro's parameters."""
    name = " ".join(name.split()).replace("\\", "").replace('"', "'").strip("()& ")
    parameters = text.parameters(first) if text.in_macro(first) else set()
    given = re.sub(r"\w+", lambda word: f'" #{word[0]} "' if word[0] in parameters else word[0], name)
    return '"' + re.sub(r"\s*##\s*", "", given) + '"'


def _holds_kernel(text: Text, i: int, kernels: set[str]) -> bool:
    """Whether the variable at token i was last initialised with a kernel: `variable = kernel<...>;`."""
    for k in range(i - 1, 0, -1):
        if text.text(k) != text.text(i) or text.text(k + 1) != "=" or text.tokens[k].kind != "name":
            continue
        end = k + 2 + (text.text(k + 2) == "&")
        while text.tokens[end].kind == "name" and text.text(end + 1) == "::":
            end += 2
        name, end = text.text(end), end + 1
        if name in kernels and text.text(end) == "<":
            end = text.template_end(end) + 1
        return name in kernels and text.text(end) == ";"
    return False


def kernel_names(text: Text) -> set[str]:
    """The names of all functions declared with `__global__`."""
    names = set()
    for i, token in enumerate(text.tokens):
        if token.text != "__global__":
            continue
        k = i + 1
        while k < len(text.tokens) and text.text(k) not in ("(", ";", "{"):
            if text.text(k + 1) == "(" and text.text(k).startswith("__"):  # __launch_bounds__(256)
                k = text.match(k + 1)
            k += 1
        if text.text(k) == "(":
            names.add(text.text(k - 1))
    return names
