"""`python -m helpers progress`: which exercises are solved, which were tried, and what comes next."""

import argparse
import html
import sys
from itertools import groupby
from operator import attrgetter

from helpers.practice import learner, registry
from helpers.practice.learner import Records
from helpers.practice.registry import Exercise

SOLVED, TRIED, OPEN = "solved", "tried", "open"
MARKS = {SOLVED: "x", TRIED: "~", OPEN: " "}
SIGNS = {SOLVED: ("&#10003;", "#2e9e4f"), TRIED: ("&#8230;", "#d9822b")}  # in a notebook, with their colours


class Progress:
    """A learner's exercises by lesson: text in a terminal, a table in a notebook."""

    def __init__(self, records: Records):
        self.exercises = registry.exercises()
        self._records = records

    def state(self, name: str) -> str:
        """SOLVED, TRIED or OPEN."""
        record = self._records.get(name)
        return OPEN if record is None else SOLVED if "solved" in record else TRIED

    @property
    def solved(self) -> list[Exercise]:
        """The solved exercises, in the order of the lessons."""
        return [e for e in self.exercises if self.state(e.name) == SOLVED]

    @property
    def next(self) -> Exercise | None:
        """The first exercise that is not solved, from the lesson of the last one that was tried on; None if all are."""
        left = [e for e in self.exercises if self.state(e.name) != SOLVED]
        reached = max((e.lesson for e in self.exercises if self.state(e.name) != OPEN), default="00")
        return next((e for e in left if e.lesson >= reached), left[0] if left else None)

    def summary(self) -> str:
        """What is done, and what to do next."""
        minutes = sum(registry.read(e.name).minutes for e in self.exercises if self.state(e.name) != SOLVED)
        done, total, following = len(self.solved), len(self.exercises), self.next
        if following is None:
            return f"All {total} exercises are solved."
        time = f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.0f} hours"
        first = f"Solved: {done} of {total} exercises; the rest takes about {time}."
        if not self._records:
            first = f"Nothing is solved yet: there are {total} exercises, for about {time}."
        marked = registry.read(following.name)
        verb = "Go on" if self._records else "Begin"
        where = f"exercise {marked.number} of lesson {following.lesson}, {following.name}: {following.title}"
        return f"{first} {verb} with {where} (about {marked.minutes} minutes)."

    def __repr__(self) -> str:
        lines = [self.summary()]
        for lesson, group in groupby(self.exercises, attrgetter("lesson")):
            lines += ["", f"lesson {lesson}"]
            lines += [f"  [{MARKS[self.state(e.name)]}] {e.name:22}{e.title}{self._tries(e.name)}" for e in group]
        return "\n".join([*lines, "", "[x] solved  [~] tried"])

    def _repr_html_(self) -> str:
        rows = []
        for lesson, group in groupby(self.exercises, attrgetter("lesson")):
            names = ", ".join(self._name(e) for e in group)
            rows.append(f'<tr><td style="text-align: left">{lesson}</td><td style="text-align: left">{names}</td></tr>')
        table = f"<table><tr><th>lesson</th><th>exercises</th></tr>{''.join(rows)}</table>"
        return f"<p>{html.escape(self.summary())}</p>{table}"

    def _name(self, exercise: Exercise) -> str:
        """The name in the page's own colour, which is legible on light and on dark; only the sign has another."""
        state = self.state(exercise.name)
        title = html.escape(f"{exercise.title}: {state}{self._tries(exercise.name)}", quote=True)
        sign, colour = SIGNS.get(state, ("", ""))
        marked = f'<b style="color: {colour}">{sign}</b> ' if sign else ""
        return f'<span title="{title}">{marked}{html.escape(exercise.name)}</span>'

    def _tries(self, name: str) -> str:
        count = self._records.get(name, {}).get("tries", 0)
        return f" ({count} {'try' if count == 1 else 'tries'})" if count else ""


def my_progress() -> Progress:
    """Which exercises you have solved, which you have tried, and what comes next."""
    return Progress(learner.records())


def main(arguments: list[str]) -> int:
    """Prints the progress, or resets it. Returns 2 if an exercise to reset does not exist."""
    parser = argparse.ArgumentParser(prog="python -m helpers progress", description=__doc__.split(": ", 1)[1])
    parser.add_argument("--reset", nargs="*", metavar="NAME", help="forget these exercises; without names, all")
    options = parser.parse_args(arguments)
    if options.reset is not None:
        try:
            names = [registry.find(name).name for name in options.reset]
        except registry.UnknownExercise as error:
            print(error, file=sys.stderr)
            return 2
        learner.reset(names)
    print(my_progress())
    print(f"kept in {learner.place()}")
    return 0
