"""A report as plain text, for a terminal."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from kernel_xray.report.facts import Facts, Launch, Line
from kernel_xray.report.kernel_names import shown_name

_WIDTH = 118
_BAR = 10


def as_text(report: Facts) -> str:
    """The report in at most 118 columns: launches, faults, then memory traffic by line in source order."""
    cut = "\n".join(wrap(incomplete(report), _WIDTH))
    launches = ["\n  ".join(texts) for texts in launch_texts(report)]
    parts = [*filter(None, [cut]), "\n".join(launches) or "no traced kernel was launched"]
    for title, records in (("FAULTS", report.faults), ("REMARKS", report.remarks)):
        if records:
            lines = "\n".join([title, *(str(record) for record in records)]).splitlines()
            parts.append("\n".join(part for line in lines for part in _wrapped(line)))
    if report.lines:
        parts.append(_table(report))
    if report.occupancies:
        parts.append("\n".join(wrapped for found in report.occupancies for wrapped in wrap(str(found), _WIDTH)))
    parts += [str(report.limited)] if report.limited else []
    parts.append(footnote(report))
    return "\n\n".join(parts)


def _wrapped(line: str) -> list[str]:
    """Wraps a long line of prose; source code, which is indented, stays on one line."""
    return [line] if line.startswith(" ") else wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False)


def incomplete(report: Facts) -> str:
    """What is missing in the counts because a trace ended early; empty if nothing is."""
    missing = [f"the trace of {kernel} ended early" for kernel in report.cut]
    missing += ["the program was ended from outside"] * (not report.whole)
    if not missing:
        return ""
    return f"INCOMPLETE: {'; '.join(missing)}. Counts are lower bounds: nothing can be judged by them."


def launch_texts(report: Facts) -> list[tuple[str, str]]:
    """The texts of each launch; equal ones once, with their number."""
    equal = Counter(map(launch_text, report.launches))
    return [(f"{count} x {shape}" if count > 1 else shape, details) for (shape, details), count in equal.items()]


def launch_text(launch: Launch) -> tuple[str, str]:
    """Two lines about a launch: its shape and place; how much of it was traced and how full its warps were."""
    sample = f"{launch.traced_blocks} of " if launch.traced_blocks < launch.blocks else ""
    shared = launch.shared_static + launch.shared_dynamic
    some = f"{launch.cut_blocks} of them " if launch.cut_blocks < launch.traced_blocks else ""
    cut = f", {some}in part" if launch.cut_blocks else ""
    details = [
        f"{sample}{count_text(launch.blocks, 'block')} traced{cut}",
        f"{launch.active_lanes:.1f} of 32 lanes active",
    ]
    if shared:
        details.append(f"{shared} bytes of shared memory a block")
    shape = f"{shown_name(launch.kernel)}<<<{size_text(launch.grid)}, {size_text(launch.block)}>>>"
    return f"{shape} at {Path(launch.file).name}:{launch.line}", ", ".join(details)


def size_text(size: tuple[int, int, int]) -> str:
    """`256`, `(32, 8)` or `(4, 4, 4)`."""
    x, y, z = size
    return str(x) if y == z == 1 else f"({x}, {y})" if z == 1 else f"({x}, {y}, {z})"


def count_text(number: int, unit: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def access_text(record: Line) -> str:
    """`global load` with the bytes of one lane's access; for tiles, the bytes of the largest."""
    if record.kind.startswith("tile"):  # always from or to global memory
        return f"{record.kind}, {record.size} bytes"
    return f"{record.space} {record.kind} of {count_text(record.size, 'byte')}"


def each_text(record: Line) -> str:
    """What one request costs on average: `4`, `1.25`."""
    return f"{record.cost / max(record.requests, 1):.4g}"


def marks(record: Line, worst: bool = False) -> str:
    """What is to be said of a record besides its numbers; of tiles, the sectors that all receiving blocks get."""
    received = f" ({record.received:,} received)" if record.received > record.sectors else ""
    return " <- worst" * worst + received + " (incomplete)" * (not record.complete)


def scaled(record: Line, report: Facts) -> str:
    """The cost in all blocks, if only a sample of a launch was traced; empty if it is not known."""
    if not report.sampled or report.sass:
        return ""
    return f"all blocks: about {record.all_blocks:,} {record.unit}, ± {2 * record.error:,}"


def footnote(report: Facts) -> str:
    """Explains the numbers: their units, what and which blocks they count, the seed that repeats the run."""
    counted = f"nvcc's machine code for {report.sass}" if report.sass else "the source, which nvcc may compile to fewer"
    part = "incomplete, " if incomplete(report) else ""
    blocks = f"{part}of {'the traced blocks only' if report.sampled else 'all blocks'}"
    counts = f"Counts are {blocks}, and of {counted}."
    shared = any(record.received > record.sectors for record in report.lines)
    tiles = "A tile that several blocks receive costs once; received sectors count for each block.\n" if shared else ""
    if report.sampled and not report.sass:
        counts += "\n'All blocks' scales them up; ± is two standard errors, as if the evenly spaced sample were random."
    return (
        "A request is one warp's access; a sector has 32 bytes; a wavefront is one pass over the 32 banks.\n"
        f"{tiles}{counts}\nNo times are measured. Schedule drawn from seed {report.seed}."
    )


def _table(report: Facts) -> str:
    rows = []
    for file, in_file in groupby(report.lines, key=lambda record: record.file):
        head = (
            f"{Path(file).name or 'unknown file':<30}{'lanes':>6}{'requests':>10}{'each':>7}{'cost':>21}{'at best':>9}"
            "  efficiency"
        )
        rows.append(head)
        for number, on_line in groupby(in_file, key=lambda record: record.line):
            records = list(on_line)
            rows.append(f"{number:>5}  {records[0].source}"[:_WIDTH])
            for kernel, record in with_kernels(records):
                rows += [f"{'':7}in {kernel}"[:_WIDTH]] if kernel else []
                rows.append(_costs(record, record is report.worst))
                notes = [record.nvcc, scaled(record, report)]
                rows += [f"{'':9}{part}" for note in notes for part in wrap(note, _WIDTH - 9)]
    return "\n".join(rows)


def with_kernels(records: list[Line]) -> Iterator[tuple[str, Line]]:
    """The records of one line, and with the first of each kernel its name, if they are of several."""
    shown = records[0].kernel if len({record.kernel for record in records}) == 1 else ""
    for record in records:
        yield shown_name(record.kernel) if record.kernel != shown else "", record
        shown = record.kernel


def _costs(record: Line, worst: bool) -> str:
    filled = round(_BAR * record.efficiency)
    bar = "█" * filled + "░" * (_BAR - filled)
    return (
        f"{'':7}{access_text(record):<23}{record.active_lanes:>6.1f}{record.requests:>10}{each_text(record):>7}"
        f"{record.cost:>10} {record.unit:<10}{record.ideal:>9}  {bar} {record.efficiency:.0%}{marks(record, worst)}"
    )
