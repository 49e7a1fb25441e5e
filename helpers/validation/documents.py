"""The results as files: JSON of the form that DESIGN fixes, and tables in Markdown made from it alone."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from helpers import museum
from helpers.validation.counted import COURSE, NOT_COUNTED
from helpers.validation.counters import LANES, exact
from helpers.validation.sanitizer import TOOLS

# A group of cases: its heading, and what it has.
GROUPS = {
    "course": ("Course kernels", "course kernels"),
    "global": ("Global memory", "global micro-kernels"),
    "shared": ("Shared memory", "shared micro-kernels"),
    "tile": ("Tiles that TMA loads and stores", "micro-kernels with a tile"),
}


def write(path: Path, document: dict) -> None:
    """Writes a document: the machine, then each list with an entry a line. All at once or not at all."""
    parts = [f'  "machine": {json.dumps(document["machine"])}']
    for key, entries in document.items():
        if key != "machine":
            lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
            parts.append(f'  "{key}": [\n{lines}\n  ]')
    half = path.with_name(path.name + ".new")
    half.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    os.replace(half, path)


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _heading(title: str, machine: dict) -> list[str]:
    tools = ", ".join(f"{name} {machine[name]}" for name in ("driver", "cuda", "torch") if machine.get(name))
    return [f"# {title}", "", f"Recorded on {machine.get('gpu', 'unknown')}, {machine.get('date', '')} ({tools}).", ""]


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *map(line, rows), ""]


def counts_table(document: dict) -> str:
    """Markdown for xray_vs_ncu.json: how many kernels agree, which have no row, then every counter."""
    records = document["records"]
    lines = _heading("Simulator against Nsight Compute", document["machine"])
    for group, (_, what) in GROUPS.items():
        verdict = exact(records, group)
        if verdict:
            equal = sum(not wrong for wrong in verdict.values())
            lines.append(f"- {what}: {equal} of {len(verdict)} equal in every request, sector and wavefront")
    recorded = {record["kernel"] for record in records}
    later = dict.fromkeys(f"- {case.kernel}: not in this recording" for case in COURSE if case.name not in recorded)
    lines += ["", "Without a row:", "", *(f"- {kernel}: {why}" for kernel, why in NOT_COUNTED.items()), *later, ""]
    for group, (title, _) in GROUPS.items():
        chosen = [r for r in records if r["group"] == group]
        if chosen:
            lines += [f"## {title}", ""]
            rows = [
                (
                    r["kernel"],
                    r["metric"],
                    f"{r['simulator']:,}",
                    "-" if r["ncu"] is None else f"{r['ncu']:,}",
                    r["note"],
                )
                for r in chosen
                if r["metric"] != LANES or r["note"] or group == "course"
            ]
            lines += _table(("launch", "counter", "simulator", "ncu", "note"), rows)
    return "\n".join(lines)


def bugs_table(document: dict) -> str:
    """Markdown for sanitizer_vs_xray.json: what each tool found of each planted bug."""
    lines = _heading("Planted bugs: X-ray against compute-sanitizer", document["machine"])
    lines += [
        "'nothing': the tool ran to its end and reported no error. 'CUDA error': so it did, but CUDA ended the program."
        " '-': not run, or it did not come to an end.",
        "",
    ]
    rows = []
    for record in document["records"]:
        cells = [said(record["tools"].get(tool)) for tool in TOOLS]
        rows.append((record["exhibit"], f"{record['kind']}, line {record['line']}", said(record["xray"]), *cells))
    lines += _table(("bug", "planted", "X-ray", *TOOLS), rows)
    recorded = {record["exhibit"] for record in document["records"]}
    later = [e.name for e in museum.EXHIBITS if e.tool == "xray" and e.name not in recorded]
    if later:
        lines += ["Without a row:", "", *(f"- {name}: not in this recording" for name in later), ""]
    return "\n".join(lines)


def said(verdict: dict | None) -> str:
    """A verdict in a cell of a table."""
    if verdict is None:
        return "-"
    if not verdict["kind"]:
        return "nothing"
    return f"{verdict['kind']} ({verdict['place']})" if verdict["place"] else verdict["kind"]
