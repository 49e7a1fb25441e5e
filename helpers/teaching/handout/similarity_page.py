"""The page of similar answers: a table of pairs, and below it each pair side by side."""

import html
from collections.abc import Sequence

from helpers.teaching.classroom.submissions import Answer
from helpers.teaching.handout.similarity import Pair, counted

STYLE = """body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; } td, th { padding: 2px 12px; text-align: left; vertical-align: top; }
pre { overflow-x: auto; } mark { background: #ffe08a; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1em; }"""
NOTE = (
    "Marked lines are alike but for names, comments and white space, and are neither in the starter nor in the "
    "course's solution nor in a third of the class. That is a reason to read both and to ask; it proves nothing."
)


def page(pairs: Sequence[Pair], count: int) -> str:
    """The whole page as HTML. It loads nothing from elsewhere."""
    rows: list[str] = []
    bodies: list[str] = []
    for pair in pairs:
        for one in pair.common:
            number = len(bodies) + 1
            cells = (*pair.names, one.exercise, f"{one.share:.0%}", str(one.prints))
            row = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            rows.append(f'<tr>{row}<td><a href="#pair{number}">read</a></td></tr>')
            sides = zip(pair.names, one.answers, one.lines, strict=True)
            texts = (f"<div><h3>{html.escape(who)}</h3>{_source(text, lines)}</div>" for who, text, lines in sides)
            head = f"{one.exercise}: {pair.names[0]} and {pair.names[1]}"
            bodies.append(f'<h2 id="pair{number}">{html.escape(head)}</h2><div class="pair">{"".join(texts)}</div>')
    columns = ("submission", "submission", "exercise", "of the shorter", "fingerprints", "")
    heads = "".join(f"<th>{column}</th>" for column in columns)
    found = f"<table><tr>{heads}</tr>{''.join(rows)}</table>" if rows else "<p>No pair.</p>"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Similar answers</title>'
        f"<style>{STYLE}</style></head><body><h1>Similar answers among {counted(count)}</h1><p>{NOTE}</p>"
        f"{found}{''.join(bodies)}</body></html>\n"
    )


def _source(answer: Answer, marked: frozenset[int]) -> str:
    lines = [
        f"<mark>{html.escape(line)}</mark>" if number in marked else html.escape(line)
        for number, line in enumerate(answer.text.split("\n"), 1)
    ]
    return f"<p>{html.escape(answer.where)}</p><pre>{chr(10).join(lines)}</pre>"
