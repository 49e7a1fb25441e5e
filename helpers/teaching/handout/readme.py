"""The README.md of the students' copy: what to do, by when, for how much."""

from helpers.practice import registry
from helpers.teaching.handout.assignments import Assignment, Course


def readme(course: Course) -> str:
    """The page as Markdown."""
    first = registry.find(course.exercises[0])
    return f"""# {course.title}

Exercises in CUDA C++ that need no GPU: a simulator runs the kernels on your machine.

    make setup                # once: .venv with all that is needed; a few minutes
    make lab                  # the lessons and exercises in JupyterLab
    make check NAME={first.name:<10} # checks my_lessons/exercises/{first.starter.name}

Write each answer into its file in `my_lessons/exercises/`, or into its cell in the lesson. A file and a cell of the
same exercise must not differ: keep one of them as it was. A check builds your answer, runs it on many shapes and names
the first that is wrong. `hint("NAME")` shows a hint in a notebook.

{"".join(_section(course, assignment) for assignment in course.assignments)}## Rules

Discuss ideas with others as much as you like, and write your code alone. Say in a comment what you took from where, be
it a person, a page or a program. Your instructor compares the answers with each other.

These files are under the license in LICENSE.
"""


def _section(course: Course, assignment: Assignment) -> str:
    rows = []
    for name, worth in assignment.scheme.exercises.items():
        marked = registry.read(name)
        rows.append(f"| `{name}` | {marked.lesson} | {marked.title} | about {marked.minutes} | {worth.total:g} |\n")
    efficiency = any(worth.efficiency for worth in assignment.scheme.exercises.values())
    dates = [
        f"{word} {moment:%Y-%m-%d %H:%M}"
        for word, moment in (("from", assignment.opens), ("until", assignment.due))
        if moment
    ]
    share = f"{100 * course.share(assignment):.0f}% of the course" if len(course.assignments) > 1 else ""
    facts = ", ".join(filter(None, [" ".join(dates), share]))
    note = "Part of the points is for code that wastes no memory traffic.\n" if efficiency else ""
    note += f"Count your points for correctness: `make points FILE=assignments/{assignment.name}.yml`\n"
    return f"""## {assignment.scheme.title}

{facts + chr(10) + chr(10) if facts else ""}| exercise | lesson | title | minutes | points |
|---|---|---|---|---|
{"".join(rows)}
{note}
"""
