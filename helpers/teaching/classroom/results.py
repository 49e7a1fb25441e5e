"""From verdicts to points: what each submission and the class as a whole got."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from helpers.practice import registry
from helpers.practice.verdict import HEADS
from helpers.teaching.classroom.points import Scheme, Worth, rounded
from helpers.teaching.classroom.submissions import Submission
from helpers.teaching.classroom.verdicts import Checked, Store, key_of, solution_of

_NUMBER = re.compile(r"[-+]?\d+(?:[,.]\d+)*(?:e[-+]?\d+)?")
UNGRADED = "ungraded"  # the grader is wrong about this exercise: see calibration.py
KINDS = {**HEADS, "missing": "not handed in", "ambiguous": "handed in more than once", UNGRADED: "not graded"}
_NOTHING = (KINDS["missing"], KINDS["unsolved"])


@dataclass(frozen=True)
class Part:
    """Points for one thing: "correctness", "efficiency" or "speed". `note` says why."""

    name: str
    points: float
    maximum: float
    note: str = ""


@dataclass(frozen=True)
class Result:
    """What a submission got for an exercise. `kind` is a key of KINDS; `where` is the file or cell."""

    exercise: str
    kind: str
    message: str
    where: str
    parts: tuple[Part, ...]
    printed: str = ""
    table: str = ""  # the X-ray that shows waste, as HTML
    film: str = ""  # of the warp at fault, as HTML that runs a script
    picture: str = ""  # of the wrong elements, as SVG

    @property
    def points(self) -> float:
        return rounded(sum(part.points for part in self.parts))

    @property
    def maximum(self) -> float:
        return rounded(sum(part.maximum for part in self.parts))

    @property
    def graded(self) -> bool:
        """If not, it has no points and no maximum: neither counts."""
        return self.kind != UNGRADED

    def text(self) -> str:
        """Verdict, message, notes on points, and what was printed."""
        notes = [f"{part.name}: {part.note}" for part in self.parts if part.note]
        printed = ["printed:", self.printed] if self.printed else []
        lines = [f"{KINDS[self.kind]}: {self.message}", *notes, *printed]
        return "\n".join(lines)


@dataclass(frozen=True)
class Graded:
    """A submission with its results, in the order of the scheme. Exercises that were not graded do not count."""

    name: str
    results: tuple[Result, ...]
    problems: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        return rounded(sum(result.points for result in self.results))

    @property
    def maximum(self) -> float:
        return rounded(sum(result.maximum for result in self.results))

    @property
    def not_graded(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if not result.graded)


@dataclass(frozen=True)
class Class:
    """All submissions of an assignment.

    single: FOLDER was one submission
    not_graded: the exercises that could not be graded, and why
    """

    scheme: Scheme
    submissions: tuple[Graded, ...]
    single: bool = False
    not_graded: Mapping[str, str] = field(default_factory=dict)

    def mistakes(self) -> list["Mistake"]:
        """What went wrong for whom, the most common first; who handed in nothing comes last."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.submissions:
            for result in one.results:
                if result.kind not in ("accepted", UNGRADED):
                    found.setdefault((result.exercise, _gist(result)), []).append(one.name)
        order = {name: i for i, name in enumerate(self.scheme.exercises)}
        mistakes = [Mistake(exercise, gist, tuple(names)) for (exercise, gist), names in found.items()]
        return sorted(mistakes, key=lambda m: (m.gist in _NOTHING, -len(m.names), order[m.exercise], m.gist))


@dataclass(frozen=True)
class Mistake:
    """The same verdict on several answers to an exercise, but for numbers."""

    exercise: str
    gist: str
    names: tuple[str, ...] = field(default=())


def collect(
    submissions: Sequence[Submission],
    scheme: Scheme,
    store: Store,
    single: bool = False,
    not_graded: Mapping[str, str] = MappingProxyType({}),
) -> Class:
    """The results of all submissions. The verdicts are in the store, but for exercises that were not graded."""
    graded = tuple(_graded(one, scheme, store, not_graded) for one in submissions)
    return Class(scheme, graded, single, not_graded)


def _graded(one: Submission, scheme: Scheme, store: Store, not_graded: Mapping[str, str]) -> Graded:
    extra = [f"{name} is not part of this assignment: not counted" for name in one.answers.keys() - scheme.exercises]
    results = tuple(
        Result(name, UNGRADED, not_graded[name], "", ()) if name in not_graded else _result(one, name, scheme, store)
        for name in scheme.exercises
    )
    return Graded(one.name, results, (*one.problems, *sorted(extra)))


def _result(one: Submission, name: str, scheme: Scheme, store: Store) -> Result:
    worth, found = scheme.exercises[name], one.answers.get(name, ())
    where = " and ".join(answer.where for answer in found)
    if not found:
        file = registry.find(name).starter.name
        checked = Checked(name, "unsolved", "")
        kind, message = "missing", f"there is no file {file} and no cell %%exercise {name}"
    elif len(found) > 1:
        checked = Checked(name, "unsolved", "")
        kind, message = "ambiguous", f"{where} differ, so neither was checked; keep one"
    else:
        kept = store.get(key_of(found[0]))
        if kept is None:
            raise LookupError(f"{one.name}: {name} has no verdict")
        checked, kind, message = kept, kept.kind, kept.message
    parts = [Part("correctness", worth.correctness if checked.accepted else 0.0, worth.correctness)]
    if worth.efficiency:
        own = store.get(key_of(solution_of(name)))
        efficient = checked.accepted and (not checked.table or (own is not None and bool(own.table)))
        parts.append(Part("efficiency", worth.efficiency if efficient else 0.0, worth.efficiency))
    if worth.speed:
        parts.append(_speed(worth, checked))
    shown = {"printed": checked.printed, "table": checked.table, "film": checked.film, "picture": checked.picture}
    return Result(name, kind, message, where, tuple(parts), **shown)


def _speed(worth: Worth, checked: Checked) -> Part:
    """The points for speed, and what was measured."""
    if not checked.accepted:
        return Part("speed", 0.0, worth.speed)
    try:
        share = float(checked.speed)
    except ValueError:
        if checked.speed:
            return Part("speed", 0.0, worth.speed, checked.speed)
        points = worth.speed if worth.unmeasured == "given" else 0.0
        fate = f"its {worth.speed:g} points are {worth.unmeasured}"
        return Part("speed", points, worth.speed, f"not measured, since no GPU timed this answer: {fate}")
    points = worth.speed if share >= worth.at_least else 0.0
    note = f"{share:g} times the solution's; at least {worth.at_least:g} earns {worth.speed:g} points"
    return Part("speed", points, worth.speed, note)


def _gist(result: Result) -> str:
    """The first line of the verdict, with numbers as N, so that one mistake has one gist."""
    if result.kind in ("missing", "ambiguous", "unsolved"):
        return KINDS[result.kind]
    line = result.message.split("\n", 1)[0]
    return f"{KINDS[result.kind]}: {_NUMBER.sub('N', line)}"[:200]
