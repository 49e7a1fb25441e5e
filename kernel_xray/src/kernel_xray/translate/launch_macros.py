"""Macros that are a part of a launch or of a kernel's head, which the preprocessor would expand after the translation.

    #define GRID(blocks) <<<blocks, 256>>>      scale GRID(4)(x);    becomes    scale <<<4, 256>>>(x);
    #define SMALL(kernel) kernel<<<1, 32>>>     SMALL(scale)(x);     becomes    scale <<<1, 32>>>(x);
    #define PAIRS __cluster_dims__(2, 1, 1)     void PAIRS scale();  becomes    void __cluster_dims__(2, 1, 1) scale();

Their uses get their text before the translation, which looks for a kernel before `<<<`, arguments after `>>>`, and a
body after `__cluster_dims__`. What a macro of clusters with several definitions stands for, the preprocessor decides:

    #define PAIRS __cluster_dims__(2)    becomes    the same, and    #define simt_clusters_of_PAIRS 2
    void PAIRS scale();                  becomes    void PAIRS __cluster_dims__(simt_clusters_of_PAIRS) scale();
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from kernel_xray.translate.edits import Text
from kernel_xray.translate.lexer import DEFINE, Token, tokenize
from kernel_xray.translate.ptx_macros import DEFINITION, Macro, arguments_of, macro_of

_CLUSTERS = "__cluster_dims__"
_OF = "simt_clusters_of_"
_BODY = re.compile(r"(?:\\\r?\n|[^\n])*")


def launch_macros(texts: Iterable[str]) -> dict[str, Macro]:
    """The macros of this kind in a program's texts; of one with several definitions, the last.

    One that stands for clusters in one branch of an #if alone stays, and brings another one with their dimensions.
    """
    texts = list(texts)
    found: dict[str, Macro] = {}
    while more := {name: macro for text in texts for name, macro in _in(text, texts) if name not in found}:
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
            elif macro.parameters is None:
                yield match["name"], macro_of(None, f"{match['name']} {_CLUSTERS}({_OF}{match['name']})")


def brings_clusters(name: str, macros: Mapping[str, Macro]) -> bool:
    """Whether the macro is one that stays, and whose definitions need define_clusters."""
    return name in macros and macros[name].words[:1] == (name,)


def define_clusters(text: Text, i: int) -> None:
    """Adds, after the definition that begins at token i, that of the dimensions of its clusters."""
    head = DEFINE.fullmatch(text.text(i))
    line = _BODY.match(text.source, text.tokens[i].end)
    assert head is not None and line is not None
    k = text.find(i + 1, _CLUSTERS, text.limit(i + 1) if text.in_macro(i + 1) else i)
    given = "1" if k is None else " ".join(map(text.text, range(k + 2, text.match(k + 1))))
    name = _OF + head["name"]
    after = text.tokens[i].line + text.source[text.tokens[i].start : line.end()].count("\n") + 1
    text.replace_span(line.end(), line.end(), f"\n#undef {name}\n#define {name} {given}\n#line {after}")


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
            if brings_clusters(head["name"], macros):
                continue
            begin, end, text = token.end, _BODY.match(source, token.end).end(), ""  # type: ignore[union-attr]
        elif token.kind == "name" and token.directive in ("", "define") and (macro := macros.get(token.text)):
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
