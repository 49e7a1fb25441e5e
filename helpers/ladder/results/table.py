"""Tables of measurements: aligned text for a terminal, HTML for a notebook."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from helpers.ladder.results.measurement import Measurement
from helpers.ladder.results.records import LIBRARIES, PEERS, SHARES, Recorded

PEER_KEYS = {"torch.compile": "compile"}  # a contender's name -> the peer's in the records


@dataclass(frozen=True)
class Table:
    """A title that names the device, a header, rows of text and notes below."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)
    sentences: bool = False  # the last column holds sentences, which begin at the left

    def _left(self, column: int) -> bool:
        return column == 0 or (self.sentences and column == len(self.header) - 1)

    def __repr__(self) -> str:
        lines = [self.header, *self.rows] if self.rows else []
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))] if lines else []
        body = [
            "  ".join(
                cell.ljust(w) if self._left(i) else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([self.title, *(f"  {line}".rstrip() for line in body), *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            sides = ["left" if self._left(i) else "right" for i in range(len(cells))]
            inner = (
                f'<{tag} style="text-align: {s}">{html.escape(c)}</{tag}>' for s, c in zip(sides, cells, strict=True)
            )
            return f"<tr>{''.join(inner)}</tr>"

        head = f"<thead>{line('th', self.header)}</thead>" if self.rows else ""
        body = "".join(line("td", row) for row in self.rows)
        notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in self.notes)
        return f"<div><b>{html.escape(self.title)}</b><table>{head}<tbody>{body}</tbody></table>{notes}</div>"


def markdown(header: Sequence[object], rows: Iterable[Sequence[object]], sides: Sequence[str] = ()) -> list[str]:
    """The lines of a table in Markdown. sides: `---:` for a column that ends at the right; by default none does."""
    lines = [header, sides or ["---"] * len(header), *rows]
    return ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]


def amount(record: Mapping) -> str:
    """The rate of a record: GB/s if it has bytes, TFLOP/s if it has FLOPs."""
    if "bytes" in record:
        return f"{record['bytes'] / record['median_ms'] / 1e6:,.0f} GB/s"
    return f"{record['flops'] / record['median_ms'] / 1e9:,.1f} TFLOP/s"


def record_table(records: Sequence[Mapping], title: str) -> Table:
    """One row per record: time, rate, share of the limit, speed-up over each peer, largest error."""
    peers = [p for p in PEERS if any(p in r["vs"] for r in records)]
    limits = [name for name in SHARES if any(name in r for r in records)]
    words = {"of_copy": "of copy", **{f"of_{library}": f"of {name}" for library, name in LIBRARIES.items()}}
    header = ["variant", "dtype", "shape", "median", "20% to 80%", "rate"]
    header += [words[limit] for limit in limits] + [f"vs {p}" for p in peers] + ["max error"]
    rows = []
    for r in records:
        row = [r["variant"], r["dtype"], " x ".join(f"{n:,}" for n in r["shape"]), duration(r["median_ms"])]
        row += [f"{duration(r['p20_ms'])} to {duration(r['p80_ms'])}", amount(r)]
        row += [f"{100 * r[limit]:.1f}%" if limit in r else "" for limit in limits]
        row += [f"{r['vs'][p]:.2f}x" if p in r["vs"] else "" for p in peers] + [f"{r['max_error']:.1e}"]
        rows.append(row)
    return Table(title, header, rows, list(dict.fromkeys(r["note"] for r in records if r.get("note"))))


def recorded_table(op: str, found: Sequence[Recorded], variant: str | None = None) -> Table:
    """The records of an operator (variant: of one alone) at each dtype's largest shape, labelled with GPU and date."""
    if variant:
        of_one = (replace(part, records=[r for r in part.records if r["variant"] == variant]) for part in found)
        found = [part for part in of_one if part.records]
    if not found:
        return Table(f"{op}: nothing is recorded yet", (), (), [_how_to_record(op)])
    rows: list[dict] = []
    labels: list[str] = []
    for part in found:
        begin = len(rows)
        for dtype in dict.fromkeys(r["dtype"] for r in part.records):
            same = [r for r in part.records if r["dtype"] == dtype]
            largest = max((r["shape"] for r in same), key=lambda shape: [math.prod(shape), shape])
            rows += sorted((r for r in same if r["shape"] == largest), key=lambda r: r["median_ms"])
        commits = dict.fromkeys(r.get("commit", part.machine["commit"])[:12] for r in rows[begin:])
        labels.append(f"{part.label}, commit {', '.join(commits)}")
    return record_table(rows, f"{op}, recorded on {'; '.join(labels)} (not measured now)")


def _how_to_record(op: str) -> str:
    return f"on a machine with an NVIDIA GPU: python -m helpers bench {op} --record results/GPU.json"


def contenders_table(
    op: str,
    found: Sequence[Recorded],
    contenders: Sequence[str],
    dtype: str,
    shape: Sequence[int] | None = None,
    versus: str | None = None,
) -> Table:
    """What is recorded of a lesson's contenders in its dtype, near its shape, and of the copy.

    contenders   our variants and peers; the first recorded peer joins them if they have none
    shape        None: the largest recorded one
    versus       a contender, as in live_table

    A peer's time is ours times the recorded ratio of the two. Contenders without a record are named below the table.
    """
    part, records = _nearest(found, contenders, dtype, shape)
    if part is None:
        title = f"{op}, {dtype}: nothing is recorded yet for {', '.join(contenders)}"
        return Table(title, (), (), [_how_to_record(op)])
    first = next(iter(records.values()))
    peers = {name: PEER_KEYS.get(name, name) for name in contenders if PEER_KEYS.get(name, name) in first["vs"]}
    peers = peers or {peer: peer for peer in [p for p in PEERS if p in first["vs"]][:1]}
    times = {name: r["median_ms"] for name, r in records.items()}
    times |= {name: first["median_ms"] * first["vs"][peer] for name, peer in peers.items()}
    if "of_copy" in first:
        times["copy"] = first["median_ms"] * first["of_copy"]
    rows = []
    for name, ms in sorted(times.items(), key=lambda item: item[1]):
        r = records.get(name)
        row = [name, duration(ms), f"{duration(r['p20_ms'])} to {duration(r['p80_ms'])}" if r else ""]
        row += [amount({**first, "median_ms": ms})]
        row += [f"{100 * times['copy'] / ms:.1f}%"] if "copy" in times else []
        row += [f"{times[versus] / ms:.2f}x"] if versus in times else []
        rows.append([*row, f"{r['max_error']:.1e}" if r else ""])
    header = ["contender", "median", "20% to 80%", "rate"] + (["of copy"] if "copy" in times else [])
    header += ([f"vs {versus}"] if versus in times else []) + ["max error"]
    missing = [name for name in contenders if name not in times]
    notes = [f"not recorded: {', '.join(missing)}"] if missing else []
    size = " x ".join(f"{n:,}" for n in first["shape"])
    where = f"{part.machine['gpu']}, {first.get('date', part.machine['date'])}"
    return Table(f"{op}, {dtype}, {size}: recorded on {where} (not measured now)", header, rows, notes)


def _nearest(
    found: Sequence[Recorded], contenders: Sequence[str], dtype: str, shape: Sequence[int] | None
) -> tuple[Recorded | None, dict[str, dict]]:
    """The first machine with records of the contenders in this dtype, and those at one shape, by variant.

    That shape has as many contenders as any other, peers included, and is the nearest of those.
    """
    for part in found:
        at: dict[tuple, dict[str, dict]] = {}
        for r in part.records:
            if r["variant"] in contenders and r["dtype"] == dtype:
                at.setdefault(tuple(r["shape"]), {})[r["variant"]] = r

        def rank(size: tuple) -> tuple:
            known = {*at[size], *next(iter(at[size].values()))["vs"]}  # noqa: B023 - called within this round
            lacking = sum(PEER_KEYS.get(name, name) not in known for name in contenders)
            return lacking, _apart(size, shape), -math.prod(size)

        if at:
            return part, at[min(at, key=rank)]
    return None, {}


def _apart(shape: Sequence[int], wanted: Sequence[int] | None) -> float:
    """How far a shape is from another: the factors between their dimensions, as powers of two."""
    if wanted is None:
        return 0.0
    if len(shape) != len(wanted):
        return abs(math.log2(math.prod(shape) / math.prod(wanted)))
    return sum(abs(math.log2(a / b)) for a, b in zip(shape, wanted, strict=True))


def live_table(
    measurement: Measurement, rates: Mapping[str, str], shares: Mapping[str, float], versus: str | None
) -> Table:
    """A live measurement: a row for each contender, the fastest first; failures are notes below."""
    base = measurement.stats.get(versus or "")
    header = ["contender", "median", "20% to 80%"]
    header += ["rate"] if rates else []
    header += ["of copy"] if shares else []
    header += [f"vs {versus}"] if base else []
    header += ["max error"]
    rows = []
    for name, s in sorted(measurement.stats.items(), key=lambda item: item[1].median_ms):
        row = [name, duration(s.median_ms), f"{duration(s.p20_ms)} to {duration(s.p80_ms)}"]
        row += [rates.get(name, "")] if rates else []
        row += [f"{100 * shares[name]:.1f}%" if name in shares else ""] if shares else []
        row += [f"{base.median_ms / s.median_ms:.2f}x"] if base else []
        rows.append([*row, f"{measurement.errors[name]:.1e}"])
    how = {"events": "CUDA events, L2 flushed", "graph": "CUDA graph of calls on inputs that are not in L2"}
    notes = [f"failed: {name}: {why}" for name, why in measurement.failures.items()]
    return Table(f"measured on {measurement.gpu} ({how[measurement.timing]})", header, rows, notes)


def duration(ms: float) -> str:
    """1.234 ms, or 12.34 us below a tenth of a millisecond."""
    return f"{ms:.3f} ms" if ms >= 0.1 else f"{1e3 * ms:.2f} us"
