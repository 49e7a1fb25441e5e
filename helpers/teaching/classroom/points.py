"""The points of an assignment, from a YAML file that the instructor writes:

    title: Week 1                # optional
    efficiency: 0.25             # optional: this share of each exercise's points is for efficiency, by default 0
    exercises:
      roll: 10                   # points
      transpose: {points: 20, efficiency: 0.5}
      blend: {points: 20, speed: {share: 0.25, at_least: 0.8, of: solution, unmeasured: withheld}}

An accepted answer gets the points for correctness. It gets those for efficiency as well if no line of it wastes memory
traffic by the simulator's counts, that is, takes twice the ideal number of sectors or wavefronts; or if a line of the
course's own solution does so too. It gets those for speed if it reaches the share `at_least` of the solution's speed,
timed side by side on the GPU that grades. Where none does, they are `withheld` (the default) or `given`, and the
verdict says so.
"""

import difflib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from helpers.practice import registry
from helpers.teaching.classroom.speed import can_time

UNMEASURED = ("withheld", "given")
_BYTES = 1_000_000
T = TypeVar("T")


class PointsError(ValueError):
    """The file of points is wrong. The message names file, key and value, and says what to write."""


@dataclass(frozen=True)
class Worth:
    """What an exercise is worth: `correctness`, `efficiency` and `speed` in points.

    at_least: the share of the solution's speed that earns those for speed
    unmeasured: what happens to them where no GPU grades, a key of UNMEASURED
    """

    correctness: float
    efficiency: float = 0.0
    speed: float = 0.0
    at_least: float = 0.0
    unmeasured: str = "withheld"

    @property
    def total(self) -> float:
        return rounded(self.correctness + self.efficiency + self.speed)


@dataclass(frozen=True)
class Scheme:
    """The exercises of an assignment, in the order of the file, and what each is worth."""

    title: str
    exercises: dict[str, Worth]

    @property
    def total(self) -> float:
        return rounded(sum(worth.total for worth in self.exercises.values()))

    def without(self, names: Collection[str]) -> "Scheme":
        """The same for other exercises."""
        return Scheme(self.title, {name: worth for name, worth in self.exercises.items() if name not in names})


def rounded(points: float) -> float:
    """Points to four decimals, so that sums of shares look as the instructor wrote them."""
    return round(points, 4)


def one_each(names: Iterable[str]) -> Scheme:
    """A scheme without a file: one point for each exercise, all for correctness, in lesson order."""
    wanted = set(names)
    return Scheme("", {e.name: Worth(1.0) for e in registry.exercises() if e.name in wanted})


def read(path: Path) -> Scheme:
    """The scheme in a file. Raises PointsError."""
    return understood(path, scheme)


def understood(path: Path, understand: Callable[[Any], T]) -> T:
    """What `understand` makes of the content of a YAML file. Raises PointsError, which names the file."""
    given = _load(path)
    try:
        return understand(given)
    except PointsError as error:
        raise PointsError(f"{path}: {error}") from None


def _load(path: Path) -> Any:
    try:
        content = path.read_bytes()
        if len(content) > _BYTES:
            raise PointsError(f"{path} is larger than {_BYTES // 1_000_000} MB; is it the right file?")
        return yaml.load(content.decode("utf-8"), _Loader)
    except OSError as error:
        raise PointsError(f"{path} cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise PointsError(f"{path} is not a YAML text in UTF-8 ({type(error).__name__})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise PointsError(f"{path}{line}: not YAML: {getattr(error, 'problem', error)}") from error


class _Loader(yaml.SafeLoader):
    """Refuses a key that is written twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is written twice", node.start_mark)
        return super().construct_mapping(node, deep)


def scheme(given: Any) -> Scheme:
    """The scheme in what YAML gave. Raises PointsError."""
    top = mapping(given, "the file", ("title", "efficiency", "exercises"))
    title = top.get("title", "")
    if not isinstance(title, str):
        raise PointsError(f"title is {title!r}; write a text")
    usual = _share(top.get("efficiency", 0), "efficiency")
    exercises = top.get("exercises")
    names = [exercise.name for exercise in registry.exercises()]
    if not isinstance(exercises, dict) or not exercises:
        raise PointsError("exercises is missing or empty; write lines such as '  roll: 10' below 'exercises:'")
    for name in exercises:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            hint = f"is it {near[0]}?" if near else f"there are {', '.join(names)}"
            raise PointsError(f"exercises: there is no exercise {name!r}; {hint}")
    return Scheme(title, {name: _worth(name, value, usual) for name, value in exercises.items()})


def _worth(name: str, given: Any, usual: float) -> Worth:
    where = f"exercises.{name}"
    speed, at_least, unmeasured = 0.0, 0.0, UNMEASURED[0]
    if isinstance(given, dict):
        given = mapping(given, where, ("points", "efficiency", "speed"))
        if "points" not in given:
            raise PointsError(f"{where}: points is missing; write '{name}: {{points: 10}}'")
        points, usual = given["points"], _share(given.get("efficiency", usual), f"{where}.efficiency")
        if "speed" in given:
            if not can_time(name):
                raise PointsError(f"{where}.speed: {name} has no inputs that are large enough to be timed")
            speed, at_least, unmeasured = _speed(given["speed"], f"{where}.speed")
        if usual + speed > 1:
            raise PointsError(f"{where}: the shares for efficiency and speed, {usual:g} and {speed:g}, exceed 1")
        where += ".points"
    else:
        points = given
    if not _is_number(points) or not 0 < points <= 1e6:
        raise PointsError(f"{where} is {points!r}; write a number of points above 0, such as 10")
    correctness, efficient, fast = (rounded(points * share) for share in (1 - usual - speed, usual, speed))
    return Worth(correctness, efficient, fast, at_least, unmeasured)


def _speed(given: Any, where: str) -> tuple[float, float, str]:
    """Share of the points, share of the solution's speed, and what happens to the points if nothing was measured."""
    given = mapping(given, where, ("share", "at_least", "of", "unmeasured"))
    for key in ("share", "at_least"):
        if key not in given:
            raise PointsError(f"{where}: {key} is missing; write 'speed: {{share: 0.25, at_least: 0.8}}'")
    at_least, of, unmeasured = given["at_least"], given.get("of", "solution"), given.get("unmeasured", UNMEASURED[0])
    if not _is_number(at_least) or not 0 < at_least <= 10:
        raise PointsError(f"{where}.at_least is {at_least!r}; write a share of the solution's speed, such as 0.8")
    if of != "solution":
        raise PointsError(f"{where}.of is {of!r}; the only choice is 'solution', the course's own")
    if unmeasured not in UNMEASURED:
        raise PointsError(f"{where}.unmeasured is {unmeasured!r}; write {' or '.join(UNMEASURED)}")
    return _share(given["share"], f"{where}.share"), float(at_least), unmeasured


def mapping(given: Any, what: str, keys: tuple[str, ...]) -> dict:
    """`given`, called `what` in messages, if it is a mapping with none but these keys. Raises PointsError."""
    if not isinstance(given, dict):
        raise PointsError(f"{what} holds {type(given).__name__}; write 'key: value' lines with {', '.join(keys)}")
    for key in given:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, 1)
            hint = f"is it {near[0]}?" if near else f"the keys are {', '.join(keys)}"
            raise PointsError(f"{what}: unknown key {key!r}; {hint}")
    return given


def _share(given: Any, where: str) -> float:
    if not _is_number(given) or not 0 <= given <= 1:
        raise PointsError(f"{where} is {given!r}; write a share of the points from 0 to 1, such as 0.25")
    return float(given)


def _is_number(given: Any) -> bool:
    return type(given) in (int, float) and given == given
