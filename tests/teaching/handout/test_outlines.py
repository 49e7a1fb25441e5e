"""An outline says all that the solution file says, but for the solution."""

import pytest

from helpers.practice import registry
from helpers.practice.marks import parse
from helpers.teaching.handout.outlines import builds_upon, outline, removed_lines

EXERCISES = registry.exercises()


@pytest.mark.parametrize("exercise", EXERCISES, ids=[exercise.name for exercise in EXERCISES])
def test_an_outline_gives_the_same_starter_cell_and_hints(exercise):
    text = exercise.solution.read_text(encoding="utf-8")
    whole, without = parse(text, "solution"), parse(outline(text), "outline")
    for part in ("name", "title", "lesson", "minutes", "specification", "hints", "starter", "cell", "cell_text"):
        assert getattr(without, part) == getattr(whole, part)
    assert [size for size, _ in without.gaps] == [size for size, _ in whole.gaps]
    assert [count for _, count in without.gaps] == [0] * len(whole.gaps)
    sign = "#" if exercise.solution.suffix == ".py" else "//"
    code = [line for line in removed_lines(text) if line.strip() and not line.strip().startswith(sign)]
    assert len(code) == sum(count for _, count in whole.gaps) > 0
    assert outline(outline(text)) == outline(text)


def test_an_exercise_that_needs_another_solution_is_known():
    assert builds_upon("compact_registered") == ["compact"]
    assert [exercise.name for exercise in EXERCISES if builds_upon(exercise.name)] == ["compact_registered"]
