"""The counters of both sides: their names in ncu, and how to compute them from the simulator's report."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from helpers.upkeep.validation.case import Case
from kernel_xray.report.report import Report
from kernel_xray.report.run import xray

LANES = "active lanes"
# Counter -> ncu's names for it, whose values are added: ncu counts ldmatrix (ldsm) and cp.async (ldgsts) separately.
# Shared memory is counted by instruction (sm__sass): the L1 counts some wavefronts twice, in each run others, and
# ..._op_shared_ld_pred_on_any also counts reads without an active lane that a commit of cp.async makes.
METRICS: dict[str, tuple[str, ...]] = {
    "global load requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),
    "global load sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    "global store requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),
    "global store sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
    "shared load requests": (
        "sm__sass_inst_executed_op_shared_ld.sum",
        "smsp__inst_executed_op_ldsm_pred_on_any.sum",
    ),
    "shared load wavefronts": (
        "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum",
    ),
    "shared store requests": (
        "smsp__inst_executed_op_shared_st_pred_on_any.sum",
        "smsp__inst_executed_op_ldgsts_pred_on_any.sum",
    ),
    "shared store wavefronts": ("sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",),
    "tile load requests": ("smsp__inst_executed_op_tma_ld.sum",),
    # Sectors that SMs receive: a tile for several blocks counts once for each of them.
    "tile load sectors": ("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",),
    "tile store requests": ("smsp__inst_executed_op_tma_st.sum",),
    "tile store sectors": ("l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",),
    LANES: ("smsp__thread_inst_executed_per_inst_executed.ratio",),
}
WITHIN = 0.02  # of a course kernel's counts
# Kernel, counters, a pattern in the SASS, and why these counters differ: the simulator counts the source's accesses.
REASONS = (
    ("", "shared store wavefronts", r"LDGSTS", "cp.async writes shared memory without a store"),
    ("", "shared load", r"LDS\.(?:64|128)", "nvcc merges reads of neighbours"),
    ("wmma", "shared store", r"STS\.64", "wmma's functions have widths of their own"),
    ("hopper_backward", "shared store", r"STS", "ncu's counters of stores leave stmatrix out"),
    ("mma", "global load sectors", r"LDGSTS\S*BYPASS", "rows begin within sectors, where copies past the L1 are split"),
    ("two_ways", "global load", r"1 LDG\b.*2 STG", "nvcc moves the read that both branches begin with before them"),
    ("backward_simple", "global load", r"LDG", "nvcc reads bias only in warps that have a row: 4 have none"),
    ("cluster", "tile load requests", r"UTMALDG", "ncu counts a TMA load that its predicate turns off"),
)
CORRECTED = "nvcc changes these accesses, and the correction by SASS accounts for it"
REARRANGED = "this kernel is here because nvcc rearranges it"  # the reason for those of rearranged.cu


@dataclass(frozen=True)
class Counts:
    """The counts of one launch on one side: counter -> value (zeros may be missing), and the kernel's name."""

    values: dict[str, float]
    kernel: str = ""


def simulated(case: Case, sass: bool = False) -> Counts:
    """Counts all blocks of a case in the simulator; `sass` corrects the counts by nvcc's machine code.

    Raises RuntimeError if the kernel faults, or if `sass` lacks a tool.
    """
    report = xray(case.prepared(torch.device("cpu"), True), seed=0, max_blocks=1 << 20, sass=sass)
    serious = [fault for fault in report.faults if fault.kind != "race"]  # stores to one address race, but count
    if serious:
        raise RuntimeError(f"{case.name}: {serious[0]}")
    names = [launch.kernel for launch in report.launches]
    own = next((name for name in names if re.search(rf"\b{case.kernel}\b", name)), names[-1])
    return Counts(from_report(report, own), own)


def from_report(report: Report, kernel: str | None = None) -> dict[str, float]:
    """Counter -> value, over all lines of a report, or those of one kernel."""
    values: dict[str, float] = dict.fromkeys(METRICS, 0)
    for line in report.lines:
        if line.kind == "atomic" or kernel not in (None, line.kernel):
            continue  # ncu counts atomics separately too
        if line.kind in ("tile load", "tile store"):
            values[f"{line.kind} requests"] += line.requests
            values[f"{line.kind} sectors"] += line.received if line.kind == "tile load" else line.sectors
            continue
        units = line.sectors if line.space == "global" else line.wavefronts
        values[f"{line.space} {line.kind} requests"] += line.requests
        values[f"{line.space} {line.kind} {'sectors' if line.space == 'global' else 'wavefronts'}"] += units
    lanes = [launch.active_lanes for launch in report.launches if kernel in (None, launch.kernel)]
    values[LANES] = lanes[-1] if lanes else 0.0
    return values


def records(
    case: Case, simulator: Counts, ncu: Counts, sass: str = "", corrected: Counts | None = None
) -> Iterable[dict]:
    """The records of one case: one for each counter that is not 0 on both sides; with "corrected" if that is given."""
    for metric in METRICS:
        mine, theirs = simulator.values.get(metric, 0), ncu.values.get(metric)
        if not mine and not theirs:
            continue
        if theirs is None:
            note = "ncu did not report it"
        else:
            note = note_for(case, metric, mine, theirs, sass, corrected.values.get(metric, 0) if corrected else None)
        yield {
            "kernel": case.name,
            "group": case.group,
            "metric": metric,
            "simulator": _rounded(mine),
            **({"corrected": _rounded(corrected.values.get(metric, 0))} if corrected else {}),
            "ncu": None if theirs is None else _rounded(theirs),
            "note": note,
        }


def _rounded(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)


def note_for(
    case: Case, metric: str, mine: float, theirs: float, sass: str = "", corrected: float | None = None
) -> str:
    """Why two counts differ; "" if they are equal."""
    if metric == LANES:
        if abs(mine - theirs) < 0.05:
            return ""
        return "over source-level steps here, over machine instructions there; nvcc predicates short branches"
    if mine == theirs:
        return ""
    off = abs(mine - theirs) / max(mine, theirs)
    inside = case.group == "course" and off <= WITHIN
    text = f"{100 * off:.{2 if off < 0.995 else 3}g}% off" + (", within 2%" if inside else "")
    if inside or not sass:
        return text
    found = (
        why
        for kernel, metrics, opcode, why in REASONS
        if kernel in case.kernel and metrics in metric and re.search(opcode, sass)
    )
    reason = next(found, REARRANGED if case.group == "rearranged" else "")
    if not reason and corrected is not None and abs(corrected - theirs) <= WITHIN * theirs:
        reason = CORRECTED
    return f"{text}; {reason + '; ' if reason else ''}SASS: {sass}"


def exact(found: Iterable[dict], group: str | None = None, side: str = "simulator") -> dict[str, list[str]]:
    """Launch -> its counters, active lanes aside, that differ between ncu and a side; [] if all are equal.

    side   "simulator" or "corrected"; launches without a corrected count are left out
    """
    wrong: dict[str, list[str]] = {}
    for record in found:
        if group in (None, record["group"]) and record["metric"] != LANES and side in record:
            wrong.setdefault(record["kernel"], [])
            if record[side] != record["ncu"]:
                wrong[record["kernel"]].append(record["metric"])
    return wrong
