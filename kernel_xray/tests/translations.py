"""What holds for the translation of every source: tests of the package and of who builds on it ask this of theirs."""

import pytest

from kernel_xray.translate.lexer import LexError, tokenize
from kernel_xray.translate.rewriter import RewriteError, rewrite

PTX = '#include "simt/ptx.h"\n#line 1\n'  # before a source with asm statements


def assert_lines_stay(path):
    """The tokens join to the source, and the translation has as many lines."""
    source = path.read_text()
    assert "".join(t.text for t in tokenize(source)) == source
    try:
        assert rewrite(source).removeprefix(PTX).count("\n") == source.count("\n")
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
