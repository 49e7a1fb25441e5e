"""`__device__` and `__managed__` variables: each is registered after its declaration, so that the tracer can watch it.

    __device__ int a, b[4];     __device__ int a, b[4]; SIMT_DEVICE_VARIABLE(a, 17) SIMT_DEVICE_VARIABLE(b, 17)

The macro (include/simt/core.h), or SIMT_MANAGED_VARIABLE, also gives each device its own values. Left alone, and so not
watched: templates, members of classes, and declarations in macros; `extern` declarations, since the definition
registers the variable.
"""

from kernel_xray.translate.edits import OPENING, Text

_QUALIFIERS = ("__device__", "__managed__")
_BEFORE_BRACKETS = ("__align__", "alignas", "__attribute__", "__declspec")
_NOT_WATCHED = {"extern", "template", "constexpr", "__constant__", "__shared__", "__global__", "typedef", "using"}


def rewrite_device_variable(text: Text, i: int) -> None:
    """Registers what the declaration with the qualifier at token i declares; the token is at namespace scope."""
    if text.text(i - 1) in _QUALIFIERS or _in_directive(text, i):
        return
    names, last = _declared(text, i)
    words = {text.text(k) for k in range(_first(text, i), last)}
    if not names or _NOT_WATCHED & words:
        return
    kind = "MANAGED" if "__managed__" in words else "DEVICE"
    end = text.tokens[last].end
    registered = "".join(f" SIMT_{kind}_VARIABLE({name}, {end})" for name in names)
    text.replace_span(end, end, registered)


def _in_directive(text: Text, i: int) -> bool:
    start = text.tokens[i].start
    while True:
        line = text.source.rfind("\n", 0, start) + 1
        if not text.source[:line].endswith(("\\\n", "\\\r\n")):
            return text.source[line:start].lstrip().startswith("#")
        start = line - 1


def _first(text: Text, i: int) -> int:
    """Index of the declaration's first token: what precedes the qualifier up to the last statement or directive."""
    while i > 0 and text.text(i - 1) not in (";", "{", "}") and not _in_directive(text, i - 1):
        if text.tokens[i - 1].kind in ("include", "directive"):
            break
        i -= 1
    return i


def _declared(text: Text, i: int) -> tuple[list[str], int]:
    """The names that a declaration declares, and the index of its `;`; no names if it is not one of variables."""
    names: list[str] = []
    k, expecting = i + 1, True
    while k < len(text.tokens):
        word, before = text.text(k), text.text(k - 1)
        if word == ";":
            return names, k
        if word == "(" and before not in _BEFORE_BRACKETS:
            return [], k  # a function, or an initialiser that looks like one
        if word == "{" and expecting:
            return [], k  # a class, or the body of a function
        if word in OPENING:
            k = text.match(k)
        elif word == "<" and expecting:
            k = text.template_end(k)
        elif word == ",":
            expecting = True
        elif expecting and text.tokens[k].kind == "name" and text.text(k + 1) in ("[", "=", ",", ";", "{"):
            if text.text(k + 1) == "{" and before in ("struct", "class", "union", "enum", "__device__"):
                return [], k
            names.append(word)
            expecting = False
        k += 1
    return [], i
