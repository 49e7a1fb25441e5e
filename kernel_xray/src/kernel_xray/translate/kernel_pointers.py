"""Kernels as pointers: their names in `cudaLaunchKernel(kernel, ...)` and `(void*)kernel`.

    (void*)kernel<float>     becomes     (void*)::simt::known("kernel<float>", kernel<float>)

A launch through a `void*` needs the kernel's type; `known` (include/simt/runtime_launch.h) remembers it. A variable
that is initialised with a kernel has the kernel's name.
"""

from kernel_xray.translate.edits import Text

_LAUNCHES = {  # the function, and which of its arguments is the kernel
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
    "cudaLaunchKernelEx": 1,
    "cudaLaunchKernelExC": 1,
}
BEGINNINGS = frozenset(("(", "reinterpret_cast", *_LAUNCHES))  # the words of which `visit` may be told


class KernelPointers:
    """Marks the kernels of one text.

    clusters   kernel -> the dimensions of its clusters
    kernels    the names of all kernels
    """

    def __init__(self, text: Text, clusters: dict[str, str], kernels: set[str]):
        self.text, self.clusters, self.kernels = text, clusters, kernels
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
            k += text.text(k) == "::"
            if k >= len(text.tokens) or text.tokens[k].kind != "name":
                return
            last, k = k, k + 1
            if text.text(k) == "<" and (not known or text.text(last) in self.kernels):
                k = text.template_end(k) + 1
            if text.text(k) != "::":
                break
        name = text.text(last)
        if first in self.marked or text.text(k) not in (",", ")", ";", "}"):
            return
        held = None if name in self.kernels else held_kernel(text, first, self.kernels)
        if known and name not in self.kernels and held is None:
            return
        self.marked.add(first)
        start, end = text.tokens[first].start, text.tokens[k - 1].end
        name, spelled = held or (name, _spelled(text, begin, k))
        text.replace_span(start, start, f'::simt::known("{spelled}", ')
        cluster = f", ::dim3({self.clusters[name]})" if name in self.clusters else ""
        text.replace_span(end, end, f"{cluster})")


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


def held_kernel(text: Text, i: int, kernels: set[str]) -> tuple[str, str] | None:
    """The kernel with which the variable at token i was last initialised: its name, alone and with its template
    arguments. None if there is no `variable = kernel<...>;` before.
    """
    for k in range(i - 1, 0, -1):
        if text.text(k) != text.text(i) or text.text(k + 1) != "=" or text.tokens[k].kind != "name":
            continue
        begin = end = k + 2 + (text.text(k + 2) == "&")
        while text.tokens[end].kind == "name" and text.text(end + 1) == "::":
            end += 2
        name, end = text.text(end), end + 1
        if name in kernels and text.text(end) == "<":
            end = text.template_end(end) + 1
        return (name, _spelled(text, begin, end)) if name in kernels and text.text(end) == ";" else None
    return None


def is_parameter(text: Text, i: int) -> bool:
    """Whether the name at token i was last declared as a parameter, `type name,` or `type name)`."""
    for k in range(i - 1, 0, -1):
        if text.text(k) == text.text(i) and (text.tokens[k - 1].kind == "name" or text.text(k - 1) in ("*", "&", ">")):
            return text.text(k + 1) in (",", ")")
    return False


def _spelled(text: Text, begin: int, end: int) -> str:
    """The tokens from `begin` up to `end` as the inside of a string literal."""
    source = text.source[text.tokens[begin].start : text.tokens[end - 1].end]
    return " ".join(source.split()).replace("\\", "").replace('"', "'")


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
