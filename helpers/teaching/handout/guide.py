"""`python -m helpers guide`: the generated parts of docs/instructors_guide.md, from the course itself.

A part is between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

import argparse
import json
import re
from pathlib import Path

from helpers.paths import DOCS, NOTEBOOKS
from helpers.practice import registry
from helpers.teaching.handout import assignments
from helpers.teaching.handout.mistakes import by_exercise

GUIDE = DOCS / "instructors_guide.md"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def lessons() -> str:
    """A table: for each lesson its title, minutes and exercises."""
    rows, exercises = ["| lesson | minutes | exercises | minutes |\n|---|---|---|---|\n"], registry.exercises()
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title = first.split("\n")[0].lstrip("# ")
        (minutes,) = re.findall(r"\*\*Time:\*\* (\d+) minutes", first)
        own = [exercise.name for exercise in exercises if exercise.lesson == path.name[:2]]
        total = sum(registry.read(name).minutes for name in own)
        rows.append(f"| {title} | {minutes} | {', '.join(f'`{name}`' for name in own)} | {total or ''} |\n")
    return "".join(rows)


def syllabus() -> str:
    """A table for each ready-made course: its assignments, their lessons, exercises and minutes."""
    parts = []
    for path in sorted(assignments.COURSES.glob("*.yml"), reverse=True):
        course = assignments.read(path)
        rows = [
            f"**{course.title}** (`{path.stem}`)\n\n| assignment | lessons | exercises | minutes |\n|---|---|---|---|\n"
        ]
        for assignment in course.assignments:
            names = list(assignment.scheme.exercises)
            found = ", ".join(sorted({registry.find(name).lesson for name in names}))
            minutes = sum(registry.read(name).minutes for name in names)
            exercises = ", ".join(f"`{name}`" for name in names)
            rows.append(f"| {assignment.scheme.title} | {found} | {exercises} | {minutes} |\n")
        parts.append("".join(rows))
    return "\n".join(parts)


PARTS = {"lessons": lessons, "syllabus": syllabus, "mistakes": by_exercise}


def generated(text: str) -> str:
    """The guide with its generated parts anew. Raises KeyError for a part that there is not."""
    return _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n{part[3]}", text)


def main(arguments: list[str], path: Path = GUIDE) -> int:
    """Writes or checks the guide. Returns 1 if --check finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m helpers guide", description=(__doc__ or "").split("\n\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the generated parts")
    action.add_argument("--check", action="store_true", help="exit with 1 if one differs from the course")
    options = parser.parse_args(arguments)
    old = path.read_text(encoding="utf-8")
    new = generated(old)
    if options.write and new != old:
        path.write_text(new, encoding="utf-8")
    if options.check and new != old:
        print(f"{path.name} differs from the course; run: python -m helpers guide --write")
        return 1
    print("the instructor's guide is up to date")
    return 0
