"""Mutation operators on types: too narrow, too wide, converted at the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from helpers.mutants.syntax import Edit, arguments, called, declaration_of, inside, part, replaced, text

if TYPE_CHECKING:
    from tree_sitter import Node


def narrow_32(node: Node) -> Iterator[Edit]:
    """An index of 64 bits has 32: int64_t becomes int."""
    if _is_type(node, "int64_t"):
        yield replaced(node, "int")


def narrow_unsigned(node: Node) -> Iterator[Edit]:
    """An index of 64 bits has 32, without a sign: int64_t becomes unsigned."""
    if _is_type(node, "int64_t"):
        yield replaced(node, "unsigned")


def narrow_16(node: Node) -> Iterator[Edit]:
    """An index has 16 bits: int64_t, and an int that is not a constant, become short."""
    if _is_type(node, "int64_t") or (_is_type(node, "int") and not _is_constant(node)):
        yield replaced(node, "short")


def cast(node: Node) -> Iterator[Edit]:
    """A conversion is missing: int64_t(x), float(x) and static_cast<T>(x) become (x)."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    if function is None or len(arguments(node)) != 1:
        return
    if function.type in ("primitive_type", "sized_type_specifier") or called(node) == "static_cast":
        yield replaced(function, "")


def accumulator(node: Node) -> Iterator[Edit]:
    """A sum is kept in a narrower type: Sum<T> becomes T, double becomes float."""
    if node.type == "template_type" and part(node, "name") == "Sum":
        yield replaced(node, text(node)[len("Sum<") : -1])
    elif _is_type(node, "double"):
        yield replaced(node, "float")


def double_constant(node: Node) -> Iterator[Edit]:
    """Arithmetic in float becomes arithmetic in double: 0.5f becomes 0.5."""
    if node.type == "number_literal" and "." in text(node) and text(node).endswith("f"):
        yield replaced(node, text(node)[:-1])


def _is_type(node: Node, name: str) -> bool:
    return node.type in ("primitive_type", "type_identifier") and text(node) == name


def _is_constant(node: Node) -> bool:
    """Whether a type is that of a constant, or of a template's parameter."""
    templated = inside(node, "template_parameter_list") is not None
    return "const" in declaration_of(node).split() or "constexpr" in declaration_of(node) or templated
