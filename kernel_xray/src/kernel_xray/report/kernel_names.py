"""Names of kernels as a report shows them: those of a template library have kilobytes."""

import re
import zlib
from collections.abc import Iterable

_WIDTH = 120  # characters


def shown_name(kernel: str) -> str:
    """The name whole if it is short, else with fewer of its template arguments: `gemm<Shape<…>, half> #5c3f9a01`.

    The number tells kernels apart whose names are shortened alike. Budgets and the JSON have the whole names.
    """
    if len(kernel) <= _WIDTH:
        return kernel
    deepest = max(kernel.count("<"), 1)
    shorter = (_down_to(depth, kernel) for depth in range(deepest, -1, -1))
    shown = next((name for name in shorter if len(name) <= _WIDTH), kernel[:_WIDTH] + "…")
    return f"{shown} #{zlib.crc32(kernel.encode()):08x}"


def shown_names(kernels: Iterable[str]) -> str:
    """Each of the names once, in order."""
    return ", ".join(map(shown_name, dict.fromkeys(kernels)))


def _down_to(depth: int, name: str) -> str:
    """The name without the template arguments that stand deeper than in `depth` brackets."""
    shown, level = "", 0
    for piece in re.findall(r"[<>]|[^<>]+", name):
        level += piece == "<"
        if level <= depth:
            shown += piece
        elif level == depth + 1 and piece == "<":
            shown += "<…>"
        level -= piece == ">"
    return shown
