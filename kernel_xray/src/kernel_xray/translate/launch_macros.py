"""Macros that are a part of a launch or of a kernel's head, which the preprocessor would expand after the translation.

    #define GRID(blocks) <<<blocks, 256>>>      scale GRID(4)(x);    becomes    scale <<<4, 256>>>(x);
    #define SMALL(kernel) kernel<<<1, 32>>>     SMALL(scale)(x);     becomes    scale <<<1, 32>>>(x);
    #define PAIRS __cluster_dims__(2, 1, 1)     void PAIRS scale();  becomes    void __cluster_dims__(2, 1, 1) scale();

Their uses get their text before the translation, which looks for a kernel before `<<<`, arguments after `>>>`, and a
body after `__cluster_dims__`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from kernel_xray.translate.lexer import DEFINE, Token, tokenize
from kernel_xray.translate.ptx_macros import DEFINITION, Macro, arguments_of, macro_of

_CLUSTERS = "__cluster_dims__"
_BODY = re.compile(r"(?:\\\r?\n|[^\n])*")


def launch_macros(texts: Iterable[str]) -> dict[str, Macro]:
    """The macros of this kind in a program's texts; of one with several definitions, the last.

    One that stands for clusters in one branch of an #if alone is left out.
    """
    texts = list(texts)
    found: dict[str, Macro] = {}
    while more := {name: macro for text in texts for name, macro in _in(text, texts)}:
        found |= more
        texts = [with_launches(text, more) for text in texts]  # others may consist of these
    return found


def _in(text: str, texts: list[str]) -> Iterator[tuple[str, Macro]]:
    for match in DEFINITION.finditer(text) if "<<<" in text or _CLUSTERS in text else ():
        macro = macro_of(match["parameters"], match["body"])
        words = (*macro.words, "")
        arguments = words[words.index(">>>") + 1] if ">>>" in words else "("
        if "<<<" in words and (words[0] == "<<<" or arguments != "("):
            yield match["name"], macro
        elif _CLUSTERS in words and "{" not in words:
            definitions = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{match['name']}\b.*", re.MULTILINE)
            if len({found for each in texts for found in definitions.findall(each)}) == 1:
                yield match["name"], macro


def with_launches(source: str, macros: Mapping[str, Macro]) -> str:
    """The source with these macros expanded, and their definitions empty; every line stays where it is."""
    if not any(name in source for name in macros):
        return source
    pieces, position = [], 0
    tokens = [token for token in tokenize(source) if not token.blank]
    for i, token in enumerate(tokens):
        if token.start < position:
            continue
        head = DEFINE.fullmatch(token.text) if token.kind == "define" else None
        if head and head["name"] in macros:
            begin, end, text = token.end, _BODY.match(source, token.end).end(), ""  # type: ignore[union-attr]
        elif token.kind == "name" and (macro := macros.get(token.text)):
            begin, end = token.start, token.end
            given: list[list[Token]] = []
            if macro.parameters is not None:
                if i + 1 == len(tokens) or tokens[i + 1].text != "(":
                    continue
                given, past = arguments_of(tokens, i + 1)
                end = tokens[past - 1].end
            text = re.sub(r" ## ", "", " ".join(each.text for each in macro.applied(given)))
        else:
            continue
        pieces += [source[position:begin], text, *re.findall(r"\\\r?\n|\n", source[begin:end])]
        position = end
    return "".join(pieces) + source[position:]
