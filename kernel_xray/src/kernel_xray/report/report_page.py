"""A report as one HTML file that needs nothing else: the report, and the sources with each line's cost beside it."""

import html
from collections import defaultdict
from pathlib import Path

from kernel_xray.report.budget import Over
from kernel_xray.report.document import shown
from kernel_xray.report.facts import Facts, Line, source_line
from kernel_xray.report.html import BAD, FAIR, GOOD, STYLE, as_html
from kernel_xray.report.text import access_text

_STYLE = f"""
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem;
  color: light-dark(#1f2328, #e6e6e6); background: light-dark(#fff, #15181c); }}
h1 {{ font-size: 1.4rem; }} h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
a {{ color: light-dark(#0a58ca, #8ab4f8); }}
.source {{ overflow-x: auto; }}
.source table {{ border-collapse: collapse; font: 13px/1.5 ui-monospace, monospace; white-space: pre; }}
.source td {{ padding: 0 .6rem; }}
.source td:first-child {{ text-align: right; color: light-dark(#59636e, #9aa4af); }}
.good {{ box-shadow: inset 4px 0 {GOOD}; }} .fair {{ box-shadow: inset 4px 0 {FAIR}; }}
.bad {{ box-shadow: inset 4px 0 {BAD}; }}
.fault td {{ background: light-dark(#fde8e8, #4a1f1f); }}
.over {{ border-left: 4px solid {BAD}; padding: 2px 10px; white-space: pre-wrap; overflow-x: auto; }}
"""
_MORE_LINES = 3  # of the source, around those with a cost or a fault


def as_page(report: Facts, root: Path, title: str, over: list[Over] | None = None) -> str:
    """The page. `root`: files below it are named relative to it; `title`: what was X-rayed."""
    parts = [f"<h1>X-ray of {html.escape(title)}</h1>"]
    if over is not None:
        parts.append(f"<h2>Budget</h2>{''.join(map(_over, over)) or '<p>Everything is within budget.</p>'}")
    parts.append(f"<h2>Report</h2>{as_html(report)}")
    places = [(r.file, r.line) for r in report.lines] + [(r.file, r.line) for r in report.faults]
    files = dict.fromkeys(file for file, line in places if line)
    parts += [_source(file, report, root) for file in files]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>X-ray of {html.escape(title)}</title><style>{_STYLE}{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _over(over: Over) -> str:
    return f'<pre class="over">{html.escape(str(over))}</pre>'


def _source(file: str, report: Facts, root: Path) -> str:
    """The parts of a file that have a cost or a fault, with their surroundings."""
    costs: dict[int, list[Line]] = defaultdict(list)
    for record in report.lines:
        if record.file == file:
            costs[record.line].append(record)
    faulty = {fault.line: fault.kind for fault in report.faults if fault.file == file}
    marked = {line for line in [*costs, *faulty] if line}
    wanted = sorted({n for line in marked for n in range(line - _MORE_LINES, line + _MORE_LINES + 1) if n > 0})
    rows, before = [], None
    for number in wanted:
        text = source_line(file, number)
        if number not in marked and not text.strip():
            continue
        if before and number > before + 2:
            rows.append("<tr><td></td><td>...</td><td></td></tr>")
        before = number
        notes = [faulty[number]] if number in faulty else []
        notes += [f"{access_text(r)}: {r.cost:,} {r.unit}, {r.ideal:,} at best" for r in costs.get(number, [])]
        share = min((r.efficiency for r in costs.get(number, [])), default=None)
        rank = "" if share is None else "good" if share > 0.8 else "fair" if share > 0.4 else "bad"
        rows.append(
            f'<tr class="{"fault" if number in faulty else ""}"><td class="{rank}">{number}</td>'
            f"<td>{html.escape(text)}</td><td>{html.escape('; '.join(notes))}</td></tr>"
        )
    name = html.escape(shown(file, root))
    return f'<h2>{name}</h2><div class="source" tabindex="0" aria-label="{name}"><table>{"".join(rows)}</table></div>'
