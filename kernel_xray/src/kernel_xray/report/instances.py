"""The kernels of a report by their instantiation: `scale_kernel<c10::Half, 256>`, whatever the launch's text says.

A launch's text names a template's arguments as the source does (`scalar_t`), or not at all. The tracer tells launches
apart by the code that runs them, and notes where this code was; the debugging information has that place's function.
"""

import re
from typing import Any

from kernel_xray.report import symbols

_CODE = " @"  # between the text of a launch and the code that runs it (trace/session.h)


def named(found: dict[str, Any]) -> dict[str, Any]:
    """The tracer's findings with the kernels' names; what has become one kernel is summed."""
    pcs = {pc for launch in found["launches"] for pc in (*launch["pcs"], launch["entry"])}
    frames = symbols.frames(pcs | {a["pc"] for a in found["accesses"]}, found.get("image"))
    names: dict[str, str] = {}
    for launch in found["launches"]:
        label = launch["kernel"].rpartition(_CODE)[0] or launch["kernel"]
        if (outermost := frames.get(launch["entry"], ())[-1:]) and launch["entry"]:
            names[launch["kernel"]] = whole(outermost[0][0])
            continue
        functions = [frame[0] for pc in launch["pcs"] for frame in frames.get(pc, ())]
        names.setdefault(launch["kernel"], instance(label, functions))

    def renamed(entry: dict[str, Any]) -> dict[str, Any]:
        return entry | {"kernel": names.get(entry["kernel"], entry["kernel"])}

    what_if = [{"manner": entry["manner"], **renamed(entry["counts"])} for entry in found.get("what_if", ())]
    return found | {
        **{key: [*map(renamed, found.get(key, ()))] for key in ("launches", "findings", "writers")},
        "accesses": _summed(map(renamed, found["accesses"]), "kernel", "pc", "kind"),
        "what_if": [
            {"manner": counts.pop("manner"), "counts": counts}
            for counts in _summed(what_if, "kernel", "pc", "kind", "manner", "size")
        ],
    }


def instance(label: str, functions: list[str]) -> str:
    """The name of a launch with the template arguments of the first of these functions that is its kernel.

    label       the text of the launch, such as `ops::scale_kernel<scalar_t>`
    functions   as the linker names them, the innermost of inlined calls first
    """
    name = label.partition("<")[0].strip()
    base = name.rpartition("::")[2]
    for function in functions if base.isidentifier() else ():
        text = symbols.demangled(function)
        for match in re.finditer(rf"(?<![\w]){base}(?=[<(])", text):
            return name + _brackets(text, match.end())
    return label


def whole(function: str) -> str:
    """A kernel's name with its namespaces and template arguments, from the linker's."""
    text = symbols.demangled(function).replace("(anonymous namespace)::", "").removeprefix("void ") + "("
    name = re.split(r"[<(]", text, maxsplit=1)[0]
    return name + _brackets(text, len(name))


def _brackets(text: str, start: int) -> str:
    """The template arguments that begin there; empty if none do."""
    depth = 0
    for i in range(start, len(text)) if text[start] == "<" else ():
        depth += (text[i] in "<({[") - (text[i] in ">)}]")
        if depth == 0:
            return text[start : i + 1]
    return ""


def _summed(entries: Any, *keys: str) -> list[dict[str, Any]]:
    """The entries with equal keys as one: the sum of their counts, with the fuller picture."""
    sums: dict[tuple, dict[str, Any]] = {}
    for entry in entries:
        before = sums.setdefault(tuple(entry[key] for key in keys), entry)
        if before is entry:
            continue
        for name, value in entry.items():
            if isinstance(value, int) and name not in (*keys, "size"):
                before[name] += value
        if len(entry["picture"]) > len(before["picture"]):
            before |= {name: entry[name] for name in ("picture", "size")}
    return list(sums.values())
