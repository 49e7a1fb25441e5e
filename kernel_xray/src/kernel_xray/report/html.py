"""A report for a notebook: tables with the source beside the numbers, legible in light and dark themes."""

import html
from itertools import groupby
from pathlib import Path

from kernel_xray.report.facts import Facts, FaultRecord, Line, source_line
from kernel_xray.report.kernel_names import shown_name
from kernel_xray.report.text import (
    access_text,
    each_text,
    footnote,
    incomplete,
    launch_texts,
    marks,
    scaled,
    with_kernels,
)

# Mid-tones that can be read on white and on near-black; text keeps the colour of the page.
GOOD, FAIR, BAD = "#2d8a4e", "#b7791f", "#d03b3b"
# Of a page that shows reports: a table fits a narrow window. A notebook's output has none: it is the same in any width.
STYLE = Path(__file__).with_name("xray.css").read_text(encoding="utf-8")
_RULE = "border-bottom: 1px solid rgba(128, 128, 128, 0.35)"
_CELL = f"padding: 2px 14px 2px 0; text-align: left; vertical-align: top; {_RULE}; background: none"
_NUMBER = _CELL.replace("left", "right")
_CODE = "font-family: var(--jp-code-font-family, monospace), monospace; white-space: pre"
_PALE = "opacity: 0.7"


def as_html(report: Facts) -> str:
    """Faults and remarks, memory traffic by source line with a bar for efficiency, launches, sampling and seed."""
    parts = [f'<p style="color: {BAD}"><b>{html.escape(cut)}</b></p>'] if (cut := incomplete(report)) else []
    parts += [_finding(fault, BAD) for fault in report.faults] + [_finding(remark, FAIR) for remark in report.remarks]
    if report.lines:
        parts.append(_table(report))
    launches = "<br>".join(html.escape(": ".join(texts)) for texts in launch_texts(report))
    parts.append(f'<div style="{_PALE}; font-size: 90%; margin-top: 6px">{launches or "no traced kernel was launched"}')
    parts += [f"<br>{html.escape(str(found))}" for found in report.occupancies]
    parts += [f'<pre style="font-size: 100%">{html.escape(str(report.limited))}</pre>'] if report.limited else []
    parts.append(f"<br>{html.escape(footnote(report))}</div>")
    return f'<div class="ladder-xray" style="line-height: 1.4">{"".join(parts)}</div>'


def _finding(fault: FaultRecord, colour: str) -> str:
    """A fault or remark in words, and its line with the neighbouring lines."""
    where = f"kernel {shown_name(fault.kernel)}, block {fault.block}, thread {fault.thread}" if fault.kernel else ""
    place = f"{Path(fault.file).name}:{fault.line}" if fault.line else "unknown line"
    rows = []
    for number in range(fault.line - 2, fault.line + 3) if fault.line else ():
        text = source_line(fault.file, number)
        if text.strip() or number == fault.line:
            style = f"color: {colour}; font-weight: bold" if number == fault.line else _PALE
            rows.append(f'<span style="{style}">{number:>5}  {html.escape(text)}</span>')
    code = f'<div style="{_CODE}; font-size: 90%; overflow-x: auto">{chr(10).join(rows)}</div>' if rows else ""
    return (
        f'<div style="border-left: 4px solid {colour}; padding: 2px 10px; margin: 6px 0">'
        f'<b style="color: {colour}">{fault.kind}</b> at {html.escape(place)}: {html.escape(fault.message)}'
        f'<br><span style="{_PALE}">{html.escape(where)}</span>{code}</div>'
    )


def _table(report: Facts) -> str:
    """Each source line that accesses memory, and below it a row for each kind of access."""
    heads = ("", "lanes", "requests", "each", "cost", "at best", "efficiency")
    cells = "".join(
        f'<th style="{_CELL if h in ("", "efficiency") else _NUMBER}; font-weight: 600">{h}</th>' for h in heads
    )
    rows, worst = [], report.worst
    for file, in_file in groupby(report.lines, key=lambda record: record.file):
        name = html.escape(Path(file).name or "unknown file")
        rows.append(f'<tr style="background: none">{cells.replace("></th>", f">{name}</th>", 1)}</tr>')
        for number, on_line in groupby(in_file, key=lambda record: record.line):
            records = list(on_line)
            code = f'<span style="{_PALE}">{number or "?":>5}</span>  {html.escape(records[0].source)}'
            style = f"{_CELL}; border: 0; {_CODE}; padding-top: 6px"
            rows.append(f'<tr style="background: none"><td colspan="{len(heads)}" style="{style}">{code}</td></tr>')
            for kernel, r in with_kernels(records):
                rows.append(_remark(f"in {kernel}") if kernel else "")
                rows.append(f'<tr style="background: none">{_costs(r, r is worst)}</tr>')
                rows += [_remark(note) for note in (r.nvcc, scaled(r, report)) if note]
    style = "border-collapse: collapse; margin: 6px 0; font-size: 90%"
    return f'<div style="overflow-x: auto"><table style="{style}">{"".join(rows)}</table></div>'


def _costs(record: Line, worst: bool) -> str:
    """The cells of one record: access, lanes, requests, cost of each and of all, ideal cost, bar."""
    share = record.efficiency
    colour = GOOD if share > 0.8 else FAIR if share > 0.4 else BAD
    bar = (
        '<div style="display: inline-block; vertical-align: middle; width: 110px; height: 0.75em; '
        f'background: rgba(128, 128, 128, 0.25)"><div style="width: {max(share, 0.01):.0%}; height: 100%; '
        f'background: {colour}"></div></div> {share:.0%}'
    )
    mark = f' <b style="color: {colour}">&larr; worst</b>' if worst else ""
    return (
        f'<td style="{_CELL}; padding-left: 4.2em; white-space: nowrap">{access_text(record)}</td>'
        f'<td style="{_NUMBER}">{record.active_lanes:.1f}</td>'
        f'<td style="{_NUMBER}">{record.requests:,}</td>'
        f'<td style="{_NUMBER}">{each_text(record)}</td>'
        f'<td style="{_NUMBER}; white-space: nowrap">{record.cost:,} {record.unit}</td>'
        f'<td style="{_NUMBER}">{record.ideal:,}</td>'
        f'<td style="{_CELL}; white-space: nowrap">{bar}{mark}{marks(record)}</td>'
    )


def _remark(text: str) -> str:
    """A row in words: of which kernel the next records are, or what nvcc did with the accesses of the one before."""
    style = f"{_CELL}; border: 0; padding-left: 5em; {_PALE}"
    return f'<tr><td colspan="7" style="{style}">{html.escape(text)}</td></tr>'
