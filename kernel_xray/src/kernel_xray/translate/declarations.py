"""What a text says about its functions: which are kernels, which a launch must refuse, which run in clusters."""

import re
from dataclasses import dataclass

from kernel_xray.translate.edits import RewriteError, Text

# Words before the name of a function. One that is not here may be a macro for __global__.
_SPECIFIERS = {
    *("template", "static", "inline", "extern", "constexpr", "const", "__host__", "__device__", "__noinline__"),
    *("__forceinline__", "__inline__", "void", "bool", "char", "short", "int", "long", "float", "double", "unsigned"),
}
# Functions of C++'s standard library that the global namespace has for several types.
_OVERLOADED = (
    "abs acos asin atan cbrt ceil cos cosh div exp exp2 fabs fdim floor fma fmax fmin fmod frexp hypot ldexp log log10 "
    "log2 lround max min modf pow remainder rint round sin sinh sqrt tan tanh trunc"
)
# Words before a call.
_NO_TYPES = {
    *(
        "return",
        "else",
        "do",
        "case",
        "throw",
        "new",
        "delete",
        "sizeof",
        "co_return",
        "co_yield",
        "if",
        "while",
        "for",
    ),
}


@dataclass(frozen=True)
class Function:
    """A declaration of a function: its name, the words before it, and whether it has a body."""

    name: str
    specifiers: frozenset[str]
    body: bool

    @property
    def kernel(self) -> bool:
        return "__global__" in self.specifiers


def functions(text: Text) -> list[Function]:
    """The functions that the text declares, in order. `T x(y);` is taken for one; a function in a macro is not."""
    found = []
    for i, token in enumerate(text.tokens):
        if token.kind != "name" or text.text(i + 1) != "(" or token.directive:
            continue
        try:
            last = text.match(i + 1)
        except RewriteError:  # text of an #if 0, or an error that the compiler finds
            continue
        after = text.text(last + 1)
        if after in ("{", ";") and (specifiers := _specifiers(text, i)):
            if any(text.text(k) == "auto" for k in range(i, last)):  # a parameter of any type
                specifiers.add("template")
            found.append(Function(token.text, frozenset(specifiers), after == "{"))
    return found


def plain_kernels(declared: list[Function]) -> set[str]:
    """The names of kernels that denote a single function, whose address can be taken without its type."""
    names = [*_OVERLOADED.split(), *(f.name for f in declared if f.body or not f.kernel)]
    return {f.name for f in declared if f.kernel and "template" not in f.specifiers and names.count(f.name) == 1}


def host_functions(declared: list[Function]) -> set[str]:
    """The names of functions with a body that are certainly not kernels."""
    kernels = {f.name for f in declared if f.kernel}
    return {f.name for f in declared if f.body and f.specifiers <= _SPECIFIERS} - kernels


def cluster_dimensions(text: Text) -> dict[str, str]:
    """The kernels declared with `__cluster_dims__`, each with the text in its brackets.

    Without those that have several, as a template's may and overloads: they tell them (launch_bounds.py).
    """
    found: dict[str, set[str]] = {}
    for i, token in enumerate(text.tokens):
        if token.text != "__cluster_dims__" or text.text(i + 1) != "(":
            continue
        opening, k = text.tokens[i + 1], text.match(i + 1)
        dimensions = " ".join(text.source[opening.end : text.tokens[k].start].split())
        while k < len(text.tokens) and (text.text(k) != "(" or text.text(k - 1).startswith("__")):
            k = text.match(k) + 1 if text.text(k) == "(" else k + 1
        name = text.text(k - 1) if k < len(text.tokens) else ""
        several = _template_parameters(text, i) & set(re.findall(r"\w+", dimensions))
        found.setdefault(name, set()).update({dimensions, *several})
    return {name: dimensions.pop() for name, dimensions in found.items() if len(dimensions) == 1}


def _template_parameters(text: Text, i: int) -> set[str]:
    """The words between the beginning of the declaration around token i and the token, if it is a template's."""
    words: set[str] = set()
    while i > 0 and text.text(i - 1) not in (";", "{", "}") and not text.tokens[i - 1].directive:
        i -= 1
        words.add(text.text(i))
    return words if "template" in words else set()


def _specifiers(text: Text, i: int) -> set[str]:
    """The words before the name at token i if they can declare a function of that name; else none."""
    words: set[str] = set()
    k = i - 1
    try:
        while k >= 0 and not text.tokens[k].directive:
            word = text.text(k)
            if word in _NO_TYPES:
                return set()
            if word in (">", ">>"):
                k = text.back_over_template(k)
            elif word == ")":  # __launch_bounds__(256), or a macro
                k = text.back_over_brackets(k) - 1
                if text.tokens[k].kind != "name" or text.text(k) in _NO_TYPES:
                    return set()
            elif text.tokens[k].kind == "name":
                words.add(word)
            elif word not in ("*", "&", "::") and text.tokens[k].kind != "string":  # extern "C"
                break
            k -= 1
    except RewriteError:  # `>` is a comparison
        return set()
    return words
