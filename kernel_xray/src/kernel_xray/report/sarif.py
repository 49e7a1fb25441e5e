"""A report in SARIF 2.1.0, the format in which GitHub's code scanning and editors take findings and show them on lines.

Faults and what is over budget are errors, remarks are notes. Files below the root are named relative to it, as code
scanning needs. A fingerprint of kind, kernel and source text follows a finding when its line moves.

Format: OASIS, 'Static Analysis Results Interchange Format (SARIF) Version 2.1.0'; what code scanning reads of it:
GitHub's 'SARIF support for code scanning' (read on 2026-11-22).
"""

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kernel_xray.report.budget import Over
from kernel_xray.report.document import shown
from kernel_xray.report.facts import Facts, FaultRecord, source_line

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"  # the base that code scanning resolves against the repository
OVER_BUDGET = "over-budget"

# Kind -> what it is, and what usually fixes it.
RULES = {
    "out-of-bounds": (
        "A thread accesses memory outside its array",
        "The index runs past the array's end or before its start. Guard it with the array's size, as in "
        "`if (i < n)`, and check the size of the grid and of shared memory.",
    ),
    "race": (
        "Two threads access the same memory without an order between them",
        "At least one of them writes. Put a `__syncthreads()` between the accesses of one block, a `__syncwarp()` "
        "between those of one warp; use an atomic operation where several threads update one element.",
    ),
    "uninitialised-read": (
        "A thread reads memory that nothing has written",
        "Write every element before it is read: initialise shared memory, and use `zeros` in place of `empty`.",
    ),
    "misaligned": (
        "An access is not aligned to its size",
        "A `float4` needs an address that is a multiple of 16. Check the alignment of the pointer, which a view of a "
        "tensor need not have, and use scalar accesses where it does not fit.",
    ),
    "divergent-barrier": (
        "Not all threads reach the same barrier",
        "Every thread of the block has to execute the same `__syncthreads()`, and every lane in a mask the same warp "
        "operation. Move it out of the branch, and do not return before it.",
    ),
    "deadlock": (
        "Threads wait for something that never happens",
        "A thread waits at a barrier that the others never reach, or for memory that nothing changes.",
    ),
    "time-limit": (
        "The kernel does not end",
        "A loop never ends, or a block waits for another one, which need not run at the same time.",
    ),
    "assert": (
        "An assertion of the kernel failed",
        "The message has the condition and the first thread that failed it.",
    ),
    "trap": ("The kernel executed a trap", "The kernel stopped itself with `__trap()`."),
    "exception": ("The kernel threw an exception", "Device code cannot throw exceptions; return an error instead."),
    "division-by-zero": (
        "An integer division by zero",
        "A GPU returns an undefined value and goes on. Guard the division.",
    ),
    "stack-overflow": ("A thread's stack is full", "Recursion is too deep, or local arrays are too large."),
    "shared-memory": (
        "The kernel needs more shared memory than a block can have",
        "Static shared memory is limited to 48 KiB a block. Use smaller tiles or dynamic shared memory.",
    ),
    "tensor-memory": (
        "Columns of tensor memory are not allocated or freed as they have to be",
        "One warp allocates with `tcgen05.alloc`, and frees all of it with `tcgen05.dealloc` before the block ends.",
    ),
    "unsupported": ("The kernel uses what the simulator does not have", "The message names it."),
    "budget": (
        "A part of a block was not traced",
        "The block has more steps than the X-ray traces by default. `--steps` and `--seconds` trace more.",
    ),
    OVER_BUDGET: (
        "A kernel or line costs more than its budget allows",
        "The lines with the message waste most. If the cost is intended, write a new budget with `--write-budget`.",
    ),
}
_OTHER = ("A fault in a kernel", "The message says what happened.")


def as_sarif(report: Facts, root: Path, over: list[Over] | None = None) -> str:
    """The report, and what is over budget, as the text of a SARIF file."""
    findings = [(fault.kind, "error", fault) for fault in report.faults]
    findings += [(remark.kind, "note", remark) for remark in report.remarks]
    kinds = list(dict.fromkeys([*RULES, *(kind for kind, _, _ in findings)]))
    results = [_of_fault(kind, level, fault, report, root) for kind, level, fault in findings]
    results += [_of_budget(each, root) for each in over or []]
    for result in results:
        result["ruleIndex"] = kinds.index(result["ruleId"])
    driver = {"name": "Kernel Ladder X-ray", "rules": [_rule(kind) for kind in kinds]}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"uri": root.as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"seed": report.seed, "complete": report.complete},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(kind: str) -> dict[str, Any]:
    short, fix = RULES.get(kind, _OTHER)
    return {
        "id": kind,
        "name": "".join(word.capitalize() for word in kind.split("-")),
        "shortDescription": {"text": f"{short}."},
        "fullDescription": {"text": f"{short}."},
        "help": {"text": fix.replace("`", ""), "markdown": fix},
        "defaultConfiguration": {"level": "error"},
    }


def _of_fault(kind: str, level: str, fault: FaultRecord, report: Facts, root: Path) -> dict[str, Any]:
    file, line = fault.file, fault.line
    if not line:  # where its kernel is launched is the nearest place that is known
        launch = next((each for each in report.launches if fault.kernel in ("", each.kernel)), None)
        file, line = (launch.file, launch.line) if launch else ("", 0)
    where = f" In kernel {fault.kernel}, block {fault.block}, thread {fault.thread}." if fault.kernel else ""
    result = _result(kind, level, fault.message + "." * (not fault.message.endswith(".")) + where, file, line, root)
    if fault.kernel and result["locations"]:
        result["locations"][0]["logicalLocations"] = [{"name": fault.kernel, "kind": "function"}]
    if fault.others:
        others = [_location(other, number, root) for other, number in fault.others]
        result["relatedLocations"] = [
            {"id": i, **location, "message": {"text": "the other access"}} for i, location in enumerate(others, 1)
        ]
    if fault.kernel in report.cut:
        result["properties"] = {"complete": False}
    return result | {"partialFingerprints": {"xray/v1": _fingerprint(kind, fault.kernel, file, line)}}


def _of_budget(over: Over, root: Path) -> dict[str, Any]:
    result = _result(OVER_BUDGET, "error", str(over), over.file, over.line, root)
    mark = _fingerprint(OVER_BUDGET, f"{over.entry}: {over.quantity}", over.file, over.line)
    return result | {"partialFingerprints": {"xray/v1": mark}}


def _result(kind: str, level: str, message: str, file: str, line: int, root: Path) -> dict[str, Any]:
    locations = [_location(file, line, root)] if file else []
    return {"ruleId": kind, "level": level, "message": {"text": message}, "locations": locations}


def _location(file: str, line: int, root: Path) -> dict[str, Any]:
    name = shown(file, root)
    inside = not Path(name).is_absolute()
    artifact = {"uri": quote(name), "uriBaseId": _ROOT} if inside else {"uri": Path(name).as_uri()}
    region: dict[str, Any] = {"startLine": max(line, 1)}
    if text := source_line(file, line).strip():
        region["snippet"] = {"text": text}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _fingerprint(kind: str, kernel: str, file: str, line: int) -> str:
    """The same for a finding whose line has moved."""
    parts = (kind, kernel, Path(file).name, source_line(file, line).strip())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
