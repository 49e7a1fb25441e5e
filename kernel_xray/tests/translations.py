"""What holds for the translation of every source: tests of the package and of who builds on it ask this of theirs."""

import re

import pytest

from kernel_xray.translate.lexer import LexError, tokenize
from kernel_xray.translate.rewriter import RewriteError, rewrite


def last_line(text):
    """The number of the last line as a compiler counts, which #line directives tell."""
    number = 1
    for line in text.split("\n")[:-1]:
        number = int(line[6:]) if re.fullmatch(r"#line \d+", line) else number + 1
    return number


def assert_lines_stay(path):
    """The tokens join to the source, and the translation ends with the same line."""
    source = path.read_text()
    assert "".join(t.text for t in tokenize(source)) == source
    try:
        assert last_line(rewrite(source)) == last_line(source)
    except RewriteError:
        assert "malformed" in source[:400]


def assert_launches_as_by_grammar(path):
    """An independent parser finds as many launches as the rewriter translates."""
    source = path.read_text()
    if "malformed" in path.read_text()[:400] or "#define" in source:
        return  # the grammar does not look into macros, and has to guess at malformed text
    try:
        ours = rewrite(source).count("::simt::launcher")
    except (RewriteError, LexError):
        return
    assert ours == _launches_by_grammar(source.encode())


def _launches_by_grammar(source: bytes) -> int:
    tree_sitter = pytest.importorskip("tree_sitter")
    cuda = pytest.importorskip("tree_sitter_cuda")
    tree = tree_sitter.Parser(tree_sitter.Language(cuda.language())).parse(source)
    count, nodes = 0, [tree.root_node]
    while nodes:
        node = nodes.pop()
        count += node.type == "kernel_call_syntax"
        nodes += node.children
    return count
