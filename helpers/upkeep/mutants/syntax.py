"""The syntax tree of a CUDA source, and what the mutation operators ask about its nodes.

The grammar is tree-sitter-cuda, of the `dev` dependencies. Offsets count bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

OUTSIDE = {"preproc_include", "preproc_def", "comment", "string_literal", "static_assert_declaration"}
REGISTRATION = b"TORCH_LIBRARY"


class Edit(NamedTuple):
    """The bytes [start, end) of a source replaced by a text."""

    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The source with the edit."""
        return source[: self.start] + self.text.encode() + source[self.end :]


@cache
def parser() -> Parser:
    """The parser of CUDA C++. Raises ModuleNotFoundError without the `dev` dependencies."""
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def nodes(source: bytes, first: int = 0, last: int | None = None) -> Iterator[Node]:
    """The nodes between two offsets, each before its children; without comments, directives and registrations."""
    last = len(source) if last is None else last
    waiting = [parser().parse(source).root_node]
    while waiting:
        node = waiting.pop()
        if node.type in OUTSIDE or node.end_byte <= first or node.start_byte >= last:
            continue
        if node.parent is not None and node.parent.parent is None and REGISTRATION in text(node)[:60].encode():
            continue
        if first <= node.start_byte and node.end_byte <= last:
            yield node
        waiting += reversed(node.children)


def text(node: Node | None) -> str:
    """A node's text; "" for None."""
    return "" if node is None or node.text is None else node.text.decode()


def part(node: Node, field: str) -> str:
    """The text of a node's field; "" if it has none."""
    return text(node.child_by_field_name(field))


def replaced(node: Node, by: str) -> Edit:
    """The edit that replaces a node."""
    return Edit(node.start_byte, node.end_byte, by)


def swapped(node: Node, kind: str, field: str, words: Mapping[str, str]) -> Iterator[Edit]:
    """The edit that puts another word for a field of a node of this kind, if `words` has one for its text."""
    found = node.child_by_field_name(field) if node.type == kind else None
    if found is not None and text(found) in words:
        yield replaced(found, words[text(found)])


def inside(node: Node, kind: str) -> Node | None:
    """The nearest ancestor of a kind."""
    above = node.parent
    while above is not None and above.type != kind:
        above = above.parent
    return above


def root_of(node: Node) -> Node:
    """The whole source."""
    while node.parent is not None:
        node = node.parent
    return node


def declaration_of(node: Node) -> str:
    """What precedes the declarators of a node's declaration, such as `const float`; "" if it is in none."""
    above = inside(node, "declaration") or inside(node, "field_declaration")
    if above is None:
        return ""
    first = above.child_by_field_name("declarator")
    return text(above)[: first.start_byte - above.start_byte] if first else ""


def called(node: Node) -> str:
    """The name of the function that a call calls, without namespace and template arguments; "" for another node."""
    if node.type != "call_expression":
        return ""
    return part(node, "function").partition("<")[0].rpartition("::")[2].rpartition(".")[2]


def arguments(node: Node) -> list[Node]:
    """The arguments of a call."""
    given = node.child_by_field_name("arguments")
    return [] if given is None else given.named_children


def operator_of(node: Node) -> str:
    """The operator of an expression; "" for another node."""
    found = node.child_by_field_name("operator")
    return text(found) if found is not None and node.type != "field_expression" else ""
