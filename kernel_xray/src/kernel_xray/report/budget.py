"""A budget: what kernels and lines may cost, as a YAML file, so that a check fails when a change makes them worse.

    kernels:
      scale_kernel:              # in all traced blocks of all its launches; of a template, of all its instances
        requests: 64
        sectors: 256
        sectors_ratio: 1.0       # of each of its lines: the sectors, over the fewest that hold the requested bytes
    lines:
      "scale.cu:23": {sectors: 128}
      "scale.cu: out[i] = a * x[i];": {wavefronts: 0}     # the same line, wherever it moves

Without PyYAML the file is JSON, which is YAML too. Every key is optional. A fault is over budget unless `faults` allows
it, for a kernel, a line or, at the top of the file, for all that no other entry names.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_xray.report.facts import Facts, Line, source_line

Entry = dict[str, float]  # quantity -> what is allowed
SUMMED = ("requests", "sectors", "wavefronts")
RATIOS = ("sectors_ratio", "wavefronts_ratio")
QUANTITIES = (*SUMMED, *RATIOS, "faults")
_SHOWN_LINES = 3


class BudgetError(ValueError):
    """A budget that cannot be read, or that names what the run does not have."""


class NotInReport(BudgetError):
    """A budget that names a kernel or line that the run did not have."""


@dataclass(frozen=True)
class Over:
    """One quantity beyond its budget, and the lines that cause it, the most wasteful first."""

    entry: str  # "kernel scale_kernel" or "scale.cu:23"
    quantity: str
    allowed: float
    got: float
    lines: tuple[Line, ...] = field(default=(), repr=False)
    file: str = ""  # of the first place that causes it; empty if no line is known
    line: int = 0

    def __str__(self) -> str:
        head = f"{self.entry}: {self.quantity}: allowed {_number(self.allowed)}, got {_number(self.got)}"
        return "\n".join([head, *(_line_text(line) for line in self.lines)])


def _line_text(line: Line) -> str:
    cost = f"{line.requests:,} requests, {line.cost:,} {line.unit}, {line.ideal:,} at best"
    of = f" of {line.kernel}" if "<" in line.kernel else ""
    return f"  {Path(line.file).name}:{line.line}  {line.space} {line.kind}{of}, {cost}\n    > {line.source}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


# ----------------------------------------------------------------------------------------------------------------------
# Reading


@dataclass(frozen=True)
class Budget:
    """What is allowed. Read one with `read`, compare a report with `check`."""

    kernels: dict[str, Entry]
    lines: dict[str, Entry]
    faults: int = 0


def read(path: Path) -> Budget:
    """Reads a budget. Raises BudgetError, whose message names the key, what was found and what to write."""
    try:
        found = _parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BudgetError(f"{path} does not exist; --write-budget {path} makes one from this run") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BudgetError(f"{path} cannot be read: {error}") from None
    except _NotParsed as error:
        raise BudgetError(f"{path} is not {error}") from None
    top = _mapping(found if found is not None else {}, str(path), ("kernels", "lines", "faults"))
    sections = {}
    for name in ("kernels", "lines"):
        section = _mapping(top.get(name) or {}, f"{path}: {name}", None)
        sections[name] = {str(key): _entry(value, f"{path}: {name}: {key}") for key, value in section.items()}
    return Budget(**sections, faults=int(_allowed(top.get("faults", 0), "faults", str(path))))


class _NotParsed(Exception):
    """Which format a text does not have, and where."""


def _parsed(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        try:
            return json.loads(re.sub(r"^ *#.*", "", text, flags=re.MULTILINE))
        except ValueError as error:
            hint = "to read YAML, install PyYAML: pip install 'kernel-xray[budget]'"
            raise _NotParsed(f"JSON: {error}; {hint}") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _NotParsed(f"YAML: {error}") from None


def _mapping(found: Any, where: str, known: Iterable[str] | None) -> dict[Any, Any]:
    if not isinstance(found, dict):
        raise BudgetError(f"{where} is {found!r}; it must be a mapping, such as `sectors: 128`")
    for key in found:
        if known is not None and key not in known:
            raise BudgetError(f"{where}: unknown key {key!r}{_suggestion(str(key), known)}")
    return found


def _entry(found: Any, where: str) -> Entry:
    entry = _mapping(found, where, QUANTITIES)
    if not entry:
        raise BudgetError(f"{where} allows nothing; give one of {', '.join(QUANTITIES)}")
    return {quantity: _allowed(value, quantity, where) for quantity, value in entry.items()}


def _allowed(value: Any, quantity: str, where: str) -> float:
    ratio = quantity in RATIOS
    if isinstance(value, bool) or not isinstance(value, (int, float) if ratio else int):
        raise BudgetError(f"{where}: {quantity} is {value!r}; give {'a number' if ratio else 'an integer'}")
    if value != value or value < (1 if ratio else 0):
        raise BudgetError(f"{where}: {quantity} is {value!r}; it must be {'1' if ratio else '0'} or more")
    return value


def _suggestion(got: str, known: Iterable[str]) -> str:
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(got, names, n=1, cutoff=0.5)
    return (
        (f"; did you mean {close[0]!r}?" if close else "")
        + f" There {'are' if len(names) != 1 else 'is'} "
        + (", ".join(names) or "none")
    )


# ----------------------------------------------------------------------------------------------------------------------
# Checking


def check(budget: Budget, report: Facts) -> list[Over]:
    """What of the report is over budget. Raises BudgetError if the budget names a kernel or line that it lacks."""
    over: list[Over] = []
    left = list(report.faults)

    def judge(entry: Entry, name: str, holds: Callable[[Any], bool]) -> None:
        nonlocal left
        records = [line for line in report.lines if holds(line)]
        for quantity, allowed in entry.items():
            if quantity == "faults":
                faults = [fault for fault in report.faults if holds(fault)]
                left = [fault for fault in left if fault not in faults]
                if len(faults) > allowed:
                    over.append(Over(name, quantity, allowed, len(faults), (), faults[0].file, faults[0].line))
            else:
                over.extend(_exceeded(name, quantity, allowed, records))

    kernels = [launch.kernel for launch in report.launches]
    for key, entry in budget.lines.items():
        holds = _line_matcher(key, report)
        judge(entry, key, holds)
    for kernel, entry in budget.kernels.items():
        if not any(is_of(kernel, name) for name in kernels):
            raise NotInReport(
                f"the budget names kernel {kernel!r}, which was not launched{_suggestion(kernel, kernels)}"
            )
        judge(entry, f"kernel {kernel}", lambda record, kernel=kernel: is_of(kernel, record.kernel))  # type: ignore[misc]
    if len(left) > budget.faults:
        over.append(Over("all kernels", "faults", budget.faults, len(left), (), left[0].file, left[0].line))
    return over


def is_of(name: str, kernel: str) -> bool:
    """Whether a budget's name is the kernel's, or that of the template of which the kernel is an instance."""
    return name in (kernel, kernel.partition("<")[0])


def named_in(budget: Budget, report: Facts) -> Budget:
    """The part of the budget that is about kernels and lines of the report."""

    def accessed(key: str) -> bool:
        try:
            return bool(_line_matcher(key, report))
        except NotInReport:
            return False

    launched = {launch.kernel for launch in report.launches}
    kernels = {name: entry for name, entry in budget.kernels.items() if any(is_of(name, kernel) for kernel in launched)}
    return Budget(kernels, {key: entry for key, entry in budget.lines.items() if accessed(key)}, budget.faults)


def _exceeded(name: str, quantity: str, allowed: float, records: list[Line]) -> Iterable[Over]:
    if quantity in SUMMED:
        got = sum(getattr(record, quantity) for record in records)
        if got > allowed:
            guilty = [record for record in records if getattr(record, quantity)]
            guilty.sort(key=lambda record: (record.ideal - record.cost, -getattr(record, quantity)))
            lines = tuple(guilty[:_SHOWN_LINES])
            yield Over(name, quantity, allowed, got, lines, lines[0].file, lines[0].line)
        return
    for record in records:
        if record.unit == quantity.removesuffix("_ratio") and record.cost > allowed * record.ideal > 0:
            got = record.cost / record.ideal
            yield Over(name, quantity, allowed, got, (record,), record.file, record.line)


def _line_matcher(key: str, report: Facts) -> Callable[[Any], bool]:
    """Whether a record is on the line that a key `FILE:NUMBER` or `FILE: SOURCE` names."""
    file, colon, rest = key.partition(":")
    wanted = " ".join(rest.split())
    if not file or not colon or not wanted:
        raise BudgetError(f"the budget names line {key!r}; write FILE:NUMBER, or FILE: and the line's text")
    by_number = wanted.isdigit()

    def here(record: Any) -> str:
        return str(record.line) if by_number else " ".join(source_line(record.file, record.line).split())

    def holds(record: Any) -> bool:
        return Path(record.file).parts[-len(Path(file).parts) :] == Path(file).parts and here(record) == wanted

    if not any(holds(record) for record in [*report.lines, *report.faults]):
        names = [f"{Path(line.file).name}:{line.line if by_number else ' ' + line.source}" for line in report.lines]
        raise NotInReport(f"the budget names line {key!r}, which accessed no memory{_suggestion(key, names)}")
    return holds


# ----------------------------------------------------------------------------------------------------------------------
# Writing


def of(report: Facts) -> str:
    """A budget that the report just keeps: for each kernel its sums, and the worst ratio of its lines."""
    kernels: dict[str, Entry] = {}
    for kernel in dict.fromkeys(launch.kernel for launch in report.launches):
        records = [line for line in report.lines if line.kernel == kernel]
        entry: Entry = {quantity: sum(getattr(record, quantity) for record in records) for quantity in SUMMED}
        for ratio in RATIOS:
            costs = [r.cost / r.ideal for r in records if r.unit == ratio.removesuffix("_ratio") and r.ideal]
            if costs:
                entry[ratio] = _rounded_up(max(costs))
        kernels[kernel] = entry
    try:
        import yaml
    except ImportError:
        return json.dumps({"kernels": kernels}, indent=2) + "\n"
    return yaml.safe_dump({"kernels": kernels}, sort_keys=False)


def _rounded_up(ratio: float) -> float:
    """To two decimals; a ratio that has no more stays as it is."""
    return -(-round(ratio * 100, 6) // 1) / 100
