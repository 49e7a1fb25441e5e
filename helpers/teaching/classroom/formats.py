"""The files that `grade` writes, by name, and the table for the terminal.

The same results give the same bytes: no file holds a time or a date, except where a platform's format demands one.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from helpers.teaching.classroom import classroom50, grade_pages, gradebooks
from helpers.teaching.classroom.points import Worth
from helpers.teaching.classroom.results import KINDS, Class, Graded, Part, Result
from kernel_xray.machine import cache

Files = Iterator[tuple[str, str]]  # path below the output folder, and content
SEVERAL = 3  # submissions: what fewer got might tell whose it is


def as_csv(whole: Class) -> Files:
    """One row a submission: points in all and by exercise, then the verdict by exercise, then problems.

    What was not graded has no points, and counts neither in the points in all nor in their maximum.

    As RFC 4180 describes it: lines end in CR LF, every line has the same number of fields.
    """
    names = list(whole.scheme.exercises)
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\r\n")
    rows.writerow(["submission", "points", "maximum", *names, *(f"{name} verdict" for name in names), "problems"])
    for one in whole.submissions:
        points = [f"{r.points:g}" if r.graded else "" for r in one.results]
        verdicts = [KINDS[r.kind] for r in one.results]
        row = [one.name, f"{one.points:g}", f"{one.maximum:g}", *points, *verdicts, "; ".join(one.problems)]
        rows.writerow(map(_plain_cell, row))
    yield "grades.csv", out.getvalue()


def as_json(whole: Class) -> Files:
    """Everything that is known."""
    exercises = {
        name: {"correctness": worth.correctness, "efficiency": worth.efficiency, **_bar(worth)}
        for name, worth in whole.scheme.exercises.items()
    }
    submissions = [
        {
            "name": one.name,
            "points": one.points,
            "maximum": one.maximum,
            "problems": list(one.problems),
            "results": [
                {
                    "exercise": r.exercise,
                    "verdict": r.kind,
                    "message": r.message,
                    "printed": r.printed,
                    "where": r.where,
                    "points": r.points if r.graded else None,
                    "maximum": r.maximum if r.graded else None,
                    "parts": {part.name: _part(part) for part in r.parts},
                }
                for r in one.results
            ],
        }
        for one in whole.submissions
    ]
    mistakes = [{"exercise": m.exercise, "mistake": m.gist, "submissions": list(m.names)} for m in whole.mistakes()]
    content = {"title": whole.scheme.title, "exercises": exercises, "submissions": submissions, "mistakes": mistakes}
    if whole.not_graded:
        content["not_graded"] = dict(whole.not_graded)
    yield "grades.json", _json(content)


def as_html(whole: Class) -> Files:
    """A page for each submission, and one for the class."""
    files = grade_pages.file_names([one.name for one in whole.submissions])
    yield "html/index.html", grade_pages.class_page(whole, files)
    for one in whole.submissions:
        yield f"html/{files[one.name]}", grade_pages.submission_page(one, whole.scheme.title, files[one.name])
        for file, page in grade_pages.films(one, files[one.name]).items():
            yield f"html/films/{file}", page


def as_anonymous(whole: Class) -> Files:
    """Counts by exercise, and the verdicts of each submission in an order that says nothing of names.

    A message may quote what a student wrote: only those that SEVERAL submissions got are in it.
    """
    names = list(whole.scheme.exercises)
    columns = {name: [one.results[i] for one in whole.submissions] for i, name in enumerate(names)}
    mistakes = [m for m in whole.mistakes() if len(m.names) >= SEVERAL]
    exercises = {
        name: {
            "verdicts": dict(sorted(Counter(r.kind for r in results).items())),
            "points": [r.points if r.graded else None for r in sorted(results, key=lambda r: r.points)],
            "mistakes": [{"mistake": m.gist, "submissions": len(m.names)} for m in mistakes if m.exercise == name],
        }
        for name, results in columns.items()
    }
    rows = sorted([r.kind for r in one.results] for one in whole.submissions)
    content = {"title": whole.scheme.title, "exercises": exercises, "order": names, "verdicts": rows}
    yield "anonymous.json", _json(content)


FORMATS: dict[str, Callable[[Class], Files]] = {
    "csv": as_csv,
    "json": as_json,
    "junit": lambda whole: iter([("junit.xml", gradebooks.junit(whole))]),
    "gradescope": lambda whole: _one_each(whole, "gradescope", gradebooks.gradescope),
    "prairielearn": lambda whole: _one_each(whole, "prairielearn", gradebooks.prairielearn),
    "classroom50": lambda whole: iter([("classroom50/result.json", _json(classroom50.result(whole)))]),
    "html": as_html,
    "anonymous": as_anonymous,
}


def write(name: str, whole: Class, out: Path) -> list[Path]:
    """Writes the files of a format. Returns the first path, or the folder that holds them if there are several."""
    paths = []
    for relative, content in FORMATS[name](whole):
        path = out / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        cache.write_whole(path, content)
        paths.append(path)
    return paths if len(paths) == 1 else [out / name]


def table(whole: Class) -> str:
    """The points of all submissions; of a single one, with the verdicts."""
    if whole.single:
        (one,) = whole.submissions
        lines = [f"{r.exercise}: {_points(r)}{r.text()}" for r in one.results]
        return "\n".join([*lines, *one.problems, f"{one.points:g} of {one.maximum:g} points"])
    width = max(len(one.name) for one in whole.submissions)
    lines = [_line(one, width) for one in whole.submissions]
    common = [f"  {len(m.names)} x {m.exercise}: {m.gist}" for m in whole.mistakes()[:10] if len(m.names) > 1]
    broken = [f"  {name}: {why}" for name, why in whole.not_graded.items()]
    shown = (("not graded:", broken), ("common mistakes:", common))
    return "\n".join([*lines, *(line for head, part in shown if part for line in ("", head, *part))])


def _points(result: Result) -> str:
    return f"{result.points:g} of {result.maximum:g}, " if result.graded else ""


def _line(one: Graded, width: int) -> str:
    solved = sum(result.kind == "accepted" for result in one.results)
    problems = f"  ({len(one.problems)} {'problem' if len(one.problems) == 1 else 'problems'})" if one.problems else ""
    points = f"{one.points:g} of {one.maximum:g}"
    graded = len(one.results) - len(one.not_graded)
    return f"{one.name:{width}}  {points:>12}  {solved} of {graded} accepted{problems}"


def _one_each(whole: Class, folder: str, content: Callable[[Graded], dict]) -> Files:
    """results.json for each submission; for a single one, directly in the folder."""
    for one in whole.submissions:
        path = f"{folder}/results.json" if whole.single else f"{folder}/{one.name}/results.json"
        yield path, _json(content(one))


def _json(content: dict) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _bar(worth: Worth) -> dict:
    return {"speed": worth.speed, "at_least": worth.at_least} if worth.speed else {}


def _part(part: Part) -> dict:
    return {"points": part.points, "maximum": part.maximum, **({"note": part.note} if part.note else {})}


# What a spreadsheet takes for the beginning of a formula, in full width too, and what hides one.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def _plain_cell(text: str) -> str:
    """A spreadsheet runs a cell that begins like a formula; an apostrophe makes it text."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{text}" if _FORMULA.match(text) and not re.fullmatch(r"-?[\d.]+", text) else text
