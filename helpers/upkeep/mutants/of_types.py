"""Mutation operators on types: too narrow, too wide, converted at the wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from helpers.upkeep.mutants.syntax import Edit, arguments, called, declaration_of, inside, part, replaced, root_of, text

if TYPE_CHECKING:
    from tree_sitter import Node


def narrow_32(node: Node) -> Iterator[Edit]:
    """An index of 64 bits has 32: int64_t becomes int."""
    if _is_type(node, "int64_t") and not _is_constant(node):
        yield replaced(node, "int")


def narrow_unsigned(node: Node) -> Iterator[Edit]:
    """An index of 64 bits has 32, without a sign: int64_t becomes unsigned."""
    if _is_type(node, "int64_t") and not _is_constant(node):
        yield replaced(node, "unsigned")


def narrow_16(node: Node) -> Iterator[Edit]:
    """An index has 16 bits: int64_t and int become short, unless constants and threadIdx alone make the value."""
    if any(_is_type(node, name) for name in ("int64_t", "int")) and not _is_constant(node) and not _is_small(node):
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
    declared = declaration_of(node)
    templated = inside(node, "template_parameter_list") is not None
    return "const" in declared.split() or "constexpr" in declared or templated


def _is_small(node: Node) -> bool:
    """Whether a type is that of a counter up to a constant, or of values made of constants and threadIdx alone.

    The compiler or the first launch shows whether such a value fits: no size of the input changes it.
    """
    declared = inside(node, "declaration")
    loop = declared.parent if declared is not None else None
    if loop is not None and loop.type == "for_statement" and inside(node, "for_statement") == loop:
        condition = loop.child_by_field_name("condition")
        return condition is not None and _is_bounded(condition.child_by_field_name("right"))
    made = [d for d in declared.named_children if d.type == "init_declarator"] if declared is not None else []
    return bool(made) and all(_is_bounded(one.child_by_field_name("value")) for one in made)


def _is_bounded(value: Node | None) -> bool:
    """Whether each name in an expression is that of a constant (kTile, T::kRows, V::size) or of threadIdx."""
    if value is None:
        return False
    expression = re.sub(r"\b(?:threadIdx|blockDim)\.[xyz]|\b\w+::\w+|\bsizeof\s*\([^)]*\)", "1", text(value))
    known = _constants(text(root_of(value)))
    return all(name in known or re.match("k[A-Z]", name) for name in re.findall(r"[A-Za-z_]\w*", expression))


@cache
def _constants(source: str) -> frozenset[str]:
    """The names of a source's constexpr variables and of its templates' integers."""
    declared = re.findall(r"\bconstexpr (?:\w+ )+(\w+) =", source)
    templated = re.findall(r"\btemplate <([^>]*)>", source)
    return frozenset(declared + [name for one in templated for name in re.findall(r"\bint (\w+)", one)])
