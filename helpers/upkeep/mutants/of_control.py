"""Mutation operators on control flow: guards, comparisons, loops, missing statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from helpers.upkeep.mutants.syntax import Edit, called, inside, operator_of, part, replaced, swapped, text

if TYPE_CHECKING:
    from tree_sitter import Node

AT_THE_EDGE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
KEPT = ("CHECK", "sync", "fence", "wait", "commit", "arrive")  # calls that other operators drop, or that only check


def comparison(node: Node) -> Iterator[Edit]:
    """A comparison is off by one: < and <=, > and >= change places."""
    yield from swapped(node, "binary_expression", "operator", AT_THE_EDGE)


def negated(node: Node) -> Iterator[Edit]:
    """A comparison is the wrong way round: < becomes >=, == becomes !=."""
    yield from swapped(node, "binary_expression", "operator", NEGATED)


def guard(node: Node) -> Iterator[Edit]:
    """A guard is missing: `if (i < n) x` becomes `if (true) x`."""
    yield from _decided(node, "true", returns=False)


def never(node: Node) -> Iterator[Edit]:
    """A branch is never taken: `if (i < n) x` becomes `if (false) x`."""
    yield from _decided(node, "false", returns=False)


def early_return(node: Node) -> Iterator[Edit]:
    """An early return is missing: `if (i >= n) return` becomes nothing."""
    yield from _decided(node, "false", returns=True)


def logic(node: Node) -> Iterator[Edit]:
    """Both conditions and either: && and || change places."""
    yield from swapped(node, "binary_expression", "operator", {"&&": "||", "||": "&&"})


def condition_part(node: Node) -> Iterator[Edit]:
    """Half of a condition is missing: a && b becomes a, and b."""
    if node.type == "binary_expression" and operator_of(node) in ("&&", "||"):
        for side in ("left", "right"):
            yield replaced(node, part(node, side))


def choice(node: Node) -> Iterator[Edit]:
    """Always one side of a choice: c ? a : b becomes a, and b."""
    if node.type == "conditional_expression":
        for side in ("consequence", "alternative"):
            yield replaced(node, f"({part(node, side)})")


def stride(node: Node) -> Iterator[Edit]:
    """A loop has another stride: `i += stride` becomes `i += 2 * stride`, `++i` becomes `i += 2`."""
    if node.parent is None or node.parent.type != "for_statement" or node.parent.child_by_field_name("update") != node:
        return
    if node.type == "assignment_expression":
        value = node.child_by_field_name("right")
        if value is not None:
            yield replaced(value, f"2 * ({text(value)})")
    elif node.type == "update_expression" and operator_of(node) == "++":
        yield replaced(node, f"{part(node, 'argument')} += 2")


def first_round(node: Node) -> Iterator[Edit]:
    """A loop ends after its first round: its body ends in `break`."""
    body = node.child_by_field_name("body") if node.type == "for_statement" else None
    if body is not None:
        yield replaced(body, f"{{ {text(body)} break; }}")


def overwritten(node: Node) -> Iterator[Edit]:
    """A sum keeps its last term alone: += becomes =."""
    if node.parent is None or node.parent.type != "for_statement":  # whose last part it would be
        yield from swapped(node, "assignment_expression", "operator", dict.fromkeys(("+=", "-=", "*="), "="))


def statement(node: Node) -> Iterator[Edit]:
    """A statement is missing: an assignment or a call becomes nothing."""
    if node.type == "expression_statement" and node.named_children:
        inner = node.named_children[0]
        if inner.type in ("assignment_expression", "call_expression") and not _kept(inner):
            yield replaced(node, ";")


def ending(node: Node) -> Iterator[Edit]:
    """A loop goes on where it should stop: `break` and `continue` are missing."""
    if node.type in ("break_statement", "continue_statement") and inside(node, "switch_statement") is None:
        yield replaced(node, ";")


def _decided(node: Node, outcome: str, returns: bool) -> Iterator[Edit]:
    """What is between the parentheses of an `if`, unless the compiler decides it; `returns` says whether it returns."""
    if node.type != "if_statement" or text(node).startswith("if constexpr"):
        return
    clause = node.child_by_field_name("condition")
    condition = clause.child_by_field_name("value") if clause is not None else None
    if condition is not None and bool(re.match(r"\{?\s*return\b", part(node, "consequence"))) == returns:
        yield replaced(condition, outcome)


def _kept(node: Node) -> bool:
    return any(word in called(node) for word in KEPT) if node.type == "call_expression" else False
