"""Mutation operators on values: initial ones, constants, terms, indices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from helpers.upkeep.mutants.syntax import (
    Edit,
    called,
    declaration_of,
    inside,
    operator_of,
    part,
    replaced,
    swapped,
    text,
)

if TYPE_CHECKING:
    from tree_sitter import Node

ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/"}
AXES = {"x": "y", "y": "x", "z": "x"}
OTHERS = {"blockDim": "gridDim", "gridDim": "blockDim", "threadIdx": "blockIdx", "blockIdx": "threadIdx"}
OPPOSITES = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max", "fmax": "fmin", "fmin": "fmax"}


def uninitialised(node: Node) -> Iterator[Edit]:
    """A variable has no initial value: `float sum = 0` becomes `float sum`."""
    name = node.child_by_field_name("declarator") if node.type == "init_declarator" else None
    if name is None or name.type not in ("identifier", "array_declarator"):
        return
    declared = declaration_of(node)
    fixed = re.search(r"\b(const|constexpr|auto|static|extern|string)\b|[&]", declared)
    if not fixed and inside(node, "compound_statement") is not None:
        yield Edit(name.end_byte, node.end_byte, "")


def initial_value(node: Node) -> Iterator[Edit]:
    """A variable begins with another value: 0 becomes 1, and every other value 0."""
    if node.type == "init_declarator":
        value = node.child_by_field_name("value")
        declared = declaration_of(node)
        number = re.search(r"\b(int|int64_t|float|double|unsigned|bool|T)\b", declared) and "*" not in declared
        if value is not None and number and "constexpr" not in declared and value.type != "initializer_list":
            yield replaced(value, "1" if text(value) in ("0", "0.0f", "0.0") else "0")


def constant(node: Node) -> Iterator[Edit]:
    """A constant is off by one: an integer n becomes n + 1 and n - 1; a fraction is doubled."""
    if node.type != "number_literal":
        return
    if re.fullmatch(r"\d+", text(node)):
        for near in (int(text(node)) + 1, int(text(node)) - 1):
            yield replaced(node, str(near))
    elif re.fullmatch(r"\d+\.\d*f?", text(node)):
        yield replaced(node, f"(2 * {text(node)})")


def arithmetic(node: Node) -> Iterator[Edit]:
    """An operation is the wrong one: + and -, * and / change places, % becomes /."""
    yield from swapped(node, "binary_expression", "operator", ARITHMETIC)


def dropped_term(node: Node) -> Iterator[Edit]:
    """A term or a factor is missing: a + b becomes a, and b."""
    if node.type == "binary_expression" and operator_of(node) in ("+", "-", "*"):
        for side in ("left", "right"):
            yield replaced(node, part(node, side))


def sign(node: Node) -> Iterator[Edit]:
    """A sign, or a `!`, is missing: -x becomes x."""
    if node.type == "unary_expression" and operator_of(node) in ("-", "!"):
        yield replaced(node, part(node, "argument"))
    elif node.type == "number_literal" and text(node).startswith("-"):
        yield replaced(node, text(node)[1:])


def index(node: Node) -> Iterator[Edit]:
    """An element beside the right one: x[i] becomes x[i + 1]."""
    if node.type == "subscript_argument_list" and node.named_child_count == 1:
        inner = node.named_children[0]
        yield replaced(inner, f"{text(inner)} + 1")


def axis(node: Node) -> Iterator[Edit]:
    """The wrong axis: threadIdx.x becomes threadIdx.y."""
    if part(node, "argument") in OTHERS:
        yield from swapped(node, "field_expression", "field", AXES)


def built_in(node: Node) -> Iterator[Edit]:
    """The wrong built-in: blockDim and gridDim, threadIdx and blockIdx change places."""
    if node.type == "identifier" and text(node) in OTHERS:
        yield replaced(node, OTHERS[text(node)])


def opposite(node: Node) -> Iterator[Edit]:
    """The smaller instead of the larger: fmaxf becomes fminf."""
    if (name := called(node)) in OPPOSITES:
        function = part(node, "function")
        yield from swapped(node, "call_expression", "function", {function: function.replace(name, OPPOSITES[name])})


def nan(node: Node) -> Iterator[Edit]:
    """NaN is forgotten: isnan(x) becomes false."""
    if called(node) in ("isnan", "isinf", "isfinite"):
        yield replaced(node, "false")


def fast_maths(node: Node) -> Iterator[Edit]:
    """A function is approximated: expf becomes __expf."""
    fast = {name: f"__{name}" for name in ("expf", "logf", "sinf", "cosf", "powf", "tanf")}
    yield from swapped(node, "call_expression", "function", fast)
