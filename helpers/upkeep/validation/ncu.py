"""Nsight Compute: the command, and a reader of its CSV, which has a row for each launch."""

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.upkeep.validation.case import Case
from helpers.upkeep.validation.counters import METRICS, Counts

MOST_LAUNCHES = 4  # counted kernels that one call may launch
MISSING = re.compile(r"Failed to find metric(?: regex)?[: ]+\S*?([a-z0-9_]+__[\w.]+)")


class NcuError(RuntimeError):
    """ncu cannot count here, or its output cannot be read; the message has the end of the output."""


def call(kernels: Sequence[str], program: Sequence[str], *options: str) -> list[str]:
    """The ncu command for these kernels of a program, with further options. The clocks stay as they are in use."""
    chosen = ("--kernel-name", f"regex:({'|'.join(kernels)})", "--target-processes", "all")
    return [shutil.which("ncu") or "ncu", "--clock-control", "none", *options, *chosen, *program]


def command(
    log: Path, kernels: Sequence[str], program: Sequence[str], metrics: Sequence[str], *more: str, cache: str = "none"
) -> list[str]:
    """The ncu command that counts `metrics` of these kernels in a program and writes CSV to `log`.

    more    options of ncu
    cache   "all": empties the caches before each pass
    """
    as_csv = ("--csv", "--page", "raw", "--print-units", "base", "--kernel-name-base", "demangled")
    counted = ("--metrics", ",".join(metrics), "--log-file", str(log))
    return call(kernels, program, "--cache-control", cache, *more, *as_csv, *counted)


def measure(cases: Sequence[Case], log: Path, only: str = "", timeout: float = 300) -> list[Counts | None]:
    """Counts the cases, those with `only` in their names, on the GPU; None for one whose row has another kernel's name.

    Counters unknown to this version of ncu are left out. Raises NcuError.
    """
    metrics = [name for names in METRICS.values() for name in names]
    program = [sys.executable, "-m", "helpers.upkeep.validation", "launches", "--only", only]
    names = sorted({case.kernel for case in cases})
    for _ in range(len(metrics)):
        try:
            done = subprocess.run(
                command(log, names, program, metrics), capture_output=True, text=True, timeout=timeout, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NcuError(f"ncu did not run: {error}") from error
        printed = (log.read_text(errors="replace") if log.exists() else "") + done.stdout + done.stderr
        unknown = [m for m in MISSING.findall(printed) if m in metrics]
        if not unknown:
            break
        metrics = [m for m in metrics if m not in unknown]
    rows = parse(printed)
    if not rows:
        raise NcuError("ncu counted nothing:\n" + printed[-2000:])
    return match(cases, rows)


def match(cases: Sequence[Case], rows: Sequence[Counts]) -> list[Counts | None]:
    """The counts of each case, in the order of the cases; None if its rows are missing or have another kernel's name.

    A call may launch other counted kernels as well: a case's rows are the same kernels, `repeats` times in a row.
    With several launches of a case, the minimum of each counter: only the kernel's own accesses occur in every launch.
    """
    found: list[Counts | None] = []
    at = 0
    for i, case in enumerate(cases):
        calls = _own(case, rows[at:])
        found.append(_least([call[_first_of(case, call)] for call in calls]) if calls else None)
        if not calls and not any(_own(following, rows[at:]) for following in cases[i + 1 : i + 2]):
            calls = next(_calls(case, rows[at:]), [])  # another kernel was launched in its place
        at += sum(map(len, calls))
    return found


def _own(case: Case, rows: Sequence[Counts]) -> list[Sequence[Counts]]:
    """The calls of a case with which `rows` begin; none if its kernel is in none of them."""
    return next((calls for calls in _calls(case, rows) if _first_of(case, calls[0]) >= 0), [])


def _calls(case: Case, rows: Sequence[Counts]) -> Iterator[list[Sequence[Counts]]]:
    """The ways in which `rows` begin with the calls of a case: `repeats` times the same kernels."""
    for launches in range(1, MOST_LAUNCHES + 1):
        calls = [rows[i : i + launches] for i in range(0, case.repeats * launches, launches)]
        kernels = [[row.kernel for row in call] for call in calls]
        if len(kernels[-1]) == launches and all(each == kernels[0] for each in kernels):
            yield calls


def _first_of(case: Case, call: Sequence[Counts]) -> int:
    """Which launch of a call is the first of the case's kernel; -1: none is."""
    return next((i for i, row in enumerate(call) if re.search(rf"\b{case.kernel}\b", row.kernel)), -1)


def _least(rows: Sequence[Counts]) -> Counts:
    labels = dict.fromkeys(label for row in rows for label in row.values)
    return Counts(
        {label: min(row.values[label] for row in rows if label in row.values) for label in labels}, rows[0].kernel
    )


def rows(text: str) -> list[dict[str, str]]:
    """The rows of ncu's CSV, by column: one for each launch, in order. Skips the messages around it, and the units."""
    table = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    whole = (row for row in table[1:] if len(row) == len(table[0]) and row[0].isdigit())
    return [dict(zip(table[0], row, strict=True)) for row in whole]


def parse(text: str) -> list[Counts]:
    """The counts of the launches in ncu's CSV, in order."""
    found = []
    for row in rows(text):
        numbers = {name: number(value) for name, value in row.items()}
        values = {name: value for name, value in numbers.items() if value is not None}
        found.append(Counts(_added_up(values), row["Kernel Name"]))
    return found


def _added_up(values: dict[str, float]) -> dict[str, float]:
    """Counter -> value, for counters with a value for each of their names."""
    return {
        label: sum(values[name] for name in names)
        for label, names in METRICS.items()
        if all(name in values for name in names)
    }


def number(text: str) -> float | None:
    """A number in a row; None for what is not one."""
    try:
        return float(text.replace(",", "").replace("'", ""))
    except ValueError:  # "n/a"
        return None
