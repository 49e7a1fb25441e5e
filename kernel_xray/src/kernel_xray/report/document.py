"""A report as a JSON document, for other programs. kernel_xray/docs/xray.schema.json describes it.

The form is stable: fields may be added under the same VERSION; a field that changes its meaning or goes raises it.
"""

import json
from pathlib import Path
from typing import Any

from kernel_xray.report.budget import Over
from kernel_xray.report.facts import Facts, FaultRecord, Launch, Line
from kernel_xray.report.limits_table import Limits

VERSION = 1


def as_json(report: Facts, root: Path, over: list[Over] | None = None) -> str:
    """The document as indented text. `root`: files below it are named relative to it; `over`: None without a budget."""
    return json.dumps(as_document(report, root, over), indent=2, ensure_ascii=False) + "\n"


def as_document(report: Facts, root: Path, over: list[Over] | None = None) -> dict[str, Any]:
    """The document as Python's dicts and lists."""
    return {
        "version": VERSION,
        "seed": report.seed,
        "counted": report.sass or "source",
        "complete": report.complete,
        "launches": [_launch(launch, root) for launch in report.launches],
        "lines": [_line(line, root) for line in report.lines],
        "faults": [_fault(fault, root) for fault in report.faults],
        "remarks": [_fault(remark, root) for remark in report.remarks],
        "limits": None if report.limited is None else _limits(report.limited),
        "over_budget": None if over is None else [_over(each, root) for each in over],
    }


def shown(file: str, root: Path) -> str:
    """A file's path relative to `root`, with slashes; absolute if the file is elsewhere; empty if it is unknown."""
    if not file:
        return ""
    path = Path(file)
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _launch(launch: Launch, root: Path) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "file": shown(launch.file, root),
        "line": launch.line,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "blocks": launch.blocks,
        "traced_blocks": launch.traced_blocks,
        "cut_blocks": launch.cut_blocks,
        "active_lanes": launch.active_lanes,
        "shared_static": launch.shared_static,
        "shared_dynamic": launch.shared_dynamic,
    }


def _limits(limits: Limits) -> dict[str, Any]:
    return {
        "gpu": limits.gpu.name,
        "launches": [
            [
                {"resource": limit.resource, "seconds": limit.seconds, "work": limit.work, "is_bound": limit.is_bound}
                for limit in of_launch.limits
            ]
            for of_launch in limits.launches
        ],
    }


def _line(line: Line, root: Path) -> dict[str, Any]:
    return {
        "file": shown(line.file, root),
        "line": line.line,
        "source": line.source,
        "kernel": line.kernel,
        "space": line.space,
        "access": line.kind,
        "bytes": line.size,
        "active_lanes": line.active_lanes,
        "requests": line.requests,
        "unit": line.unit,
        "cost": line.cost,
        "ideal": line.ideal,
        "efficiency": line.efficiency,
        "received": line.received,
        "all_blocks": line.all_blocks,
        "all_blocks_error": line.error,
        "complete": line.complete,
    }


def _fault(fault: FaultRecord, root: Path) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        "file": shown(fault.file, root),
        "line": fault.line,
        "kernel": fault.kernel,
        "block": list(fault.block),
        "thread": list(fault.thread),
        "message": fault.message,
        "others": [{"file": shown(file, root), "line": line} for file, line in fault.others],
    }


def _over(over: Over, root: Path) -> dict[str, Any]:
    return {
        "entry": over.entry,
        "quantity": over.quantity,
        "allowed": over.allowed,
        "got": over.got,
        "lines": [{"file": shown(line.file, root), "line": line.line} for line in over.lines],
    }
