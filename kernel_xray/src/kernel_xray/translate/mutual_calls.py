"""Two functions that call each other, both `__forceinline__`: nvcc leaves one of the calls, and g++ refuses them.

    T rotl(T x, int s) { return s > 0 ? ... : rotr(x, -s); }
    T rotr(T x, int s) { return s > 0 ? ... : rotl(x, -s); }

One of the calls is made from a lambda that is not inlined. A macro may stand for `__forceinline__`, so all such pairs
are treated so that are declared and then defined at the beginning of a line, which tells them from members of classes.
"""

import re

_HEAD = re.compile(r"^(?:\w[\w:<>*&, ]*[ *&])?(\w+)\s*\([^(){};]*\)\s*([;{])", re.MULTILINE)
_BEFORE, _AFTER = "[&]() __attribute__((noinline)) -> decltype(auto) { return ", "; }()"


def with_calls_apart(source: str) -> str:
    """The source with one call of each such pair in a lambda, and every line where it was."""
    declared: set[str] = set()
    bodies: dict[str, tuple[int, int]] = {}  # of functions that were declared before
    for head in _HEAD.finditer(source):
        if head[2] == ";":
            declared.add(head[1])
        elif head[1] in declared:
            bodies[head[1]] = head.end(), source.find("\n}", head.end())
    for name, (start, end) in sorted(bodies.items(), key=lambda item: -item[1][0]):
        for other, body in bodies.items():
            if name < other and _calls(name, source[slice(*body)]) and _calls(other, source[start:end]):
                source = source[:start] + _apart(source[start:end], other) + source[end:]
    return source


def _calls(name: str, body: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?:(?<=[:?=] )|(?<=return )){name}\(", body))


def _apart(body: str, name: str) -> str:
    """The body with each call of `name` in a lambda."""
    pieces, position = [], 0
    for call in _calls(name, body):
        depth, end = 1, call.end()
        while depth and end < len(body):
            depth += (body[end] == "(") - (body[end] == ")")
            end += 1
        if call.start() >= position:
            pieces += [body[position : call.start()], _BEFORE, body[call.start() : end], _AFTER]
            position = end
    return "".join(pieces) + body[position:]
