"""Pages as HTML: one for each submission, one for the class with its common mistakes, one for each film.

All that comes from a submission is escaped. A page needs no other file. A film is a page of its own, because it alone
runs a script, the course's.
"""

import html
import re
from collections.abc import Sequence
from urllib.parse import quote

from helpers.practice.verdict import COLOURS, WRONG
from helpers.teaching.classroom.points import Scheme
from helpers.teaching.classroom.results import KINDS, UNGRADED, Class, Graded, Result

_MARKS = {"accepted": "&#10003;", "missing": "&#8211;", "unsolved": "&#8211;", UNGRADED: "not graded"}
_WHO = 20  # names beside a mistake: in a large class, hundreds may have made it
# Nothing is loaded and no script runs, whatever a page holds: it works from a file, without a network.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_OF_FILMS = f"{_POLICY}; script-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .25rem .75rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }
th { vertical-align: bottom; border-bottom: 2px solid #8888; }
tr.sum td { border-bottom: 0; font-weight: 600; }
td.text { white-space: normal; min-width: 14rem; }
td b { color: var(--kind); font-weight: 600; }
a { color: inherit; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; white-space: pre-wrap; margin: .25rem 0; }
section { border-left: 4px solid var(--kind); padding: 0 1rem; margin: 1rem 0; }
section h2 { font-size: 1.1rem; margin: 0; }
section h2 b { color: var(--kind); }
section p, section summary { margin: .25rem 0; color: #777; }
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
    names, count = list(whole.scheme.exercises), len(whole.submissions)
    columns = [[one.results[i] for one in whole.submissions] for i in range(len(names))]
    head = "".join(f'<th class="number">{html.escape(name)}</th>' for name in names)
    counted = whole.scheme.without(whole.not_graded)
    worth = "".join(f'<th class="number">{_worth(counted, name)}</th>' for name in names)
    rows = "".join(_row(one, files[one.name]) for one in whole.submissions)
    solved = "".join(f'<td class="number">{sum(r.kind == "accepted" for r in c)} of {count}</td>' for c in columns)
    means = "".join(f'<td class="number">{_mean([r.points for r in c if r.graded])}</td>' for c in columns)
    mean = _mean([one.points for one in whole.submissions])
    body = (
        f'<table><tr><th>submission</th><th class="number">points</th>{head}<th>problems</th></tr>'
        f'<tr><th>out of</th><th class="number">{counted.total:g}</th>{worth}<th></th></tr>{rows}'
        f'<tr class="sum"><td>mean</td><td class="number">{mean}</td>{means}<td></td></tr>'
        f'<tr class="sum"><td>accepted</td><td></td>{solved}<td></td></tr></table>'
        "<p>&#10003; accepted, &#10007; handed in and not accepted, &#8211; not handed in or not solved yet.</p>"
    )
    if whole.not_graded:
        reasons = "".join(f"<li>{html.escape(f'{name}: {why}')}</li>" for name, why in whole.not_graded.items())
        body += f"<h2>Not graded</h2><ul>{reasons}</ul>"
    mistakes = "".join(
        f'<tr><td class="number">{len(m.names)}</td><td>{html.escape(m.exercise)}</td>'
        f'<td class="text">{html.escape(m.gist)}</td>'
        f'<td class="text">{_who(m.names, files)}</td></tr>'
        for m in whole.mistakes()
    )
    if mistakes:
        body += (
            "<h2>Mistakes</h2><p>The most common first; N stands for any number.</p>"
            '<table><tr><th class="number">submissions</th><th>exercise</th><th>verdict</th><th>who</th></tr>'
            f"{mistakes}</table>"
        )
    return _page(whole.scheme.title or "Grades", body)


def films(one: Graded, file: str) -> dict[str, str]:
    """The films of one submission, whose page is `file`: the page of each by its file's name."""
    title = html.escape(one.name)
    return {
        _film_of(file, result): _page(
            f"{one.name}: {result.exercise}",
            f'<p><a href="../{quote(file)}">{title}</a></p>{result.film.replace("<details>", "<details open>", 1)}',
            _OF_FILMS,
        )
        for result in one.results
        if result.film
    }


def submission_page(one: Graded, title: str, file: str) -> str:
    """The verdicts on one submission, whose page is `file`: each with its reason, a picture of the wrong elements, a
    link to the film of the warp at fault and, where it wastes traffic, its X-ray.
    """
    problems = "".join(f"<li>{html.escape(problem)}</li>" for problem in one.problems)
    notes = f"<h2>Problems</h2><ul>{problems}</ul>" if problems else ""
    heading = f"{one.name}: {one.points:g} of {one.maximum:g} points"
    intro = f"<p>{html.escape(title)}</p>" if title else ""
    return _page(heading, f"{intro}{notes}{''.join(_section(result, file) for result in one.results)}")


def _worth(counted: Scheme, name: str) -> str:
    return f"{counted.exercises[name].total:g}" if name in counted.exercises else "&#8211;"


def _mean(points: Sequence[float]) -> str:
    return f"{sum(points) / len(points):.1f}" if points else ""


def _who(names: Sequence[str], files: dict[str, str]) -> str:
    more = f" and {len(names) - _WHO} more" if len(names) > _WHO else ""
    return f"{', '.join(_link(name, files[name]) for name in names[:_WHO])}{more}"


def _link(name: str, file: str) -> str:
    return f'<a href="{quote(file)}">{html.escape(name)}</a>'


def _row(one: Graded, file: str) -> str:
    cells = "".join(
        f'<td class="number" title="{html.escape(KINDS[r.kind])}" style="--kind: {_colour(r)}">'
        f"{f'{r.points:g} ' if r.graded else ''}<b>{_MARKS.get(r.kind, '&#10007;')}</b></td>"
        for r in one.results
    )
    problems = len(one.problems) or ""
    return f'<tr><td>{_link(one.name, file)}</td><td class="number">{one.points:g}</td>{cells}<td>{problems}</td></tr>'


def _film_of(file: str, result: Result) -> str:
    return f"{file.removesuffix('.html')} {result.exercise}.html"


def _section(result: Result, file: str) -> str:
    parts = ", ".join(f"{part.name} {part.points:g} of {part.maximum:g}" for part in result.parts)
    where = f" ({html.escape(result.where)})" if result.where else ""
    folded = f"<details><summary>The X-ray of this call</summary>{result.table}</details>" if result.table else ""
    film = (
        f'<p><a href="films/{quote(_film_of(file, result))}">The film of the warp at fault</a></p>'
        if result.film
        else ""
    )
    text = html.escape(result.text().removeprefix(f"{KINDS[result.kind]}: "))
    return (
        f'<section style="--kind: {_colour(result)}"><h2>{html.escape(result.exercise)}: '
        f"<b>{KINDS[result.kind]}</b></h2><p>{parts}{where}</p><pre>{text}</pre>{result.picture}{film}{folded}</section>"
    )


def _colour(result: Result) -> str:
    return COLOURS.get(result.kind, COLOURS["unsolved"] if result.kind == "missing" else WRONG)


def _page(title: str, body: str, policy: str = _POLICY) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )
