"""The results as files: JSON, and Markdown for a reader, made from the JSON alone."""

import json
import re
from pathlib import Path

from helpers.ladder.results.table import markdown
from helpers.pages import museum
from helpers.paths import DOCS, RESULTS
from helpers.upkeep.validation.counted import COURSE, NOT_COUNTED
from helpers.upkeep.validation.counters import CORRECTED, LANES, REARRANGED, exact
from helpers.upkeep.validation.sanitizer import TOOLS

COUNTS, COUNTS_DOCUMENT = RESULTS / "xray_vs_ncu.json", DOCS / "xray_vs_ncu.md"
GROUPS = {
    "course": "kernels of the course",
    "global": "micro-kernels, global memory",
    "shared": "micro-kernels, shared memory",
    "tile": "micro-kernels, tiles through TMA",
    "rearranged": "kernels whose accesses nvcc rearranges",
}
SMALL = "within 2%"
# The reason in a record's note -> the heading of its differences, and a sentence.
WHY = {
    "nvcc moves the read that both branches begin with before them": (
        "One read for two branches",
        "Both branches begin with the same read. nvcc moves it in front of the branch: one request for the whole warp.",
    ),
    "nvcc reads bias only in warps that have a row: 4 have none": (
        "Warps without a row",
        "nvcc reads bias only in warps that have a row. 4 warps have none.",
    ),
    "nvcc merges reads of neighbours": (
        "Merged reads of shared memory",
        "A thread reads neighbouring elements. nvcc merges these reads into LDS.64 or LDS.128: fewer requests, of more "
        "wavefronts each.",
    ),
    "cp.async writes shared memory without a store": (
        "Asynchronous copies",
        "cp.async (LDGSTS) writes shared memory without a store instruction, so ncu counts no store wavefronts.",
    ),
    "wmma's functions have widths of their own": (
        "Widths of wmma's accesses",
        "wmma's functions read and write shared memory in widths of their own.",
    ),
    "rows begin within sectors, where copies past the L1 are split": (
        "Rows that begin within a sector",
        "Copies that bypass the L1 are split where a row begins within a sector.",
    ),
    "ncu's counters of stores leave stmatrix out": (
        "Stores of matrices",
        "stmatrix (STSM) counts in none of these counters: the difference is its instructions, of 4 wavefronts each.",
    ),
    "ncu counts a TMA load that its predicate turns off": (
        "Loads that a predicate turns off",
        "A block whose rows lie outside of the matrix does not request them: the instruction is executed with a false "
        "predicate, and ncu counts it. The sectors are equal.",
    ),
    CORRECTED: (
        "Corrected by the machine code",
        "nvcc changes these accesses. `sass=True` accounts for it: the corrected count is ncu's, or within 2% of it.",
    ),
    REARRANGED: (
        "Kernels whose accesses nvcc rearranges",
        "They are here to compare the corrected counts with ncu's.",
    ),
    SMALL: ("Differences within 2%", "They need no reason."),
    "": ("Unexplained differences", "These are more than 2%, and no reason is known."),
}
_NOTE = re.compile(r"off; (?P<why>.+); SASS: (?P<sass>.+)$")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _heading(title: str, machine: dict) -> list[str]:
    tools = ", ".join(f"{name} {machine[name]}" for name in ("driver", "cuda", "torch") if machine.get(name))
    return [f"# {title}", "", f"Recorded on {machine.get('gpu', 'unknown')}, {machine.get('date', '')} ({tools}).", ""]


def summary(document: dict) -> list[tuple[str, int, int, str, float]]:
    """For each group: its heading, launches, launches that agree in every counter, the same by corrected counts ("-" in
    a recording without them), and the worst of active lanes."""
    found = []
    for group, heading in GROUPS.items():
        records = [record for record in document["records"] if record["group"] == group]
        verdict = exact(records)
        corrected = exact(records, side="corrected")
        lanes = [abs(r["simulator"] - r["ncu"]) for r in records if r["metric"] == LANES and r["ncu"] is not None]
        if verdict:
            agreed = sum(not wrong for wrong in verdict.values())
            by_sass = str(sum(not wrong for wrong in corrected.values())) if corrected else "-"
            found.append((heading, len(verdict), agreed, by_sass, max(lanes, default=0.0)))
    return found


def counts_table(document: dict) -> str:
    """Markdown for xray_vs_ncu.json: how many launches agree, then each difference under its reason, with the SASS."""
    lines = _heading("Simulator against Nsight Compute", document["machine"])
    lines += [
        "Both sides made the same launches and counted requests, sectors and wavefronts of each. The simulator counts "
        "the accesses of the source, ncu those of the machine code; `xray(..., sass=True)` corrects the counts of the "
        "source by the machine code. `results/xray_vs_ncu.json` has every counter of every launch; this page has the "
        "differences. `python -m helpers.upkeep.validation document` writes it.",
        "",
        f"{LANES[0].upper()}{LANES[1:]} is a mean: over steps of the source in the simulator, over machine "
        "instructions in ncu. The two differ wherever nvcc predicates a short branch.",
        "",
    ]
    rows = [(*row, f"{worst:.2f} of 32") for *row, worst in summary(document)]
    equal = "equal in every request, sector and wavefront"
    header = ("group", "launches", equal, "equal once corrected by SASS", f"{LANES}: largest difference")
    lines += [*markdown(header, rows), ""]
    differences = _differences(document)
    for why, (heading, sentence) in WHY.items():
        if why in differences:
            lines += [f"## {heading}", "", sentence, ""]
            rows = [(launch, "<br>".join(counts), sass) for (launch, sass), counts in differences[why].items()]
            columns = ("launch", "counter: simulator → ncu", "memory instructions in the SASS")
            lines += [*markdown(columns, rows), ""]
    return "\n".join(lines)


def _differences(document: dict) -> dict[str, dict[tuple[str, str], list[str]]]:
    """Reason -> launch and SASS -> its counters that differ, with both counts."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for record in document["records"]:
        if record["metric"] == LANES or record["simulator"] == record["ncu"]:
            continue
        note = _NOTE.search(record["note"])
        why = note["why"] if note else SMALL if SMALL in record["note"] else ""
        theirs = "not reported" if record["ncu"] is None else f"{record['ncu']:,}"
        launch = (record["kernel"], note["sass"] if note else "")
        counts = found.setdefault(why if why in WHY else "", {}).setdefault(launch, [])
        corrected = f" (corrected: {record['corrected']:,})" if "corrected" in record else ""
        counts.append(f"{record['metric']}: {record['simulator']:,} → {theirs}{corrected}")
    return found


def without_a_row(document: dict) -> list[str]:
    """Kernels of the course that are not counted, with the reason, and launches missing from this recording."""
    recorded = {record["kernel"] for record in document["records"]}
    later = [f"{case.name}: not in this recording" for case in COURSE if case.name not in recorded]
    return [*(f"{kernel}: {why}" for kernel, why in NOT_COUNTED.items()), *later]


def bugs_table(document: dict) -> str:
    """Markdown for sanitizer_vs_xray.json: what each tool found for each planted bug."""
    lines = _heading("Planted bugs: X-ray against compute-sanitizer", document["machine"])
    lines += [
        "'nothing': the tool finished and reported no error. 'CUDA error': the same, but CUDA ended the program."
        " '-': not run, or not finished.",
        "",
    ]
    rows = []
    for record in document["records"]:
        cells = [said(record["tools"].get(tool)) for tool in TOOLS]
        rows.append((record["exhibit"], f"{record['kind']}, line {record['line']}", said(record["xray"]), *cells))
    lines += [*markdown(("bug", "planted", "X-ray", *TOOLS), rows), ""]
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
