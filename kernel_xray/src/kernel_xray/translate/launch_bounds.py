"""Tells the run-time, where a kernel begins, what its attributes say of its registers and its clusters.

`__launch_bounds__` and `__maxnreg__` are the registers with which its threads begin. nvcc compiles `setmaxnreg` only
where it knows them: by a maximum, or by bounds that say how many blocks an SM shall hold. Elsewhere it ignores the
instruction (C7508), and so does the run-time, which hears nothing of such a kernel.

`__cluster_dims__` serves a launch that does not tell the clusters, as in a macro, by a pointer or in another file: it
is made again with them.
"""

from kernel_xray.translate.edits import Text

CALLS = {
    "__launch_bounds__": "launch_bounds",
    "__maxnreg__": "max_registers",
    "__cluster_dims__": "cluster_dims",
    "cluster_dims": "cluster_dims",  # __attribute__((cluster_dims(2, 1, 1))), for which __cluster_dims__ stands
}


def rewrite_bounds(text: Text, i: int) -> None:
    """Inserts a call with the attribute at token i where the body of its kernel begins; none for a declaration."""
    attribute = text.text(i - 3) == "__attribute__"
    if text.text(i + 1) != "(" or not (attribute or text.text(i).startswith("__")):
        return
    last = text.match(i + 1)
    if text.text(i) == "__launch_bounds__" and text.find(i + 2, ",", last) is None:
        return
    behind = 1 + (text.match(i - 2) if attribute else last)
    body, end = (text.find(behind, mark, text.limit(i)) for mark in "{;")
    if body is None or (end is not None and end < body):
        return
    bounds = text.source[text.tokens[i + 2].start : text.tokens[last].start]
    if not any(mark in bounds for mark in ("#", "//", "\\")):  # they could not be put into one line
        after = text.tokens[body].end
        text.replace_span(after, after, f" ::simt::{CALLS[text.text(i)]}({' '.join(bounds.split())});")
