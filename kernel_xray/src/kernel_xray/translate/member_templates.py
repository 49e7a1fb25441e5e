"""Calls of member templates of dependent objects, `object.function<4>(x)` in a template, which nvcc accepts so.

C++ asks for `object.template function<4>(x)` there: without the word, g++ reads `<` as a comparison. Outside templates
the word is allowed too, so that the rewriter may add it wherever the member is one of the file's own templates.
"""

import re

from kernel_xray.translate.edits import Text

_DECLARED = re.compile(r"\btemplate\s*<[^;{}()]*>\s*(?:[\w:*&<>,]+\s+)*?[*&]*(\w+)\s*\(")
_ARGUMENT = re.compile(r"\w+|::|,|<|>+")


def member_templates(source: str) -> set[str]:
    """The names of the function templates that a source declares."""
    return set(_DECLARED.findall(source))


def calls_member_template(text: Text, i: int, declared: set[str]) -> bool:
    """Whether token i is the name in `object.name<arguments>(`, and `declared` has it. The arguments must be simple."""
    if text.text(i) not in declared or text.text(i - 1) not in (".", "->") or text.text(i + 1) != "<":
        return False
    depth = 0
    for k in range(i + 1, text.limit(i)):
        word = text.text(k)
        if not _ARGUMENT.fullmatch(word):
            return False
        depth += word.count("<") - word.count(">")
        if depth <= 0:
            return depth == 0 and text.text(k + 1) == "("
    return False
