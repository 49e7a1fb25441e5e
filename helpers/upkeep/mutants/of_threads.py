"""Mutation operators on what CUDA adds to C++: barriers, atomics, warps, memory of a block, launches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from helpers.upkeep.mutants.syntax import Edit, arguments, called, inside, part, replaced, swapped, text

if TYPE_CHECKING:
    from tree_sitter import Node

BARRIERS = ("__syncthreads", "__syncwarp", "sync", "arrive_and_wait", "cluster_sync", "barrier_wait")
FENCES = re.compile(r"__threadfence\w*|\w*(?:fence|commit|wait|arrive)\w*")
SHUFFLES = {
    "__shfl_down_sync": "__shfl_up_sync",
    "__shfl_up_sync": "__shfl_down_sync",
    "__shfl_xor_sync": "__shfl_down_sync",
    "__shfl_sync": "__shfl_xor_sync",
}


def barrier(node: Node) -> Iterator[Edit]:
    """A barrier is missing: __syncthreads() becomes nothing."""
    yield from _dropped(node, lambda name: name in BARRIERS)


def fence(node: Node) -> Iterator[Edit]:
    """A fence, or the wait for a copy, is missing: __threadfence() becomes nothing."""
    yield from _dropped(node, lambda name: name not in BARRIERS and FENCES.fullmatch(name) is not None)


def atomic(node: Node) -> Iterator[Edit]:
    """An atomic addition is an ordinary one: atomicAdd(p, v) becomes *p += v."""
    if called(node) == "atomicAdd" and len(arguments(node)) == 2:
        target, value = map(text, arguments(node))
        yield replaced(node, f"*({target}) += {value}")


def shuffle(node: Node) -> Iterator[Edit]:
    """A warp exchanges in the wrong direction: __shfl_down_sync becomes __shfl_up_sync."""
    yield from swapped(node, "call_expression", "function", SHUFFLES)


def mask(node: Node) -> Iterator[Edit]:
    """Half of a warp is left out: the mask 0xffffffff becomes 0x0000ffff."""
    if node.type == "number_literal" and re.fullmatch(r"0xf{8}u?", text(node), re.IGNORECASE):
        yield replaced(node, "0x0000ffffu")


def shared(node: Node) -> Iterator[Edit]:
    """Each thread has an array of its own: __shared__ is missing."""
    if node.type == "__shared__" and not text(node.parent.parent if node.parent else None).startswith("extern"):
        yield replaced(node, "")


def shared_size(node: Node) -> Iterator[Edit]:
    """An array of the block is too small: `__shared__ float s[n]` becomes s[n - 1]."""
    declared = inside(node, "declaration")
    if node.type == "array_declarator" and declared is not None and "__shared__" in text(declared):
        size = node.child_by_field_name("size")
        if size is not None:
            yield replaced(size, f"({text(size)}) - 1")


def stream(node: Node) -> Iterator[Edit]:
    """A launch goes to the null stream: the fourth argument of <<<...>>> is missing."""
    if node.type == "kernel_call_syntax" and len(node.named_children) == 4:
        yield Edit(node.named_children[2].end_byte, node.named_children[3].end_byte, "")


def grid(node: Node) -> Iterator[Edit]:
    """A launch has one block less, and one more, than it needs."""
    if node.type == "kernel_call_syntax" and node.named_children[0].type == "call_expression":
        blocks = node.named_children[0]
        for change in ("- 1", "+ 1"):
            yield replaced(blocks, f"{text(blocks)} {change}")


def block(node: Node) -> Iterator[Edit]:
    """A launch has half of the threads that its kernel counts on."""
    if node.type == "kernel_call_syntax" and node.named_children[1].type in ("identifier", "number_literal"):
        threads = node.named_children[1]
        yield replaced(threads, f"{text(threads)} / 2")


def dynamic_size(node: Node) -> Iterator[Edit]:
    """A launch gives half of the dynamic shared memory: the third argument of <<<...>>>."""
    if node.type == "kernel_call_syntax" and len(node.named_children) > 2 and text(node.named_children[2]) != "0":
        size = node.named_children[2]
        yield replaced(size, f"({text(size)}) / 2")


def tail(node: Node) -> Iterator[Edit]:
    """The rest is forgotten: ceil_div(a, b) becomes a / b, and n % 4 becomes 0."""
    if called(node) == "ceil_div" and len(arguments(node)) == 2:
        whole, size = map(text, arguments(node))
        yield replaced(node, f"(({whole}) / ({size}))")
    elif node.type == "binary_expression" and part(node, "operator") == "%":
        yield replaced(node, "0")


def _dropped(node: Node, wanted) -> Iterator[Edit]:
    if node.type == "expression_statement" and node.named_children and wanted(called(node.named_children[0])):
        yield replaced(node, ";")
