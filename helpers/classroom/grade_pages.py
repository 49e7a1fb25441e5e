"""Pages as HTML: one for each submission, and one for the class with its common mistakes.

All that comes from a submission is escaped. A page needs no other file.
"""

import html
import re
from collections.abc import Sequence
from urllib.parse import quote

from helpers.classroom.results import KINDS, Class, Graded, Result
from helpers.practice.verdict import COLOURS, WRONG

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .25rem .75rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; white-space: pre-wrap; margin: .25rem 0; }
section { border-left: 4px solid var(--kind); padding: 0 1rem; margin: 1rem 0; }
section h2 { font-size: 1.1rem; margin: 0; }
"""


def file_names(names: Sequence[str]) -> dict[str, str]:
    """A file for each submission: its name where that is one for every file system, else a number."""
    used: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        plain = re.fullmatch(r"[\w][\w .@-]{0,100}", name, re.ASCII) and name.lower() != "index"
        taken = {file.lower() for file in used.values()}
        file = f"{name}.html" if plain else f"submission {number}.html"
        used[name] = file if file.lower() not in taken else f"submission {number}.html"
    return used


def class_page(whole: Class, files: dict[str, str]) -> str:
    """The points of all, and which mistakes are common."""
    names = list(whole.scheme.exercises)
    head = "".join(f'<th class="number">{html.escape(name)}</th>' for name in names)
    rows = "".join(_row(one, files[one.name]) for one in whole.submissions)
    count = len(whole.submissions)
    solved = "".join(
        f'<td class="number">{sum(one.results[i].kind == "accepted" for one in whole.submissions)} of {count}</td>'
        for i in range(len(names))
    )
    mistakes = "".join(
        f'<tr><td class="number">{len(m.names)}</td><td>{html.escape(m.exercise)}</td>'
        f'<td style="white-space: normal">{html.escape(m.gist)}</td>'
        f'<td style="white-space: normal">{html.escape(", ".join(m.names))}</td></tr>'
        for m in whole.mistakes()
    )
    title = whole.scheme.title or "Grades"
    body = (
        f"<table><tr><th>submission</th>"
        f'<th class="number">points</th>{head}<th>problems</th></tr>{rows}'
        f"<tr><td>accepted</td><td></td>{solved}<td></td></tr></table>"
    )
    if mistakes:
        body += (
            "<h2>Mistakes</h2><p>The most common first; N stands for any number.</p>"
            '<table><tr><th class="number">submissions</th><th>exercise</th><th>verdict</th><th>who</th></tr>'
            f"{mistakes}</table>"
        )
    return _page(title, body)


def submission_page(one: Graded, title: str) -> str:
    """The verdicts on one submission, each with its reason and, where it wastes traffic, its X-ray."""
    problems = "".join(f"<li>{html.escape(problem)}</li>" for problem in one.problems)
    notes = f"<h2>Problems</h2><ul>{problems}</ul>" if problems else ""
    heading = f"{one.name}: {one.points:g} of {one.maximum:g} points"
    intro = f"<p>{html.escape(title)}</p>" if title else ""
    return _page(heading, f"{intro}{''.join(map(_section, one.results))}{notes}")


def _row(one: Graded, file: str) -> str:
    cells = "".join(
        f'<td class="number" title="{html.escape(KINDS[r.kind])}" style="color: {_colour(r)}">{r.points:g}</td>'
        for r in one.results
    )
    link = f'<a href="{quote(file)}">{html.escape(one.name)}</a>'
    total = f'<td class="number">{one.points:g} of {one.maximum:g}</td>'
    return f"<tr><td>{link}</td>{total}{cells}<td>{len(one.problems) or ''}</td></tr>"


def _section(result: Result) -> str:
    parts = ", ".join(f"{part.name} {part.points:g} of {part.maximum:g}" for part in result.parts)
    where = f" ({html.escape(result.where)})" if result.where else ""
    folded = f"<details><summary>The X-ray of this call</summary>{result.table}</details>" if result.table else ""
    return (
        f'<section style="--kind: {_colour(result)}"><h2>{html.escape(result.exercise)}: '
        f"{KINDS[result.kind]}</h2>{parts}{where}<pre>{html.escape(result.text())}</pre>{folded}</section>"
    )


def _colour(result: Result) -> str:
    return COLOURS.get(result.kind, COLOURS["unsolved"] if result.kind == "missing" else WRONG)


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )
